/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durable records of clients with state: only these clients may reclaim after a restart. A record
 * is part of the client (struct nfs4_client.record) and knows which of its bits are on disk. A
 * thread of the recovery writes them; changes that come while it waits for the disk share the next
 * transaction. An operation whose reply must not go before its record is on disk waits for it without a worker.
 *
 * A client is recorded before the reply that grants its first state (OPEN, LOCK). The record is
 * deleted, durably, before its state is given to another client. This tells a client that may
 * reclaim from one whose state was lost in a network partition (RFC 7530 section 9.6.3.4, RFC 8881
 * section 8.4.3).
 */
#ifndef RN_NFS4_RECOVERY_CLIENT_RECORDS_H
#define RN_NFS4_RECOVERY_CLIENT_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nfs4/compound.h"

struct nfs4_record_job;

enum nfs4_record_bits {
	NFS4_RECORD_STATE = 1, /* the client holds, or may hold, opens and locks */
	NFS4_RECORD_DENY = 2,  /* share reservations among them deny access */
	NFS4_RECORD_DELEG = 8, /* the client has, or may have, delegations */
	/* A delegation was revoked, so that the client may reclaim none after a restart. */
	NFS4_RECORD_DELEG_LOST = 4,
	NFS4_RECORD_DELEG_WRITE = 16, /* beside NFS4_RECORD_DELEG: some may be to write */
};

/* Caller that registered the client; nfs4/session/client_register.c decides by it. */
struct nfs4_record_origin {
	bool known;	     /* false: written by a release that did not record the origin */
	bool reserved;	     /* true if from a privileged port, or over RDMA */
	uint8_t protection;  /* enum rpc_protection of the connection */
	uint8_t address[16]; /* IPv4 is mapped */
	uint32_t flavor, uid;
};

struct nfs4_record {
	const uint8_t *id; /* owner string, in the client's memory */
	uint32_t id_len;   /* up to NFS4_OPAQUE_LIMIT */
	/* 0: from SETCLIENTID, 1: from EXCHANGE_ID; the two have separate name spaces */
	uint8_t sessions;
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct nfs4_record_origin origin;
	_Atomic unsigned durable; /* enum nfs4_record_bits that are on disk, in this run's epoch */
	_Atomic unsigned begun;	  /* number of calls of nfs4_record_begin() */
	_Atomic unsigned ended;	  /* number of calls of nfs4_record_end() */
	_Atomic unsigned reclaim; /* enum of grace.c: state that the client may reclaim */
	/* time of the first request for new state before RECLAIM_COMPLETE; used by grace.c */
	_Atomic uint64_t asked_s;
	struct nfs4_record_job *job; /* job under way; under the recovery's lock */
};

/* Makes the record of a new client; id is not copied. The caller sets origin afterwards. */
void nfs4_record_init(struct nfs4_record *rec, const void *id, uint32_t id_len,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE], bool sessions);
/* The row of a client was removed with all others: has it written anew, if there was one. */
void nfs4_record_again(struct nfs4_server *srv, struct nfs4_record *rec);
/* Called before the client's memory is freed. The row on disk stays: see nfs4_record_forget(). */
void nfs4_record_fini(struct nfs4_server *srv, struct nfs4_record *rec);

/* True if bits are on disk already: the usual case, one load. Sequentially consistent, because
 * begun and durable are written here and read by nfs4_record_retire(), and the other way round. */
static inline bool nfs4_record_has(const struct nfs4_record *rec, unsigned bits)
{
	return (atomic_load(&rec->durable) & bits) == bits;
}

/*
 * In an operation: waits until bits are on disk. NFS4_OK: they are, or the database cannot be written (logged), and the
 * operation goes on: a server that cannot record is more useful than one that serves nothing. NFS4ERR_DELAY: no memory.
 * The caller holds a reference of the client, and no lock.
 */
int nfs4_record_for(struct nfs4_compound *c, struct nfs4_record *rec, unsigned bits);

/* In an operation: waits until the pending write of the record (nfs4_record_revoke) is on disk, or has failed.
 * NFS4_OK, or NFS4ERR_DELAY: the client that called has gone. The caller holds a reference of the record's client, and no lock. */
int nfs4_record_settled(struct nfs4_compound *c, struct nfs4_record *rec);

/* Bracket each operation that may grant the client its first state, including nfs4_record_for().
 * The record is not deleted for lack of state in between. */
static inline void nfs4_record_begin(struct nfs4_record *rec)
{
	atomic_fetch_add(&rec->begun, 1); /* before durable is read */
}
static inline void nfs4_record_end(struct nfs4_record *rec)
{
	atomic_fetch_add(&rec->ended, 1);
}

/*
 * Deletes the record of a client without state, so that grace does not wait for it after a restart.
 * This does not happen at the close of the last file, or each OPEN would wait for the disk. The
 * caller first asks nfs4_record_is_quiet(), which is true if there is a record and no operation of
 * the kind above is under way. It then looks whether the client has state. If not, it calls
 * nfs4_record_retire(), which does nothing if an operation has begun since. Not in grace.
 */
bool nfs4_record_is_quiet(const struct nfs4_record *rec, unsigned *mark);
void nfs4_record_retire(struct nfs4_server *srv, struct nfs4_record *rec, unsigned mark);

/*
 * Deletes the record of a client that has given up its state (DESTROY_CLIENTID, a new verifier, an
 * expired lease without state). The deletion is not waited for. A nfs4_record_for() after it is
 * carried out after it.
 */
void nfs4_record_forget(struct nfs4_server *srv, struct nfs4_record *rec);

/* Marks the record of a client whose lease has run out when the server stops. Its state could have
 * been given away, so grace does not wait for it after the start. */
void nfs4_record_lapsed(struct nfs4_server *srv, struct nfs4_record *rec);

/*
 * Adds bits to the record of a client from which something is about to be taken. True if they are
 * on disk, or the client has no record. False while they are being written; the caller asks again
 * later. A record that cannot be written delays no caller.
 */
bool nfs4_record_add(struct nfs4_server *srv, struct nfs4_record *rec, unsigned bits);

/* Marks the record of a client whose opens or locks were ended while it may not know: it may reclaim nothing after a
 * restart. True and false as above. The mark ends with the record, and with RECLAIM_COMPLETE. */
bool nfs4_record_distrust(struct nfs4_server *srv, struct nfs4_record *rec);

/*
 * Deletes the record of a courtesy client whose state is to be given to others. True if the
 * deletion is on disk. False while it is being written; the caller asks again after
 * nfs4_record_settled(). A record that cannot be written delays no caller.
 */
bool nfs4_record_revoke(struct nfs4_server *srv, struct nfs4_record *rec);

#endif
