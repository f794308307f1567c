/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durable records of clients that hold state: they alone may reclaim after a restart. A record lies
 * in the client (struct nfs4_client.record) and knows what is on disk. One thread of the recovery's
 * own writes; what comes while it waits for the disk goes into one transaction with the next. No
 * worker waits for it: an operation that must not be answered before its record is on disk pauses.
 *
 * A client is recorded before the reply that gives it its first state (OPEN, LOCK), and forgotten,
 * durably, before its state is given to somebody else: that is what tells a client that may reclaim
 * from one whose state was lost in a network partition (RFC 7530 section 9.6.3.4, RFC 8881 section
 * 8.4.3).
 */
#ifndef RN_NFS4_RECORDS_H
#define RN_NFS4_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nfs4/compound.h"

struct nfs4_record_job;

enum nfs4_record_bits {
	NFS4_RECORD_STATE = 1, /* the client holds, or may hold, opens and locks */
	NFS4_RECORD_DENY = 2,  /* and share reservations that deny something */
};

/* The caller that registered the client: nfs4/client/origin.c says what it decides. */
struct nfs4_record_origin {
	bool known;	     /* false: recorded by a release that did not keep it */
	bool reserved;	     /* from a port that only privileged processes have, or over RDMA */
	uint8_t address[16]; /* IPv4 is mapped */
	uint32_t flavor, uid;
};

struct nfs4_record {
	const uint8_t *id; /* the client's owner string: the client's memory */
	uint32_t id_len;   /* up to NFS4_OPAQUE_LIMIT */
	uint8_t sessions;  /* 0: from SETCLIENTID, 1: from EXCHANGE_ID: two name spaces */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct nfs4_record_origin origin;
	_Atomic unsigned durable; /* enum nfs4_record_bits: on disk, in this run's epoch */
	_Atomic unsigned begun;	  /* nfs4_record_begin() */
	_Atomic unsigned ended;	  /* nfs4_record_end() */
	_Atomic unsigned reclaim; /* nfs4/recovery/grace.c's: what it may reclaim */
	_Atomic uint64_t asked_s; /* when it first asked for new state without having said that it
				   * has reclaimed all; grace.c's */
	struct nfs4_record_job *job; /* under way; the recovery's lock guards it */
};

/* Makes the record of a new client; id is not copied. The caller sets origin afterwards. */
void nfs4_record_init(struct nfs4_record *rec, const void *id, uint32_t id_len,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE], bool sessions);
/* The client's memory goes. What is on disk stays: see nfs4_record_forget(). */
void nfs4_record_fini(struct nfs4_server *srv, struct nfs4_record *rec);

/* Are bits on disk already? The usual case: one load. Sequentially consistent, as begun and durable
 * are written here and looked at there by nfs4_record_retire(), and the other way round. */
static inline bool nfs4_record_has(const struct nfs4_record *rec, unsigned bits)
{
	return (atomic_load(&rec->durable) & bits) == bits;
}

/*
 * For run(): makes sure that bits are on disk. Returns again(c, 0) if they are, else pauses the
 * operation and returns NFS4_PENDING; again() then runs on c's worker, with what follows:
 *	0		recorded
 *	-errno		the database cannot be written (logged): going on is up to the caller, who
 *should, as a server that cannot record is of more use than one that serves nobody again() returns
 *what run() would. The caller holds a reference of the client until then, and no lock.
 *NFS4ERR_DELAY: no memory.
 */
int nfs4_record_for(struct nfs4_compound *c, struct nfs4_record *rec, unsigned bits,
		    int (*again)(struct nfs4_compound *c, int rc));

/*
 * For run(): waits until what is under way for the record (nfs4_record_revoke) is on disk, or
 * cannot be written. NFS4_PENDING: again() follows as above. NFS4_OK: there is nothing to wait for.
 * NFS4ERR_DELAY: no memory.
 */
int nfs4_record_settled(struct nfs4_compound *c, struct nfs4_record *rec,
			int (*again)(struct nfs4_compound *c, int rc));

/* Around each operation that may give the client its first state, nfs4_record_for() included: the
 * record is not forgotten meanwhile for want of state. */
static inline void nfs4_record_begin(struct nfs4_record *rec)
{
	atomic_fetch_add(&rec->begun, 1); /* before durable is looked at */
}
static inline void nfs4_record_end(struct nfs4_record *rec)
{
	atomic_fetch_add(&rec->ended, 1);
}

/*
 * Forgets the record of a client without state, so that nobody waits for it after a restart: not at
 * once when it closes its last file, or each OPEN would wait for the disk. First
 * nfs4_record_is_quiet(), which says whether there is a record and no such operation is under way;
 * then a look whether the client has state; if not, nfs4_record_retire(), which does nothing if an
 * operation has begun since. Not in grace.
 */
bool nfs4_record_is_quiet(const struct nfs4_record *rec, unsigned *mark);
void nfs4_record_retire(struct nfs4_server *srv, struct nfs4_record *rec, unsigned mark);

/*
 * The client has no state any more, by its own will or by its restart (DESTROY_CLIENTID, a new
 * verifier, an expired lease without state). Its record goes some time; nobody waits for that. A
 * nfs4_record_for() that comes later is carried out later.
 */
void nfs4_record_forget(struct nfs4_server *srv, struct nfs4_record *rec);

/* The server stops, and the client's lease has run out: what it had could have been given away, so
 * that after the start nobody waits for it to come back. */
void nfs4_record_lapsed(struct nfs4_server *srv, struct nfs4_record *rec);

/*
 * The client's state is to be taken from it (a courtesy client in somebody's way). True: the disk
 * knows, and its state may be given away. False: it is being written; ask again when it is, as
 * nfs4_record_settled() says. Records that cannot be written hold up
 * nobody.
 */
bool nfs4_record_revoke(struct nfs4_server *srv, struct nfs4_record *rec);

#endif
