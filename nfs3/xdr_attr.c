/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/xdr_attr.h"

#include <sys/stat.h>

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
