/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of attributes that all objects of a file system share. */
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/get.h"
#include "nfs4/nfs4_private.h"

#define NS_PER_SECOND 1000000000u

/* change_attr_type4 (RFC 7862 section 12.2.3) */
#define CHANGE_TYPE_IS_UNDEFINED 4u

NFS4_ATTR_GETTER(supported_attrs)
{
	struct nfs4_bitmap b;

	nfs4_attr_supported(nfs4_attr_level(src->server, src->minor), &b);
	nfs4_attr_drop_missing(src, &b);
	nfs4_put_bitmap(x, &b);
}

NFS4_ATTR_GETTER(suppattr_exclcreat)
{
	struct nfs4_bitmap b;

	nfs4_attr_exclusive(nfs4_attr_level(src->server, src->minor), &b);
	nfs4_attr_drop_missing(src, &b);
	nfs4_put_bitmap(x, &b);
}

NFS4_ATTR_GETTER(aclsupport)
{
	xdr_put_u32(x, src->has_acl ? ACL4_SUPPORT_ALLOW_ACL | ACL4_SUPPORT_DENY_ACL : 0);
}

NFS4_ATTR_GETTER(acl_trueform)
{
	xdr_put_u32(x, src->has_acl ? ACL_MODEL_POSIX_DRAFT : ACL_MODEL_NONE);
}

NFS4_ATTR_GETTER(acl_trueform_scope)
{
	(void)src;
	xdr_put_u32(x, ACL_SCOPE_FILE_SYSTEM);
}

NFS4_ATTR_GETTER(zero)
{
	(void)src;
	xdr_put_u32(x, 0);
}

NFS4_ATTR_GETTER(true)
{
	(void)src;
	xdr_put_bool(x, true);
}

NFS4_ATTR_GETTER(links)
{
	xdr_put_bool(x, src->fs.links);
}

NFS4_ATTR_GETTER(case_insensitive)
{
	xdr_put_bool(x, src->fs.case_insensitive);
}

NFS4_ATTR_GETTER(lease_time)
{
	xdr_put_u32(x, src->server->cfg.lease_seconds);
}

NFS4_ATTR_GETTER(files_avail)
{
	xdr_put_u64(x, src->fs.avail_files);
}

NFS4_ATTR_GETTER(files_free)
{
	xdr_put_u64(x, src->fs.free_files);
}

NFS4_ATTR_GETTER(files_total)
{
	xdr_put_u64(x, src->fs.total_files);
}

NFS4_ATTR_GETTER(maxfilesize)
{
	xdr_put_u64(x, src->fs.size_max);
}

NFS4_ATTR_GETTER(maxlink)
{
	xdr_put_u32(x, src->fs.link_max);
}

NFS4_ATTR_GETTER(maxname)
{
	xdr_put_u32(x, src->fs.name_max);
}

NFS4_ATTR_GETTER(maxio)
{
	xdr_put_u64(x, src->server->cfg.max_io);
}

NFS4_ATTR_GETTER(space_avail)
{
	xdr_put_u64(x, src->fs.avail_bytes);
}

NFS4_ATTR_GETTER(space_free)
{
	xdr_put_u64(x, src->fs.free_bytes);
}

NFS4_ATTR_GETTER(space_total)
{
	xdr_put_u64(x, src->fs.total_bytes);
}

NFS4_ATTR_GETTER(time_delta)
{
	xdr_put_u64(x, src->fs.time_ns / NS_PER_SECOND);
	xdr_put_u32(x, src->fs.time_ns % NS_PER_SECOND);
}

/* Names are stored as bytes, by local processes too. */
NFS4_ATTR_GETTER(fs_charset_cap)
{
	(void)src;
	xdr_put_u32(x, FSCHARSET_CAP4_CONTAINS_NON_UTF8);
}

/* Told for file systems that cannot clone, too: CLONE answers NFS4ERR_NOTSUPP there. */
NFS4_ATTR_GETTER(clone_blksize)
{
	xdr_put_u32(x, src->fs.block);
}

/*
 * The only type that is never a lie. The change attribute is made from ctime, which goes backwards
 * with the server's clock, so it is not known to grow with each change, as all other types promise.
 * It is no counter either: two changes of a local process within a tick of the clock share a ctime,
 * and a look at a file that has just changed may add a value (vfs/fs/change.h).
 */
NFS4_ATTR_GETTER(change_attr_type)
{
	(void)src;
	xdr_put_u32(x, CHANGE_TYPE_IS_UNDEFINED);
}

NFS4_ATTR_GETTER(xattr_support)
{
	xdr_put_bool(x, src->has_xattrs);
}
