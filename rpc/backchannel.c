/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/backchannel.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "lib/error.h"
#include "lib/util.h"

TAILQ_HEAD(rpc_callback_list, rpc_callback);

struct rpc_backchannel {
	_Atomic uint32_t refs;
	pthread_mutex_t lock;
	uint64_t conn_id;
	_Atomic(struct rpc_conn *) conn; /* NULL: closed; changed under the lock */
	struct rpc_callback_list calls;	 /* under way; under the lock, like the members below */
	unsigned ncalls;
	uint32_t last_xid;
};

size_t rpc_backchannel_size(void)
{
	return sizeof(struct rpc_backchannel);
}

static struct rpc_backchannel *backchannel_new(struct rpc_conn *conn)
{
	struct rpc_backchannel *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->conn_id = conn->id;
	atomic_init(&b->conn, conn);
	pthread_mutex_init(&b->lock, NULL);
	TAILQ_INIT(&b->calls);
	/* A reply that the client sent over an earlier connection finds no call here. */
	b->last_xid = randombytes_random();
	return b;
}

void rpc_backchannel_ref(struct rpc_backchannel *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void rpc_backchannel_put(struct rpc_backchannel *b)
{
	if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* Ends all calls, and lets no more begin. */
static void shut(struct rpc_backchannel *b)
{
	struct rpc_callback_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct rpc_callback *cb;

	pthread_mutex_lock(&b->lock);
	atomic_store(&b->conn, NULL);
	TAILQ_CONCAT(&ended, &b->calls, link);
	b->ncalls = 0;
	pthread_mutex_unlock(&b->lock);
	while ((cb = TAILQ_FIRST(&ended))) {
		TAILQ_REMOVE(&ended, cb, link);
		cb->done(cb, -ENOTCONN, NULL);
	}
}

/* Makes the connection's, or finds the one that another thread has just made. NULL: no memory. */
static struct rpc_backchannel *backchannel_install(struct rpc_conn *conn)
{
	struct rpc_backchannel *fresh = backchannel_new(conn), *other = NULL;

	if (!fresh)
		return NULL;
	if (!atomic_compare_exchange_strong(&conn->back, &other, fresh)) {
		rpc_backchannel_put(fresh);
		return other;
	}
	/* Either rpc_backchannel_close() finds the new one, or this load sees its mark. */
	if (atomic_load(&conn->closing))
		shut(fresh);
	return fresh;
}

struct rpc_backchannel *rpc_backchannel_get(struct rpc_conn *conn)
{
	struct rpc_backchannel *b = atomic_load(&conn->back);

	if (!b && conn->ops->call)
		b = backchannel_install(conn);
	if (!b || !rpc_backchannel_is_open(b))
		return NULL;
	rpc_backchannel_ref(b);
	return b;
}

uint64_t rpc_backchannel_conn_id(const struct rpc_backchannel *b)
{
	return b->conn_id;
}

bool rpc_backchannel_is_open(const struct rpc_backchannel *b)
{
	return atomic_load_explicit(&b->conn, memory_order_acquire) != NULL;
}

bool rpc_backchannel_is_of(const struct rpc_backchannel *b, const struct rpc_conn *conn)
{
	return atomic_load_explicit(&b->conn, memory_order_acquire) == conn;
}

/* The call with that xid; NULL: there is none. Under the lock. */
static struct rpc_callback *backchannel_find_call(struct rpc_backchannel *b, uint32_t xid)
{
	struct rpc_callback *cb;

	TAILQ_FOREACH (cb, &b->calls, link) {
		if (cb->xid == xid)
			break;
	}
	return cb;
}

/* Takes the call with that xid off the list; NULL: there is none. Under the lock. */
static struct rpc_callback *backchannel_take_call(struct rpc_backchannel *b, uint32_t xid)
{
	struct rpc_callback *cb = backchannel_find_call(b, xid);

	if (cb) {
		TAILQ_REMOVE(&b->calls, cb, link);
		b->ncalls--;
	}
	return cb;
}

/* Enters the call under a new xid, and takes a reference of the connection. The call may have ended
 * when this returns: the connection is closed, or the client has guessed the xid. */
static int backchannel_enter_call(struct rpc_backchannel *b, struct rpc_callback *cb,
				  struct rpc_conn **conn, uint32_t *xid)
{
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	*conn = atomic_load(&b->conn);
	if (!*conn) {
		rc = -ENOTCONN;
	} else if (b->ncalls >= RPC_CALLBACKS_MAX) {
		rc = -RN_EFULL;
	} else {
		/* A transport closes the backchannel while it still has its own reference. */
		rpc_conn_ref(*conn);
		*xid = cb->xid = ++b->last_xid;
		TAILQ_INSERT_TAIL(&b->calls, cb, link);
		b->ncalls++;
	}
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* Sends the call, which has its xid. auth: its security, or NULL. */
static int backchannel_send_call(struct rpc_conn *conn, struct rpc_cb_auth *auth, uint32_t seq,
				 const struct rpc_seg *msg)
{
	uint8_t wrapped[RPC_CALLBACK_AUTH_SIZE];
	struct rpc_seg out = { .base = wrapped, .len = sizeof(wrapped) };
	uint32_t len;

	if (!auth)
		return conn->ops->call(conn, msg->base, msg->len);
	len = auth->ops->wrap(auth, seq, msg, &out);
	return len > 0 ? conn->ops->call(conn, wrapped, len) : -EACCES;
}

int rpc_backchannel_call(struct rpc_backchannel *b, struct rpc_callback *cb, uint8_t *msg,
			 uint32_t len)
{
	struct rpc_cb_auth *auth =
		rpc_cb_auth_ref(cb->auth); /* cb may end before the call is sent */
	const struct rpc_seg seg = { .base = msg, .len = len };
	uint32_t xid, seq = 0;
	struct rpc_conn *conn;
	int rc = -EMSGSIZE;

	if (auth)
		seq = cb->seq = auth->ops->seq(auth);
	if (len >= 4 && len <= RPC_CALLBACK_SIZE)
		rc = backchannel_enter_call(b, cb, &conn, &xid);
	if (rc == 0) {
		rn_put32(msg, xid);
		rc = backchannel_send_call(conn, auth, seq, &seg);
		if (rc != 0) {
			pthread_mutex_lock(&b->lock);
			/* A call that is not listed any more has ended because its connection was closed. */
			if (!backchannel_take_call(b, xid))
				rc = 0;
			pthread_mutex_unlock(&b->lock);
		}
		rpc_conn_put(conn);
	}
	rpc_cb_auth_put(auth);
	return rc;
}

void rpc_backchannel_hang_up(struct rpc_backchannel *b)
{
	struct rpc_conn *conn;

	pthread_mutex_lock(&b->lock);
	conn = atomic_load(&b->conn);
	if (conn)
		rpc_conn_ref(conn);
	pthread_mutex_unlock(&b->lock);
	if (!conn)
		return;
	if (conn->ops->hang_up)
		conn->ops->hang_up(conn);
	rpc_conn_put(conn);
}

/* Reads the verifier. False: it is not that of a client which shares the call's context. */
static bool backchannel_check_verf(struct xdr_in *x, const struct rpc_callback *cb)
{
	const uint32_t flavor = xdr_get_u32(x);
	uint32_t len;
	const uint8_t *verf = xdr_get_opaque(x, RPC_AUTH_BYTES_MAX, &len);

	if (x->err || !cb->auth)
		return !x->err;
	return flavor == RPC_RPCSEC_GSS && cb->auth->ops->verify(cb->auth, cb->seq, verf, len);
}

/* Reads the header of a reply behind its xid (RFC 5531 section 9). Wrapped results are unwrapped to *plain. */
static int check_header(struct xdr_in *x, const struct rpc_callback *cb, struct rpc_seg *plain)
{
	uint32_t stat;

	if (xdr_get_u32(x) != RPC_REPLY)
		return -EPROTO;
	stat = xdr_get_u32(x);
	if (stat == RPC_MSG_DENIED)
		return x->err ? -EPROTO : -EACCES;
	if (stat != RPC_MSG_ACCEPTED || !backchannel_check_verf(x, cb))
		return -EPROTO;
	stat = xdr_get_u32(x);
	if (x->err)
		return -EPROTO;
	if (stat != RPC_SUCCESS)
		return -EOPNOTSUPP;
	if (cb->auth && !cb->auth->ops->unwrap(cb->auth, cb->seq, x, plain))
		return -EPROTO;
	return 0;
}

enum rpc_reply_use rpc_backchannel_reply(struct rpc_conn *conn, uint8_t *msg, uint32_t len)
{
	const struct rpc_seg seg = { .base = msg, .len = len };

	return rpc_backchannel_long_reply(conn, &seg, 1);
}

enum rpc_reply_use rpc_backchannel_long_reply(struct rpc_conn *conn, const struct rpc_seg *seg,
					      unsigned nseg)
{
	struct rpc_backchannel *b = atomic_load(&conn->back);
	struct rpc_callback *cb;
	struct rpc_seg plain;
	struct xdr_in x;
	uint32_t xid;
	int rc;

	if (!b)
		return RPC_REPLY_UNEXPECTED;
	xdr_in_init(&x, seg, nseg, NULL);
	xid = xdr_get_u32(&x);
	if (x.err)
		return RPC_REPLY_STRAY;
	pthread_mutex_lock(&b->lock);
	cb = backchannel_take_call(b, xid);
	pthread_mutex_unlock(&b->lock);
	if (!cb)
		return RPC_REPLY_STRAY;
	rc = check_header(&x, cb, &plain);
	cb->done(cb, rc, rc == 0 ? &x : NULL);
	return RPC_REPLY_USED;
}

bool rpc_backchannel_refused(struct rpc_conn *conn, uint32_t xid)
{
	struct rpc_backchannel *b = atomic_load(&conn->back);
	struct rpc_callback *cb;

	if (!b)
		return false;
	pthread_mutex_lock(&b->lock);
	cb = backchannel_take_call(b, xid);
	pthread_mutex_unlock(&b->lock);
	if (cb)
		cb->done(cb, -EOPNOTSUPP, NULL);
	return cb;
}

bool rpc_backchannel_awaits(struct rpc_conn *conn, uint32_t xid)
{
	struct rpc_backchannel *b = atomic_load(&conn->back);
	bool found;

	if (!b)
		return false;
	pthread_mutex_lock(&b->lock);
	found = backchannel_find_call(b, xid);
	pthread_mutex_unlock(&b->lock);
	return found;
}

void rpc_backchannel_expire(struct rpc_conn *conn, uint64_t now)
{
	struct rpc_callback_list late = TAILQ_HEAD_INITIALIZER(late);
	struct rpc_backchannel *b = atomic_load(&conn->back);
	struct rpc_callback *cb, *next;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	for (cb = TAILQ_FIRST(&b->calls); cb; cb = next) {
		next = TAILQ_NEXT(cb, link);
		if (now < cb->due_ns)
			continue;
		TAILQ_REMOVE(&b->calls, cb, link);
		b->ncalls--;
		TAILQ_INSERT_TAIL(&late, cb, link);
	}
	pthread_mutex_unlock(&b->lock);
	while ((cb = TAILQ_FIRST(&late))) {
		TAILQ_REMOVE(&late, cb, link);
		cb->done(cb, -ETIMEDOUT, NULL);
	}
}

void rpc_backchannel_close(struct rpc_conn *conn)
{
	struct rpc_backchannel *b;

	atomic_store(&conn->closing, true);
	b = atomic_load(&conn->back);
	if (b)
		shut(b);
}
