/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock-owners whose LOCK was denied and who wait for the range (READW_LT, WRITEW_LT), in minor
 * versions 1 and 2. vfs/ remembers who waits for what; a waiter here is its notice: when the range
 * is free, the client is told by CB_NOTIFY_LOCK. That is only a hint. Nothing is reserved, and the
 * client asks again by itself if no word comes. That takes Linux's client 30 seconds, so a client that
 * has not answered (NFS4ERR_DELAY while its session recovers, a lost connection) is told again each
 * second.
 *
 * A client has one waiter for each lock-owner and file, and a limited number in all, which it pays
 * for. A waiter lasts until it is told, gets the lock, asks again, has waited for a lease or loses
 * its client.
 *
 * References: vfs/'s list has one, until tell() or end(); a callback under way has it from tell() on,
 * and the client's list while the waiter is to be told again.
 * A waiter holds a reference of its client and its file.
 */
#ifndef RN_NFS4_STATE_LOCK_WAITER_H
#define RN_NFS4_STATE_LOCK_WAITER_H

#include "nfs4/compound.h"
#include "nfs4/state/state.h"

#define NFS4_WAITERS_MAX 1024u /* per client */

/* Remembers that lock was refused to the caller for r. held: by another client's lock, whose end
 * vfs/ will see. */
void nfs4_lock_wait(struct nfs4_compound *c, const struct nfs4_lock *lock,
		    const struct vfs_lock_request *r, bool held);
/* True if lock-owners of this caller are told (OPEN4_RESULT_MAY_NOTIFY_LOCK). */
bool nfs4_locks_are_notified(const struct nfs4_compound *c);

/* For nfs4/state/holdings.c. Ends all waiters of a client; the caller holds no lock. */
void nfs4_lock_waiters_drop(struct nfs4_client *cl);
/* Ends waiters that have waited for a lease. Tells those who wait for something that vfs/ does not see
 * the end of, a local lock or a lease, and those whom the last callback did not reach. */
void nfs4_lock_waiters_tick(struct nfs4_client *cl);

/* Steps of nfs4_holdings_save() and nfs4_holdings_load(): all of a client; one, whose record is the next. */
void nfs4_lock_waiters_save(struct nfs4_client *cl, struct image_writer *w);
int nfs4_lock_waiter_load(struct nfs4_client *cl, struct image_at *at);

#endif
