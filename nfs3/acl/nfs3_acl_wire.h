/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACLs as NFSACL carries them. A secattr has two lists, of the access and of the default ACL: the
 * number of entries, then an array that is empty if the entries are not meant. An ACL on the wire
 * has a mask entry always; one that only repeats the group's permissions stands for none.
 */
#ifndef RN_NFS3_ACL_NFS3_ACL_WIRE_H
#define RN_NFS3_ACL_NFS3_ACL_WIRE_H

#include "nfs3/acl/nfsacl.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "vfs/xattr.h"

/* A list of a result, and the ids that entries of owner and group are shown with. */
struct nfsacl_shown {
	const struct vfs_acl *acl;
	uint32_t uid, gid;
	uint32_t flag;	   /* NA_ACL_DEFAULT or 0: set in the type of each entry */
	bool with_entries; /* false: only the number is sent */
};

/* Bytes of XDR that nfsacl_put takes. */
uint32_t nfsacl_size(const struct nfsacl_shown *list);
void nfsacl_put(struct xdr_out *x, const struct nfsacl_shown *list);

/* Checks a list of an argument and moves x over it. An array that is not meant must be empty. Sets
 * x->err for a list that breaks the protocol's rules. */
void nfsacl_skip(struct xdr_in *x, bool meant);
/* Decodes a list that nfsacl_skip has accepted into room for NFSACL_ENTRIES_MAX entries, in the
 * kernel's order. A permission that no entry can have stays one. */
void nfsacl_get(struct xdr_in *x, struct vfs_acl_entry *room, struct vfs_acl *out);

#endif
