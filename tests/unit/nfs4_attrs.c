/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_attrs.h"

#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/nfs4_acl.h"

#define SET_ONLY(n)                                                                                \
	((n) == FATTR4_TIME_ACCESS_SET || (n) == FATTR4_TIME_MODIFY_SET ||                         \
	 (n) == FATTR4_MODE_SET_MASKED || (n) == FATTR4_MODE_UMASK)

void fix4_put_bits(struct fixture *f, const int *bits)
{
	struct nfs4_bitmap b = { 0 };

	for (; *bits >= 0; bits++)
		nfs4_bitmap_add(&b, (unsigned)*bits);
	nfs4_put_bitmap(&f->out, &b);
}

void fix4_put_all_bits(struct fixture *f)
{
	struct nfs4_bitmap b = { 0 };

	for (unsigned i = 0; i < NFS4_ATTR_WORDS * 32; i++) {
		/* The attributes of layouts and retention in this condition are set-only, too. */
		if (!SET_ONLY(i) && i != FATTR4_LAYOUT_HINT && i != FATTR4_RETENTION_SET &&
		    i != FATTR4_RETENTEVT_SET)
			nfs4_bitmap_add(&b, i);
	}
	nfs4_put_bitmap(&f->out, &b);
}

static void get_text(struct xdr_in *r, char *out, size_t size)
{
	uint32_t len;
	const uint8_t *p = xdr_get_opaque(r, (uint32_t)size - 1, &len);

	if (p)
		memcpy(out, p, len);
	out[len] = '\0';
}

static void get_label(struct xdr_in *r, struct fix4_attrs *a)
{
	const uint8_t *p;

	a->label_format = xdr_get_u32(r);
	a->label_policy = xdr_get_u32(r);
	p = xdr_get_opaque(r, UINT32_MAX, &a->label_len);
	if (p)
		memcpy(a->label, p, rn_min(a->label_len, sizeof(a->label)));
}

static void get_time(struct xdr_in *r, struct timespec *t)
{
	t->tv_sec = (time_t)xdr_get_u64(r);
	t->tv_nsec = xdr_get_u32(r);
}

static bool get_u32s(struct xdr_in *r, struct fix4_attrs *a, unsigned n)
{
	uint32_t *to;

	switch (n) {
	case FATTR4_TYPE:
		to = &a->type;
		break;
	case FATTR4_FH_EXPIRE_TYPE:
		to = &a->fh_expire;
		break;
	case FATTR4_LEASE_TIME:
		to = &a->lease;
		break;
	case FATTR4_RDATTR_ERROR:
		to = &a->rdattr_error;
		break;
	case FATTR4_ACLSUPPORT:
		to = &a->aclsupport;
		break;
	case FATTR4_MAXLINK:
		to = &a->maxlink;
		break;
	case FATTR4_MAXNAME:
		to = &a->maxname;
		break;
	case FATTR4_MODE:
		to = &a->mode;
		break;
	case FATTR4_NUMLINKS:
		to = &a->nlink;
		break;
	case FATTR4_FS_CHARSET_CAP:
		to = &a->charset;
		break;
	case FATTR4_CLONE_BLKSIZE:
		to = &a->clone_size;
		break;
	case FATTR4_CHANGE_ATTR_TYPE:
		to = &a->change_type;
		break;
	default:
		return false;
	}
	*to = xdr_get_u32(r);
	return true;
}

static bool get_u64s(struct xdr_in *r, struct fix4_attrs *a, unsigned n)
{
	uint64_t *to;

	switch (n) {
	case FATTR4_CHANGE:
		to = &a->change;
		break;
	case FATTR4_SIZE:
		to = &a->size;
		break;
	case FATTR4_FILEID:
		to = &a->fileid;
		break;
	case FATTR4_MOUNTED_ON_FILEID:
		to = &a->mounted_on;
		break;
	case FATTR4_MAXFILESIZE:
		to = &a->maxfilesize;
		break;
	case FATTR4_MAXREAD:
		to = &a->maxread;
		break;
	case FATTR4_MAXWRITE:
		to = &a->maxwrite;
		break;
	case FATTR4_SPACE_USED:
		to = &a->used;
		break;
	case FATTR4_SPACE_FREED:
		to = &a->freed;
		break;
	case FATTR4_FILES_AVAIL:
	case FATTR4_FILES_FREE:
	case FATTR4_FILES_TOTAL:
		to = &a->files[n - FATTR4_FILES_AVAIL];
		break;
	case FATTR4_QUOTA_AVAIL_HARD:
	case FATTR4_QUOTA_AVAIL_SOFT:
	case FATTR4_QUOTA_USED:
		to = &a->quota[n - FATTR4_QUOTA_AVAIL_HARD];
		break;
	case FATTR4_SPACE_AVAIL:
	case FATTR4_SPACE_FREE:
	case FATTR4_SPACE_TOTAL:
		to = &a->space[n - FATTR4_SPACE_AVAIL];
		break;
	default:
		return false;
	}
	*to = xdr_get_u64(r);
	return true;
}

static bool get_bools(struct xdr_in *r, struct fix4_attrs *a, unsigned n)
{
	bool *to;

	switch (n) {
	case FATTR4_LINK_SUPPORT:
		to = &a->links;
		break;
	case FATTR4_SYMLINK_SUPPORT:
		to = &a->symlinks;
		break;
	case FATTR4_NAMED_ATTR:
		to = &a->named_attr;
		break;
	case FATTR4_UNIQUE_HANDLES:
		to = &a->unique;
		break;
	case FATTR4_CANSETTIME:
		to = &a->cansettime;
		break;
	case FATTR4_CASE_INSENSITIVE:
		to = &a->case_insensitive;
		break;
	case FATTR4_CASE_PRESERVING:
		to = &a->case_preserving;
		break;
	case FATTR4_CHOWN_RESTRICTED:
		to = &a->chown_restricted;
		break;
	case FATTR4_HOMOGENEOUS:
		to = &a->homogeneous;
		break;
	case FATTR4_NO_TRUNC:
		to = &a->no_trunc;
		break;
	case FATTR4_XATTR_SUPPORT:
		to = &a->xattrs;
		break;
	default:
		return false;
	}
	*to = xdr_get_bool(r);
	return true;
}

static void skip_texts(struct xdr_in *r)
{
	for (uint32_t n = xdr_get_u32(r); n > 0 && !r->err; n--)
		xdr_skip_opaque(r, UINT32_MAX);
}

static void skip_locations(struct xdr_in *r)
{
	skip_texts(r);
	for (uint32_t n = xdr_get_u32(r); n > 0 && !r->err; n--) {
		skip_texts(r);
		skip_texts(r);
	}
}

static bool get_others(struct xdr_in *r, struct fix4_attrs *a, unsigned n)
{
	switch (n) {
	case FATTR4_SUPPORTED_ATTRS:
		return nfs4_get_bitmap(r, &a->supported);
	case FATTR4_SUPPATTR_EXCLCREAT:
		return nfs4_get_bitmap(r, &a->exclusive);
	case FATTR4_ACL:
		a->acl_at = xdr_in_pos(r);
		nfs4_pass_acl(r);
		a->acl_size = xdr_in_pos(r) - a->acl_at;
		return true;
	case FATTR4_FSID:
		a->fsid[0] = xdr_get_u64(r);
		a->fsid[1] = xdr_get_u64(r);
		return true;
	case FATTR4_FILEHANDLE:
		fix_get_fh(r, &a->fh);
		return true;
	case FATTR4_FS_LOCATIONS:
		skip_locations(r);
		return true;
	case FATTR4_OWNER:
		get_text(r, a->owner, sizeof(a->owner));
		return true;
	case FATTR4_OWNER_GROUP:
		get_text(r, a->group, sizeof(a->group));
		return true;
	case FATTR4_RAWDEV:
		a->rawdev[0] = xdr_get_u32(r);
		a->rawdev[1] = xdr_get_u32(r);
		return true;
	case FATTR4_OPEN_ARGUMENTS:
		for (unsigned i = 0; i < NFS4_OPEN_ARGUMENTS; i++) {
			if (xdr_get_u32(r) != 1)
				return false;
			a->open_args[i] = xdr_get_u32(r);
		}
		return true;
	case FATTR4_SEC_LABEL:
		get_label(r, a);
		return true;
	case FATTR4_TIME_ACCESS:
		get_time(r, &a->atime);
		return true;
	case FATTR4_TIME_CREATE:
		get_time(r, &a->btime);
		return true;
	case FATTR4_TIME_DELTA:
		get_time(r, &a->delta);
		return true;
	case FATTR4_TIME_METADATA:
		get_time(r, &a->ctime);
		return true;
	case FATTR4_TIME_MODIFY:
		get_time(r, &a->mtime);
		return true;
	default:
		return false;
	}
}

bool fix4_get_attrs(struct xdr_in *r, struct fix4_attrs *a)
{
	uint32_t len;
	size_t start;

	memset(a, 0, sizeof(*a));
	if (!nfs4_get_bitmap(r, &a->have))
		return false;
	len = xdr_get_u32(r);
	start = r->left;
	for (unsigned n = 0; n < NFS4_ATTR_WORDS * 32; n++) {
		if (nfs4_bitmap_has(&a->have, n) && !get_u32s(r, a, n) && !get_u64s(r, a, n) &&
		    !get_bools(r, a, n) && !get_others(r, a, n))
			return false;
	}
	return !r->err && start - r->left == len;
}

uint32_t fix4_getattr(struct fixture *f, struct fix4_session *s, const struct vfs_fh *fh,
		      struct fix4_attrs *a)
{
	uint32_t status;

	fix4_begin(f, s);
	fix4_putfh(f, fh);
	fix4_op(f, OP_GETATTR);
	fix4_put_all_bits(f);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_GETATTR);
	return fix4_get_attrs(&f->in, a) ? NFS4_OK : FIX4_NO_STATUS;
}
