/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's holdings: its owners, opens, locks, delegations and layouts, and the table that finds them by stateid. They
 * lie behind struct nfs4_client, whose lock guards them; that lock is never held across a call into
 * vfs/.
 *
 * References: each owner in the table holds one of the client (nfs4_client_ref). So a client's
 * memory stays until its holdings have been dropped and the operations under way have ended.
 */
#ifndef RN_NFS4_STATE_HOLDINGS_H
#define RN_NFS4_STATE_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/image.h"
#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_proto.h"

struct nfs4_deleg;
struct nfs4_layout_troubles;
struct nfs4_lock;
struct nfs4_loss;
struct nfs4_owner;
struct nfs4_session;
struct nfs4_state;

enum nfs4_revoked_by {
	NFS4_REVOKED_EXPIRED,
	NFS4_REVOKED_ADMIN,
	NFS4_REVOKED_DELEG,
	NFS4_REVOKED_BY
};

/* Recalls under way to one client (nfs4/deleg/recall.c). Under the client's lock, except as said. */
struct nfs4_recall_queue {
	struct nfs4_client *client;
	TAILQ_HEAD(nfs4_recalled, nfs4_deleg)
	all; /* recalled, and not returned or revoked; those that are overdue may come first */
	TAILQ_HEAD(nfs4_to_call, nfs4_deleg) due; /* those of which the client has to be told */
	uint32_t calls;				  /* CB_RECALLs under way */
	uint32_t looks;	 /* at the time of a recall, to see whether it is up; for tests */
	bool pumping;	 /* a thread sends calls */
	bool pump_again; /* it must look again before it ends */
	/* Under the lock of the server's list. */
	bool listed;
	uint32_t round; /* number of the last walk that has visited the client */
	TAILQ_ENTRY(nfs4_recall_queue) link;
};

#define NFS4_DELEG_KEEP_ALL UINT32_MAX

/* The last CB_RECALL_ANY to a client. Times in seconds. */
struct nfs4_deleg_asked {
	uint32_t keep;	      /* NFS4_DELEG_KEEP_ALL: nothing is asked for, or it has been done */
	uint64_t since, last; /* of the first request that it has not fulfilled; of the last */
	bool deaf;	      /* it cannot be asked: minor version 0 */
};

/* Delegations of one client that are given and not being recalled (nfs4/deleg/deleg_pressure.h). Under
 * the client's lock; what is atomic is also read without it. */
struct nfs4_deleg_account {
	struct nfs4_client *client;
	TAILQ_HEAD(nfs4_deleg_order, nfs4_deleg) order; /* least recently used first, about */
	_Atomic uint32_t n, leased; /* all; those whose files have leases of the kernel */
	uint32_t types;		    /* bits NFS4_ANY_* that it has had since it had none */
	struct nfs4_deleg_asked asked;
	_Atomic uint32_t keep;	  /* asked.keep */
	_Atomic uint64_t look_at; /* while n is above keep: when something is to be done */
	_Atomic bool refused;	  /* memory for one more */
	bool calling; /* CB_RECALL_ANY is under way, and holds a reference of the client */
	struct nfs4_recall_any call;
	/* Under the lock of the server's list. */
	TAILQ_ENTRY(nfs4_deleg_account) link;
};

struct nfs4_holdings {
	/* Set by drop, for good: nothing can be added any more. */
	bool dropped;

	uint32_t opens, locks, delegs, layouts, owners; /* in the tables */
	/* States in the tables that are not revoked; locks count only while they have ranges. */
	struct {
		uint32_t opens, locks, delegs;
	} live;
	/* Number of revoked states by status: see nfs4_revoked_by(). */
	_Atomic uint32_t revoked[NFS4_REVOKED_BY];
	uint32_t revoked_at; /* time of the last revocation: seconds of nfs4_clients_now() */

	/* Stateids, in chunks (nfs4/state/state.h). */
	uint64_t **chunks;
	uint32_t nchunks;
	uint32_t free_first, free_last;

	/* Hash tables by {kind, owner's name} and by {owner, file}; sizes are powers of two. */
	struct nfs4_owner **owner_hash;
	struct nfs4_state **state_hash;
	uint32_t owner_buckets, state_buckets;

	/* Owners without state, kept for retransmissions (minor version 0), oldest first. */
	TAILQ_HEAD(nfs4_idle_owners, nfs4_owner) idle;
	uint32_t nidle;
	/* Open-owners whose OPEN has not been confirmed (minor version 0), oldest first. */
	TAILQ_HEAD(nfs4_unconfirmed_owners, nfs4_owner) unconfirmed;
	TAILQ_HEAD(nfs4_held_states, nfs4_state) states; /* those in the tables */
	/* Lock-owners that wait for a lock (nfs4/state/lock_waiter.h). */
	LIST_HEAD(, nfs4_lock_waiter) waiters;
	uint32_t nwaiters;
	struct nfs4_recall_queue recalls; /* delegations that the client is to return */
	struct nfs4_deleg_account deleg_account;
	struct nfs4_layout_troubles *troubles; /* NULL: none were reported */
	_Atomic bool hears_of_devices;	       /* it is told of devices that are gone */
};

static inline enum nfs4_revoked_by nfs4_revoked_by(int status)
{
	switch (status) {
	case NFS4ERR_ADMIN_REVOKED:
		return NFS4_REVOKED_ADMIN;
	case NFS4ERR_DELEG_REVOKED:
		return NFS4_REVOKED_DELEG;
	default:
		return NFS4_REVOKED_EXPIRED;
	}
}

/* State to revoke from a client that stays registered. */
struct nfs4_revocation {
	int status;		 /* NFS4ERR_EXPIRED or NFS4ERR_ADMIN_REVOKED */
	const uint32_t *exports; /* ids of the exports whose state is revoked; NULL: all */
	unsigned n;
};

/* For a client that is in no table yet, whose memory is zeroed. Allocates nothing. */
void nfs4_holdings_init(struct nfs4_holdings *held);

/* Ends every open, lock, delegation and layout; none can be added any more. Takes the client's lock and calls
 * vfs/: the caller holds a reference of cl and no lock. Idempotent. */
void nfs4_holdings_drop(struct nfs4_client *cl);

/* True if there are opens, locks, delegations or layouts. The client's lock is held. */
bool nfs4_holdings_busy(const struct nfs4_holdings *held);
/* Like nfs4_holdings_busy(), but takes the client's lock. */
bool nfs4_client_has_state(struct nfs4_client *cl);
/* True if there are delegations. The client's lock is held. */
bool nfs4_holdings_delegated(const struct nfs4_holdings *held);

/*
 * Ends these opens with their locks, delegations, and layouts; returns the number of opens. Their stateids are
 * answered with the status until the client frees them by FREE_STATEID, which for an open
 * frees its locks too. In minor version 0, which has no FREE_STATEID, this lasts for a
 * lease. Locks as for nfs4_holdings_drop.
 */
uint64_t nfs4_holdings_revoke(struct nfs4_client *cl, const struct nfs4_revocation *r);
/* Counts what nfs4_holdings_revoke would end. Takes the client's lock. */
void nfs4_holdings_count(struct nfs4_client *cl, const struct nfs4_revocation *r,
			 struct nfs4_loss *out);
/* True if stateids revoked with that status have not been freed yet (for SEQUENCE's flags).
 * Takes no lock. */
bool nfs4_holdings_have_revoked(const struct nfs4_holdings *held, int status);

/* Called about once a lease: frees owners that have been idle or unconfirmed for a lease,
 * and state that was revoked a lease ago. Minor version 0 only. Locks as for nfs4_holdings_drop. */
void nfs4_holdings_tick(struct nfs4_client *cl);

/* Kinds of records in the image of NFSv4's state (lib/image.h); never used for anything else. */
enum nfs4_image_kind {
	NFS4_IMAGE_KEYS = 1,
	NFS4_IMAGE_CLIENT,
	NFS4_IMAGE_SESSION,
	NFS4_IMAGE_SLOT,
	NFS4_IMAGE_STATEIDS,
	NFS4_IMAGE_OWNER,
	NFS4_IMAGE_OPEN,
	NFS4_IMAGE_LOCK,
	NFS4_IMAGE_RANGE,
	NFS4_IMAGE_DELEG,
	NFS4_IMAGE_WAITER,
	NFS4_IMAGE_COPY,
	NFS4_IMAGE_COPY_TOLD,
	NFS4_IMAGE_COPY_SOURCE,
	NFS4_IMAGE_LAYOUT,
	NFS4_IMAGE_LAYOUT_TROUBLE,
	NFS4_IMAGE_DEVICE,
};

/* Adds cl's holdings, but delegations, to the image (nfs4/state/holdings_image.c). */
void nfs4_holdings_save(struct nfs4_client *cl, struct image_writer *w);
/* Where a reader of the image is. */
struct nfs4_loading {
	struct nfs4_client *client; /* of the records that follow; NULL: none yet */
	struct nfs4_session *session;
	struct nfs4_owner **owner; /* those of the client, by their number in the image */
	uint32_t nowners, owners_size;
	struct nfs4_lock *lock; /* that the next range belongs to */
};
/* Takes a record of another kind than those of clients, sessions and delegations. 0; -EPROTO; -ENOMEM. */
int nfs4_holdings_load(struct nfs4_loading *l, struct image_at *at);
/* The client's records have ended. */
void nfs4_holdings_load_end(struct nfs4_loading *l);

enum nfs4_expire {
	NFS4_HOLDS,   /* the lease is good; the client keeps its state */
	NFS4_DROPPED, /* the state is gone; the caller tries again */
	NFS4_DROPPING, /* the state will be gone when its record is off the disk; the caller waits for that */
};

/*
 * Resolves a conflict with state of cl. If the lease of cl has run out, its state is dropped and cl
 * has expired. Its record on disk is removed first: otherwise it could reclaim after a restart what
 * another client was granted. The caller holds a reference and no lock.
 */
enum nfs4_expire nfs4_client_expire_courtesy(struct nfs4_server *srv, struct nfs4_client *cl);

#endif
