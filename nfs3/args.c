/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/args.h"

#include <errno.h>
#include <string.h>

#include "lib/checked.h"

#define NSEC_PER_SEC 1000000000u
#define MODE_BITS 07777u

/* Longest SYMLINK text that is decoded. Longer than any target may be, so that the answer is
 * NAMETOOLONG. */
#define SYMLINK_TEXT_MAX 65536u

int nfs3_name_check(const struct nfs3_name *n)
{
	if (n->len > NFS3_NAME_MAX)
		return -ENAMETOOLONG;
	if (n->len == 0 || memchr(n->bytes, '\0', n->len) || memchr(n->bytes, '/', n->len))
		return -EACCES;
	return 0;
}

static void get_fh(struct xdr_in *x, struct vfs_fh *fh)
{
	uint32_t len = xdr_get_u32(x);

	if (len > NFS3_FHSIZE)
		x->err = true;
	if (x->err)
		return;
	fh->len = len;
	xdr_get_fixed(x, fh->data, len);
}

static void get_name(struct xdr_in *x, struct nfs3_name *n)
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

static void get_dirop(struct xdr_in *x, struct nfs3_dirop_args *a)
{
	get_fh(x, &a->dir);
	get_name(x, &a->name);
}

static struct timespec get_time(struct xdr_in *x, bool *bad)
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
		*t = get_time(x, bad);
		return VFS_TIME_CLIENT;
	}
	x->err = true;
	return VFS_TIME_KEEP;
}

static void get_sattr(struct xdr_in *x, struct nfs3_sattr *a)
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

	get_fh(x, &a->fh);
	return !x->err;
}

bool nfs3_decode_setattr(struct xdr_in *x, void *args)
{
	struct nfs3_setattr_args *a = args;
	bool bad_guard = false;

	get_fh(x, &a->fh);
	get_sattr(x, &a->attr);
	a->guard = xdr_get_bool(x);
	if (a->guard)
		a->guard_ctime = get_time(x, &bad_guard);
	if (bad_guard) /* no file has such a ctime, so it cannot match */
		a->guard_ctime.tv_nsec = -1;
	return !x->err;
}

bool nfs3_decode_dirop(struct xdr_in *x, void *args)
{
	get_dirop(x, args);
	return !x->err;
}

bool nfs3_decode_access(struct xdr_in *x, void *args)
{
	struct nfs3_access_args *a = args;

	get_fh(x, &a->fh);
	a->want = xdr_get_u32(x);
	return !x->err;
}

bool nfs3_decode_read(struct xdr_in *x, void *args)
{
	struct nfs3_read_args *a = args;

	get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return !x->err;
}

/* count is the number of bytes to write; the data may be longer, never shorter (RFC 1813 section
 * 3.3.7). */
bool nfs3_decode_write(struct xdr_in *x, void *args)
{
	struct nfs3_write_args *a = args;

	get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	a->stable = xdr_get_u32(x);
	xdr_get_bulk(x, NFS3_MAX_IO, &a->data);
	return !x->err && a->stable <= 2 && a->data.len >= a->count;
}

bool nfs3_decode_create(struct xdr_in *x, void *args)
{
	struct nfs3_create_args *a = args;

	get_dirop(x, &a->where);
	a->how = xdr_get_u32(x);
	switch (a->how) {
	case NFS3_UNCHECKED:
	case NFS3_GUARDED:
		get_sattr(x, &a->attr);
		break;
	case NFS3_EXCLUSIVE:
		xdr_get_fixed(x, a->verf, sizeof(a->verf));
		break;
	default:
		return false;
	}
	return !x->err;
}

bool nfs3_decode_mkdir(struct xdr_in *x, void *args)
{
	struct nfs3_mkdir_args *a = args;

	get_dirop(x, &a->where);
	get_sattr(x, &a->attr);
	return !x->err;
}

bool nfs3_decode_symlink(struct xdr_in *x, void *args)
{
	struct nfs3_symlink_args *a = args;

	get_dirop(x, &a->where);
	get_sattr(x, &a->attr);
	xdr_get_bulk(x, SYMLINK_TEXT_MAX, &a->target);
	return !x->err;
}

bool nfs3_decode_mknod(struct xdr_in *x, void *args)
{
	struct nfs3_mknod_args *a = args;

	get_dirop(x, &a->where);
	a->type = xdr_get_u32(x);
	switch (a->type) {
	case NF3CHR:
	case NF3BLK:
		get_sattr(x, &a->attr);
		a->major = xdr_get_u32(x);
		a->minor = xdr_get_u32(x);
		break;
	case NF3SOCK:
	case NF3FIFO:
		get_sattr(x, &a->attr);
		break;
	}
	return !x->err;
}

bool nfs3_decode_rename(struct xdr_in *x, void *args)
{
	struct nfs3_rename_args *a = args;

	get_dirop(x, &a->from);
	get_dirop(x, &a->to);
	return !x->err;
}

bool nfs3_decode_link(struct xdr_in *x, void *args)
{
	struct nfs3_link_args *a = args;

	get_fh(x, &a->file);
	get_dirop(x, &a->where);
	return !x->err;
}

bool nfs3_decode_readdir(struct xdr_in *x, void *args)
{
	struct nfs3_readdir_args *a = args;

	get_fh(x, &a->dir);
	a->cookie = xdr_get_u64(x);
	a->cookieverf = xdr_get_u64(x);
	a->maxcount = xdr_get_u32(x);
	a->dircount = UINT32_MAX;
	return !x->err;
}

bool nfs3_decode_readdirplus(struct xdr_in *x, void *args)
{
	struct nfs3_readdir_args *a = args;

	get_fh(x, &a->dir);
	a->cookie = xdr_get_u64(x);
	a->cookieverf = xdr_get_u64(x);
	a->dircount = xdr_get_u32(x);
	a->maxcount = xdr_get_u32(x);
	return !x->err;
}

bool nfs3_decode_commit(struct xdr_in *x, void *args)
{
	struct nfs3_commit_args *a = args;

	get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return !x->err;
}
