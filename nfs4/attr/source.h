/* SPDX-License-Identifier: BSD-2-Clause */
/* Source of the values of an object's attributes. */
#ifndef RN_NFS4_ATTR_SOURCE_H
#define RN_NFS4_ATTR_SOURCE_H

#include "nfs4/attr/owner_name.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/xdr_out.h"
#include "vfs/space.h"
#include "vfs/types.h"
#include "vfs/xattr.h"

struct nfs4_attr_source {
	struct nfs4_compound *c; /* the call that asks */
	const struct nfs4_server *server;
	uint32_t minor;
	const struct nfs4_object *object; /* an object of its file system; NULL: not known */
	struct vfs_fh fh;
	struct vfs_attr attr;
	uint64_t mounted_on;		     /* mounted_on_fileid */
	struct vfs_statfs fs;		     /* if needed; zeros in the pseudo file system */
	struct nfs4_owner_name owner, group; /* if requested */
	uint32_t rdattr_error;		     /* nfsstat4 */
	/* Abilities of its file system, if needed; false in the pseudo file system. */
	bool has_acl, has_quota, has_xattrs, has_label;
	struct vfs_acls acls;	/* if requested; points into acl_buffer */
	struct vfs_quota quota; /* if requested */
	uint64_t space_freed;	/* bytes, if requested; 0 in the pseudo file system */
	struct vfs_acl_buffer acl_buffer;
	uint32_t label_len; /* bytes in label_buffer, if requested */
	uint8_t label_buffer[VFS_LABEL_MAX];
};

/* Removes from want the attributes that are not supported at that level. NFS4ERR_INVAL: one of them can only be set. */
int nfs4_attr_readable(struct nfs4_bitmap *want, uint32_t level);
unsigned nfs4_attr_needs(const struct nfs4_bitmap *want); /* enum nfs4_attr_needs */

/* Fills src with the values for the attributes in want, and removes from want those that this file
 * system does not provide. NFS4_OK or a status. */
int nfs4_attr_source_of(struct nfs4_compound *c, struct nfs4_object *p, struct nfs4_bitmap *want,
			struct nfs4_attr_source *src);

/* Removes from b what the object's file system does not provide. */
void nfs4_attr_drop_missing(const struct nfs4_attr_source *src, struct nfs4_bitmap *b);

/* Together do what nfs4_attr_source_of() does, in two steps, for entries of a directory. The caller fills in src->attr between them. */
void nfs4_attr_source_init(struct nfs4_compound *c, struct nfs4_attr_source *src);
void nfs4_attr_source_names(struct nfs4_compound *c, struct nfs4_bitmap *want,
			    struct nfs4_attr_source *src);

/* Fills src with what the attributes in want need of n, an object of an export: enum
 * nfs4_attr_needs beyond NFS4_ATTR_FS. src->attr is already set. Returns a status. */
#define NFS4_ATTR_OF_NODE                                                                          \
	(NFS4_ATTR_ACLS | NFS4_ATTR_QUOTA | NFS4_ATTR_ABLE | NFS4_ATTR_XATTRS | NFS4_ATTR_LABEL |  \
	 NFS4_ATTR_FREED)
int nfs4_attr_source_node(struct vfs_ctx *ctx, struct vfs_node *n, struct nfs4_bitmap *want,
			  struct nfs4_attr_source *src);

/* Bytes of XDR of fs_locations (attr_table.c). */
uint32_t nfs4_locations_size(const struct nfs4_attr_source *src);

/* Bytes of XDR that nfs4_put_fattr takes at most. */
uint32_t nfs4_fattr_size(const struct nfs4_bitmap *b, const struct nfs4_attr_source *src);

/* Puts a fattr4 of exactly the attributes in b. */
void nfs4_put_fattr(struct xdr_out *x, const struct nfs4_bitmap *b,
		    const struct nfs4_attr_source *src);

/* Puts a fattr4 of the attributes in mask (words of a bitmap4), which fh and attr tell, into a callback. fh may be
 * NULL if filehandle is not among them. */
void nfs4_put_notification_attrs(struct xdr_out *x, const uint32_t mask[NFS4_ATTR_WORDS],
				 const struct vfs_fh *fh, const struct vfs_attr *attr);

#endif
