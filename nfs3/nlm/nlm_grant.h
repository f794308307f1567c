/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait for a lock (NLM4_BLOCKED), and get it as soon as it is free: a worker takes the
 * lock for the client, and the client is told (NLM4_GRANTED). What it answers decides: a client that does
 * not want the lock any more, or has no lock manager, loses it again. One that does not answer is asked
 * again for a while, as the answer may be lost.
 *
 * A grant is vfs/'s notice while the lock is held by others. Then it is queued, and runs on a worker, one
 * after the other for each file, in the order in which they waited. Then it is a call of nsm/'s
 * messenger. Each of these has a reference, and hands it on. The lock's owner has one more from the lock
 * on, until the client's next call about that range, or the end of its locks: then the grant is
 * *settled*, and nothing is taken back.
 *
 * A client that asked by LOCK_MSG is told by GRANTED_MSG, and answers by GRANTED_RES. That counts if it has
 * the cookie of the message, which is random, and comes from the address that the message went to.
 *
 * The kernel does not tell when a local process gives up a lock. Grants that wait for one try it once a
 * second, as long as the client is expected to ask again.
 *
 * Clients ask again by themselves, too. So a grant that finds no memory is dropped.
 *
 * Locks: nlm_grants.lock is a leaf.
 */
#ifndef RN_NFS3_NLM_NLM_GRANT_H
#define RN_NFS3_NLM_NLM_GRANT_H

#include "nfs3/nlm/owners.h"

struct nlm_grants;

struct nlm_grants *nlm_grants_new(struct nfs3_server *s); /* NULL: no memory */
void nlm_grants_free(struct nlm_grants *t); /* behind nlm_owners_free(); NULL is allowed */
/* Waits for those that run on workers; none begins any more. What is due stays to be handed over. Before nsm_stop(). */
void nlm_grants_stop(struct nlm_grants *t);
/* Calls under way whose answers decide; those to messages come by themselves. */
unsigned nlm_grants_told(struct nlm_grants *t);
/* The steps of nlm_save() and nlm_load(), behind those of the owners. */
void nlm_grants_save(struct nlm_grants *t, struct image_writer *w);
int nlm_grants_load(struct nlm_grants *t, struct image_reader *image);

struct nlm_refusal {
	bool by_local; /* a local process has the lock, whose end vfs/ does not see */
	const struct nlm_grant *grant; /* that the lock was for; NULL: the client's call */
};
/* Remembers that r was refused. The caller has entered the owner. */
void nlm_grant_wait(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_owner *o,
		    const struct vfs_lock_request *r, const struct nlm_refusal *why);
/* The client asks by itself, or waits no more. */
void nlm_grants_forget(struct nlm_grants *t, uint64_t waiter);
/* About once a second: tries locks again that local processes had. Does not wait. */
void nlm_grants_retry(struct nlm_grants *t);

/* The owner has got the lock for the grant. The caller has entered it. */
void nlm_grant_link(struct nlm_owner *o, struct nlm_grant *g);
/* The owner's client has said something about the range, or its locks end: settles the grants there.
 * A length of 0 is to the end. Returns true if one of them was not settled. The caller has entered the owner. */
bool nlm_grants_settle(struct nlm_owner *o, uint64_t offset, uint64_t length);

/* ops_lock.c. Locks for a grant as LOCK does, with the caller's permissions of now. 0 or -errno; a refusal
 * waits anew. */
int nlm_grant_lock(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_grant *g);
/* Unlocks what the client did not want, unless the grant is settled. */
int nlm_grant_unlock(struct nfs3_op *op, const struct nlm_lock_args *a, const struct nlm_grant *g);
bool nlm_grant_is_settled(const struct nlm_grant *g);

/* A client has answered GRANTED_MSG. Only the host that was sent the message may, with its cookie. */
void nlm_grants_answered(struct nlm_grants *t, const struct sockaddr_storage *peer,
			 const struct nlm_bytes *cookie, uint32_t stat);

#endif
