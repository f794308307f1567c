/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's keys, clients, and sessions with their slots, on their way to the next program (nfs4/nfs4_image.c). Times go as ages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/session/registry.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"
#include "rpc/principal.h"
#include "rpc/program.h"
#include "rpc/security.h"

struct saved_keys {
	uint8_t hash_key[crypto_shorthash_KEYBYTES], id_key[crypto_shorthash_KEYBYTES];
	struct rpc_sum_secret sum_secret;
	uint32_t last_number, last_session;
};
static const struct image_field keys_fields[] = {
	IMAGE_FIXED(1, struct saved_keys, hash_key),
	IMAGE_FIXED(2, struct saved_keys, id_key),
	IMAGE_FIXED(3, struct saved_keys, sum_secret),
	IMAGE_NUMBER(4, struct saved_keys, last_number),
	IMAGE_NUMBER(5, struct saved_keys, last_session),
};
static const struct image_kind keys_kind = { NFS4_IMAGE_KEYS, rn_array_size(keys_fields),
					     keys_fields };

/* A callback of minor version 0. */
struct saved_callback {
	bool there, unbound;
	uint32_t program, ident, service;
	struct sockaddr_in6 from, to;
	struct image_bytes me;
};
#define CALLBACK_FIELDS(tag, member)                                                               \
	IMAGE_NUMBER((tag) + 0, struct saved_client, member.there),                                \
		IMAGE_NUMBER((tag) + 1, struct saved_client, member.unbound),                      \
		IMAGE_NUMBER((tag) + 2, struct saved_client, member.program),                      \
		IMAGE_NUMBER((tag) + 3, struct saved_client, member.ident),                        \
		IMAGE_NUMBER((tag) + 4, struct saved_client, member.service),                      \
		IMAGE_FIXED((tag) + 5, struct saved_client, member.from),                          \
		IMAGE_FIXED((tag) + 6, struct saved_client, member.to),                            \
		IMAGE_BYTES((tag) + 7, struct saved_client, member.me)

struct saved_client {
	uint32_t number;
	bool sessions, was_confirmed, origin_reserved;
	uint8_t status; /* enum nfs4_client_status */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct image_bytes ownerid, principal;
	uint32_t flavor, uid;
	bool machine;
	uint64_t enforce, allow;
	uint64_t origin[NFS4_ORIGINS], last_conn;
	uint32_t origin_next;
	uint8_t origin_protection;
	uint64_t lease_left, age; /* seconds */
	struct sockaddr_in6 addr;
	char netid[NFS4_NETID_MAX];
	uint8_t confirm[NFS4_VERIFIER_SIZE], update_confirm[NFS4_VERIFIER_SIZE];
	uint32_t cs_seqid;
	struct nfs4_record_origin record_origin;
	unsigned durable, reclaim;
	uint64_t cost;
	struct saved_callback callback, update;
	bool has_cs;
	struct nfs4_cs_reply cs;
};
static const struct image_field saved_client_fields[] = {
	IMAGE_NUMBER(1, struct saved_client, number),
	IMAGE_NUMBER(2, struct saved_client, sessions),
	IMAGE_NUMBER(3, struct saved_client, was_confirmed),
	IMAGE_NUMBER(4, struct saved_client, origin_reserved),
	IMAGE_NUMBER(5, struct saved_client, status),
	IMAGE_FIXED(6, struct saved_client, verifier),
	IMAGE_BYTES(7, struct saved_client, ownerid),
	IMAGE_BYTES(8, struct saved_client, principal),
	IMAGE_NUMBER(9, struct saved_client, flavor),
	IMAGE_NUMBER(10, struct saved_client, uid),
	IMAGE_NUMBER(11, struct saved_client, machine),
	IMAGE_NUMBER(12, struct saved_client, enforce),
	IMAGE_NUMBER(13, struct saved_client, allow),
	IMAGE_FIXED(14, struct saved_client, origin),
	IMAGE_NUMBER(15, struct saved_client, last_conn),
	IMAGE_NUMBER(16, struct saved_client, origin_next),
	IMAGE_NUMBER(17, struct saved_client, origin_protection),
	IMAGE_NUMBER(18, struct saved_client, lease_left),
	IMAGE_NUMBER(19, struct saved_client, age),
	IMAGE_FIXED(20, struct saved_client, addr),
	IMAGE_FIXED(21, struct saved_client, netid),
	IMAGE_FIXED(22, struct saved_client, confirm),
	IMAGE_FIXED(23, struct saved_client, update_confirm),
	IMAGE_NUMBER(24, struct saved_client, cs_seqid),
	IMAGE_FIXED(25, struct saved_client, record_origin),
	IMAGE_NUMBER(26, struct saved_client, durable),
	IMAGE_NUMBER(27, struct saved_client, reclaim),
	IMAGE_NUMBER(28, struct saved_client, cost),
	IMAGE_NUMBER(29, struct saved_client, has_cs),
	IMAGE_FIXED(30, struct saved_client, cs),
	CALLBACK_FIELDS(40, callback),
	CALLBACK_FIELDS(50, update),
};
static const struct image_kind saved_client_kind = { NFS4_IMAGE_CLIENT,
						     rn_array_size(saved_client_fields),
						     saved_client_fields };

struct saved_cb_path {
	bool there, fault, plain;
	uint32_t program, minor, flavor;
	struct image_bytes body;
	/* The GSS context that protects callbacks, as the client has offered it (struct rpc_cb_auth_offer). */
	uint32_t service;
	struct image_bytes from_server, from_client, principal;
	struct nfs4_cb_slot slot[NFS4_CB_SLOTS];
	uint64_t conn[NFS4_CB_CONNS]; /* ids of connections */
};
struct saved_session {
	uint8_t id[NFS4_SESSIONID_SIZE];
	struct nfs4_channel fore, back;
	uint32_t minor;
	uint64_t age;
	uint32_t nslots, target, asked, sent_slot, sent_seqid;
	uint8_t target_state;
	bool slots_recalled;
	uint32_t nconns;
	uint64_t conn[NFS4_CONNS_PER_SESSION];
	struct saved_cb_path cb;
};
static const struct image_field saved_session_fields[] = {
	IMAGE_FIXED(1, struct saved_session, id),
	IMAGE_FIXED(2, struct saved_session, fore),
	IMAGE_FIXED(3, struct saved_session, back),
	IMAGE_NUMBER(4, struct saved_session, minor),
	IMAGE_NUMBER(5, struct saved_session, age),
	IMAGE_NUMBER(6, struct saved_session, nslots),
	IMAGE_NUMBER(7, struct saved_session, target),
	IMAGE_NUMBER(8, struct saved_session, asked),
	IMAGE_NUMBER(9, struct saved_session, sent_slot),
	IMAGE_NUMBER(10, struct saved_session, sent_seqid),
	IMAGE_NUMBER(11, struct saved_session, target_state),
	IMAGE_NUMBER(12, struct saved_session, slots_recalled),
	IMAGE_NUMBER(13, struct saved_session, nconns),
	IMAGE_FIXED(14, struct saved_session, conn),
	IMAGE_NUMBER(20, struct saved_session, cb.there),
	IMAGE_NUMBER(21, struct saved_session, cb.fault),
	IMAGE_NUMBER(22, struct saved_session, cb.plain),
	IMAGE_NUMBER(23, struct saved_session, cb.program),
	IMAGE_NUMBER(24, struct saved_session, cb.minor),
	IMAGE_NUMBER(25, struct saved_session, cb.flavor),
	IMAGE_BYTES(26, struct saved_session, cb.body),
	IMAGE_FIXED(27, struct saved_session, cb.slot),
	IMAGE_FIXED(28, struct saved_session, cb.conn),
	IMAGE_NUMBER(29, struct saved_session, cb.service),
	IMAGE_BYTES(30, struct saved_session, cb.from_server),
	IMAGE_BYTES(31, struct saved_session, cb.from_client),
	IMAGE_BYTES(32, struct saved_session, cb.principal),
};
static const struct image_kind saved_session_kind = { NFS4_IMAGE_SESSION,
						      rn_array_size(saved_session_fields),
						      saved_session_fields };

struct saved_slot {
	uint32_t number, seqid, id, nbulks;
	bool cached, regranted, whole;
	uint64_t sum;
	struct nfs4_reply_exports exports;
	struct image_bytes reply; /* the reply, and the positions of its bulk items */
	uint32_t len;		  /* bytes of the reply alone */
};
static const struct image_field saved_slot_fields[] = {
	IMAGE_NUMBER(1, struct saved_slot, number), IMAGE_NUMBER(2, struct saved_slot, seqid),
	IMAGE_NUMBER(3, struct saved_slot, id),	    IMAGE_NUMBER(4, struct saved_slot, nbulks),
	IMAGE_NUMBER(5, struct saved_slot, cached), IMAGE_NUMBER(6, struct saved_slot, regranted),
	IMAGE_NUMBER(7, struct saved_slot, whole),  IMAGE_NUMBER(8, struct saved_slot, sum),
	IMAGE_FIXED(9, struct saved_slot, exports), IMAGE_BYTES(10, struct saved_slot, reply),
	IMAGE_NUMBER(11, struct saved_slot, len),
};
static const struct image_kind saved_slot_kind = { NFS4_IMAGE_SLOT,
						   rn_array_size(saved_slot_fields),
						   saved_slot_fields };

static struct image_bytes bytes_of_principal(const struct rpc_principal *p)
{
	return p ? (struct image_bytes){ (const uint8_t *)p->name, (uint32_t)p->len }
		 : (struct image_bytes){ NULL, 0 };
}

static void save_callback(const struct nfs4_callback *cb, struct saved_callback *out)
{
	if (!cb)
		return;
	*out = (struct saved_callback){
		.there = true,
		.unbound = cb->state == NFS4_CB_UNBOUND,
		.program = cb->program,
		.ident = cb->ident,
		.service = cb->service,
		.from = cb->route.from,
		.to = cb->route.to,
		.me = bytes_of_principal(cb->me),
	};
}

static void save_client(struct image_writer *w, struct nfs4_client *cl)
{
	const uint64_t now = nfs4_clients_now(cl->srv), due = atomic_load(&cl->lease.due);
	struct saved_client s = {
		.number = cl->number,
		.sessions = cl->sessions,
		.was_confirmed = cl->was_confirmed,
		.status = (uint8_t)nfs4_client_status(cl),
		.ownerid = { cl->ownerid, cl->ownerid_len },
		.principal = bytes_of_principal(cl->principal.name),
		.flavor = cl->principal.flavor,
		.uid = cl->principal.uid,
		.machine = cl->protect.machine,
		.enforce = cl->protect.enforce,
		.allow = cl->protect.allow,
		.last_conn = atomic_load(&cl->origin.last_conn),
		.origin_next = atomic_load(&cl->origin.next),
		.origin_reserved = cl->origin.reserved,
		.origin_protection = cl->origin.protection,
		.lease_left = due > now ? due - now : 0,
		.age = now - cl->since,
		.addr = cl->addr,
		.cs_seqid = cl->cs_seqid,
		.record_origin = cl->record.origin,
		.durable = atomic_load(&cl->record.durable),
		.reclaim = atomic_load(&cl->record.reclaim),
		.cost = cl->cost,
		.has_cs = cl->cs_reply != NULL,
	};

	memcpy(s.verifier, cl->verifier, sizeof(s.verifier));
	memcpy(s.netid, cl->netid, sizeof(s.netid));
	memcpy(s.confirm, cl->confirm, sizeof(s.confirm));
	memcpy(s.update_confirm, cl->update_confirm, sizeof(s.update_confirm));
	for (unsigned i = 0; i < NFS4_ORIGINS; i++)
		s.origin[i] = atomic_load(&cl->origin.address[i]);
	if (cl->cs_reply)
		s.cs = *cl->cs_reply;
	/* Nobody can renew a lease before the server runs again, elsewhere. */
	if (image_is_for_elsewhere(w)) {
		s.lease_left = cl->srv->cfg.lease_seconds;
		s.last_conn = 0;
	}
	save_callback(cl->callback, &s.callback);
	save_callback(cl->update, &s.update);
	image_put(w, &saved_client_kind, &s);
}

static void save_cb_auth(const struct rpc_cb_auth *auth, struct saved_cb_path *out)
{
	struct rpc_cb_auth_offer o = { 0 };

	if (auth->ops->offer)
		auth->ops->offer(auth, &o);
	out->service = o.service;
	out->from_server = (struct image_bytes){ o.from_server, o.from_server_len };
	out->from_client = (struct image_bytes){ o.from_client, o.from_client_len };
	out->principal = bytes_of_principal(o.principal);
	/* Without its context the client makes another session. */
	out->fault |= !o.from_server;
}

static void save_cb_path(const struct nfs4_cb_path *p, struct saved_cb_path *out)
{
	if (!p)
		return;
	*out = (struct saved_cb_path){
		.there = true,
		.fault = p->fault,
		.plain = p->security.plain,
		.program = p->program,
		.minor = p->minor,
		.flavor = (uint32_t)p->security.flavor,
		.body = { p->security.body, p->security.len },
	};
	if (p->security.auth)
		save_cb_auth(p->security.auth, out);
	memcpy(out->slot, p->slot, sizeof(out->slot));
	for (uint32_t i = 0; i < NFS4_CB_SLOTS; i++) {
		out->slot[i].lost |= out->slot[i].busy; /* nobody takes its answer any more */
		out->slot[i].busy = false;
	}
	for (uint32_t i = 0; i < p->nconns; i++)
		out->conn[i] = rpc_backchannel_conn_id(p->conn[i]);
	for (uint32_t i = 0, at = p->nconns; i < NFS4_CB_CONNS && at < NFS4_CB_CONNS; i++)
		if (p->returning[i])
			out->conn[at++] = p->returning[i];
}

static void save_slot(struct image_writer *w, uint32_t number, const struct nfs4_slot *slot)
{
	const struct nfs4_cached *r = slot->cached ? slot->reply : NULL;
	struct saved_slot s = {
		.number = number,
		.seqid = slot->seqid,
		.id = slot->id,
		.cached = slot->cached,
		.regranted = slot->regranted,
		.whole = slot->whole,
		.sum = slot->sum,
	};

	if (r) {
		s.nbulks = r->nbulks;
		s.exports = r->exports;
		s.len = r->len;
		s.reply =
			(struct image_bytes){ (const uint8_t *)r->words,
					      r->len + r->nbulks * 2 * (uint32_t)sizeof(uint32_t) };
	}
	image_put(w, &saved_slot_kind, &s);
}

/* Leaves out connections and the context of callbacks, which end with this process: ids and numbers of those of another one may be the same. */
static void leave_conns(struct saved_session *out)
{
	out->nconns = 0;
	memset(out->conn, 0, sizeof(out->conn));
	memset(out->cb.conn, 0, sizeof(out->cb.conn));
	out->cb.fault |= out->cb.from_server.at != NULL;
	out->cb.from_server = out->cb.from_client = (struct image_bytes){ NULL, 0 };
}

static void save_session(struct image_writer *w, struct nfs4_session *s)
{
	struct saved_session out = {
		.fore = s->fore,
		.back = s->back,
		.minor = s->minor,
		.age = nfs4_clients_now(s->client->srv) - s->made,
		.nslots = s->nslots,
		.target = s->target,
		.asked = s->asked,
		.sent_slot = s->sent_slot,
		.sent_seqid = s->sent_seqid,
		.target_state = (uint8_t)s->target_state,
		.slots_recalled = s->slots_recalled,
		.nconns = s->nconns,
	};

	memcpy(out.id, s->id, sizeof(out.id));
	memcpy(out.conn, s->conn, sizeof(out.conn));
	save_cb_path(s->cb_path, &out.cb);
	if (image_is_for_elsewhere(w))
		leave_conns(&out);
	image_put(w, &saved_session_kind, &out);
	for (uint32_t i = 0; i < s->nmade; i++) {
		const struct nfs4_slot *slot = nfs4_slot_get(s, i);

		if (slot->used || slot->regranted)
			save_slot(w, i, slot);
	}
}

void nfs4_client_save(struct nfs4_client *cl, struct image_writer *w)
{
	struct nfs4_session *s, *all[NFS4_SESSIONS_PER_CLIENT];
	unsigned n = 0;

	save_client(w, cl);
	LIST_FOREACH (s, &cl->session_list, of_client)
		if (n < NFS4_SESSIONS_PER_CLIENT)
			all[n++] = s;
	while (n > 0) /* the oldest first, which is the last of the list */
		save_session(w, all[--n]);
}

void nfs4_keys_save(struct nfs4_server *srv, struct image_writer *w)
{
	struct nfs4_clients *all = srv->clients;
	struct saved_keys keys = { .sum_secret = srv->sum_secret,
				   .last_number = all->last_number,
				   .last_session = atomic_load(&all->last_session) };

	memcpy(keys.hash_key, srv->hash_key, sizeof(keys.hash_key));
	memcpy(keys.id_key, all->id_key, sizeof(keys.id_key));
	image_put(w, &keys_kind, &keys);
	explicit_bzero(&keys, sizeof(keys));
}

/* The next program. */

static struct nfs4_callback *load_callback(const struct saved_callback *s)
{
	struct nfs4_callback *cb = s->there ? calloc(1, sizeof(*cb)) : NULL;

	if (!cb)
		return NULL;
	cb->program = s->program;
	cb->ident = s->ident;
	cb->service = s->service;
	cb->route = (struct rpc_route){ .from = s->from, .to = s->to };
	cb->state = s->unbound ? NFS4_CB_UNBOUND : NFS4_CB_UNTRIED;
	if (s->me.at)
		cb->me = rpc_principal_new((const char *)s->me.at, s->me.len);
	if (s->me.at && !cb->me)
		cb->state = NFS4_CB_UNBOUND;
	return cb;
}

/* Members that are not those of a table. */
static void fill_client(struct nfs4_client *cl, const struct saved_client *s)
{
	const uint64_t now = nfs4_clients_now(cl->srv);

	cl->sessions = s->sessions;
	memcpy(cl->verifier, s->verifier, sizeof(cl->verifier));
	cl->principal = (struct nfs4_principal){ .flavor = s->flavor, .uid = s->uid };
	cl->protect = (struct nfs4_protect){ s->machine, s->enforce, s->allow };
	for (unsigned i = 0; i < NFS4_ORIGINS; i++)
		atomic_init(&cl->origin.address[i], s->origin[i]);
	atomic_init(&cl->origin.next, s->origin_next);
	atomic_init(&cl->origin.last_conn, s->last_conn);
	cl->origin.reserved = s->origin_reserved;
	cl->origin.protection = s->origin_protection;
	cl->addr = s->addr;
	memcpy(cl->netid, s->netid, sizeof(cl->netid));
	cl->netid[sizeof(cl->netid) - 1] = '\0';
	cl->was_confirmed = s->was_confirmed;
	memcpy(cl->confirm, s->confirm, sizeof(cl->confirm));
	memcpy(cl->update_confirm, s->update_confirm, sizeof(cl->update_confirm));
	cl->cs_seqid = s->cs_seqid;
	cl->callback = load_callback(&s->callback);
	cl->update = load_callback(&s->update);
	nfs4_record_init(&cl->record, cl->ownerid, cl->ownerid_len, cl->verifier, cl->sessions);
	cl->record.origin = s->record_origin;
	atomic_init(&cl->record.durable, s->durable);
	atomic_init(&cl->record.reclaim, s->reclaim);
	cl->since = now - rn_min(now, s->age);
}

/* A client in no table, with a reference. NULL: no memory. */
static struct nfs4_client *make_client(struct nfs4_clients *all, const struct saved_client *s)
{
	const size_t size =
		sizeof(struct nfs4_client) + sizeof(struct nfs4_holdings) + s->ownerid.len;
	const size_t cost = rn_max(size, s->cost);
	struct nfs4_host *host = nfs4_host_get(all->hosts, &s->addr);
	struct nfs4_client *cl = NULL;

	if (host && nfs4_host_take(host, cost, NFS4_TO_ANSWER)) {
		cl = calloc(1, size);
		if (!cl)
			nfs4_host_give(host, cost);
	}
	if (!cl) {
		nfs4_host_put(host);
		return NULL;
	}
	cl->host = host;
	cl->srv = all->srv;
	cl->cost = cost;
	cl->holdings = (struct nfs4_holdings *)(cl + 1);
	nfs4_holdings_init(cl->holdings);
	cl->ownerid = (uint8_t *)(cl->holdings + 1);
	cl->ownerid_len = s->ownerid.len;
	memcpy(cl->ownerid, s->ownerid.at, s->ownerid.len);
	atomic_init(&cl->refs, 1);
	atomic_init(&cl->status, NFS4_CLIENT_UNCONFIRMED);
	pthread_mutex_init(&cl->lock, NULL);
	nfs4_timer_init(&cl->lease);
	LIST_INIT(&cl->session_list);
	fill_client(cl, s);
	return cl;
}

static int load_cs_reply(struct nfs4_client *cl, const struct saved_client *s)
{
	if (!s->has_cs)
		return 0;
	cl->cs_reply = malloc(sizeof(*cl->cs_reply));
	if (!cl->cs_reply)
		return -ENOMEM;
	*cl->cs_reply = s->cs;
	return 0;
}

static void enter_client(struct nfs4_clients *all, struct nfs4_client *cl,
			 const struct saved_client *s)
{
	const uint64_t now = nfs4_clients_now(all->srv);

	pthread_mutex_lock(&all->lock);
	nfs4_client_insert_as(all, cl, s->number);
	if (s->status != NFS4_CLIENT_UNCONFIRMED)
		nfs4_client_become(all, cl, (enum nfs4_client_status)s->status);
	/* The lease goes on and is not renewed, so that a client that is gone expires however often the server is restarted. */
	if (s->status == NFS4_CLIENT_ACTIVE && nfs4_wheel_cancel(&all->wheel, &cl->lease))
		nfs4_wheel_add(&all->wheel, &cl->lease, now + s->lease_left + 1);
	cl->since = now - rn_min(now, s->age);
	pthread_mutex_unlock(&all->lock);
}

static int load_client(struct nfs4_clients *all, struct image_at *at, struct nfs4_client **out)
{
	struct saved_client s = { 0 };
	struct nfs4_client *cl;
	int rc = image_get(at, &saved_client_kind, &s);

	if (rc == 0 && (!s.ownerid.at || s.ownerid.len > NFS4_OPAQUE_LIMIT || s.number == 0 ||
			s.status >= NFS4_CLIENT_GONE))
		rc = -EPROTO;
	if (rc != 0)
		return rc;
	cl = make_client(all, &s);
	if (!cl)
		return -ENOMEM;
	enter_client(all, cl, &s);
	if (s.principal.at) {
		cl->principal.name =
			rpc_principal_new((const char *)s.principal.at, s.principal.len);
		rc = cl->principal.name ? 0 : -ENOMEM;
	}
	*out = cl;
	return rc ? rc : load_cs_reply(cl, &s);
}

/* Security of calls to the client, by the context that the path had. NULL: that context was not saved. */
static struct rpc_cb_auth *load_cb_auth(const struct nfs4_session *s,
					const struct saved_cb_path *saved)
{
	const struct rpc_server *rpc = s->client->srv->cfg.rpc;
	const struct rpc_principal *principal =
		rpc_principal_new((const char *)saved->principal.at, saved->principal.len);
	const struct rpc_cb_auth_offer o = {
		.service = saved->service,
		.from_server = saved->from_server.at,
		.from_server_len = saved->from_server.len,
		.from_client = saved->from_client.at,
		.from_client_len = saved->from_client.len,
		.principal = principal,
	};
	struct rpc_cb_auth *auth = NULL;

	if (principal && saved->from_client.at && rpc && rpc->security)
		auth = rpc->security->offered(rpc->security_ctx, &o);
	rpc_principal_put(principal);
	return auth;
}

static void load_cb_path(struct nfs4_session *s, const struct saved_cb_path *saved)
{
	struct nfs4_cb_security security = { .plain = saved->plain };

	if (!saved->there)
		return;
	security.flavor = (enum rpc_auth_flavor)saved->flavor;
	security.len = (uint32_t)rn_min(saved->body.len, sizeof(security.body));
	if (saved->body.at)
		memcpy(security.body, saved->body.at, security.len);
	if (saved->from_server.at)
		security.auth = load_cb_auth(s, saved);
	const bool made = nfs4_cb_path_new(s, saved->minor, saved->program, &security);
	const bool lost = saved->from_server.at && !security.auth;

	nfs4_cb_security_clear(&security);
	if (!made)
		return;
	s->cb_path->fault = saved->fault || lost;
	memcpy(s->cb_path->slot, saved->slot, sizeof(s->cb_path->slot));
	memcpy(s->cb_path->returning, saved->conn, sizeof(s->cb_path->returning));
}

static int load_session(struct nfs4_client *cl, struct image_at *at, struct nfs4_session **out)
{
	struct saved_session in = { .nslots = 1 };
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_session *s;
	int rc = image_get(at, &saved_session_kind, &in);

	if (rc == 0 && (in.nslots == 0 || in.nslots > NFS4_SLOTS_MAX || in.target == 0 ||
			in.target > in.nslots || in.asked > NFS4_SLOTS_MAX ||
			in.nconns >= 2 * NFS4_CONNS_PER_SESSION))
		rc = -EPROTO;
	if (rc != 0)
		return rc;
	s = nfs4_session_make(cl, &in.fore, &in.back);
	if (!s)
		return -ENOMEM;
	memcpy(s->id, in.id, sizeof(s->id));
	s->minor = in.minor;
	s->made = now - rn_min(now, in.age);
	s->nslots = in.nslots;
	s->target = in.target;
	s->asked = in.asked;
	s->sent_slot = in.sent_slot;
	s->sent_seqid = in.sent_seqid;
	s->target_state = in.target_state;
	s->slots_recalled = in.slots_recalled;
	s->nconns = in.nconns;
	memcpy(s->conn, in.conn, sizeof(s->conn));
	load_cb_path(s, &in.cb);
	pthread_mutex_lock(&cl->lock);
	nfs4_session_enter(s);
	pthread_mutex_unlock(&cl->lock);
	*out = s;
	return 0;
}

static int load_slot(struct nfs4_session *s, struct image_at *at)
{
	struct saved_slot in = { 0 };
	struct nfs4_slot *slot;
	int rc = image_get(at, &saved_slot_kind, &in);

	if (rc != 0 || in.number >= NFS4_SLOTS_MAX)
		return -EPROTO;
	slot = nfs4_slot_get(s, in.number);
	if (!slot)
		return -ENOMEM;
	slot->seqid = in.seqid;
	slot->id = in.id;
	slot->used = true;
	slot->regranted = in.regranted;
	slot->whole = in.whole;
	slot->sum = in.sum;
	s->nused = (uint32_t)rn_max(s->nused, in.number + 1);
	if (!in.cached)
		return 0;
	if (!in.reply.at || in.nbulks > XDR_BULKS_MAX ||
	    in.exports.n > NFS4_REPLY_EXPORTS_MOST + 1 ||
	    in.reply.len != (uint64_t)in.len + in.nbulks * 2 * sizeof(uint32_t))
		return -EPROTO;
	return nfs4_slot_load(
		s, slot, &in.reply,
		&(struct nfs4_cached){ .len = in.len, .nbulks = in.nbulks, .exports = in.exports });
}

int nfs4_client_load(struct nfs4_clients *all, struct image_at *at, struct nfs4_loading *l)
{
	switch (image_next(at)) {
	case NFS4_IMAGE_CLIENT:
		nfs4_holdings_load_end(l);
		l->session = NULL;
		return load_client(all, at, &l->client);
	case NFS4_IMAGE_SESSION:
		return l->client ? load_session(l->client, at, &l->session) : -EPROTO;
	case NFS4_IMAGE_SLOT:
		return l->session ? load_slot(l->session, at) : -EPROTO;
	default:
		return -EPROTO;
	}
}

int nfs4_keys_load(struct nfs4_server *srv, struct image_at *at)
{
	struct nfs4_clients *all = srv->clients;
	struct saved_keys keys;
	const int rc = image_get(at, &keys_kind, &keys);

	if (rc != 0)
		return rc;
	memcpy(srv->hash_key, keys.hash_key, sizeof(srv->hash_key));
	srv->sum_secret = keys.sum_secret;
	if (all) {
		memcpy(all->id_key, keys.id_key, sizeof(all->id_key));
		all->last_number = keys.last_number;
		atomic_store(&all->last_session, keys.last_session);
	}
	explicit_bzero(&keys, sizeof(keys));
	return 0;
}
