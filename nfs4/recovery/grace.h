/* SPDX-License-Identifier: BSD-2-Clause */
/* The grace period, and exports that are drained. */
#ifndef RN_NFS4_RECOVERY_GRACE_H
#define RN_NFS4_RECOVERY_GRACE_H

#include "nfs4/nfs4_private.h"
#include "nfs4/object.h"
#include "nfs4/recovery/client_records.h"

/*
 * Exports that an administrator drains: clients keep what they have, and get nothing new. They are answered NFS4ERR_DELAY,
 * and come again. It is no grace period: reclaims go on as before, and so does what ends state.
 */

/* NFS4_OK, or NFS4ERR_DELAY: the object is in an export that is drained. */
int nfs4_drain_check(const struct nfs4_object *p);
/* Like nfs4_drain_check(), for the registration of a client that the server does not know yet: all exports are drained. During grace
 * clients come back whom the server has forgotten. */
int nfs4_drain_check_client(struct nfs4_server *srv);

/*
 * The grace period. After a start, clients with a record reclaim their state, and no client gets
 * state that could conflict with it.
 *
 * It does not begin if there are no records, and no clients of other protocols (cfg.other_clients). It
 * ends when every client with a record has sent RECLAIM_COMPLETE, which clients of minor version 0 and of
 * other protocols cannot do. Otherwise it ends after
 * cfg.grace_seconds or the lease of the run before, whichever is longer; or after twice that while
 * reclaims keep coming. Clients whose lease had run out when the server stopped may reclaim too,
 * but only until another client wants what could be theirs. The end is on disk before the first
 * conflicting state is granted.
 *
 * This server has no mandatory byte-range locks, and records say whether a client had share
 * reservations that deny access, or delegations. So only these wait during grace: byte-range locks,
 * opens that deny access, and changes of files while clients that had delegations have not come back. If a client that has not reclaimed yet denied access, other opens and I/O without an
 * open wait too (RFC 8881 section 8.4.2.1).
 *
 * A member of a cluster (nfs4_config.cluster) takes reclaims only when all members grant no new locks; the time counts from then
 * on. It grants no new locks while clients of any member may reclaim, and never an open that denies (vfs_share_may_deny()).
 *
 * All functions are thread-safe. Outside of grace each costs one atomic load.
 */

bool nfs4_in_grace(struct nfs4_server *srv);

/*
 * True if an unregistered client may take the owner string in rec. False while the client that had
 * it is expected to reclaim, and rec has neither the address of that registration nor its verifier,
 * which only that client knows. *was is then the address of that registration.
 */
bool nfs4_record_may_register(struct nfs4_server *srv, const struct nfs4_record *rec,
			      uint8_t was[16]);

/*
 * Finds out whether a client has state to reclaim. Called when its client id is confirmed
 * (SETCLIENTID_CONFIRM, the first CREATE_SESSION). A client that has restarted (other verifier) has
 * none.
 */
void nfs4_record_confirmed(struct nfs4_server *srv, struct nfs4_record *rec);

/* Permission to reclaim an open or a lock now; denies: the open denies access. 0, NFS4ERR_NO_GRACE,
 * NFS4ERR_RECLAIM_BAD (the record has no deny modes), or NFS4ERR_DELAY: other members of the cluster still grant locks. */
int nfs4_may_reclaim(struct nfs4_server *srv, struct nfs4_record *rec, bool denies);

/* True if a client that may reclaim an open may reclaim a delegation with it: none of its own was
 * revoked before the restart. */
bool nfs4_may_reclaim_deleg(const struct nfs4_record *rec);

/*
 * Permission to get new state. 0 or NFS4ERR_GRACE. From minor version 1 on it is also NFS4ERR_GRACE
 * before the client's RECLAIM_COMPLETE, in grace and for a moment after it (RFC 8881 section
 * 18.51.3).
 */
int nfs4_may_open(struct nfs4_server *srv, struct nfs4_record *rec, bool denies);
/* Permission to open a file so that others may not have delegations to read it. 0 or NFS4ERR_GRACE:
 * others may have some, and have not reclaimed them. Other changes of files are refused by vfs/ then
 * (vfs_deleg_reclaiming). */
int nfs4_may_write(struct nfs4_server *srv, const struct nfs4_record *rec);
int nfs4_may_lock(struct nfs4_server *srv, struct nfs4_record *rec);

/* True if a client of another protocol may reclaim a lock now. Its record is the protocol's. */
bool nfs4_grace_takes_reclaim(struct nfs4_server *srv);

/* True if it may as soon as other members of the cluster grant no locks. */
bool nfs4_grace_takes_later(struct nfs4_server *srv);

/* True if a lock of another protocol must wait. */
bool nfs4_grace_blocks_locks(struct nfs4_server *srv);

/* True if I/O without an open must wait (NFS4ERR_GRACE), since others may reclaim shares that deny it
 * or delegations to write: anonymous stateids, or SETATTR of the size without a stateid. I/O with the stateid of an open never waits. */
bool nfs4_grace_blocks_io(struct nfs4_server *srv);

/* RECLAIM_COMPLETE for all file systems: NFS4_OK or NFS4ERR_COMPLETE_ALREADY. */
int nfs4_reclaim_done(struct nfs4_server *srv, struct nfs4_record *rec);
bool nfs4_reclaim_is_done(const struct nfs4_record *rec);
/* True if the client had state to reclaim when it registered, and has not sent RECLAIM_COMPLETE. */
bool nfs4_reclaim_is_needed(const struct nfs4_record *rec);

#endif
