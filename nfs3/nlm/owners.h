/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holders of NLM locks: one object for each {client's address, its name, process, owner handle,
 * file} with locks. It also holds the file open, so that a lock outlives the last link, as with
 * NFSv4. Shares (SHARE) have objects of their own, without a process.
 *
 * Lock order: nlm_owner.busy (calls of one owner, one after the other, which wait in their fibers) ->
 * nlm_owners.lock -> vfs/'s.
 */
#ifndef RN_NFS3_NLM_OWNERS_H
#define RN_NFS3_NLM_OWNERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/fiber.h"
#include "lib/host.h"
#include "lib/image.h"
#include "nfs3/nlm/nlm.h"
#include "rpc/address.h"
#include "vfs/lock.h"
#include "vfs/share.h"

/*
 * Memory that hosts share. Three quarters are for all: a host may have as much of them as it leaves free, alone half, a second
 * host a quarter. The last quarter is for hosts that have a thousandth of all at most, 256 of them: so there is room for a host that comes last,
 * however many others take what they may.
 *
 * The owner of a struct nlm_memory guards it.
 */

struct nlm_memory {
	size_t max, used; /* bytes */
	struct rn_host_table hosts;
};

void nlm_memory_init(struct nlm_memory *r, size_t max);
bool nlm_memory_fits(const struct nlm_memory *r, const struct rpc_address *addr, size_t bytes);
/* Takes them if they fit, and there is memory to note it. */
bool nlm_memory_take(struct nlm_memory *r, const struct rpc_address *addr, size_t bytes);
/* Bytes that a host has. */
size_t nlm_memory_has(const struct nlm_memory *r, const struct rpc_address *addr);
/* Takes and gives bytes of a host that has some. It cannot fail. */
void nlm_memory_change(struct nlm_memory *r, const struct rpc_address *addr, size_t take,
		       size_t give);

struct nsm;
struct nsm_host;
struct nsm_reboot;

#define NLM_BUCKETS 4096u
#define NLM_MEMORY_MAX (32u << 20) /* bytes of all owners, their files and locks */
/* Bytes that vfs/ needs for a file and for a range of it (tests/unit/test_vfs_scale.c). */
#define NLM_FILE_COST 350u
#define NLM_RANGE_COST 144u

struct nlm_owner_key {
	struct rpc_address addr;
	int32_t svid;
	bool shares; /* true for a share, false for locks */
	struct nlm_bytes oh, caller;
	const struct vfs_fh *fh; /* of the call; no part of the identity */
	uint64_t hash;		 /* hash of all members above it, under the table's key; not 0 */
};

struct nlm_grant;
LIST_HEAD(nlm_grant_list, nlm_grant);

struct nlm_owner {
	struct vfs_holder holder; /* shown to others in conflicts */
	_Atomic unsigned refs;
	LIST_ENTRY(nlm_owner) link;
	bool linked; /* under nlm_owners.lock */
	struct rn_lock busy;
	struct vfs_lock_owner locks;
	struct vfs_share share;
	uint64_t hash;
	struct rpc_address addr;
	int32_t svid;
	bool shares;
	bool held;	    /* the owner has held something; under busy */
	uint32_t export_id; /* export by which it was first used */
	uint32_t round;	    /* last walk that met it, see nlm_owners.round; under nlm_owners.lock */
	/* On record while the owner is, and the state number of its last lock; NULL: the client wants no
	 * record. Under busy. */
	struct nsm_host *host;
	uint32_t state;
	struct nlm_grant_list granted; /* nfs3/nlm/nlm_grant.h; under busy */
	uint64_t serial;	       /* unique and ascending; modulo NLM_BUCKETS the bucket */
	uint32_t charged; /* ranges already counted in nlm_owners.room; under its lock */
	uint16_t oh_len, caller_len, fh_len;
	uint8_t bytes[]; /* oh, caller, handle of the first call */
};

LIST_HEAD(nlm_owner_list, nlm_owner);

struct nlm_owners {
	struct nsm *nsm; /* may be NULL */
	pthread_mutex_t lock;
	uint8_t key[16];
	struct nlm_memory memory;
	uint64_t last_serial;
	uint32_t round; /* number of the current walk of nlm_owners_revoke */
	struct nlm_owner_list bucket[NLM_BUCKETS];
};

struct nlm_owners *nlm_owners_new(struct nsm *nsm);
void nlm_owners_free(struct nlm_owners *t); /* releases all locks; no request is running */

void nlm_owner_key(const struct nlm_owners *t, const struct sockaddr *peer,
		   const struct nlm_lock_args *a, struct nlm_owner_key *out);
/* Makes it the key of the caller's share of the file. */
void nlm_owner_key_of_share(const struct nlm_owners *t, struct nlm_owner_key *k);

/*
 * The owner's object for op->node[0], with busy held, to be given back by nlm_owner_leave. create:
 * made if there is none. 0 with NULL: there is none. -ENOLCK: too many; -ESTALE and errors of
 * vfs_share_open.
 */
int nlm_owner_enter(struct nlm_owners *t, struct nfs3_op *op, const struct nlm_owner_key *k,
		    bool create, struct nlm_owner **out);
/* Notes that the owner has taken a lock; takes over the reference of the host, which may be NULL. The
 * caller has entered the owner. */
void nlm_owner_monitor(struct nlm_owners *t, struct nlm_owner *o, struct nsm_host *host,
		       uint32_t state);
/* True if the owner's host has room for the ranges that one lock can add. */
bool nlm_owner_has_room(struct nlm_owners *t, const struct nlm_owner *o);
/* Releases all that it holds. The caller has entered it. */
void nlm_owner_drop(struct nlm_owner *o);
/* Frees an owner without locks and share; NULL is allowed. */
void nlm_owner_leave(struct nlm_owners *t, struct nlm_owner *o);
/* A reference to the owner, which is made for that export unless create is NULL. NULL: there is
 * none, or no memory for one. */
struct nlm_owner *nlm_owners_find(struct nlm_owners *t, const struct nlm_owner_key *k,
				  struct vfs_file *f, const struct vfs_export *create);

void nlm_owner_put(struct nlm_owner *o); /* a reference; without locks */

/* Releases all locks of the client with that address and name below exports for which may_free
 * returns true. may_free is called once for each export, without a lock held. */
struct nlm_freed {
	const struct sockaddr *peer;
	const struct nlm_bytes *caller;
	bool (*may_free)(void *arg, uint32_t export_id);
	void *arg;
};
void nlm_owners_drop_client(struct nlm_owners *t, const struct nlm_freed *freed);

/* See nlm_host_rebooted. */
bool nlm_owners_drop_rebooted(struct nlm_owners *t, const struct nsm_reboot *r);

/* Releases the locks below exports that their clients have lost; returns the number of clients. One
 * call at a time. */
uint64_t nlm_owners_revoke(struct nlm_owners *t, const struct vfs_exports_lost *lost);
/* Number of owners that this would find. */
uint64_t nlm_owners_count(struct nlm_owners *t, const struct vfs_exports_lost *lost);

/* The steps of nlm_save() and nlm_load(). */
void nlm_owners_save(struct nlm_owners *t, struct image_writer *w);
int nlm_owners_load(struct nlm_owners *t, struct vfs *vfs, struct image_reader *image);

/* NLM owner behind this holder; NULL if it is not NLM's. */
const struct nlm_owner *nlm_owner_of(const struct vfs_holder *h);

/* Steps that the lock manager's procedures share (nfs3/nlm/nlm_ops_lock.c). */

static inline bool nlm_is_message(const struct rpc_request *req)
{
	return req->call.proc >= NLMPROC4_TEST_MSG && req->call.proc <= NLMPROC4_GRANTED_MSG;
}

/* NULL: RPC_RUN_SYSTEM_ERR. */
struct nfs3_op *nlm_begin(struct rpc_request *req);
/* Opens the file, and makes the key of the caller's owner. 0 or -errno. */
int nlm_open(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_owner_key *key);
/* True if a lock or share has to wait, or a reclaim comes at a time when there is nothing to reclaim. A reclaim that comes too early waits within. */
bool nlm_wrong_time(struct nfs3_op *op, bool reclaim);
/* Puts the client on record before it gets something. *host is then for the caller to put. 0 or -errno. */
int nlm_monitor(struct nfs3_op *op, const struct nlm_lock_args *a, unsigned flags,
		struct nsm_host **host);

#endif
