/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/data/nfs4_copies.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/registry.h"
#include "nfs4/client/session.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/state.h"

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

static bool nfs4_copy_charge(struct nfs4_copy *copy)
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
	room = !all->stopping && all->n < NFS4_COPIES_MAX &&
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
	copy->offload.verifier = order->verifier;
	return copy;
}

bool nfs4_copy_start(struct nfs4_compound *c, const struct nfs4_copy_order *order,
		     struct nfs4_stateid *out)
{
	struct nfs4_copy *copy = copy_new(c, order);

	if (!copy)
		return false;
	if (!nfs4_copy_charge(copy) || nfs4_copy_work_new(copy, c) < 0 ||
	    (order->remote && nfs4_copy_remote_new(copy, c, order->remote) < 0) ||
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
	const struct nfs4_place *p = &c->current;

	return p->kind == NFS4_FILE && p->ctx.cred.uid == uid && p->fh.len == to->len &&
	       memcmp(p->fh.data, to->data, to->len) == 0;
}

static struct nfs4_copy *find_own(const struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copy *copy = nfs4_copy_by_stateid(c, sid);

	return copy && nfs4_copy_is_own(c, &copy->to_fh, copy->uid) ? copy : NULL;
}

void nfs4_copy_remember(const struct nfs4_copy *copy)
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
static bool is_working(const struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	const struct nfs4_copy *copy;

	LIST_FOREACH (copy, &c->server->copies->list, link) {
		if (copy->client == c->client &&
		    memcmp(copy->sid.other, sid->other, NFS4_OTHER_SIZE) == 0)
			return copy->phase == NFS4_COPY_WORKING;
	}
	return false;
}

/* With the lock, which it gives back. */
static int await_piece(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copies *all = c->server->copies;
	int rc = 0;

	while (rc == 0 && is_working(c, sid)) {
		rc = rpc_wait(c->req, RN_WAIT_COPY, all, 0, &all->lock);
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return NFS4_OK;
}

int nfs4_copy_cancel(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copies *all = c->server->copies;
	struct nfs4_copy *copy, *rests = NULL;

	pthread_mutex_lock(&all->lock);
	copy = find_own(c, sid);
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
