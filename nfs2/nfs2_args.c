/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs2/nfs2_args.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "lib/util.h"
#include "vfs/file_state.h"

#define MODE_BITS 07777u
#define MODE_KEEP_SUN 0xffffu /* some Sun clients mean NFS2_KEEP by it */
#define USEC_PER_SEC 1000000u
#define NSEC_PER_USEC 1000u
/* Seconds by which a client's clock may differ from ours when it means "now". */
#define NOW_WITHIN (30 * 60)

void nfs2_get_fh(struct xdr_in *x, struct vfs_fh *fh)
{
	fh->len = VFS_PACKED_FH;
	xdr_get_fixed(x, fh->data, VFS_PACKED_FH);
}

void nfs2_get_dirop(struct xdr_in *x, struct nfs3_dirop_args *a)
{
	nfs2_get_fh(x, &a->dir);
	nfs3_get_name(x, &a->name);
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
static void get_times(struct xdr_in *x, struct nfs3_sattr *a)
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
	a->is_now = s->set_atime == VFS_TIME_CLIENT && s->set_mtime == VFS_TIME_CLIENT &&
		    s->atime.tv_sec == s->mtime.tv_sec &&
		    llabs((long long)s->atime.tv_sec - (long long)time(NULL)) < NOW_WITHIN;
}

void nfs2_get_sattr(struct xdr_in *x, struct nfs3_sattr *a)
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
	struct nfs3_fh_args *a = args;

	nfs2_get_fh(x, &a->fh);
	return !x->err;
}

bool nfs2_decode_word(struct xdr_in *x, void *args)
{
	struct nfs3_word_args *a = args;

	nfs2_get_fh(x, &a->fh);
	a->word = xdr_get_u32(x);
	return !x->err;
}

bool nfs2_decode_dirop(struct xdr_in *x, void *args)
{
	nfs2_get_dirop(x, args);
	return !x->err;
}

#define SECTOR 512u

static const struct {
	int err;
	enum nfsstat2 status;
} meaning[] = {
	{ 0, NFS2_OK },
	{ EPERM, NFS2ERR_PERM },
	{ ENOENT, NFS2ERR_NOENT },
	{ ENXIO, NFS2ERR_NXIO },
	{ EACCES, NFS2ERR_ACCES },
	{ ETXTBSY, NFS2ERR_ACCES },
	{ EBUSY, NFS2ERR_ACCES },
	{ EXDEV, NFS2ERR_ACCES },
	{ RN_ESHARE, NFS2ERR_ACCES },
	{ EEXIST, NFS2ERR_EXIST },
	{ ENODEV, NFS2ERR_NODEV },
	{ ENOTDIR, NFS2ERR_NOTDIR },
	{ ELOOP, NFS2ERR_NOTDIR },
	{ EISDIR, NFS2ERR_ISDIR },
	{ EFBIG, NFS2ERR_FBIG },
	{ EOVERFLOW, NFS2ERR_FBIG },
	{ ENOSPC, NFS2ERR_NOSPC },
	{ EMLINK, NFS2ERR_NOSPC }, /* a directory full of directories */
	{ EROFS, NFS2ERR_ROFS },
	{ ENAMETOOLONG, NFS2ERR_NAMETOOLONG },
	{ ENOTEMPTY, NFS2ERR_NOTEMPTY },
	{ EDQUOT, NFS2ERR_DQUOT },
	{ ESTALE, NFS2ERR_STALE },
	{ EBADF, NFS2ERR_STALE }, /* not a handle of this form: there is no BADHANDLE */
};

enum nfsstat2 nfs2_status(int rc)
{
	for (unsigned i = 0; i < rn_array_size(meaning); i++)
		if (meaning[i].err == -rc)
			return meaning[i].status;
	return NFS2ERR_IO;
}

static bool nfs2_put_status(struct nfs3_op *op, int rc)
{
	const enum nfsstat2 status = nfs2_status(rc);

	xdr_put_u32(&op->req->out, status);
	return status == NFS2_OK;
}

/* NFSv2 has no words for two failures of ACLs. The kernel's server sends those of NFSv3. */
static bool nfsacl2_put_status(struct nfs3_op *op, int rc)
{
	if (rc == -EINVAL || rc == -EOPNOTSUPP) {
		xdr_put_u32(&op->req->out, rc == -EINVAL ? NFS2ERR_INVAL : NFS2ERR_NOTSUPP);
		return false;
	}
	return nfs2_put_status(op, rc);
}

uint32_t nfs2_fold(uint64_t number)
{
	return (uint32_t)(number >> 32 ^ number);
}

static enum ftype2 nfs2_type_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NF2DIR;
	case S_IFBLK:
		return NF2BLK;
	case S_IFCHR:
	case S_IFIFO:
		return NF2CHR;
	case S_IFLNK:
		return NF2LNK;
	case S_IFSOCK:
		return NF2SOCK;
	default:
		return NF2REG;
	}
}

static uint32_t device_of(const struct vfs_attr *a)
{
	const uint32_t minor = a->rdev_minor;

	if (!S_ISCHR(a->mode) && !S_ISBLK(a->mode))
		return NFS2_FIFO_DEV;
	return (minor & 0xff) | (a->rdev_major & 0xfff) << 8 | (minor & 0xfff00) << 12;
}

static void nfs2_put_time(struct xdr_out *x, const struct timespec *t)
{
	xdr_put_u32(x, (uint32_t)t->tv_sec);
	xdr_put_u32(x, (uint32_t)(t->tv_nsec / NSEC_PER_USEC));
}

/* A larger file has the largest size that the field holds. Its client then cannot take an offset within the
 * file for the end of it, and append there. */
static uint32_t nfs2_size_of(const struct vfs_attr *a)
{
	if (S_ISLNK(a->mode))
		return (uint32_t)rn_min(a->size, NFS2_PATH_MAX);
	return (uint32_t)rn_min(a->size, NFS2_SIZE_MAX);
}

static void nfs2_put_fattr(struct xdr_out *x, const struct vfs_attr *a)
{
	xdr_put_u32(x, nfs2_type_of(a->mode));
	xdr_put_u32(x, a->mode);
	xdr_put_u32(x, a->nlink);
	xdr_put_u32(x, a->uid);
	xdr_put_u32(x, a->gid);
	xdr_put_u32(x, nfs2_size_of(a));
	xdr_put_u32(x, a->blksize);
	xdr_put_u32(x, device_of(a));
	xdr_put_u32(x, (uint32_t)rn_min(a->used / SECTOR, UINT32_MAX));
	xdr_put_u32(x, nfs2_fold(a->fsid));
	xdr_put_u32(x, nfs2_fold(a->fileid));
	nfs2_put_time(x, &a->atime);
	nfs2_put_time(x, &a->mtime);
	nfs2_put_time(x, &a->ctime);
}

/* attrstat */
static int nfs2_put_changed(struct nfs3_op *op, int rc)
{
	if (rc == 0)
		rc = vfs_getattr(&op->ctx, op->node[0], &op->attr);
	if (nfs3_put_status(op, rc))
		nfs2_put_fattr(&op->req->out, &op->attr);
	return rc;
}

/* diropres; -ESTALE: made, and gone (struct vfs_make), while the result needs a handle. */
static void nfs2_put_found(struct nfs3_op *op, int rc)
{
	struct vfs_packed_fh fh;

	if (rc == 0)
		rc = op->node[1] ? vfs_packed_of(op->node[1], &fh) : -ESTALE;
	if (!nfs3_put_status(op, rc))
		return;
	xdr_put_fixed(&op->req->out, fh.data, sizeof(fh.data));
	nfs2_put_fattr(&op->req->out, &op->attr);
}

#define NFS2_DIALECT                                                                               \
	.max_io = NFS2_MAX_IO, .path_max = NFS2_PATH_MAX, .size_max = NFS2_SIZE_MAX,               \
	.fattr_size = NFS2_FATTR_SIZE, .put_fattr = nfs2_put_fattr, .put_found = nfs2_put_found,   \
	.put_changed = nfs2_put_changed

const struct nfs3_dialect nfs2_dialect = { NFS2_DIALECT, .put_status = nfs2_put_status };
const struct nfs3_dialect nfsacl2_dialect = { NFS2_DIALECT, .put_status = nfsacl2_put_status };
