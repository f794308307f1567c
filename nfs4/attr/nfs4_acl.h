/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attribute "acl" (RFC 8881 section 6.2.1) over the POSIX ACLs of the server's file systems.
 *
 * Read: each right that a POSIX ACL gives becomes an ALLOW ACE. A DENY ACE before it withholds what
 * a later ACE would give to a principal that has been decided. For a user in several groups, none
 * of which has all the requested rights, NFSv4's rules allow what POSIX denies; the kernel decides.
 *
 * Set: the strictest reading of the ACEs. A principal that a DENY could apply to loses what has not
 * been allowed before, since the server does not know the members of groups. So a POSIX ACL never
 * gives more than the ACEs do. ACEs that appear to deny what this server cannot deny are refused
 * (NFS4ERR_ATTRNOTSUPP).
 */
#ifndef RN_NFS4_ATTR_NFS4_ACL_H
#define RN_NFS4_ATTR_NFS4_ACL_H

#include "nfs4/attr/nfs4_attr.h"
#include "vfs/xattr.h"

enum nfs4_ace_who {
	NFS4_ACE_OWNER,
	NFS4_ACE_GROUP,
	NFS4_ACE_EVERYONE,
	NFS4_ACE_USER,	      /* id */
	NFS4_ACE_NAMED_GROUP, /* id */
};

struct nfs4_ace {
	uint32_t type, flag, mask; /* ACE4_* */
	enum nfs4_ace_who who;
	uint32_t id;
};

/* Most entries of a POSIX ACL that ACEs are turned into: for both the arena has room. */
#define NFS4_POSIX_ACL_MAX 512u

/* Most ACEs that are shown for one access and one default ACL, and that are accepted. */
#define NFS4_ACES_MAX (4u * VFS_ACL_MAX)

/* Limit of the time that one call may keep its worker waiting for a name service. Names answered by
 * then are not asked again when the client retries. */
#define NFS4_ACL_NAMES_SECONDS 2

/* Calls each for every ACE, in order. */
void nfs4_acl_each(const struct vfs_acls *acls, bool is_dir,
		   void (*each)(void *arg, const struct nfs4_ace *ace), void *arg);

/* Encodes the ACLs as nfsace4<>, with names as in owner and owner_group. */
void nfs4_put_acl(struct nfs4_compound *c, struct xdr_out *x, const struct vfs_acls *acls,
		  bool is_dir);
uint32_t nfs4_acl_size(struct nfs4_compound *c, const struct vfs_acls *acls,
		       bool is_dir); /* bytes of XDR */

/* Moves x over an nfsace4<>. */
void nfs4_pass_acl(struct xdr_in *x);

/*
 * Decodes the next ACE. NFS4_OK; NFS4ERR_BADOWNER: unknown name; NFS4ERR_INVAL: no name;
 * NFS4ERR_ATTRNOTSUPP: a special identifier that this server does not support; NFS4ERR_DELAY. Bad
 * XDR sets x->err.
 */
int nfs4_get_ace(struct nfs4_compound *c, struct xdr_in *x, struct nfs4_ace *out);

/* Sets *same to whether the ACEs at x are the ones that these ACLs are shown as, and moves x over
 * them. NFS4_OK or NFS4ERR_DELAY. */
int nfs4_same_acl(struct nfs4_compound *c, struct xdr_in *x, const struct vfs_acls *acls,
		  bool is_dir, bool *same);

/*
 * Turns the nfsace4<> at x, a private cursor of the caller, into ACLs in the compound's arena.
 * NFS4_OK; NFS4ERR_ATTRNOTSUPP: this server cannot express them; the errors of nfs4_get_ace;
 * NFS4ERR_RESOURCE or NFS4ERR_REQ_TOO_BIG: too many for the arena.
 */
int nfs4_take_acl(struct nfs4_compound *c, struct xdr_in *x, bool is_dir,
		  const struct vfs_acls **out);

/* Encodes an ACL as posixace4<> (draft-ietf-nfsv4-posix-acls), with names as in owner and owner_group. */
void nfs4_put_posix_acl(struct nfs4_compound *c, struct xdr_out *x, const struct vfs_acl *acl);
uint32_t nfs4_posix_acl_size(struct nfs4_compound *c, const struct vfs_acl *acl); /* bytes of XDR */

/* Moves x over a posixace4<>. An unknown tag or permission is bad XDR, and so is a user or group without a name. */
void nfs4_pass_posix_acl(struct xdr_in *x);

/*
 * Decodes the posixace4<> at x, a private cursor of the caller, into the compound's arena. NFS4_OK; NFS4ERR_INVAL: not
 * the entries of an ACL; NFS4ERR_NOSPC: more than VFS_ACL_MAX; NFS4ERR_REQ_TOO_BIG: too many for the arena; the errors of
 * a name: NFS4ERR_BADOWNER, NFS4ERR_INVAL, NFS4ERR_DELAY.
 */
int nfs4_take_posix_acl(struct nfs4_compound *c, struct xdr_in *x, struct vfs_acl *out);

#endif
