/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a client's owners, and their sequence numbers.
 *
 * An operation uses an owner between nfs4_owner_get() and nfs4_owner_release(). An owner without
 * users and state is freed at once. An open-owner of minor version 0 is kept for a lease, as the
 * client may retransmit its last operation.
 */
#ifndef RN_NFS4_STATE_OWNER_H
#define RN_NFS4_STATE_OWNER_H

#include "nfs4/state/state.h"

#define NFS4_IDLE_OWNERS_MAX 1024u /* per client; the oldest are freed first */

/* open_owner4, lock_owner4 */
struct nfs4_wire_owner {
	uint64_t clientid;
	const uint8_t *name; /* in the message or the arena */
	uint32_t len;
};
void nfs4_get_wire_owner(struct nfs4_compound *c, struct nfs4_wire_owner *o);

struct nfs4_owner_name {
	enum nfs4_owner_kind kind;
	const uint8_t *name;
	uint32_t len; /* up to NFS4_OPAQUE_LIMIT */
};

/* Finds or makes the owner of that name: NFS4_OK, NFS4ERR_DELAY, NFS4ERR_RESOURCE, or
 * NFS4ERR_EXPIRED if the client's state is being dropped. Takes the client's lock. */
int nfs4_owner_get(struct nfs4_compound *c, struct nfs4_client *cl,
		   const struct nfs4_owner_name *name, struct nfs4_owner **out);
/* Makes the owner of that name, of the program before, without users. NULL: no memory. Takes the client's lock. */
struct nfs4_owner *nfs4_owner_load(struct nfs4_client *cl, const struct nfs4_owner_name *name,
				   bool unconfirmed, uint32_t since);
/* Memory for a stored reply of that length, in o->replay. NULL: no memory. Under the client's lock. */
struct nfs4_replay *nfs4_replay_for(struct nfs4_owner *o, uint32_t len);
/* NULL if there is none. */
struct nfs4_owner *nfs4_owner_find(struct nfs4_client *cl, const struct nfs4_owner_name *name);
/* Marks an owner as used that the caller found by other means; under the client's lock. */
void nfs4_owner_use(struct nfs4_owner *o);
/* Takes the client's lock; NULL is allowed. */
void nfs4_owner_release(struct nfs4_owner *o);

void nfs4_owner_ref(struct nfs4_owner *o);
void nfs4_owner_unref(struct nfs4_owner *o);
bool nfs4_holder_is_ours(const struct vfs_holder *h);
static inline struct nfs4_owner *nfs4_owner_of_holder(struct vfs_holder *h)
{
	return rn_container_of(h, struct nfs4_owner, holder);
}

/* Owners and opens that left the tables under the client's lock, linked by hash_next. nfs4_bury()
 * puts them after the lock is released. */
struct nfs4_dead_owners {
	struct nfs4_owner *first;
	struct nfs4_state *kept;
};
void nfs4_bury(struct nfs4_dead_owners *dead);
/* Frees the owner if it has neither state nor users, or makes it idle. Under the client's lock. */
void nfs4_owner_maybe_idle(struct nfs4_owner *o, struct nfs4_dead_owners *dead);
/* Removes an owner without state from the tables. Under the client's lock. */
void nfs4_owner_forget(struct nfs4_owner *o, struct nfs4_dead_owners *dead);

/*
 * Minor version 0: checks the sequence number of the operation under way for o, which the caller
 * uses. NFS4_OK: c->seq_owner is o from now on, until the loop calls nfs4_seq_done. Else the
 * status to return. It may be the stored reply of a retransmission: *replayed is then true and the
 * body in c->out. Minor versions 1 and 2: always NFS4_OK.
 */
int nfs4_seq_begin(struct nfs4_compound *c, struct nfs4_owner *o, uint32_t seqid, bool *replayed);
/*
 * Called by the loop when an operation that has set c->seq_owner has ended with that status. c->out holds the result from
 * c->status_at on, and nothing behind it: the status, then the body. The bytes are stored for a retransmission, the
 * owner is free for the next operation, and c->seq_owner is NULL.
 */
void nfs4_seq_done(struct nfs4_compound *c, int status);
/* Minor version 0: sets c->seq_sum to a hash of the call from the operation's arguments on, which are
 * not decoded yet, and of the current filehandle. */
void nfs4_seq_sum(struct nfs4_compound *c);
/* True if seqid follows the last one, or the owner is new. For the second owner of an operation. */
bool nfs4_seq_is_next(struct nfs4_owner *o, uint32_t seqid);
/* Sets the last sequence number of a second owner, without storing a reply. */
void nfs4_seq_set(struct nfs4_owner *o, uint32_t seqid);
/* True if a status advances the sequence number (RFC 7530 section 9.1.7). */
bool nfs4_seq_advances(int status);
/* Releases the open that the owner keeps: unconfirmed, or closed last. Called without locks. */
void nfs4_owner_drop_kept(struct nfs4_owner *o);

#endif
