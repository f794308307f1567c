/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a client's owners, and their sequence numbers.
 *
 * An owner is used by an operation between nfs4_owner_get() and nfs4_owner_release(); one that
 * nobody uses and that has no state left goes at once; but an open-owner of minor version 0 is kept
 * for a lease, as its last answer may be asked for again.
 */
#ifndef RN_NFS4_STATE_OWNER_H
#define RN_NFS4_STATE_OWNER_H

#include "nfs4/state/state.h"

#define NFS4_IDLE_OWNERS_MAX 1024u /* of one client; the oldest go first */

struct nfs4_owner_name {
	enum nfs4_owner_kind kind;
	const uint8_t *name;
	uint32_t len; /* up to NFS4_OPAQUE_LIMIT */
};

/* The owner of that name, made if there is none: NFS4_OK, NFS4ERR_DELAY, NFS4ERR_RESOURCE, or
 * NFS4ERR_EXPIRED: the client's state is being dropped. Takes the client's lock. */
int nfs4_owner_get(struct nfs4_compound *c, struct nfs4_client *cl,
		   const struct nfs4_owner_name *name, struct nfs4_owner **out);
/* NULL if there is none. */
struct nfs4_owner *nfs4_owner_find(struct nfs4_client *cl, const struct nfs4_owner_name *name);
/* One that the caller found otherwise; under the client's lock. */
void nfs4_owner_use(struct nfs4_owner *o);
/* Takes the client's lock; NULL is allowed. */
void nfs4_owner_release(struct nfs4_owner *o);

/* In no table, with a reference for the caller. NULL: no memory. */
struct nfs4_owner *nfs4_owner_new(struct nfs4_client *cl, const struct nfs4_owner_name *name);
size_t nfs4_owner_cost(uint32_t len); /* bytes, with a name of that length */
void nfs4_owner_ref(struct nfs4_owner *o);
void nfs4_owner_unref(struct nfs4_owner *o);
bool nfs4_holder_is_ours(const struct vfs_holder *h);
static inline struct nfs4_owner *nfs4_owner_of_holder(struct vfs_holder *h)
{
	return rn_container_of(h, struct nfs4_owner, holder);
}

/* What has left the tables under the client's lock, to be put when it is free: lists by hash_next.
 */
struct nfs4_dead_owners {
	struct nfs4_owner *first;
	struct nfs4_state *kept;
};
void nfs4_bury(struct nfs4_dead_owners *dead);
/* Under the client's lock: one that has no state and no user any more goes, or is idle from now on.
 */
void nfs4_owner_maybe_idle(struct nfs4_owner *o, struct nfs4_dead_owners *dead);
/* Out of the tables: it has no state. Under the client's lock. */
void nfs4_owner_forget(struct nfs4_owner *o, struct nfs4_dead_owners *dead);

/*
 * Minor version 0: may the operation under way go on, whose arguments have that sequence number for
 * o, which the caller uses? NFS4_OK: c->seq_owner is o from now on, until the loop calls nfs4_seq_hooks.done. Else the
 * status to return, which may be the old answer of a replay (*replayed is true, the body in
 * c->out). NFS4_OK at once in minor versions 1 and 2.
 */
int nfs4_seq_begin(struct nfs4_compound *c, struct nfs4_owner *o, uint32_t seqid, bool *replayed);
/* Is seqid what comes after the last one, or the owner new? Of a second owner in one operation. */
bool nfs4_seq_is_next(struct nfs4_owner *o, uint32_t seqid);
/* Sets the last sequence number of such a one, without an answer to keep. */
void nfs4_seq_set(struct nfs4_owner *o, uint32_t seqid);
/* Does a status advance the sequence number (RFC 7530 section 9.1.7)? */
bool nfs4_seq_advances(int status);
/* Gives up what the owner keeps: its unconfirmed open, or the one that it has closed. Called
 * without locks. */
void nfs4_owner_drop_kept(struct nfs4_owner *o);

#endif
