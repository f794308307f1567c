/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nfs3_args.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"

#define NSEC_PER_SEC 1000000000u
#define MODE_BITS 07777u

int nfs3_name_check(const struct nfs3_name *n)
{
	if (n->len > NFS3_NAME_MAX)
		return -ENAMETOOLONG;
	if (n->len == 0 || memchr(n->bytes, '\0', n->len) || memchr(n->bytes, '/', n->len))
		return -EACCES;
	return 0;
}

void nfs3_get_fh(struct xdr_in *x, struct vfs_fh *fh)
{
	uint32_t len = xdr_get_u32(x);

	if (len > NFS3_FHSIZE)
		x->err = true;
	if (x->err)
		return;
	fh->len = len;
	xdr_get_fixed(x, fh->data, len);
}

void nfs3_get_name(struct xdr_in *x, struct nfs3_name *n)
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

void nfs3_get_dirop(struct xdr_in *x, struct nfs3_dirop_args *a)
{
	nfs3_get_fh(x, &a->dir);
	nfs3_get_name(x, &a->name);
}

struct timespec nfs3_get_time(struct xdr_in *x, bool *bad)
{
	struct timespec t;
	uint32_t nsec;

	t.tv_sec = xdr_get_u32(x);
	nsec = xdr_get_u32(x);
	if (nsec >= NSEC_PER_SEC) {
		*bad = true;
		nsec = 0;
	}
	t.tv_nsec = nsec;
	return t;
}

static enum vfs_set_time get_set_time(struct xdr_in *x, struct timespec *t, bool *bad)
{
	switch (xdr_get_u32(x)) {
	case NFS3_DONT_CHANGE:
		return VFS_TIME_KEEP;
	case NFS3_SET_TO_SERVER_TIME:
		return VFS_TIME_SERVER;
	case NFS3_SET_TO_CLIENT_TIME:
		*t = nfs3_get_time(x, bad);
		return VFS_TIME_CLIENT;
	}
	x->err = true;
	return VFS_TIME_KEEP;
}

void nfs3_get_sattr(struct xdr_in *x, struct nfs3_sattr *a)
{
	struct vfs_setattr *s = &a->set;

	s->set_mode = xdr_get_bool(x);
	if (s->set_mode)
		s->mode = xdr_get_u32(x) & MODE_BITS;
	s->set_uid = xdr_get_bool(x);
	if (s->set_uid)
		s->uid = xdr_get_u32(x);
	s->set_gid = xdr_get_bool(x);
	if (s->set_gid)
		s->gid = xdr_get_u32(x);
	s->set_size = xdr_get_bool(x);
	if (s->set_size)
		s->size = xdr_get_u64(x);
	/* (uid_t)-1 means "no change" to the kernel, so no file can have it. */
	if (s->size > INT64_MAX || (s->set_uid && s->uid == UINT32_MAX) ||
	    (s->set_gid && s->gid == UINT32_MAX))
		a->bad = true;
	s->set_atime = get_set_time(x, &s->atime, &a->bad);
	s->set_mtime = get_set_time(x, &s->mtime, &a->bad);
}

bool nfs3_decode_fh_args(struct xdr_in *x, void *args)
{
	struct nfs3_fh_args *a = args;

	nfs3_get_fh(x, &a->fh);
	return !x->err;
}

bool nfs3_decode_word(struct xdr_in *x, void *args)
{
	struct nfs3_word_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->word = xdr_get_u32(x);
	return !x->err;
}

bool nfs3_decode_dirop(struct xdr_in *x, void *args)
{
	nfs3_get_dirop(x, args);
	return !x->err;
}

static enum ftype3 ftype_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NF3DIR;
	case S_IFBLK:
		return NF3BLK;
	case S_IFCHR:
		return NF3CHR;
	case S_IFLNK:
		return NF3LNK;
	case S_IFSOCK:
		return NF3SOCK;
	case S_IFIFO:
		return NF3FIFO;
	default:
		return NF3REG;
	}
}

/* nfstime3 counts seconds in 32 unsigned bits; times before 1970 wrap, as with every server. */
static void nfs3_put_time(struct xdr_out *x, const struct timespec *t)
{
	xdr_put_u32(x, (uint32_t)t->tv_sec);
	xdr_put_u32(x, (uint32_t)t->tv_nsec);
}

void nfs3_put_fattr(struct xdr_out *x, const struct vfs_attr *a)
{
	xdr_put_u32(x, ftype_of(a->mode));
	xdr_put_u32(x, a->mode & 07777);
	xdr_put_u32(x, a->nlink);
	xdr_put_u32(x, a->uid);
	xdr_put_u32(x, a->gid);
	xdr_put_u64(x, a->size);
	xdr_put_u64(x, a->used);
	xdr_put_u32(x, a->rdev_major);
	xdr_put_u32(x, a->rdev_minor);
	xdr_put_u64(x, a->fsid);
	xdr_put_u64(x, a->fileid);
	nfs3_put_time(x, &a->atime);
	nfs3_put_time(x, &a->mtime);
	nfs3_put_time(x, &a->ctime);
}

void nfs3_put_post_op_attr(struct xdr_out *x, const struct vfs_attr *a)
{
	xdr_put_bool(x, a != NULL);
	if (a)
		nfs3_put_fattr(x, a);
}

void nfs3_put_post_op_fh(struct xdr_out *x, const struct vfs_fh *fh)
{
	xdr_put_bool(x, fh != NULL);
	if (fh)
		xdr_put_opaque(x, fh->data, fh->len);
}

void nfs3_put_wcc(struct xdr_out *x, const struct vfs_attr *before, const struct vfs_attr *after)
{
	xdr_put_bool(x, before != NULL);
	if (before) {
		xdr_put_u64(x, before->size);
		nfs3_put_time(x, &before->mtime);
		nfs3_put_time(x, &before->ctime);
	}
	nfs3_put_post_op_attr(x, after);
}
