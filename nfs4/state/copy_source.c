/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/copy_source.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/quota.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/client_host.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"
#include "nfs4/state/state.h"
#include "rpc/address.h"

#define SEQID 1u /* never changes, and must not be 0 (RFC 7862 section 4.8) */

struct source {
	TAILQ_ENTRY(source) link;
	struct rn_quota_item place;
	uint8_t other[NFS4_OTHER_SIZE]; /* random: it is all that the reader has to show */
	struct nfs4_state *state;	/* a reference */
	struct rpc_address reader;
	struct vfs_fh fh;
	uint32_t uid;	/* of the caller of COPY_NOTIFY, squashed */
	uint64_t until; /* nfs4_clients_now() */
};
TAILQ_HEAD(source_list, source);

struct nfs4_copy_sources {
	struct nfs4_server *srv;
	pthread_mutex_t lock;
	struct source_list list; /* oldest first; under the lock, like quota */
	struct rn_quota quota;
};

int nfs4_copy_sources_new(struct nfs4_server *srv)
{
	struct nfs4_copy_sources *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->srv = srv;
	pthread_mutex_init(&all->lock, NULL);
	TAILQ_INIT(&all->list);
	rn_quota_init(&all->quota, NFS4_COPY_SOURCES_MAX, NFS4_COPY_SOURCES_OF_HOST);
	srv->copy_sources = all;
	return 0;
}

/* Frees one that is in no list; no lock is held. */
static void free_source(struct source *s)
{
	struct nfs4_client *cl = s->state->client;

	pthread_mutex_lock(&cl->lock);
	nfs4_state_discharge(cl, sizeof(*s));
	pthread_mutex_unlock(&cl->lock);
	nfs4_state_unref(s->state);
	sodium_memzero(s, sizeof(*s));
	free(s);
}

static void free_list(struct source_list *list)
{
	struct source *s;

	while ((s = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, s, link);
		free_source(s);
	}
}

/* Under the lock. */
static void nfs4_copy_source_move(struct nfs4_copy_sources *all, struct source *s,
				  struct source_list *to)
{
	TAILQ_REMOVE(&all->list, s, link);
	TAILQ_INSERT_TAIL(to, s, link);
	rn_quota_remove(&all->quota, &s->place);
}

void nfs4_copy_sources_free(struct nfs4_copy_sources *all)
{
	struct source_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct source *s;

	if (!all)
		return;
	while ((s = TAILQ_FIRST(&all->list)))
		nfs4_copy_source_move(all, s, &ended);
	free_list(&ended);
	rn_quota_fini(&all->quota);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

/* True if the state stands, and its use has not run out. Under the table's lock. */
static bool nfs4_copy_source_is_good(const struct nfs4_copy_sources *all, const struct source *s)
{
	struct nfs4_client *cl = s->state->client;
	bool good = nfs4_clients_now(all->srv) <= s->until;

	pthread_mutex_lock(&cl->lock);
	good = good && !s->state->gone && !s->state->revoked && !cl->holdings->dropped;
	pthread_mutex_unlock(&cl->lock);
	return good;
}

void nfs4_copy_sources_tick(struct nfs4_copy_sources *all)
{
	struct source_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct source *s, *next;

	pthread_mutex_lock(&all->lock);
	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!nfs4_copy_source_is_good(all, s))
			nfs4_copy_source_move(all, s, &ended);
	}
	pthread_mutex_unlock(&all->lock);
	free_list(&ended);
}

unsigned nfs4_copy_sources_count(struct nfs4_copy_sources *all)
{
	pthread_mutex_lock(&all->lock);
	const unsigned n = (unsigned)all->quota.used;

	pthread_mutex_unlock(&all->lock);
	return n;
}

/* One of that state, charged to its client. NULL: no memory. */
static struct source *make_source(struct nfs4_state *st)
{
	struct nfs4_client *cl = st->client;
	struct source *s = calloc(1, sizeof(*s));
	bool charged;

	if (!s)
		return NULL;
	pthread_mutex_lock(&cl->lock);
	charged = !cl->holdings->dropped && nfs4_state_charge(cl, sizeof(*s));
	pthread_mutex_unlock(&cl->lock);
	if (!charged) {
		free(s);
		return NULL;
	}
	nfs4_state_ref(st);
	s->state = st;
	return s;
}

static struct source *new_source(const struct nfs4_compound *c, struct nfs4_state *st,
				 const struct sockaddr_in6 *to)
{
	struct source *s = make_source(st);

	if (!s)
		return NULL;
	randombytes_buf(s->other, sizeof(s->other));
	rpc_address_of((const struct sockaddr_storage *)to, &s->reader);
	s->fh = c->current.fh;
	s->uid = c->current.ctx.cred.uid;
	return s;
}

static bool nfs4_copy_source_is_same(const struct source *a, const struct source *b)
{
	return a->state == b->state && a->uid == b->uid &&
	       rpc_address_equal(&a->reader, &b->reader);
}

/* Renews the sources for the same copy, which is how a client asks for more time (section 15.3.3). Under the lock. */
static void nfs4_copy_source_renew(struct nfs4_copy_sources *all, const struct source *fresh)
{
	struct source *s;

	TAILQ_FOREACH (s, &all->list, link) {
		if (nfs4_copy_source_is_same(s, fresh))
			s->until = fresh->until;
	}
}

/* Takes fresh into the table. False: there is no room for it. Under the lock. */
static bool nfs4_copy_source_take_in(struct nfs4_copy_sources *all, struct source *fresh,
				     struct source_list *ended)
{
	const struct rn_host *host = nfs4_host_key(fresh->state->client->host);
	struct rn_quota_item *old;

	while ((old = rn_quota_in_the_way(&all->quota, host, true, 1)) != NULL)
		nfs4_copy_source_move(all, rn_container_of(old, struct source, place), ended);
	if (!rn_quota_add(&all->quota, host, true, &fresh->place, 1))
		return false;
	TAILQ_INSERT_TAIL(&all->list, fresh, link);
	return true;
}

int nfs4_copy_source_add(struct nfs4_compound *c, struct nfs4_state *st,
			 const struct sockaddr_in6 *to, struct nfs4_stateid *out)
{
	struct nfs4_copy_sources *all = c->server->copy_sources;
	struct source_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct source *s = new_source(c, st, to);
	struct rn_quota_line line;
	bool room, tell;

	if (!s)
		return NFS4ERR_DELAY;
	s->until = nfs4_clients_now(c->server) + c->server->cfg.lease_seconds;
	out->seqid = SEQID;
	memcpy(out->other, s->other, sizeof(out->other));
	pthread_mutex_lock(&all->lock);
	nfs4_copy_source_renew(all, s);
	room = nfs4_copy_source_take_in(all, s, &ended);
	if (!room)
		TAILQ_INSERT_TAIL(&ended, s, link);
	tell = rn_quota_line_due(&all->quota, rn_now_ns(), &line);
	pthread_mutex_unlock(&all->lock);
	if (tell)
		rn_quota_tell(c->server->cfg.log, "files that another server may copy", &line);
	free_list(&ended);
	return room ? NFS4_OK : NFS4ERR_DELAY;
}

/* All entries are compared, each in constant time, so that no guess is better than another. Under
 * the lock. */
static struct source *nfs4_copy_source_find(struct nfs4_copy_sources *all,
					    const struct nfs4_stateid *sid)
{
	struct source *s, *found = NULL;

	TAILQ_FOREACH (s, &all->list, link) {
		if (sid->seqid <= SEQID &&
		    sodium_memcmp(s->other, sid->other, sizeof(s->other)) == 0)
			found = s;
	}
	return found;
}

static bool is_fh(const struct source *s, const struct nfs4_object *p)
{
	return p->kind == NFS4_FILE && p->fh.len == s->fh.len &&
	       memcmp(p->fh.data, s->fh.data, s->fh.len) == 0;
}

static bool is_reader(const struct source *s, const struct nfs4_compound *c)
{
	struct rpc_address peer;

	rpc_address_of(&c->req->conn->peer, &peer);
	return rpc_address_equal(&peer, &s->reader);
}

struct nfs4_state *nfs4_copy_source_use(struct nfs4_compound *c, struct nfs4_object *p,
					const struct nfs4_stateid *sid)
{
	struct nfs4_copy_sources *all = c->server->copy_sources;
	struct nfs4_state *st = NULL;
	struct source *s;

	pthread_mutex_lock(&all->lock);
	s = nfs4_copy_source_find(all, sid);
	if (s && is_reader(s, c) && is_fh(s, p) && nfs4_copy_source_is_good(all, s)) {
		s->until = nfs4_clients_now(all->srv) + all->srv->cfg.lease_seconds;
		st = s->state;
		nfs4_state_ref(st);
	}
	pthread_mutex_unlock(&all->lock);
	return st;
}

bool nfs4_copy_source_cancel(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copy_sources *all = c->server->copy_sources;
	struct source_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct source *s;

	pthread_mutex_lock(&all->lock);
	s = nfs4_copy_source_find(all, sid);
	if (s && s->state->client == c->client && is_fh(s, &c->current) &&
	    s->uid == c->current.ctx.cred.uid)
		nfs4_copy_source_move(all, s, &ended);
	pthread_mutex_unlock(&all->lock);
	s = TAILQ_FIRST(&ended);
	free_list(&ended);
	return s != NULL;
}

bool nfs4_copy_source_known(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_copy_sources *all = c->server->copy_sources;
	const struct source *s;
	bool known;

	pthread_mutex_lock(&all->lock);
	s = nfs4_copy_source_find(all, sid);
	known = s && s->state->client == c->client && nfs4_copy_source_is_good(all, s);
	pthread_mutex_unlock(&all->lock);
	return known;
}

struct saved_source {
	uint8_t other[NFS4_OTHER_SIZE];
	uint32_t state; /* its stateid's id */
	struct rpc_address reader;
	struct image_bytes fh;
	uint32_t uid;
	uint64_t left; /* seconds */
};
static const struct image_field saved_source_fields[] = {
	IMAGE_FIXED(1, struct saved_source, other),  IMAGE_NUMBER(2, struct saved_source, state),
	IMAGE_FIXED(3, struct saved_source, reader), IMAGE_BYTES(4, struct saved_source, fh),
	IMAGE_NUMBER(5, struct saved_source, uid),   IMAGE_NUMBER(6, struct saved_source, left),
};
static const struct image_kind saved_source_kind = { NFS4_IMAGE_COPY_SOURCE,
						     rn_array_size(saved_source_fields),
						     saved_source_fields };

void nfs4_copy_sources_save(struct nfs4_client *cl, struct image_writer *w)
{
	struct nfs4_copy_sources *all = cl->srv->copy_sources;
	const uint64_t now = nfs4_clients_now(cl->srv);
	const struct source *s;

	pthread_mutex_lock(&all->lock);
	TAILQ_FOREACH (s, &all->list, link) {
		struct saved_source out = { .state = s->state->id,
					    .reader = s->reader,
					    .fh = { s->fh.data, s->fh.len },
					    .uid = s->uid,
					    .left = s->until - rn_min(s->until, now) };

		if (s->state->client != cl || !nfs4_copy_source_is_good(all, s))
			continue;
		memcpy(out.other, s->other, sizeof(out.other));
		image_put(w, &saved_source_kind, &out);
		sodium_memzero(&out, sizeof(out));
	}
	pthread_mutex_unlock(&all->lock);
}

static int load_source(struct nfs4_client *cl, const struct saved_source *saved)
{
	struct nfs4_copy_sources *all = cl->srv->copy_sources;
	struct nfs4_state *st = nfs4_stateid_find(cl->holdings, saved->state);
	struct source_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct source *s;

	if (!st || !saved->fh.at || saved->fh.len > sizeof(s->fh.data))
		return -EPROTO;
	s = make_source(st);
	if (!s)
		return -ENOMEM;
	memcpy(s->other, saved->other, sizeof(s->other));
	s->reader = saved->reader;
	s->fh.len = saved->fh.len;
	memcpy(s->fh.data, saved->fh.at, saved->fh.len);
	s->uid = saved->uid;
	s->until = nfs4_clients_now(cl->srv) + saved->left;
	pthread_mutex_lock(&all->lock);
	if (!nfs4_copy_source_take_in(all, s, &ended))
		TAILQ_INSERT_TAIL(&ended, s, link);
	pthread_mutex_unlock(&all->lock);
	free_list(&ended);
	return 0;
}

int nfs4_copy_source_load(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_source saved = { .uid = 0 };
	int rc = image_get(at, &saved_source_kind, &saved);

	if (rc == 0)
		rc = load_source(cl, &saved);
	sodium_memzero(&saved, sizeof(saved));
	return rc;
}
