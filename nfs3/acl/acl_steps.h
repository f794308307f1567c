/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that GETACL and SETACL of both versions of NFSACL share: all but handles, attributes and statuses. Each is
 * for an op whose node[0] is open. Results and errors are those of the kernel's server, but that SETACL leaves an
 * ACL alone that the call does not name.
 */
#ifndef RN_NFS3_ACL_STEPS_H
#define RN_NFS3_ACL_STEPS_H

#include "nfs3/acl/nfsacl.h"
#include "nfs3/op.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "vfs/xattr.h"

/*
 * ACLs as NFSACL carries them. A secattr has two lists, of the access and of the default ACL: the
 * number of entries, then an array that is empty if the entries are not meant. An ACL on the wire
 * has a mask entry always; one that only repeats the group's permissions stands for none.
 */

/* A list of a result, and the ids that entries of owner and group are shown with. */
struct nfsacl_shown {
	const struct vfs_acl *acl;
	uint32_t uid, gid;
	uint32_t flag;	   /* NA_ACL_DEFAULT or 0: set in the type of each entry */
	bool with_entries; /* false: only the number is sent */
};

/* ACLs of a result of GETACL. Points into itself. */
struct nfsacl_found {
	uint32_t mask;
	struct vfs_acl_room room;
	struct vfs_acls acls;
	struct nfsacl_shown access, inherited;
};

/* Reads op->attr and the ACLs, and makes room in the reply for them behind head_size bytes. -EOPNOTSUPP: the export
 * says no_acl. -EINVAL: mask has unknown bits. */
int nfsacl_find(struct nfs3_op *op, uint32_t mask, size_t head_size, struct nfsacl_found *out);
/* Puts the secattr. */
void nfsacl_put_found(struct nfs3_op *op, const struct nfsacl_found *f);

/* The secattr of a call of SETACL. The lists stay in the message: the arena has no room for the longest. */
struct nfsacl_change {
	uint32_t mask;
	struct xdr_in lists; /* stands at the lists, which have been checked */
};

/* Checks a secattr and moves x over it. Sets x->err for one that breaks the protocol's rules. */
void nfsacl_get_change(struct xdr_in *x, struct nfsacl_change *c);
int nfsacl_set(struct nfs3_op *op, const struct nfsacl_change *c);
/* nfs3_op_settle for SETACL. */
enum rpc_run nfsacl_settle(struct nfs3_op *op, int rc, void (*encode)(struct nfs3_op *op, int rc));

#endif
