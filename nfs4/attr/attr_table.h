/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes that this server supports, one row each. */
#ifndef RN_NFS4_ATTR_ATTR_TABLE_H
#define RN_NFS4_ATTR_ATTR_TABLE_H

#include "nfs4/attr/nfs4_attr.h"

struct nfs4_attr_source;
struct nfs4_server;

/* Attributes come in levels, each with those of the lower ones: the minor versions, and above them minor version 2 with
 * the attributes of draft-ietf-nfsv4-posix-acls, which the administrator turns on. */
#define NFS4_LEVEL_POSIX_ACLS (NFS4_MINOR_MAX + 1)
#define NFS4_LEVEL_MAX NFS4_LEVEL_POSIX_ACLS

/* Sources of an attribute's value, besides struct vfs_attr. */
enum nfs4_attr_needs {
	NFS4_ATTR_FS = 1, /* statfs */
	NFS4_ATTR_OWNER = 2,
	NFS4_ATTR_GROUP = 4,
	NFS4_ATTR_ACLS = 8,
	NFS4_ATTR_QUOTA = 16,
	NFS4_ATTR_ABLE = 32,   /* whether the file system has ACLs and quotas */
	NFS4_ATTR_XATTRS = 64, /* whether it has extended attributes */
	NFS4_ATTR_LABEL = 128, /* the security label */
	NFS4_ATTR_FREED = 256, /* extents */
};

struct nfs4_attr_row {
	const char *name; /* NULL: attribute not supported */
	uint8_t level;	  /* the lowest that has it */
	uint16_t needs;
	uint16_t
		size; /* largest XDR size in bytes, without ACLs, labels, locations and owners' names */
	void (*get)(struct xdr_out *x, const struct nfs4_attr_source *src); /* NULL: set-only */
	void (*set)(struct xdr_in *x, struct nfs4_sattr *sa);		    /* NULL: get-only */
};

/* Level of the calls of a minor version. */
uint32_t nfs4_attr_level(const struct nfs4_server *s, uint32_t minor);

/* NULL: not supported at that level. */
const struct nfs4_attr_row *nfs4_attr_find(unsigned number, uint32_t level);

/* All attributes of a level, on a file system with ACLs, quotas and labels; and those that
 * EXCLUSIVE4_1 accepts. */
void nfs4_attr_supported(uint32_t level, struct nfs4_bitmap *out);
void nfs4_attr_exclusive(uint32_t level, struct nfs4_bitmap *out);

/* Setters: nfs4/attr/sattr.c. */
void nfs4_sattr_size(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_mode(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_mode_masked(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_mode_umask(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_owner(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_group(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_acl(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_posix_default(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_posix_access(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_atime(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_mtime(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_sec_label(struct xdr_in *x, struct nfs4_sattr *sa);
void nfs4_sattr_time_create(struct xdr_in *x, struct nfs4_sattr *sa);

#endif
