/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of an asynchronous copy: from piece to piece, with pauses, to the sync and until its client
 * knows the result. */
#include <errno.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/registry.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "rpc/worker.h"

void nfs4_copy_unlist(struct nfs4_copy *copy)
{
	LIST_REMOVE(copy, link);
	copy->all->n--;
}

/* Under the lock. */
static void set_phase(struct nfs4_copy *copy, enum nfs4_copy_phase phase)
{
	struct nfs4_copies *all = copy->all;

	all->working += (phase == NFS4_COPY_WORKING) - (copy->phase == NFS4_COPY_WORKING);
	copy->phase = phase;
	if (all->working == 0)
		pthread_cond_broadcast(&all->rested);
}

/* Frees a copy that was cancelled, or that the server's end has stopped. OFFLOAD_CANCEL goes on. */
static void nfs4_copy_free_and_wake(struct nfs4_copy *copy)
{
	struct nfs4_copies *all = copy->all;

	nfs4_copy_free(copy);
	rpc_wake(all->srv->cfg.waits, all);
}

/* The end of CB_OFFLOAD. Without an answer the client may have got it or not: it is not sent again
 * then, as a client may keep a second one for ever. */
static void nfs4_copy_offload_ended(struct nfs4_offload *o, int rc, uint32_t status)
{
	struct nfs4_copy *copy = rn_container_of(o, struct nfs4_copy, offload);
	struct nfs4_copies *all = copy->all;
	const bool later = rc == 0 && status == NFS4ERR_DELAY;
	bool ended;

	pthread_mutex_lock(&all->lock);
	ended = (rc == 0 && !later) || copy->cancelled || all->stopping;
	copy->again = later || rc == -RN_ELATER || rc == -ENOTCONN;
	set_phase(copy, NFS4_COPY_KEPT);
	if (ended && !copy->cancelled)
		nfs4_copy_remember(copy);
	if (ended)
		nfs4_copy_unlist(copy);
	pthread_mutex_unlock(&all->lock);
	if (ended)
		nfs4_copy_free(copy);
}

static void nfs4_copy_tell(struct nfs4_copy *copy)
{
	struct nfs4_offload *o = &copy->offload;

	nfs4_copy_work_free(copy);
	o->cb = (struct nfs4_cb){ .referring = &copy->referring };
	o->fh = &copy->to_fh;
	o->sid = copy->sid;
	o->count = copy->copied;
	o->ended = nfs4_copy_offload_ended;
	nfs4_offload_tell(copy->client, o);
}

/* True if the status may be another one soon, and the copy has not waited for that for a lease.
 * Under the lock. */
static bool may_pause(struct nfs4_copy *copy, int status)
{
	const uint64_t now = nfs4_clients_now(copy->all->srv);

	if (status != NFS4ERR_DELAY && status != NFS4ERR_GRACE)
		return false;
	if (!copy->waits)
		copy->since = now;
	copy->waits = true;
	return now - copy->since <= copy->all->srv->cfg.lease_seconds;
}

bool nfs4_copy_goes_on(struct nfs4_copy *copy)
{
	struct nfs4_copies *all = copy->all;
	bool goes_on;

	pthread_mutex_lock(&all->lock);
	goes_on = !copy->cancelled && !all->stopping;
	pthread_mutex_unlock(&all->lock);
	return goes_on;
}

/* True if what was copied is to be synced before the client is told. Once only. */
static bool needs_sync(struct nfs4_copy *copy, int status)
{
	if (status != NFS4_OK || copy->copied == 0 || copy->syncing ||
	    copy->offload.committed != VFS_UNSTABLE)
		return false;
	copy->syncing = true;
	return true;
}

void nfs4_copy_piece_ended(struct nfs4_copy *copy, int status, uint32_t bytes)
{
	struct nfs4_copies *all = copy->all;
	enum nfs4_copy_phase next = NFS4_COPY_TELLING;
	bool stopped;

	pthread_mutex_lock(&all->lock);
	copy->copied += bytes;
	all->bytes += bytes;
	if (bytes > 0)
		copy->waits = false;
	stopped = copy->cancelled || all->stopping;
	if (status == NFS4_OK && bytes > 0 && copy->copied < copy->count)
		next = NFS4_COPY_WORKING;
	else if (may_pause(copy, status))
		next = NFS4_COPY_PAUSED;
	else if (copy->remote.file && (status == NFS4ERR_DELAY || status == NFS4ERR_GRACE))
		status = nfs4_copy_given_up(copy);
	if (next == NFS4_COPY_TELLING && !stopped && needs_sync(copy, status))
		next = NFS4_COPY_WORKING;
	if (stopped)
		nfs4_copy_unlist(copy);
	if (next == NFS4_COPY_TELLING) {
		copy->offload.status = (uint32_t)status;
		copy->since = nfs4_clients_now(all->srv);
	}
	set_phase(copy, stopped ? NFS4_COPY_KEPT : next);
	pthread_mutex_unlock(&all->lock);
	/* One that pauses belongs to others by now. */
	if (stopped)
		nfs4_copy_free_and_wake(copy);
	else if (next == NFS4_COPY_WORKING)
		nfs4_copy_work(copy);
	else if (next == NFS4_COPY_TELLING)
		nfs4_copy_tell(copy);
}

/* Under the lock: true if nobody will ask for the result. */
static bool is_forgotten(const struct nfs4_copy *copy)
{
	const uint64_t age = nfs4_clients_now(copy->all->srv) - copy->since;
	const enum nfs4_client_status is = nfs4_client_status(copy->client);

	return copy->phase == NFS4_COPY_KEPT &&
	       (age > copy->all->srv->cfg.lease_seconds || is == NFS4_CLIENT_EXPIRED ||
		is == NFS4_CLIENT_GONE);
}

/* Under the lock: decides what a tick does with the copy. False: nothing. */
static bool nfs4_copy_is_due(struct nfs4_copy *copy)
{
	if (copy->phase == NFS4_COPY_PAUSED)
		set_phase(copy, NFS4_COPY_WORKING);
	else if (is_forgotten(copy))
		nfs4_copy_unlist(copy);
	else if (copy->phase == NFS4_COPY_KEPT && copy->again)
		set_phase(copy, NFS4_COPY_TELLING);
	else
		return false;
	return true;
}

void nfs4_copies_tick(struct nfs4_copies *all)
{
	struct nfs4_copy *copy, *next, *due = NULL;

	pthread_mutex_lock(&all->lock);
	for (copy = LIST_FIRST(&all->list); copy && !all->stopping; copy = next) {
		next = LIST_NEXT(copy, link);
		if (nfs4_copy_is_due(copy)) {
			copy->next = due;
			due = copy;
		}
	}
	pthread_mutex_unlock(&all->lock);
	for (copy = due; copy; copy = next) {
		next = copy->next;
		if (copy->phase == NFS4_COPY_WORKING)
			nfs4_copy_work(copy);
		else if (copy->phase == NFS4_COPY_TELLING)
			nfs4_copy_tell(copy);
		else
			nfs4_copy_free(copy);
	}
}

/* Under the lock: takes those out that nobody else has. */
static struct nfs4_copy *take_resting(struct nfs4_copies *all)
{
	struct nfs4_copy *copy, *next, *resting = NULL;

	for (copy = LIST_FIRST(&all->list); copy; copy = next) {
		next = LIST_NEXT(copy, link);
		if (copy->phase != NFS4_COPY_PAUSED && copy->phase != NFS4_COPY_KEPT)
			continue;
		nfs4_copy_unlist(copy);
		copy->next = resting;
		resting = copy;
	}
	return resting;
}

/* Under the lock: has copies that wait for another server go on. */
static void abort_reads(struct nfs4_copies *all)
{
	struct nfs4_copy *copy;

	LIST_FOREACH (copy, &all->list, link) {
		if (copy->phase == NFS4_COPY_WORKING && copy->remote.file)
			nfs4_remote_abort(copy->remote.file);
	}
}

void nfs4_copies_stop(struct nfs4_copies *all)
{
	struct nfs4_copy *copy, *next;

	pthread_mutex_lock(&all->lock);
	all->stopping = true;
	copy = take_resting(all);
	abort_reads(all);
	while (all->working > 0)
		pthread_cond_wait(&all->rested, &all->lock);
	pthread_mutex_unlock(&all->lock);
	for (; copy; copy = next) {
		next = copy->next;
		nfs4_copy_free(copy);
	}
}
