/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attribute "acl" (RFC 8881 section 6.2.1) over the POSIX ACLs of the server's file systems.
 *
 * Shown: each right that a POSIX ACL gives is an ALLOW ACE, and what a later ACE would give to
 * somebody who has been decided about is denied before. Of somebody in several groups of which none
 * has all that is asked for, NFSv4's rules say yes where POSIX says no; the kernel decides.
 *
 * Set: the strictest reading of the ACEs. Whoever a DENY could mean loses what has not been allowed
 * before, since we do not know who is in which group; so a POSIX ACL never gives more than the ACEs
 * do. Refused is (NFS4ERR_ATTRNOTSUPP) what would appear to deny what this server cannot deny.
 */
#ifndef RN_NFS4_ATTR_ACL_H
#define RN_NFS4_ATTR_ACL_H

#include "nfs4/attr/attr.h"
#include "vfs/acl.h"

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

/* The most that one POSIX ACL each for access and inheritance are shown as, and that are taken. */
#define NFS4_ACES_MAX (4u * VFS_ACL_MAX)

/* Each ACE in its order. */
void nfs4_acl_each(const struct vfs_acls *acls, bool is_dir,
		   void (*each)(void *arg, const struct nfs4_ace *ace), void *arg);

/* nfsace4<> of them, with names as owners have them. */
void nfs4_put_acl(struct nfs4_compound *c, struct xdr_out *x, const struct vfs_acls *acls,
		  bool is_dir);
uint32_t nfs4_acl_size(struct nfs4_compound *c, const struct vfs_acls *acls,
		       bool is_dir); /* bytes of XDR */

/* Moves x over an nfsace4<>. */
void nfs4_pass_acl(struct xdr_in *x);

/* The next ACE. NFS4_OK; NFS4ERR_BADOWNER, NFS4ERR_INVAL: its name is nobody's, or no name;
 * NFS4ERR_ATTRNOTSUPP: it is for somebody special whom this server does not know; NFS4ERR_DELAY.
 * What is no XDR sets x->err. */
int nfs4_get_ace(struct nfs4_compound *c, struct xdr_in *x, struct nfs4_ace *out);

/* Are the ACEs at x the ones that these ACLs are shown as? Moves x over them. NFS4_OK and *same,
 * or NFS4ERR_DELAY. */
int nfs4_same_acl(struct nfs4_compound *c, struct xdr_in *x, const struct vfs_acls *acls,
		  bool is_dir, bool *same);

/*
 * The ACLs of an nfsace4<> at x, a cursor of the caller's own, in the compound's arena. NFS4_OK;
 * NFS4ERR_ATTRNOTSUPP: they cannot be had here; what nfs4_get_ace says; NFS4ERR_RESOURCE or
 * NFS4ERR_REQ_TOO_BIG: the arena does not hold so many.
 */
int nfs4_take_acl(struct nfs4_compound *c, struct xdr_in *x, bool is_dir,
		  const struct vfs_acls **out);

#endif
