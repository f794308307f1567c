/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the attributes of one object. */
#include <sys/stat.h>

#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/get.h"

static uint32_t nfs4_type_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NF4DIR;
	case S_IFBLK:
		return NF4BLK;
	case S_IFCHR:
		return NF4CHR;
	case S_IFLNK:
		return NF4LNK;
	case S_IFSOCK:
		return NF4SOCK;
	case S_IFIFO:
		return NF4FIFO;
	default:
		return NF4REG;
	}
}

static void nfs4_attr_put_time(struct xdr_out *x, const struct timespec *t)
{
	xdr_put_u64(x, (uint64_t)t->tv_sec);
	xdr_put_u32(x, (uint32_t)t->tv_nsec);
}

NFS4_ATTR_GETTER(type)
{
	xdr_put_u32(x, nfs4_type_of(src->attr.mode));
}

NFS4_ATTR_GETTER(acl)
{
	nfs4_put_acl(src->c, x, &src->acls, S_ISDIR(src->attr.mode));
}

NFS4_ATTR_GETTER(posix_default_acl)
{
	nfs4_put_posix_acl(src->c, x, &src->acls.inherited);
}

NFS4_ATTR_GETTER(posix_access_acl)
{
	nfs4_put_posix_acl(src->c, x, &src->acls.access);
}

NFS4_ATTR_GETTER(change)
{
	xdr_put_u64(x, src->attr.change);
}

NFS4_ATTR_GETTER(size)
{
	xdr_put_u64(x, src->attr.size);
}

NFS4_ATTR_GETTER(fsid)
{
	xdr_put_u64(x, src->attr.fsid);
	xdr_put_u64(x, 0);
}

NFS4_ATTR_GETTER(rdattr_error)
{
	xdr_put_u32(x, src->rdattr_error);
}

NFS4_ATTR_GETTER(filehandle)
{
	xdr_put_opaque(x, src->fh.data, src->fh.len);
}

NFS4_ATTR_GETTER(fileid)
{
	xdr_put_u64(x, src->attr.fileid);
}

NFS4_ATTR_GETTER(mode)
{
	xdr_put_u32(x, src->attr.mode & NFS4_MODE_BITS);
}

NFS4_ATTR_GETTER(numlinks)
{
	xdr_put_u32(x, src->attr.nlink);
}

NFS4_ATTR_GETTER(owner)
{
	xdr_put_opaque(x, src->owner.s, src->owner.len);
}

NFS4_ATTR_GETTER(owner_group)
{
	xdr_put_opaque(x, src->group.s, src->group.len);
}

NFS4_ATTR_GETTER(quota_avail_hard)
{
	xdr_put_u64(x, src->quota.avail_hard);
}

NFS4_ATTR_GETTER(quota_avail_soft)
{
	xdr_put_u64(x, src->quota.avail_soft);
}

NFS4_ATTR_GETTER(quota_used)
{
	xdr_put_u64(x, src->quota.used);
}

NFS4_ATTR_GETTER(rawdev)
{
	xdr_put_u32(x, src->attr.rdev_major);
	xdr_put_u32(x, src->attr.rdev_minor);
}

NFS4_ATTR_GETTER(space_freed)
{
	xdr_put_u64(x, src->space_freed);
}

NFS4_ATTR_GETTER(space_used)
{
	xdr_put_u64(x, src->attr.used);
}

/* sec_label4 (RFC 7862 section 12.2.4) */
NFS4_ATTR_GETTER(sec_label)
{
	xdr_put_u32(x, NFS4_LABEL_FORMAT);
	xdr_put_u32(x, NFS4_LABEL_POLICY);
	xdr_put_opaque(x, src->label_room, src->label_len);
}

NFS4_ATTR_GETTER(time_access)
{
	nfs4_attr_put_time(x, &src->attr.atime);
}

NFS4_ATTR_GETTER(time_create)
{
	nfs4_attr_put_time(x, &src->attr.btime);
}

NFS4_ATTR_GETTER(time_metadata)
{
	nfs4_attr_put_time(x, &src->attr.ctime);
}

NFS4_ATTR_GETTER(time_modify)
{
	nfs4_attr_put_time(x, &src->attr.mtime);
}

NFS4_ATTR_GETTER(mounted_on_fileid)
{
	xdr_put_u64(x, src->mounted_on);
}
