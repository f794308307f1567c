/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm/nlm_grant.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/nlm/nlm.h"
#include "nsm/nsm.h"
#include "rpc/caller_image.h"
#include "rpc/client.h"
#include "rpc/principal.h"
#include "vfs/vfs_image.h"

#define MEMORY_MAX (8u << 20) /* bytes of all grants */
#define PATIENCE_SECONDS 90u  /* in which a client answers, or asks for the lock by itself */
#define QUEUES 256u
#define RETRY_NS (900 * RN_NS_PER_MS) /* before a lock that a local process had is tried again */
#define RETRIES_AT_ONCE 64u
#define AGAIN_NS RN_NS_PER_SECOND		 /* before a client is called again */
#define AGAIN_MESSAGE_NS (10 * RN_NS_PER_SECOND) /* the same, if it has the message */
#define ID_BYTES 8u

/* Grants of the files with one hash, in order. */
TAILQ_HEAD(grant_queue, nlm_grant);

struct nlm_grant {
	struct vfs_lock_notice notice;
	TAILQ_ENTRY(nlm_grant) queued;	/* under nlm_grants.lock */
	LIST_ENTRY(nlm_grant) of_owner; /* under the owner's busy */
	LIST_ENTRY(nlm_grant) by_id;	/* under nlm_grants.lock */
	LIST_ENTRY(nlm_grant) of_all;	/* the same */
	/* In nlm_grants.retries, with a reference; under the same. */
	TAILQ_ENTRY(nlm_grant) retry;
	LIST_ENTRY(nlm_grant) by_waiter;
	uint64_t waiter, retry_ns, retry_until_ns;
	_Atomic unsigned refs;
	_Atomic bool settled;
	_Atomic bool refused; /* the lock is being given back */
	bool message;	      /* the client asked by LOCK_MSG, and is in nlm_grants.by_id */
	uint32_t vers;
	uint8_t id[ID_BYTES]; /* cookie of GRANTED_MSG */
	bool running;	      /* under nlm_grants.lock */
	bool unwanted;
	bool noticed; /* vfs/ has the notice */
	bool granted; /* its owner has the lock, and the client is told */
	bool unsure;  /* an earlier call may have been heard, whose answer is lost */
	struct nlm_grants *all;
	struct grant_queue *queue;
	struct rpc_conn_ops conn_ops;
	char netid[RPC_NETID_SIZE];
	struct rpc_conn conn; /* the caller's ends */
	struct rpc_address addr;
	struct nsm_host
		*host; /* a reference, so that the record is there when the lock is free; or NULL */
	struct rpc_cred cred;
	struct rpc_server *rpc;
	uint32_t export_id;
	/* A reference if `queues` is true. NULL: only a local process was in the way so far. */
	struct vfs_file *file;
	bool queues;
	uint64_t until_ns; /* when the client should have answered */
	struct nlm_lock_args args;
	size_t size;
	uint8_t bytes[];
};

struct nlm_grants {
	struct nfs3_server *server;
	pthread_mutex_t lock;
	pthread_cond_t idle; /* no grant is running */
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct grant_queue queue[QUEUES];
	LIST_HEAD(, nlm_grant) grants;
	/* Waiters for a lock that a local process has, oldest first; the number tells one waiter from another. And what a program before this
	 * one had begun. */
	TAILQ_HEAD(, nlm_grant) retries;
	LIST_HEAD(, nlm_grant) by_waiter[QUEUES];
	LIST_HEAD(, nlm_grant) by_id[QUEUES]; /* those of messages, by the first byte of the id */
	unsigned running;
	_Atomic unsigned told; /* calls under way, but for messages */
	struct nlm_memory room;
	bool stopped;
};

struct nlm_grants *nlm_grants_new(struct nfs3_server *s)
{
	struct nlm_grants *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->server = s;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->idle, NULL);
	randombytes_buf(t->key, sizeof(t->key));
	nlm_memory_init(&t->room, MEMORY_MAX);
	for (unsigned i = 0; i < QUEUES; i++)
		TAILQ_INIT(&t->queue[i]);
	TAILQ_INIT(&t->retries);
	return t;
}

/* Gives up the reference that kept the file, since waiters keep their places only while it has one. */
static void nlm_grant_put_file(struct nlm_grant *g)
{
	if (g->queues)
		vfs_file_put(g->file);
	g->queues = false;
}

static void nlm_grant_put(struct nlm_grant *g)
{
	struct nlm_grants *t = g->all;

	if (atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	pthread_mutex_lock(&t->lock);
	nlm_memory_change(&t->room, &g->addr, 0, g->size);
	if (g->message)
		LIST_REMOVE(g, by_id);
	LIST_REMOVE(g, of_all);
	pthread_mutex_unlock(&t->lock);
	nlm_grant_put_file(g);
	rpc_client_put(g->conn.client);
	rpc_principal_put(g->cred.principal);
	nsm_host_drop(t->server->cfg.nsm, g->host);
	free(g);
}

static bool nlm_grants_charge(struct nlm_grants *t, const struct rpc_address *addr, size_t size)
{
	bool room;

	pthread_mutex_lock(&t->lock);
	room = nlm_memory_take(&t->room, addr, size);
	pthread_mutex_unlock(&t->lock);
	return room;
}

static void nlm_grants_discharge(struct nlm_grants *t, const struct rpc_address *addr, size_t size)
{
	pthread_mutex_lock(&t->lock);
	nlm_memory_change(&t->room, addr, 0, size);
	pthread_mutex_unlock(&t->lock);
}

static void nlm_grant_ignore_conn(struct rpc_conn *conn)
{
	(void)conn;
}

static void copy_conn(struct nlm_grant *g, const struct rpc_conn *from)
{
	snprintf(g->netid, sizeof(g->netid), "%s", from->ops->netid);
	g->conn_ops = (struct rpc_conn_ops){ .netid = g->netid,
					     .datagrams = from->ops->datagrams,
					     .destroy = nlm_grant_ignore_conn };
	g->conn.ops = &g->conn_ops;
	g->conn.peer = from->peer;
	g->conn.local = from->local;
	g->conn.id = from->id;
	atomic_init(&g->conn.refs, 1);
	if (from->client)
		g->conn.client = rpc_client_get(from->client->all, &from->peer);
}

static void copy_bytes(uint8_t **at, struct nlm_bytes *b)
{
	if (b->len > 0)
		memcpy(*at, b->data, b->len);
	b->data = *at;
	*at += b->len;
}

static const struct vfs_lock_notice_ops notice_ops;

static struct grant_queue *nlm_grants_queue_of(struct nlm_grants *t, const struct vfs_fh *fh)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, fh->data, fh->len, t->key);
	return &t->queue[h % QUEUES];
}

/* GRANTED_RES will be about this grant. */
static void expect_message(struct nlm_grant *g)
{
	struct nlm_grants *t = g->all;

	g->message = true;
	pthread_mutex_lock(&t->lock);
	LIST_INSERT_HEAD(&t->by_id[g->id[0]], g, by_id);
	pthread_mutex_unlock(&t->lock);
}

/* The call that a grant is for. */
struct grant_call {
	const struct rpc_conn *conn;
	struct rpc_cred cred;
	struct rpc_server *rpc;
	uint32_t vers, export_id;
	const struct nlm_lock_args *args;
};

/* NULL: the client has to ask again by itself. */
static struct nlm_grant *grant_new(struct nlm_grants *t, const struct grant_call *call)
{
	const struct nlm_lock_args *a = call->args;
	const size_t size = sizeof(struct nlm_grant) + a->cookie.len + a->caller.len + a->oh.len;
	struct rpc_address addr;
	struct nlm_grant *g;
	uint8_t *at;

	rpc_address_of(&call->conn->peer, &addr);
	if (!nlm_grants_charge(t, &addr, size))
		return NULL;
	g = calloc(1, size);
	if (!g) {
		nlm_grants_discharge(t, &addr, size);
		return NULL;
	}
	g->addr = addr;
	at = g->bytes;
	g->notice.ops = &notice_ops;
	atomic_init(&g->refs, 1);
	g->all = t;
	g->queue = nlm_grants_queue_of(t, &a->fh);
	g->size = size;
	copy_conn(g, call->conn);
	g->cred = call->cred;
	rpc_principal_ref(g->cred.principal);
	g->rpc = call->rpc;
	g->vers = call->vers;
	g->export_id = call->export_id;
	g->args = *a;
	copy_bytes(&at, &g->args.cookie);
	copy_bytes(&at, &g->args.caller);
	copy_bytes(&at, &g->args.oh);
	g->retry_until_ns = rn_now_ns() + PATIENCE_SECONDS * RN_NS_PER_SECOND;
	pthread_mutex_lock(&t->lock);
	LIST_INSERT_HEAD(&t->grants, g, of_all);
	pthread_mutex_unlock(&t->lock);
	return g;
}

static struct nlm_grant *grant_of_call(const struct nfs3_op *op, const struct nlm_lock_args *a)
{
	const struct rpc_request *req = op->req;
	struct nlm_grant *g =
		grant_new(op->server->grants, &(struct grant_call){ .conn = req->conn,
								    .cred = req->call.cred,
								    .rpc = req->server,
								    .vers = req->call.vers,
								    .export_id = op->export_id,
								    .args = a });

	if (g && req->call.proc == NLMPROC4_LOCK_MSG) {
		randombytes_buf(g->id, sizeof(g->id));
		expect_message(g);
	}
	return g;
}

/* Takes the caller's reference over. */
static void retry_at(struct nlm_grant *g, uint64_t ns)
{
	struct nlm_grants *t = g->all;

	g->retry_ns = ns;
	pthread_mutex_lock(&t->lock);
	TAILQ_INSERT_TAIL(&t->retries, g, retry);
	LIST_INSERT_HEAD(&t->by_waiter[g->waiter % QUEUES], g, by_waiter);
	pthread_mutex_unlock(&t->lock);
}

/* Under the lock. The list's reference is the caller's then. */
static void stop_retrying(struct nlm_grants *t, struct nlm_grant *g)
{
	TAILQ_REMOVE(&t->retries, g, retry);
	LIST_REMOVE(g, by_waiter);
}

void nlm_grants_forget(struct nlm_grants *t, uint64_t waiter)
{
	struct nlm_grant *g;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (g, &t->by_waiter[waiter % QUEUES], by_waiter) {
		if (g->waiter == waiter)
			break;
	}
	if (g)
		stop_retrying(t, g);
	pthread_mutex_unlock(&t->lock);
	if (g)
		nlm_grant_put(g);
}

void nlm_grant_wait(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_owner *o,
		    const struct vfs_lock_request *r, const struct nlm_refusal *why)
{
	struct nlm_grant *g = NULL;

	if (r->waiter && op->server->cfg.nsm && op->req->server->background)
		g = grant_of_call(op, a);
	if (g && o->host) {
		nsm_host_hold(op->server->cfg.nsm, o->host);
		g->host = o->host;
	}
	if (g)
		g->waiter = r->waiter;
	if (g && why->grant) /* the client's call was a while ago */
		g->retry_until_ns = why->grant->retry_until_ns;
	if (g && why->by_local) {
		retry_at(g, rn_now_ns() + RETRY_NS);
		g = NULL;
	}
	if (g) {
		g->noticed = true;
		/* An owner without locks may go meanwhile. */
		g->notice.owner = vfs_lock_held(&o->locks) ? &o->locks : NULL;
		g->notice.held_by_client = true;
		g->notice.in_order = true;
		g->file = o->locks.file;
	}
	vfs_lock_remember_waiter(o->locks.file, r, g ? &g->notice : NULL);
}

static bool same_file(const struct nlm_grant *a, const struct nlm_grant *b)
{
	return a->args.fh.len == b->args.fh.len &&
	       memcmp(a->args.fh.data, b->args.fh.data, a->args.fh.len) == 0;
}

/* Under the lock: the first one of a file none of which is running; or NULL. */
static struct nlm_grant *nlm_grant_next(struct grant_queue *q)
{
	struct nlm_grant *g, *before;

	TAILQ_FOREACH (g, q, queued) {
		TAILQ_FOREACH (before, q, queued) {
			if (before == g || same_file(before, g))
				break;
		}
		if (before == g && !g->running)
			break;
	}
	return g;
}

static void nlm_grant_run(struct rpc_request *req);
static void nlm_grant_leave(struct nlm_grant *g);

/* Gives the grant to the workers, or drops it. */
static void nlm_grant_begin(struct nlm_grant *g)
{
	struct rpc_request *req = rpc_request_new(g->all->server->cfg.pool);

	if (!req) {
		nlm_grant_leave(g);
		nlm_grant_put(g);
		return;
	}
	req->conn = &g->conn;
	req->server = g->rpc;
	req->call.cred = g->cred;
	req->call.vers = g->vers;
	req->call.proc = g->message ? NLMPROC4_LOCK_MSG : NLMPROC4_LOCK;
	req->admission = RPC_ADMITTED; /* the export is asked */
	req->program_ctx = g->all->server;
	req->waited = true; /* it is tried again by and by */
	req->transport_private = g;
	req->work = nlm_grant_run;
	req->arrived_ns = rn_now_ns();
	g->rpc->background(g->rpc->background_ctx, req, g->export_id);
}

static void begin_due(struct nlm_grants *t, struct grant_queue *q)
{
	struct nlm_grant *g;

	do {
		pthread_mutex_lock(&t->lock);
		g = t->stopped ? NULL : nlm_grant_next(q);
		if (g) {
			g->running = true;
			t->running++;
		}
		pthread_mutex_unlock(&t->lock);
		if (g)
			nlm_grant_begin(g);
	} while (g);
}

/* Takes a grant that has run from the queue; it may be queued again. */
static void nlm_grant_leave(struct nlm_grant *g)
{
	struct nlm_grants *t = g->all;

	pthread_mutex_lock(&t->lock);
	TAILQ_REMOVE(g->queue, g, queued);
	g->running = false;
	if (--t->running == 0)
		pthread_cond_broadcast(&t->idle);
	pthread_mutex_unlock(&t->lock);
}

/* Takes the caller's reference over. */
static void nlm_grant_enqueue(struct nlm_grant *g)
{
	struct nlm_grants *t = g->all;
	struct grant_queue *q = g->queue;

	pthread_mutex_lock(&t->lock);
	TAILQ_INSERT_TAIL(q, g, queued);
	pthread_mutex_unlock(&t->lock);
	begin_due(t, q);
}

/* The first whose time has come, with the list's reference; or NULL. */
static struct nlm_grant *next_retry(struct nlm_grants *t, uint64_t now)
{
	struct nlm_grant *g;

	pthread_mutex_lock(&t->lock);
	g = t->stopped ? NULL : TAILQ_FIRST(&t->retries);
	if (g && g->retry_ns <= now)
		stop_retrying(t, g);
	else
		g = NULL;
	pthread_mutex_unlock(&t->lock);
	return g;
}

static void nlm_grant_notice_tell(struct vfs_lock_notice *n)
{
	struct nlm_grant *g = rn_container_of(n, struct nlm_grant, notice);

	vfs_file_ref(g->file);
	g->queues = true;
	g->noticed = false;
	nlm_grant_enqueue(g);
}

static void nlm_grant_notice_end(struct vfs_lock_notice *n)
{
	struct nlm_grant *g = rn_container_of(n, struct nlm_grant, notice);

	g->noticed = false;
	nlm_grant_put(g);
}

static const struct vfs_lock_notice_ops notice_ops = { .tell = nlm_grant_notice_tell,
						       .end = nlm_grant_notice_end };

/* The client does not want the lock. Takes the caller's reference over. */
static void nlm_grant_give_back(struct nlm_grant *g)
{
	if (atomic_exchange(&g->refused, true)) {
		nlm_grant_put(g);
		return;
	}
	g->unwanted = true;
	nlm_grant_enqueue(g);
}

static uint32_t nlm_grant_put_args(const struct nlm_grant *g, uint8_t *out, size_t size)
{
	const struct nlm_lock_args *a = &g->args;
	struct xdr_out x;

	xdr_out_init(&x, out, size);
	xdr_put_opaque(&x, g->message ? g->id : a->cookie.data,
		       g->message ? ID_BYTES : a->cookie.len);
	xdr_put_bool(&x, a->exclusive);
	xdr_put_opaque(&x, a->caller.data, a->caller.len);
	xdr_put_opaque(&x, a->fh.data, a->fh.len);
	xdr_put_opaque(&x, a->oh.data, a->oh.len);
	xdr_put_u32(&x, (uint32_t)a->svid);
	nlm_put_range(&x, g->vers, a->offset, a->length);
	return x.overflow ? 0 : (uint32_t)x.used;
}

static void nlm_grant_answered(void *ctx, int rc, struct xdr_in *results);

unsigned nlm_grants_told(struct nlm_grants *t)
{
	return atomic_load(&t->told);
}

static bool nlm_grants_are_stopped(struct nlm_grants *t)
{
	bool stopped;

	pthread_mutex_lock(&t->lock);
	stopped = t->stopped;
	pthread_mutex_unlock(&t->lock);
	return stopped;
}

/* Asked before the call is made. */
static bool is_open(void *ctx)
{
	const struct nlm_grant *g = ctx;

	return !atomic_load(&g->settled) && !atomic_load(&g->refused);
}

/* Takes the caller's reference over. */
static void nlm_grant_call(struct nlm_grant *g, uint64_t delay_ns)
{
	const struct nsm_call_end end = { .done = nlm_grant_answered, .wanted = is_open, .ctx = g };
	uint8_t args[NLM_MESSAGE_MAX];
	const uint32_t len = nlm_grant_put_args(g, args, sizeof(args));
	struct nsm_callee to;

	nlm_callee(&g->conn, g->vers, g->message ? NLMPROC4_GRANTED_MSG : NLMPROC4_GRANTED, &to);
	to.delay_ns = delay_ns;
	atomic_fetch_add(&g->all->told, !g->message);
	const int rc = nsm_submit(g->all->server->cfg.nsm, &to, args, len, &end);

	if (rc != 0)
		atomic_fetch_sub(&g->all->told, !g->message);
	if (rc == -ENOTCONN && nlm_grants_are_stopped(g->all))
		retry_at(g, 0);
	else if (rc != 0)
		nlm_grant_give_back(g);
}

void nlm_grants_retry(struct nlm_grants *t)
{
	const uint64_t now = rn_now_ns();
	struct nlm_grant *g;

	for (unsigned i = 0; i < RETRIES_AT_ONCE && (g = next_retry(t, now)) != NULL; i++) {
		if (g->granted && !g->unwanted)
			nlm_grant_call(g, 0);
		else if (g->unwanted || now <= g->retry_until_ns)
			nlm_grant_enqueue(g);
		else
			nlm_grant_put(g);
	}
}

/* The client's status: 0 is GRANTED. -ETIMEDOUT: it may be asked again. -EACCES: it does not want the lock, or does not wait for it any more. */
static int read_answer(struct xdr_in *x)
{
	xdr_skip_opaque(x, NLM_OPAQUE_MAX); /* cookie */
	switch (xdr_get_u32(x)) {
	case NLM4_GRANTED:
		return x->err ? -EOPNOTSUPP : 0;
	case NLM4_DENIED_GRACE_PERIOD:
		return -ETIMEDOUT;
	case NLM4_DENIED:
		return -EACCES;
	default:
		return -EOPNOTSUPP;
	}
}

static void nlm_grant_answered(void *ctx, int rc, struct xdr_in *results)
{
	struct nlm_grant *g = ctx;
	const bool has_message = rc == 0 && g->message;

	atomic_fetch_sub(&g->all->told, !g->message);
	if (has_message)
		rc = -ETIMEDOUT; /* GRANTED_RES has not come yet */
	else if (rc == 0)
		rc = read_answer(results);
	/* Linux's client says DENIED to what it has accepted before. To take the lock from it would be worse than to leave one that it has
	 * cancelled, and tells so. */
	if ((rc == 0 || (rc == -EACCES && g->unsure)) && !atomic_load(&g->refused))
		atomic_store(&g->settled, true);
	g->unsure = true;
	if (!is_open(g))
		nlm_grant_put(g);
	else if (rc == -ECANCELED) /* the monitor stops: the next program calls again */
		retry_at(g, 0);
	else if (rc == -ETIMEDOUT && rn_now_ns() < g->until_ns)
		nlm_grant_call(g, has_message ? AGAIN_MESSAGE_NS : AGAIN_NS);
	else
		nlm_grant_give_back(g);
}

/* True if there is a reference left, so that there is one more now. */
static bool ref_live(struct nlm_grant *g)
{
	unsigned n = atomic_load(&g->refs);

	while (n > 0 && !atomic_compare_exchange_weak(&g->refs, &n, n + 1))
		continue;
	return n > 0;
}

/* A reference to the grant that the peer was told of by a message with that cookie; or NULL. */
static struct nlm_grant *nlm_grants_find(struct nlm_grants *t, const struct sockaddr_storage *peer,
					 const struct nlm_bytes *cookie)
{
	struct rpc_address from;
	struct nlm_grant *g;

	if (cookie->len != ID_BYTES)
		return NULL;
	rpc_address_of(peer, &from);
	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (g, &t->by_id[cookie->data[0]], by_id) {
		if (sodium_memcmp(g->id, cookie->data, ID_BYTES) == 0 &&
		    rpc_address_equal(&from, &g->addr))
			break;
	}
	if (g && !ref_live(g))
		g = NULL;
	pthread_mutex_unlock(&t->lock);
	return g;
}

void nlm_grants_answered(struct nlm_grants *t, const struct sockaddr_storage *peer,
			 const struct nlm_bytes *cookie, uint32_t stat)
{
	struct nlm_grant *g = nlm_grants_find(t, peer, cookie);

	if (!g)
		return;
	if (stat == NLM4_GRANTED)
		atomic_store(&g->settled, true);
	if (stat == NLM4_GRANTED || stat == NLM4_DENIED_GRACE_PERIOD || !is_open(g))
		nlm_grant_put(g);
	else
		nlm_grant_give_back(g);
}

static int run_op(struct nlm_grant *g, struct nfs3_op *op)
{
	int rc;

	if (!op)
		return -ENOMEM;
	rc = g->unwanted ? nlm_grant_unlock(op, &g->args, g) : nlm_grant_lock(op, &g->args, g);
	nfs3_op_end(op, 0);
	return rc;
}

/* A piece of background work, see rpc_server.background. */
static void nlm_grant_run(struct rpc_request *req)
{
	struct nlm_grant *g = req->transport_private;
	struct nlm_grants *t = g->all;
	struct grant_queue *q = g->queue;
	const bool unwanted = g->unwanted;
	const int rc = run_op(g, nfs3_op_begin(req));

	rn_arena_reset(&req->arena);
	if (g->rpc->ended)
		g->rpc->ended(g->rpc->ended_ctx, req);
	rpc_request_free(req);
	nlm_grant_leave(g);
	nlm_grant_put_file(g);
	if (rc == 0 && !unwanted) {
		g->until_ns = rn_now_ns() + PATIENCE_SECONDS * RN_NS_PER_SECOND;
		nlm_grant_call(g, 0);
	} else {
		nlm_grant_put(g);
	}
	begin_due(t, q);
}

void nlm_grant_link(struct nlm_owner *o, struct nlm_grant *g)
{
	atomic_fetch_add(&g->refs, 1);
	g->granted = true;
	g->file = o->locks.file;
	LIST_INSERT_HEAD(&o->granted, g, of_owner);
}

/* Last byte of a range. In NLM, length 0 reaches to the end of the file. */
static uint64_t last_of(uint64_t offset, uint64_t length)
{
	return length == 0 || length - 1 > UINT64_MAX - offset ? UINT64_MAX : offset + length - 1;
}

bool nlm_grants_settle(struct nlm_owner *o, uint64_t offset, uint64_t length)
{
	struct nlm_grant *g = LIST_FIRST(&o->granted), *after;
	const uint64_t last = last_of(offset, length);
	bool any = false;

	for (; g; g = after) {
		const bool meets =
			offset <= last_of(g->args.offset, g->args.length) && g->args.offset <= last;

		after = LIST_NEXT(g, of_owner);
		if (!meets && !atomic_load(&g->settled))
			continue;
		any |= !atomic_exchange(&g->settled, true) && meets;
		LIST_REMOVE(g, of_owner);
		nlm_grant_put(g);
	}
	return any;
}

bool nlm_grant_is_settled(const struct nlm_grant *g)
{
	return atomic_load(&g->settled);
}

void nlm_grants_stop(struct nlm_grants *t)
{
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	while (t->running > 0)
		pthread_cond_wait(&t->idle, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

void nlm_grants_free(struct nlm_grants *t)
{
	struct grant_queue left = TAILQ_HEAD_INITIALIZER(left);
	struct nlm_grant *g;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < QUEUES; i++)
		TAILQ_CONCAT(&left, &t->queue[i], queued);
	while ((g = TAILQ_FIRST(&t->retries)) != NULL) {
		stop_retrying(t, g);
		TAILQ_INSERT_TAIL(&left, g, queued);
	}
	pthread_mutex_unlock(&t->lock);
	while ((g = TAILQ_FIRST(&left)) != NULL) {
		TAILQ_REMOVE(&left, g, queued);
		nlm_grant_put(g);
	}
	pthread_cond_destroy(&t->idle);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Grants in the image of the state (lib/image.h): each with the call that it is for. A client that is being told is told again, by the next program's
 * first look at what is to be tried again. */

#define GRANTS_SECTION "nlm grants"

struct saved_grant {
	struct rpc_saved_caller call;
	struct image_bytes cookie, caller, oh, fh;
	uint32_t vers, export_id;
	struct nlm_lock_args args;
	uint32_t svid;
	bool message, on_record, noticed, granted, unwanted, unsure;
	uint8_t id[ID_BYTES];
	uint64_t waiter;
	uint64_t retry_left, answer_left; /* nanoseconds */
	uint32_t file;			  /* vfs_file_number() */
};
static const struct image_field saved_grant_fields[] = {
	/* Tags 1 to 15 were those of the caller before tag 40. */
	IMAGE_BYTES(16, struct saved_grant, cookie),
	IMAGE_BYTES(17, struct saved_grant, caller),
	IMAGE_BYTES(18, struct saved_grant, oh),
	IMAGE_BYTES(19, struct saved_grant, fh),
	IMAGE_NUMBER(20, struct saved_grant, vers),
	IMAGE_NUMBER(21, struct saved_grant, export_id),
	IMAGE_NUMBER(22, struct saved_grant, args.exclusive),
	IMAGE_NUMBER(23, struct saved_grant, args.monitor),
	IMAGE_NUMBER(24, struct saved_grant, args.state),
	IMAGE_NUMBER(25, struct saved_grant, svid),
	IMAGE_NUMBER(26, struct saved_grant, args.offset),
	IMAGE_NUMBER(27, struct saved_grant, args.length),
	IMAGE_NUMBER(28, struct saved_grant, message),
	IMAGE_NUMBER(29, struct saved_grant, on_record),
	IMAGE_NUMBER(30, struct saved_grant, noticed),
	IMAGE_NUMBER(31, struct saved_grant, granted),
	IMAGE_NUMBER(32, struct saved_grant, unwanted),
	IMAGE_FIXED(33, struct saved_grant, id),
	IMAGE_NUMBER(34, struct saved_grant, waiter),
	IMAGE_NUMBER(35, struct saved_grant, retry_left),
	IMAGE_NUMBER(36, struct saved_grant, answer_left),
	IMAGE_NUMBER(37, struct saved_grant, file),
	IMAGE_NUMBER(38, struct saved_grant, unsure),
	RPC_SAVED_CALLER_FIELDS(40, struct saved_grant, call),
};
static const struct image_kind saved_grant_kind = { 1, rn_array_size(saved_grant_fields),
						    saved_grant_fields };

static uint64_t grant_time_left(uint64_t until_ns)
{
	const uint64_t now = rn_now_ns();

	return until_ns > now ? until_ns - now : 0;
}

static void save_grant(struct image_writer *w, const struct nlm_grant *g)
{
	const struct nlm_lock_args *a = &g->args;
	struct saved_grant s = {
		.call = rpc_caller_save(w, &g->conn, &g->cred),
		.cookie = { a->cookie.data, a->cookie.len },
		.caller = { a->caller.data, a->caller.len },
		.oh = { a->oh.data, a->oh.len },
		.fh = { a->fh.data, a->fh.len },
		.vers = g->vers,
		.export_id = g->export_id,
		.args = *a,
		.svid = (uint32_t)a->svid,
		.message = g->message,
		.on_record = g->host != NULL,
		.noticed = g->noticed,
		.granted = g->granted,
		.unwanted = g->unwanted,
		.unsure = g->unsure,
		.waiter = g->waiter,
		.retry_left = g->queues ? PATIENCE_SECONDS * RN_NS_PER_SECOND
					: grant_time_left(g->retry_until_ns),
		.answer_left = grant_time_left(g->until_ns),
	};

	memcpy(s.id, g->id, sizeof(s.id));
	if (g->noticed || g->granted)
		s.file = vfs_file_number(g->file);
	image_put(w, &saved_grant_kind, &s);
}

void nlm_grants_save(struct nlm_grants *t, struct image_writer *w)
{
	const struct nlm_grant *g;
	bool begun = false;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (g, &t->grants, of_all) {
		if (atomic_load(&g->settled))
			continue;
		if (!begun)
			image_begin(w, GRANTS_SECTION);
		begun = true;
		save_grant(w, g);
	}
	pthread_mutex_unlock(&t->lock);
}

static bool grant_is_good(const struct saved_grant *s)
{
	return s->caller.at && s->caller.len <= NSM_NAME_MAX && s->oh.at &&
	       s->oh.len <= NLM_OPAQUE_MAX && s->cookie.len <= NLM_OPAQUE_MAX && s->fh.at &&
	       s->fh.len <= sizeof(s->args.fh.data) && (!s->unwanted || s->granted) &&
	       !(s->noticed && s->granted) && (s->file || !(s->noticed || s->granted));
}

/* Makes a grant of the call that it is for. 0; -EPROTO, -ENOMEM. */
static int make_grant(struct nlm_grants *t, struct saved_grant *s, struct nlm_grant **out)
{
	const struct nfs3_config *cfg = &t->server->cfg;
	struct rpc_loaded_caller c;
	const int rc = rpc_caller_load(&s->call, cfg->clients, &c);

	if (rc != 0)
		return rc;
	s->args.block = true;
	s->args.svid = (int32_t)s->svid;
	s->args.cookie = (struct nlm_bytes){ s->cookie.at, s->cookie.len };
	s->args.caller = (struct nlm_bytes){ s->caller.at, s->caller.len };
	s->args.oh = (struct nlm_bytes){ s->oh.at, s->oh.len };
	s->args.fh.len = s->fh.len;
	memcpy(s->args.fh.data, s->fh.at, s->fh.len);
	*out = grant_new(t, &(struct grant_call){ .conn = &c.conn,
						  .cred = c.cred,
						  .rpc = cfg->rpc,
						  .vers = s->vers,
						  .export_id = s->export_id,
						  .args = &s->args });
	rpc_caller_put(&c);
	return *out ? 0 : -ENOMEM;
}

static int resume_host(struct nlm_grant *g)
{
	struct nsm *nsm = g->all->server->cfg.nsm;
	struct nsm_peer peer = { .addr = g->addr,
				 .name = g->args.caller.data,
				 .name_len = g->args.caller.len };

	rpc_address_of(&g->conn.local, &peer.local);
	return nsm_host_resume(nsm, &peer, &g->host);
}

/* Puts the grant where it was; takes the caller's reference over. f: its file, o: its owner there; either may be NULL. */
static int enter_grant(struct nlm_grant *g, const struct saved_grant *s, struct vfs_file *f,
		       struct nlm_owner *o)
{
	int rc = s->on_record ? resume_host(g) : 0;

	if ((s->noticed && !f) || (s->granted && !o))
		rc = -EPROTO;
	g->file = f;
	if (rc == 0 && s->noticed) {
		g->notice.owner = o && vfs_lock_held(&o->locks) ? &o->locks : NULL;
		g->notice.held_by_client = g->notice.in_order = g->noticed = true;
		rc = vfs_lock_load_notice(f, g->waiter, &g->notice);
	} else if (rc == 0) {
		if (s->granted)
			nlm_grant_link(o, g);
		retry_at(g, 0);
	}
	if (rc != 0)
		nlm_grant_put(g);
	return rc;
}

static int load_grant(struct nlm_grants *t, struct image_at *at)
{
	const struct nfs3_server *server = t->server;
	struct saved_grant s = { .message = false };
	struct nlm_owner *o = NULL;
	struct nlm_owner_key k;
	struct nlm_grant *g;
	struct vfs_file *f;
	int rc = image_get(at, &saved_grant_kind, &s);

	if (rc != 0 || !grant_is_good(&s))
		return -EPROTO;
	rc = make_grant(t, &s, &g);
	if (rc != 0)
		return rc;
	memcpy(g->id, s.id, sizeof(g->id));
	if (s.message)
		expect_message(g);
	g->waiter = s.waiter;
	g->unwanted = s.unwanted;
	g->unsure = s.unsure;
	atomic_store(&g->refused, s.unwanted);
	g->retry_until_ns = rn_now_ns() + rn_min(s.retry_left, PATIENCE_SECONDS * RN_NS_PER_SECOND);
	g->until_ns = rn_now_ns() + rn_min(s.answer_left, PATIENCE_SECONDS * RN_NS_PER_SECOND);
	f = vfs_file_by_number(server->cfg.vfs, s.file);
	nlm_owner_key(server->nlm, (const struct sockaddr *)&g->conn.peer, &g->args, &k);
	if (f)
		o = nlm_owners_find(server->nlm, &k, f, NULL);
	rc = enter_grant(g, &s, f, o);
	if (o)
		nlm_owner_put(o);
	vfs_file_put(f);
	return rc;
}

int nlm_grants_load(struct nlm_grants *t, struct image_reader *image)
{
	struct image_at at;
	int rc = 0;

	/* A server that tells no clients cannot go on with them. */
	if (!t->server->cfg.nsm || !image_enter(image, GRANTS_SECTION, &at))
		return 0;
	while (rc == 0 && image_next(&at))
		rc = load_grant(t, &at);
	return rc;
}
