/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs2/nfs2_args.h"

#include <sys/stat.h>

#include "lib/util.h"

#define MODE_BITS 07777u
#define MODE_KEEP_SUN 0xffffu /* some Sun clients mean NFS2_KEEP by it */
#define USEC_PER_SEC 1000000u
#define NSEC_PER_USEC 1000u

void nfs2_get_fh(struct xdr_in *x, struct vfs_packed_fh *fh)
{
	xdr_get_fixed(x, fh->data, sizeof(fh->data));
}

static void nfs2_get_name(struct xdr_in *x, struct nfs3_name *n)
{
	uint32_t len = xdr_get_u32(x);

	if (x->err)
		return;
	n->len = len;
	if (len > NFS3_NAME_MAX)
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
	else
		xdr_get_fixed(x, n->bytes, len);
}

void nfs2_get_dirop(struct xdr_in *x, struct nfs2_dirop_args *a)
{
	nfs2_get_fh(x, &a->dir);
	nfs2_get_name(x, &a->name);
}

/* False: the time is not to be set. More microseconds than a second has: *usec tells. */
static bool nfs2_get_time(struct xdr_in *x, struct timespec *t, uint32_t *usec)
{
	uint32_t sec = xdr_get_u32(x);

	*usec = xdr_get_u32(x);
	if (sec == NFS2_KEEP || *usec == NFS2_KEEP)
		return false;
	t->tv_sec = sec;
	t->tv_nsec = *usec < USEC_PER_SEC ? (long)(*usec * NSEC_PER_USEC) : 0;
	return true;
}

/* A million microseconds in mtime stand for the server's time in both, by a convention of Sun's clients:
 * so touch(1) works for those who may write and do not own the file. */
static void get_times(struct xdr_in *x, struct nfs2_sattr *a)
{
	struct vfs_setattr *s = &a->set;
	uint32_t atime_usec, mtime_usec;

	if (nfs2_get_time(x, &s->atime, &atime_usec))
		s->set_atime = VFS_TIME_CLIENT;
	if (nfs2_get_time(x, &s->mtime, &mtime_usec))
		s->set_mtime = VFS_TIME_CLIENT;
	if (s->set_mtime != VFS_TIME_KEEP && mtime_usec == USEC_PER_SEC) {
		s->set_mtime = VFS_TIME_SERVER;
		if (s->set_atime != VFS_TIME_KEEP)
			s->set_atime = VFS_TIME_SERVER;
	}
	if ((s->set_atime == VFS_TIME_CLIENT && atime_usec >= USEC_PER_SEC) ||
	    (s->set_mtime == VFS_TIME_CLIENT && mtime_usec >= USEC_PER_SEC))
		a->bad = true;
}

void nfs2_get_sattr(struct xdr_in *x, struct nfs2_sattr *a)
{
	struct vfs_setattr *s = &a->set;
	uint32_t mode = xdr_get_u32(x);

	s->set_mode = mode != NFS2_KEEP && mode != MODE_KEEP_SUN;
	if (s->set_mode) {
		s->mode = mode & MODE_BITS;
		a->type = mode & S_IFMT;
	}
	s->uid = xdr_get_u32(x);
	s->set_uid = s->uid != NFS2_KEEP;
	s->gid = xdr_get_u32(x);
	s->set_gid = s->gid != NFS2_KEEP;
	s->size = xdr_get_u32(x);
	s->set_size = s->size != NFS2_KEEP;
	get_times(x, a);
}

bool nfs2_decode_fh_args(struct xdr_in *x, void *args)
{
	struct nfs2_fh_args *a = args;

	nfs2_get_fh(x, &a->fh);
	return !x->err;
}

bool nfs2_decode_dirop(struct xdr_in *x, void *args)
{
	nfs2_get_dirop(x, args);
	return !x->err;
}
