/* SPDX-License-Identifier: BSD-2-Clause */
/* OPEN runs in steps, which nfs4/open/ops_open.c lists: open_file.c finds or creates the file,
 * open_share.c gets the share. They share struct nfs4_opening, which is in the arena. */
#ifndef RN_NFS4_OPEN_OPENING_H
#define RN_NFS4_OPEN_OPENING_H

#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/deleg/grant.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/state/state.h"
#include "nfs4/state/owner.h"

enum nfs4_create_how { NFS4_UNCHECKED, NFS4_GUARDED, NFS4_EXCLUSIVE, NFS4_EXCLUSIVE_1 };
enum nfs4_claim {
	NFS4_CLAIM_NULL,
	NFS4_CLAIM_PREVIOUS,
	NFS4_CLAIM_DELEGATE_CUR,
	NFS4_CLAIM_DELEGATE_PREV,
	NFS4_CLAIM_FH,
	NFS4_CLAIM_DELEG_CUR_FH,
	NFS4_CLAIM_DELEG_PREV_FH,
};

struct nfs4_open_args {
	uint32_t seqid;
	uint32_t access, deny;
	struct nfs4_wire_owner owner;
	bool create;
	uint32_t how;		 /* enum nfs4_create_how */
	struct nfs4_sattr attrs; /* UNCHECKED4, GUARDED4, EXCLUSIVE4_1 */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	uint32_t claim; /* enum nfs4_claim */
	uint32_t delegate_type;
	struct nfs4_stateid delegate_sid;
	struct nfs4_name name;
};

struct nfs4_opening {
	struct nfs4_open_args *args;
	struct nfs4_client *client;
	struct nfs4_owner *owner; /* used until nfs4_owner_release */
	uint8_t access, deny;

	/* open_file.c */
	/* true if the current filehandle is the directory, which the file replaces */
	bool by_name;
	bool found;		 /* true if the name existed */
	bool sync_name;		 /* the file and its name may not be on disk yet */
	struct nfs4_object file; /* if by_name; else the file is the current filehandle */
	/* Facts about a file that vfs_create returned; all false for a file that was found. */
	bool made;    /* created by this call: the directory has changed */
	bool granted; /* the requested access has been checked */
	/* attributes were set by this call, or by the call that it repeats */
	bool attrs_set;
	bool truncate;		      /* truncate after the open */
	bool wrote_delegated;	      /* true if the OPEN claims the file by a write delegation */
	struct vfs_dir_change change; /* of the directory */
	struct nfs4_bitmap attrset;

	/* open_share.c */
	struct nfs4_open *open; /* a reference; counted in its pending */
	struct nfs4_stateid sid;
	uint8_t old_access, old_deny; /* modes before this call; 0: a new open */
	bool new_combination;
	bool shared;  /* true if nfs4_open_share has committed the share already */
	bool confirm; /* true if the client must send OPEN_CONFIRM */
	bool no_open; /* true if the delegation stands for the open, which has ended */

	struct nfs4_deleg_offer offer; /* delegation, made when everything else has succeeded */
};

static inline struct nfs4_object *nfs4_opened_object(struct nfs4_compound *c,
						     struct nfs4_opening *w)
{
	return w->by_name ? &w->file : &c->current;
}

/* The rights (VFS_MAY_READ, VFS_MAY_WRITE) that the OPEN's access needs. */
static inline unsigned nfs4_open_rights(const struct nfs4_opening *w)
{
	return (w->access & VFS_SHARE_READ ? VFS_MAY_READ : 0u) |
	       (w->access & VFS_SHARE_WRITE ? VFS_MAY_WRITE : 0u);
}

/* True if the claim is subordinate to a delegation that the client has (delegate_sid). */
static inline bool nfs4_claims_delegated(const struct nfs4_open_args *a)
{
	return a->claim == NFS4_CLAIM_DELEGATE_CUR || a->claim == NFS4_CLAIM_DELEG_CUR_FH;
}

/* The request for a delegation that an OPEN is. */
struct nfs4_deleg_request nfs4_open_wants(struct nfs4_compound *c, struct nfs4_opening *w);

/* Finds or creates the file, and checks that the caller may open it with these modes. */
int nfs4_open_file(struct nfs4_compound *c, struct nfs4_opening *w);

/* Gets the share for the owner's open of the file; creates the open if there is none. Delegations and
 * local leases in the way are recalled, unless a share is. If nothing is left to do afterwards, commits
 * the share, too (w->shared). */
int nfs4_open_share(struct nfs4_compound *c, struct nfs4_opening *w);
/* Undoes nfs4_open_share, except for modes that other calls rely on by now. */
void nfs4_open_unshare(struct nfs4_opening *w);
/* Commits nfs4_open_share, and ends the open at once, if nobody else relies on it. False: it stays. */
bool nfs4_open_yield(struct nfs4_opening *w);
/* Commits nfs4_open_share: the reply reports the share. */
void nfs4_open_shared(struct nfs4_opening *w);

#endif
