/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/data/nfs4_copies.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/state.h"
#include "rpc/client.h"
#include "rpc/worker.h"

#define SEQID 1u /* a copy stateid never changes, and its seqid must not be 0 (section 4.8) */

int nfs4_copies_new(struct nfs4_server *srv)
{
	struct nfs4_copies *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->srv = srv;
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->rested, NULL);
	srv->copies = all;
	return 0;
}

/* Bytes charged to the client. The head of the request's reply is payload, which has its own
 * account. */
static size_t nfs4_copy_cost(void)
{
	return sizeof(struct nfs4_copy) + sizeof(struct rpc_request) + nfs4_remote_size();
}

bool nfs4_copy_charge(struct nfs4_copy *copy)
{
	struct nfs4_client *cl = copy->client;

	pthread_mutex_lock(&cl->lock);
	copy->charged = !cl->holdings->dropped && nfs4_state_charge(cl, nfs4_copy_cost());
	pthread_mutex_unlock(&cl->lock);
	return copy->charged;
}

void nfs4_copy_free(struct nfs4_copy *copy)
{
	struct nfs4_client *cl = copy->client;

	nfs4_copy_work_free(copy);
	vfs_errors_close(cl->srv->cfg.vfs, copy->errors);
	vfs_errors_close(cl->srv->cfg.vfs, copy->errors_before);
	if (copy->charged) {
		pthread_mutex_lock(&cl->lock);
		nfs4_state_discharge(cl, nfs4_copy_cost());
		pthread_mutex_unlock(&cl->lock);
	}
	free(copy);
	nfs4_client_put(cl);
}

/* Under the lock. */
static unsigned count_of_host(const struct nfs4_copies *all, const struct nfs4_host *host)
{
	struct nfs4_copy *copy;
	unsigned n = 0;

	LIST_FOREACH (copy, &all->list, link)
		n += copy->client->host == host;
	return n;
}

/* The bytes of a copy stateid that all stateids have: tag, client's number, id. The tag is of no
 * stateid in a client's own table. */
static void name_copy(struct nfs4_copy *copy, uint32_t id)
{
	const struct nfs4_client *cl = copy->client;
	const uint32_t other[] = { htobe32(nfs4_stateid_tag(cl->srv, ~cl->number, id)),
				   htobe32(cl->number), htobe32(id) };

	_Static_assert(sizeof(other) == NFS4_OTHER_SIZE, "stateid");
	memcpy(copy->sid.other, other, sizeof(other));
	copy->sid.seqid = SEQID;
}

/* False: there are too many. */
static bool nfs4_copy_enlist(struct nfs4_copy *copy)
{
	struct nfs4_copies *all = copy->all;
	bool room;

	pthread_mutex_lock(&all->lock);
	room = !all->resting && all->n < NFS4_COPIES_MAX &&
	       count_of_host(all, copy->client->host) < NFS4_COPIES_OF_HOST;
	if (room) {
		name_copy(copy, ++all->last_id);
		LIST_INSERT_HEAD(&all->list, copy, link);
		all->n++;
		all->working++;
		all->begun++;
	}
	pthread_mutex_unlock(&all->lock);
	return room;
}

/* Takes it out of the list; under the lock. */
static void nfs4_copy_unlist(struct nfs4_copy *copy)
{
	LIST_REMOVE(copy, link);
	copy->all->n--;
}

/* A stateid without its seqid, which names the state whatever changes meanwhile. */
static struct nfs4_stateid any_seqid(const struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_stateid any = nfs4_stateid_is_current(sid) ? c->current_sid : *sid;

	any.seqid = 0;
	return any;
}

static struct nfs4_copy *copy_new(const struct nfs4_compound *c,
				  const struct nfs4_copy_order *order)
{
	const struct nfs4_two_files *t = order->files;
	struct nfs4_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->all = c->server->copies;
	copy->client = c->client;
	nfs4_client_ref(copy->client);
	copy->uid = c->current.ctx.cred.uid;
	copy->export_id = c->current.export_id;
	copy->from_fh = c->saved.fh;
	copy->to_fh = c->current.fh;
	copy->from_sid = any_seqid(c, &t->from_sid);
	copy->to_sid = any_seqid(c, &t->to_sid);
	copy->delegated = (t->from.state && t->from.state->kind == NFS4_STATE_DELEG) ||
			  t->to.state->kind == NFS4_STATE_DELEG;
	copy->from_at = t->copy.from.offset;
	copy->to_at = t->copy.offset;
	copy->count = order->count;
	copy->referring = nfs4_cb_refer(c);
	copy->offload.committed = VFS_FILE_SYNC;
	copy->offload.verifier = copy->expects = order->verifier;
	copy->expecting = true;
	copy->errors = copy->errors_before = -1;
	return copy;
}

bool nfs4_copy_start(struct nfs4_compound *c, const struct nfs4_copy_order *order,
		     struct nfs4_stateid *out)
{
	struct nfs4_copy *copy = copy_new(c, order);
	const struct rpc_conn *conn = c->req->conn;
	const struct nfs4_copy_caller caller = {
		.conn = conn,
		.cred = &c->req->call.cred,
		.server = c->req->server,
		.clients = conn->client ? conn->client->all : NULL,
	};

	if (!copy)
		return false;
	if (!nfs4_copy_charge(copy) || nfs4_copy_work_new(copy, &caller) < 0 ||
	    (order->remote && nfs4_copy_remote_new(copy, order->remote) < 0) ||
	    !nfs4_copy_enlist(copy)) {
		nfs4_copy_free(copy);
		return false;
	}
	*out = copy->sid;
	nfs4_copy_work(copy);
	return true;
}

/* Under the lock. */
static struct nfs4_copy *nfs4_copy_by_stateid(const struct nfs4_compound *c,
					      const struct nfs4_stateid *sid)
{
	struct nfs4_copy *copy;

	LIST_FOREACH (copy, &c->server->copies->list, link) {
		if (copy->client == c->client && !copy->cancelled && sid->seqid == SEQID &&
		    memcmp(copy->sid.other, sid->other, NFS4_OTHER_SIZE) == 0)
			return copy;
	}
	return NULL;
}

/* True if the current filehandle is that, and the caller that user (sections 4.1.2, 15.8.3). */
static bool nfs4_copy_is_own(const struct nfs4_compound *c, const struct vfs_fh *to, uint32_t uid)
{
	const struct nfs4_object *p = &c->current;

	return p->kind == NFS4_FILE && p->ctx.cred.uid == uid && p->fh.len == to->len &&
	       memcmp(p->fh.data, to->data, to->len) == 0;
}

static struct nfs4_copy *find_own(const struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copy *copy = nfs4_copy_by_stateid(c, sid);

	return copy && nfs4_copy_is_own(c, &copy->to_fh, copy->uid) ? copy : NULL;
}

/* Keeps the copy's result for a lease after its end. Under the lock. */
static void nfs4_copy_remember(const struct nfs4_copy *copy)
{
	struct nfs4_copies *all = copy->all;

	all->told[all->next_told] = (struct nfs4_copy_told){
		.sid = copy->sid,
		.clientid = copy->client->clientid,
		.uid = copy->uid,
		.to_fh = copy->to_fh,
		.copied = copy->copied,
		.status = copy->offload.status,
		.at = nfs4_clients_now(all->srv),
	};
	all->next_told = (all->next_told + 1) % NFS4_COPIES_MAX;
}

/* The caller's result that its client was told less than a lease ago. Under the lock. */
static const struct nfs4_copy_told *find_told(const struct nfs4_compound *c,
					      const struct nfs4_stateid *sid)
{
	const struct nfs4_copies *all = c->server->copies;
	const uint64_t now = nfs4_clients_now(all->srv);

	for (unsigned i = 0; i < NFS4_COPIES_MAX; i++) {
		const struct nfs4_copy_told *told = &all->told[i];

		if (told->clientid == c->client->clientid && sid->seqid == SEQID &&
		    memcmp(told->sid.other, sid->other, NFS4_OTHER_SIZE) == 0)
			return now - told->at <= all->srv->cfg.lease_seconds &&
					       nfs4_copy_is_own(c, &told->to_fh, told->uid)
				       ? told
				       : NULL;
	}
	return NULL;
}

bool nfs4_copies_know(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copies *all = c->server->copies;
	bool known;

	pthread_mutex_lock(&all->lock);
	known = nfs4_copy_by_stateid(c, sid) != NULL;
	pthread_mutex_unlock(&all->lock);
	return known || nfs4_copy_source_known(c, sid);
}

int nfs4_copy_look(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		   struct nfs4_copy_state *out)
{
	struct nfs4_copies *all = c->server->copies;
	const struct nfs4_copy *copy;
	const struct nfs4_copy_told *told;

	pthread_mutex_lock(&all->lock);
	copy = find_own(c, sid);
	told = copy ? NULL : find_told(c, sid);
	if (copy) {
		out->copied = copy->copied;
		out->ended = copy->phase == NFS4_COPY_TELLING || copy->phase == NFS4_COPY_KEPT;
		out->status = copy->offload.status;
	} else if (told) {
		*out = (struct nfs4_copy_state){ told->copied, true, told->status };
	}
	pthread_mutex_unlock(&all->lock);
	return copy || told ? NFS4_OK : NFS4ERR_BAD_STATEID;
}

/* Under the lock: also of a copy that was cancelled. */
static const struct nfs4_copy *nfs4_copy_working(const struct nfs4_compound *c,
						 const struct nfs4_stateid *sid)
{
	const struct nfs4_copy *copy;

	LIST_FOREACH (copy, &c->server->copies->list, link) {
		if (copy->client == c->client &&
		    memcmp(copy->sid.other, sid->other, NFS4_OTHER_SIZE) == 0)
			return copy->phase == NFS4_COPY_WORKING ? copy : NULL;
	}
	return NULL;
}

/* Under the lock: the caller's copy, whose last piece is under way. */
static bool nfs4_copy_is_cancelled(const struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	const struct nfs4_copy *copy = nfs4_copy_working(c, sid);

	return copy && copy->cancelled && nfs4_copy_is_own(c, &copy->to_fh, copy->uid);
}

/* With the lock, which it gives back. */
static int await_piece(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copies *all = c->server->copies;
	int rc = 0;

	while (rc == 0 && nfs4_copy_working(c, sid)) {
		rc = rpc_wait(c->req, RN_WAIT_COPY, all, 0, &all->lock);
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	/* The slot keeps the answer for a retry. */
	return rc == -RN_EGONE ? NFS4ERR_DELAY : NFS4_OK;
}

int nfs4_copy_cancel(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copies *all = c->server->copies;
	struct nfs4_copy *copy, *rests = NULL;

	pthread_mutex_lock(&all->lock);
	copy = find_own(c, sid);
	if (!copy && nfs4_copy_is_cancelled(c, sid)) /* by a call whose client had gone */
		return await_piece(c, sid);
	if (!copy) {
		pthread_mutex_unlock(&all->lock);
		return NFS4ERR_BAD_STATEID;
	}
	copy->cancelled = true;
	all->cancelled++;
	if (copy->phase == NFS4_COPY_WORKING) {
		if (copy->remote.file)
			nfs4_remote_abort(copy->remote.file);
		return await_piece(c, sid);
	}
	if (copy->phase != NFS4_COPY_TELLING) {
		nfs4_copy_unlist(copy);
		rests = copy;
	}
	pthread_mutex_unlock(&all->lock);
	if (rests)
		nfs4_copy_free(rests);
	return NFS4_OK;
}

void nfs4_copies_free(struct nfs4_copies *all)
{
	if (!all)
		return;
	nfs4_copies_stop(all);
	pthread_cond_destroy(&all->rested);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

void nfs4_copies_held(struct nfs4_copies *all, struct nfs4_held *out)
{
	pthread_mutex_lock(&all->lock);
	out->copies = all->n;
	out->copies_begun = all->begun;
	out->copies_cancelled = all->cancelled;
	out->copied_bytes = all->bytes;
	pthread_mutex_unlock(&all->lock);
}

/* The way of an asynchronous copy: from piece to piece, with pauses, to the sync and until its client
 * knows the result. */

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

/* Called when CB_OFFLOAD has ended. It is not sent again if no answer came: the client may have got it, and may keep a second one
 * for ever. */
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

/* True if it was not waited for the other server, as copies are to rest. Under the lock. */
static bool was_broken_off(const struct nfs4_copy *copy, uint32_t bytes)
{
	return copy->all->resting && copy->remote.file && !copy->syncing && bytes == 0;
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
	else if (was_broken_off(copy, bytes) || may_pause(copy, status))
		next = NFS4_COPY_PAUSED;
	else if (copy->remote.file && (status == NFS4ERR_DELAY || status == NFS4ERR_GRACE))
		status = nfs4_copy_given_up(copy);
	if (next == NFS4_COPY_TELLING && !stopped && needs_sync(copy, status))
		next = NFS4_COPY_WORKING;
	if (next == NFS4_COPY_WORKING && all->resting)
		next = NFS4_COPY_PAUSED;
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
	for (copy = LIST_FIRST(&all->list); copy && !all->resting; copy = next) {
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

#define PIECES_MS 5000u /* calls of clients go on meanwhile */
#define TELLING_MS 200u

/* Under the lock. */
static bool any_is_told(const struct nfs4_copies *all)
{
	const struct nfs4_copy *copy;

	LIST_FOREACH (copy, &all->list, link) {
		if (copy->phase == NFS4_COPY_TELLING)
			return true;
	}
	return false;
}

bool nfs4_copies_rest(struct nfs4_copies *all)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	bool working = true, telling = true;

	pthread_mutex_lock(&all->lock);
	all->resting = true;
	abort_reads(all);
	for (unsigned ms = 0; ms < PIECES_MS && (working || (telling && ms < TELLING_MS)); ms++) {
		working = all->working > 0;
		telling = any_is_told(all);
		pthread_mutex_unlock(&all->lock);
		if (working || telling)
			nanosleep(&pause, NULL);
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return !working;
}

void nfs4_copies_stop(struct nfs4_copies *all)
{
	struct nfs4_copy *copy, *next;

	pthread_mutex_lock(&all->lock);
	all->resting = all->stopping = true;
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
