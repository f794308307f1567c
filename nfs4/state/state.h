/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners, and the opens, locks, delegations and layouts that stateids name; private to nfs4/. All of a
 * client's are in its tables (nfs4/state/holdings.h) under the client's lock, which is not held
 * across calls into vfs/. Opens and locks belong to an owner, delegations (nfs4/state/nfs4_deleg.h) and
 * layouts (nfs4/state/nfs4_layout.h) to the client.
 *
 * Changes of shares and locks hold the busy lock of the open. One busy lock covers the open and all
 * locks under it, because vfs/ requires that calls for one share and one lock owner come one at a
 * time. Order: busy -> client's lock. No two busy locks are held at once.
 *
 * The tables hold one reference of a state; operations under way hold others. A state that has left
 * the tables (gone) has ended towards vfs/, or the thread that removed it ends it before it
 * releases busy.
 */
#ifndef RN_NFS4_STATE_STATE_H
#define RN_NFS4_STATE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/fiber.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/state/holdings.h"
#include "nfs4/stateid.h"
#include "vfs/lock.h"
#include "vfs/share.h"

struct nfs4_held;
struct nfs4_server;
struct nfs4_totals;

enum nfs4_owner_kind { NFS4_OPEN_OWNER, NFS4_LOCK_OWNER };

struct nfs4_owner {
	struct vfs_holder holder; /* identity for vfs/, which names it in conflicts */
	_Atomic uint32_t refs;	  /* held by the table, states, conflicts, c->seq_owner */
	uint8_t kind;
	/* Under the client's lock. */
	bool in_table;
	bool idle;	  /* in the list of idle owners */
	bool unconfirmed; /* in the list of unconfirmed owners */
	bool seq_known;	  /* seqid has been set: minor version 0 */
	bool seq_busy;	  /* an operation has advanced it and has not ended */
	uint32_t seqid, seq_next;
	uint32_t states;	    /* states in the table */
	uint32_t users;		    /* operations under way */
	uint32_t since;		    /* start of being idle or unconfirmed: seconds of nfs4_now() */
	struct nfs4_replay *replay; /* stored reply of the last operation */
	/* Minor version 0: the unconfirmed open, or the open that was closed last, whose stateid
	 * must still find the owner when CLOSE is retransmitted. */
	struct nfs4_open *kept;
	struct nfs4_owner *hash_next;
	TAILQ_ENTRY(nfs4_owner) link; /* idle or unconfirmed */
	LIST_HEAD(, nfs4_lock) locks; /* locks of a lock-owner */

	struct nfs4_client *client; /* a reference */
	uint32_t number;	    /* in the image of the state, while that is written */
	uint32_t hash;
	uint32_t len;
	uint8_t name[];
};

/* Stored reply of the operation with the last sequence number. */
struct nfs4_replay {
	uint32_t opnum, status;
	uint32_t len, size;		   /* bytes of the body, and of this struct */
	uint64_t sum;			   /* nfs4_seq_sum() of its call */
	struct nfs4_reply_exports exports; /* exports that a retry must be admitted to */
	struct vfs_fh fh; /* OPEN: the current filehandle after it; len 0: unchanged */
	uint8_t body[];
};

enum nfs4_state_kind {
	NFS4_STATE_OPEN = 1,
	NFS4_STATE_LOCK = 2,
	NFS4_STATE_DELEG = 4,
	NFS4_STATE_ANY = 7, /* of those that an operation on data may come with */
	NFS4_STATE_LAYOUT = 8,
};

struct nfs4_state {
	_Atomic uint32_t refs;
	uint8_t kind;
	/* Under the client's lock. */
	bool gone;	  /* in no table any more; may also be read under busy */
	bool slotted;	  /* true while its stateid finds it */
	uint32_t id;	  /* entry of the table and generation */
	uint32_t tag;	  /* nfs4_stateid_tag() of id */
	uint32_t seqid;	  /* last value given to the client; 0: none yet */
	uint32_t revoked; /* nfsstat4, or 0 */
	struct nfs4_state *hash_next;
	TAILQ_ENTRY(nfs4_state) link;

	uint32_t since;		    /* when it was made: seconds of nfs4_clients_now() */
	struct nfs4_client *client; /* a reference */
	struct nfs4_owner *owner;   /* a reference; NULL: a delegation or a layout */
	struct vfs_file *file;	    /* a reference */
};

/* Values of opener: no user's permission has been checked, or that of several. Each caller is
 * checked. */
#define NFS4_OPENER_NONE UINT64_MAX
#define NFS4_OPENER_SEVERAL (UINT64_MAX - 1)

struct nfs4_open {
	struct nfs4_state st;
	struct rn_lock busy;
	struct vfs_share share;	      /* under busy */
	_Atomic uint8_t access;	      /* access bits of share, for data operations */
	_Atomic uint64_t opener;      /* uid whose permission was checked; changed under busy */
	uint32_t pending;	      /* OPENs under way; under busy */
	uint16_t combinations;	      /* bits of the (access, deny) pairs opened; under busy */
	uint32_t export_id;	      /* export of the first OPEN */
	bool stateid_sent;	      /* an OPEN has returned its stateid; under busy */
	LIST_HEAD(, nfs4_lock) locks; /* under the client's lock */
	uint8_t fh_len;
	uint8_t fh
		[]; /* handle of the first OPEN, to compare with a filehandle without asking vfs/ */
};

struct nfs4_lock {
	struct nfs4_state st;
	struct vfs_lock_owner ranges; /* under open->busy */
	struct nfs4_open *open;	      /* a reference */
	_Atomic bool held;	      /* true if ranges are locked; changed under open->busy */
	bool counted;		      /* in nfs4_holdings.live */
	uint32_t charged;	      /* ranges charged to the client; under its lock */
	LIST_ENTRY(nfs4_lock) open_link, owner_link;
};

static inline struct nfs4_open *nfs4_as_open(struct nfs4_state *st)
{
	return rn_container_of(st, struct nfs4_open, st);
}

static inline struct nfs4_lock *nfs4_as_lock(struct nfs4_state *st)
{
	return rn_container_of(st, struct nfs4_lock, st);
}

/* The open whose busy lock guards what st, an open or a lock, has in vfs/. */
static inline struct nfs4_open *nfs4_open_of(struct nfs4_state *st)
{
	return st->kind == NFS4_STATE_OPEN ? nfs4_as_open(st) : nfs4_as_lock(st)->open;
}

/* The number by which administrators name a state (nfs4/nfs4_view.h). */
static inline uint64_t nfs4_view_id(const struct nfs4_state *st)
{
	return (uint64_t)st->client->number << 32 | st->id;
}

/* The seqid that follows v in a stateid (RFC 8881 section 8.2.2). It is never 0. */
static inline uint32_t nfs4_next_seqid(uint32_t v)
{
	return v == UINT32_MAX ? 1 : v + 1;
}

/* nfs4/state/state_table.c: totals, memory, and the tables of states. */

/* Server-wide numbers of owners, opens, locks and delegations. The objects themselves belong to clients
 * (nfs4/state/holdings.h). */

/* Sets srv->totals. 0 or -ENOMEM. */
int nfs4_totals_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_totals_free(struct nfs4_totals *s);
/* Fills owners, opens, locks, delegations, layouts. */
void nfs4_totals_held(struct nfs4_totals *s, struct nfs4_held *out);

enum nfs4_total {
	NFS4_TOTAL_OWNERS,
	NFS4_TOTAL_OPENS,
	NFS4_TOTAL_LOCKS,
	NFS4_TOTAL_DELEGS,
	NFS4_TOTAL_LAYOUTS,
	NFS4_TOTALS
};
/* Adds to a number; a negative value subtracts. */
void nfs4_totals_count(struct nfs4_server *srv, enum nfs4_total what, int by);

/* Bytes that vfs/ needs for an open file and for a locked range, measured by
 * tests/unit/test_nfs4_scale.c. They are charged to the client that opens or locks. */
#define NFS4_FILE_COST 232u
#define NFS4_RANGE_COST 144u

/* Charges memory to the budget, so that no client has more than is left for all others. Under the client's lock.
 * False: no memory now. */
bool nfs4_state_charge(struct nfs4_client *cl, size_t bytes);
void nfs4_state_discharge(struct nfs4_client *cl, size_t bytes);
/* True if there is memory for what LOCK can add: a range that splits another. */
bool nfs4_ranges_fit(struct nfs4_lock *lock);
/*
 * Updates the charge after the number of ranges has changed. Takes the client's lock; busy is held.
 */
void nfs4_ranges_changed(struct nfs4_lock *lock);
/* The status for a lack of memory: NFS4ERR_RESOURCE or NFS4ERR_DELAY. */
int nfs4_state_no_memory(const struct nfs4_compound *c);

/* The tables of a client. Under its lock. */

/* The owner's state of the file; o NULL: the client's delegation. NULL: there is none. */
struct nfs4_state *nfs4_state_by_file(struct nfs4_client *cl, const struct nfs4_owner *o,
				      const struct vfs_file *f);
/* The client's layout of the file. NULL: it has none. */
struct nfs4_state *nfs4_layout_by_file(struct nfs4_client *cl, const struct vfs_file *f);
/* The lock-owner's lock of the file, with a reference; NULL: it has none. Takes the client's lock. */
struct nfs4_lock *nfs4_lock_find(struct nfs4_client *cl, const struct nfs4_owner *o,
				 const struct vfs_file *f);
/* Adds a state to the tables, with a reference for them. 0 or -ENOMEM, -ENOSPC, -ESTALE: the
 * client's state is being dropped. */
int nfs4_state_add(struct nfs4_client *cl, struct nfs4_state *st);
/* The same with its id of the program before, in a table by nfs4_stateids_load(). Also -EPROTO. */
int nfs4_state_return(struct nfs4_client *cl, struct nfs4_state *st, uint32_t id);
/* Removes a state from the tables; the caller puts the table's reference later. keep: its stateid
 * still finds it until nfs4_state_forget. */
void nfs4_state_remove(struct nfs4_client *cl, struct nfs4_state *st, bool keep);
void nfs4_state_forget(struct nfs4_client *cl, struct nfs4_state *st);
/* Revokes a state: its stateid is answered with status from now on, and the next OPEN or LOCK gets a new one. */
void nfs4_state_revoke(struct nfs4_client *cl, struct nfs4_state *st, int status);
/* Frees the memory of empty tables; the client's state has been dropped. */
void nfs4_states_empty(struct nfs4_client *cl);

/*
 * A client's table of stateids: entries in chunks, found by number. The generation of an entry
 * counts its uses, so that a stateid of an earlier use is recognised. Free entries are used in
 * turn, so that a generation recurs only after 4096 uses of all free entries. Under the client's
 * lock.
 */
void nfs4_stateids_init(struct nfs4_holdings *held);
/* Entries of the table, and the state of one of them; NULL if it is free. */
uint32_t nfs4_stateid_entries(const struct nfs4_holdings *held);
struct nfs4_state *nfs4_stateid_at(const struct nfs4_holdings *held, uint32_t entry);
/* The generations of all entries, two bytes each, for the image of the state; and the empty table of a client with them. 0, -EPROTO or -ENOMEM. */
void nfs4_stateids_put(const struct nfs4_holdings *held, uint8_t *out);
int nfs4_stateids_load(struct nfs4_client *cl, const uint8_t *in, uint32_t entries);
/* NULL if the entry is free, or used by another generation. */
struct nfs4_state *nfs4_stateid_find(const struct nfs4_holdings *held, uint32_t id);

/* nfs4/state/state_object.c: the objects, and their end. */

/* Sets the members of a state in no table: one reference for the caller, and those of the others. o
 * is NULL for a delegation or a layout. */
void nfs4_state_init(struct nfs4_state *st, enum nfs4_state_kind kind, struct nfs4_client *cl,
		     struct nfs4_owner *o, struct vfs_file *f);
void nfs4_state_ref(struct nfs4_state *st);
void nfs4_state_unref(struct nfs4_state *st); /* NULL is allowed; called without locks */
/* Make a state in no table, with a reference for the caller. NULL: no memory. */
struct nfs4_open *nfs4_open_new(struct nfs4_owner *o, struct vfs_file *f,
				const struct nfs4_object *p);
struct nfs4_lock *nfs4_lock_new(struct nfs4_owner *o, struct nfs4_open *open);
/* True if the object is the file of the state. */
bool nfs4_state_is_of(struct nfs4_state *st, struct nfs4_object *p);

/* Ends an open and its locks: removes them from the tables and from vfs/.
 * keep as above. The caller holds busy, and has checked that the open is not gone. */
void nfs4_open_end(struct nfs4_open *open, bool keep);
/* Like nfs4_open_end(), with its own locking; does nothing if the open is gone. The caller holds no lock. */
void nfs4_open_drop(struct nfs4_open *open);
void nfs4_lock_end(struct nfs4_lock *lock);
/* Like nfs4_lock_end(), with its own locking; does nothing if the lock is gone. The caller has a reference and no lock. */
void nfs4_lock_drop(struct nfs4_lock *lock);

/* Revocation of single states: what a client held is free for others at once, and its stateid is answered with the
 * reason until the client has freed it. The caller holds a reference of the state, and no lock but as said. */

/* Revokes an open with its locks, or a delegation; ends a layout. True if it was an open that was not closed meanwhile. */
bool nfs4_revoke(struct nfs4_state *st, int status);

/* The caller holds the open's busy lock. False: it has gone, or was revoked before. */
bool nfs4_open_revoke(struct nfs4_open *open, int status);
bool nfs4_lock_revoke(struct nfs4_lock *lock, int status);

/* The state with that id of nfs4/nfs4_view.h, with a reference, unless it was revoked; or NULL. */
struct nfs4_state *nfs4_state_by_view_id(struct nfs4_server *s, enum nfs4_view_kind kind,
					 uint64_t id);

#endif
