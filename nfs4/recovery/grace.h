/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grace period: after a start, clients that have a record get their state back, and nobody gets
 * any that could be in their way. It does not begin when there are no records, ends as soon as
 * everybody who had one has said that he has reclaimed all, which clients of minor version 0 cannot
 * say, and after cfg.grace_seconds (or the lease of the run before, if that was longer), or twice
 * that while reclaims keep coming. Clients whose lease had run out when the server was stopped
 * may reclaim in it as well, but only until somebody else wants what could be theirs. Its end is on
 * disk before the first conflicting state is granted.
 *
 * We have no mandatory byte-range locks, and records tell whether a client had share reservations
 * that deny anything. So only these wait during grace: byte-range locks, opens that deny something,
 * and where somebody who has not reclaimed yet denied something, other opens and I/O without an
 * open (RFC 8881 section 8.4.2.1).
 *
 * All of this is thread-safe, and outside of grace one load.
 */
#ifndef RN_NFS4_GRACE_H
#define RN_NFS4_GRACE_H

#include "nfs4/recovery/records.h"
#include "nfs4/server.h"

bool nfs4_in_grace(struct nfs4_server *srv);

/*
 * May a client that is not registered yet take the name in rec? False while a client with that name
 * is expected to reclaim, and rec comes neither from where that one registered nor with its
 * verifier, which only the client knows; *was is then the address of that one.
 */
bool nfs4_record_may_register(struct nfs4_server *srv, const struct nfs4_record *rec,
			      uint8_t was[16]);

/* A client id has been confirmed (SETCLIENTID_CONFIRM, the first CREATE_SESSION): finds out whether
 * it has something to reclaim. A client that has restarted (other verifier) has not. */
void nfs4_record_confirmed(struct nfs4_server *srv, struct nfs4_record *rec);

/* May it reclaim an open (which denies something) or a lock now? 0, NFS4ERR_NO_GRACE, or
 * NFS4ERR_RECLAIM_BAD (its record knows of no deny modes). */
int nfs4_may_reclaim(struct nfs4_server *srv, struct nfs4_record *rec, bool denies);

/* May it get new state? 0 or NFS4ERR_GRACE; minor versions from 1 on: also NFS4ERR_GRACE before the
 * client's RECLAIM_COMPLETE, in grace and for a moment after it (RFC 8881 section 18.51.3). */
int nfs4_may_open(struct nfs4_server *srv, struct nfs4_record *rec, bool denies);
int nfs4_may_lock(struct nfs4_server *srv, struct nfs4_record *rec);

/* Must a lock of another protocol wait? */
bool nfs4_grace_blocks_locks(struct nfs4_server *srv);

/* Must I/O without an open (anonymous stateids, SETATTR of the size without one) wait:
 * NFS4ERR_GRACE? I/O with the stateid of an open never does. */
bool nfs4_grace_blocks_io(struct nfs4_server *srv);

/* RECLAIM_COMPLETE of all file systems: NFS4_OK or NFS4ERR_COMPLETE_ALREADY. */
int nfs4_reclaim_done(struct nfs4_server *srv, struct nfs4_record *rec);
bool nfs4_reclaim_is_done(const struct nfs4_record *rec);
/* Had it something to reclaim when it came back, and has not said that it is done? */
bool nfs4_reclaim_is_needed(const struct nfs4_record *rec);

#endif
