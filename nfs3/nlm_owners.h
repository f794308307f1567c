/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has locks by NLM: one object for each {client's address, its name, process, owner handle,
 * file} that has some. It also holds the file open, so that a lock outlives the last link, as with
 * NFSv4.
 *
 * Lock order: nlm_owner.busy (calls of one owner, one after the other) -> nlm_owners.lock ->
 * vfs/'s.
 */
#ifndef RN_NFS3_NLM_OWNERS_H
#define RN_NFS3_NLM_OWNERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "nfs3/nlm.h"
#include "vfs/lock.h"
#include "vfs/share.h"

#define NLM_BUCKETS 4096u
#define NLM_MEMORY_MAX (16u << 20) /* bytes of all owners, their files and locks */
/* What vfs/ needs for a file and for a range of it (tests/unit/test_vfs_scale.c). */
#define NLM_FILE_COST 350u
#define NLM_RANGE_COST 144u

struct nlm_owner_key {
	uint8_t addr[16]; /* IPv4 as mapped */
	int32_t svid;
	struct nlm_bytes oh, caller;
	uint64_t hash; /* of all that, under the table's key; not 0 */
};

struct nlm_owner {
	struct vfs_holder holder; /* for others' conflicts */
	_Atomic unsigned refs;
	LIST_ENTRY(nlm_owner) link;
	bool linked; /* under nlm_owners.lock */
	pthread_mutex_t busy;
	struct vfs_lock_owner locks;
	struct vfs_share share;
	uint64_t hash;
	uint8_t addr[16];
	int32_t svid;
	uint32_t export_id; /* by which it came first */
	uint32_t round;	    /* of nlm_owners.round; under nlm_owners.lock */
	uint32_t charged;   /* ranges that are counted in nlm_owners.memory; under its lock */
	uint16_t oh_len, caller_len;
	uint8_t bytes[]; /* oh, caller */
};

LIST_HEAD(nlm_owner_list, nlm_owner);

struct nlm_owners {
	pthread_mutex_t lock;
	uint8_t key[16];
	size_t memory;
	uint32_t round; /* of nlm_owners_revoke */
	struct nlm_owner_list bucket[NLM_BUCKETS];
};

struct nlm_owners *nlm_owners_new(void);
void nlm_owners_free(struct nlm_owners *t); /* unlocks all; no request is running */

void nlm_owner_key(const struct nlm_owners *t, const struct sockaddr *peer,
		   const struct nlm_lock_args *a, struct nlm_owner_key *out);

/* The owner's object for op->node[0], busy: to be left again. create: one is made if there is none.
 * 0 and NULL: there is none. -ENOLCK: too many, -ESTALE and what vfs_share_open says. */
int nlm_owner_enter(struct nlm_owners *t, struct nfs3_op *op, const struct nlm_owner_key *k,
		    bool create, struct nlm_owner **out);
/* Is there memory for what one lock can add? */
bool nlm_owners_have_room(struct nlm_owners *t);
/* Forgets one that has no locks; NULL is allowed. */
void nlm_owner_leave(struct nlm_owners *t, struct nlm_owner *o);

/* Unlocks all that the client of that address and name has below exports for which may_free says
 * so. That is asked once for each of them, without a lock. */
struct nlm_freed {
	const struct sockaddr *peer;
	const struct nlm_bytes *caller;
	bool (*may_free)(void *arg, uint32_t export_id);
	void *arg;
};
void nlm_owners_drop_client(struct nlm_owners *t, const struct nlm_freed *freed);

/* Those below exports that are lost to their clients have no lock any more: their number. One call
 * at a time. */
uint64_t nlm_owners_revoke(struct nlm_owners *t, const struct vfs_exports_lost *lost);

/* Is it one of ours? Or NULL. */
const struct nlm_owner *nlm_owner_of(const struct vfs_holder *h);

#endif
