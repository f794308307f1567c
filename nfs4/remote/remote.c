/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call at a time is under way, and its end starts the next: EXCHANGE_ID and CREATE_SESSION over a
 * new connection, then READ. Whoever ends a call has the object, until it starts another or calls
 * done(). After nfs4_remote_free() the object belongs to the calls of the good-bye.
 */
#include "nfs4/remote/remote.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/remote/remote_wire.h"
#include "rpc/backchannel.h"

#define READ_MAX (1u << 20) /* bytes */

enum step { STEP_EXCHANGE_ID, STEP_CREATE_SESSION, STEP_READ, STEP_BYE_SESSION, STEP_BYE_CLIENT };

struct nfs4_remote {
	struct rpc_dialer dialer;
	struct nfs4_remote_file file;
	uint64_t timeout_ns;
	struct nfs4_remote_owner owner;

	pthread_mutex_t lock;
	struct rpc_backchannel *conn; /* changed under the lock */
	bool aborted;		      /* under the lock */

	struct nfs4_remote_session session;
	bool has_session; /* over the present connection */
	enum step step;
	struct rpc_callback call;
	struct nfs4_remote_read *read; /* NULL: none is under way */
};

struct nfs4_remote *nfs4_remote_new(const struct rpc_dialer *dialer,
				    const struct nfs4_remote_file *file, unsigned timeout)
{
	struct nfs4_remote *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->dialer = *dialer;
	r->file = *file;
	r->file.route.reserved = true;
	r->file.route.reply_max = READ_MAX + NFS4_REMOTE_HEAD;
	r->timeout_ns = timeout * RN_NS_PER_SECOND;
	randombytes_buf(&r->owner, sizeof(r->owner));
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

size_t nfs4_remote_size(void)
{
	return sizeof(struct nfs4_remote) + rpc_backchannel_size();
}

const struct nfs4_remote_file *nfs4_remote_file(const struct nfs4_remote *r)
{
	return &r->file;
}

static void nfs4_remote_drop_conn(struct nfs4_remote *r)
{
	struct rpc_backchannel *conn;

	pthread_mutex_lock(&r->lock);
	conn = r->conn;
	r->conn = NULL;
	pthread_mutex_unlock(&r->lock);
	r->has_session = false;
	if (!conn)
		return;
	rpc_backchannel_hang_up(conn);
	rpc_backchannel_put(conn);
}

static void nfs4_remote_destroy(struct nfs4_remote *r)
{
	nfs4_remote_drop_conn(r);
	pthread_mutex_destroy(&r->lock);
	sodium_memzero(r, sizeof(*r)); /* the stateid is a secret */
	free(r);
}

void nfs4_remote_abort(struct nfs4_remote *r)
{
	pthread_mutex_lock(&r->lock);
	r->aborted = true;
	if (r->conn)
		rpc_backchannel_ref(r->conn);
	struct rpc_backchannel *conn = r->conn;

	pthread_mutex_unlock(&r->lock);
	if (!conn)
		return;
	rpc_backchannel_hang_up(conn);
	rpc_backchannel_put(conn);
}

/* Ends the read. The connection stays only after a success, or if the server wants to be asked
 * again. */
static void nfs4_remote_finish(struct nfs4_remote *r, int rc)
{
	struct nfs4_remote_read *rd = r->read;

	if (rc != 0 && rc != -RN_ELATER)
		nfs4_remote_drop_conn(r);
	r->read = NULL;
	rd->done(rd, rc);
}

static uint32_t read_size(const struct nfs4_remote *r)
{
	uint32_t most = rn_min(READ_MAX, r->session.max_response - NFS4_REMOTE_HEAD);

	return rn_min(most, r->read->count);
}

static void nfs4_remote_encode(struct nfs4_remote *r, struct xdr_out *x)
{
	struct nfs4_remote_session *s = &r->session;
	struct nfs4_remote_range range;

	switch (r->step) {
	case STEP_EXCHANGE_ID:
		nfs4_remote_put_exchange_id(x, &r->owner);
		break;
	case STEP_CREATE_SESSION:
		nfs4_remote_put_create_session(x, s, READ_MAX + NFS4_REMOTE_HEAD);
		break;
	case STEP_READ:
		s->seqid++;
		range = (struct nfs4_remote_range){ r->read->offset, read_size(r) };
		nfs4_remote_put_read(x, s, &r->file.fh, &r->file.sid, &range);
		break;
	case STEP_BYE_SESSION:
		nfs4_remote_put_destroy_session(x, s);
		break;
	case STEP_BYE_CLIENT:
		nfs4_remote_put_destroy_clientid(x, s);
		break;
	}
}

static void nfs4_remote_answered(struct rpc_callback *cb, int rc, struct xdr_in *results);

/* Sends the call of a step. 0: nfs4_remote_answered() follows, or has been called: r must not be touched. */
static int nfs4_remote_send_call(struct nfs4_remote *r, enum step step)
{
	uint8_t msg[RPC_CALLBACK_SIZE];
	struct rpc_backchannel *conn;
	struct xdr_out x;
	int rc;

	r->step = step;
	r->call.done = nfs4_remote_answered;
	r->call.due_ns = rn_now_ns() + r->timeout_ns;
	xdr_out_init(&x, msg, sizeof(msg));
	nfs4_remote_encode(r, &x);
	if (x.overflow)
		return -EPROTO;
	conn = r->conn;
	rpc_backchannel_ref(conn);
	rc = rpc_backchannel_call(conn, &r->call, msg, (uint32_t)x.used);
	rpc_backchannel_put(conn);
	return rc == -RN_EFULL ? -RN_ELATER : rc;
}

/* Error of a call that the server has answered with that status. */
static int error_of(int status)
{
	switch (status) {
	case -EPROTO:
		return -EPROTO;
	case NFS4ERR_DELAY:
	case NFS4ERR_GRACE:
		return -RN_ELATER;
	case NFS4ERR_BADSESSION:
	case NFS4ERR_DEADSESSION:
	case NFS4ERR_STALE_CLIENTID:
		return -ENOTCONN; /* the server has restarted, or has forgotten this client */
	default:
		return -EACCES;
	}
}

static int take_results(struct nfs4_remote *r, struct xdr_in *results)
{
	struct nfs4_remote_read *rd = r->read;
	int status;

	if (r->step == STEP_EXCHANGE_ID)
		status = nfs4_remote_get_exchange_id(results, &r->session);
	else if (r->step == STEP_CREATE_SESSION)
		status = nfs4_remote_get_create_session(results, &r->session);
	else
		status = nfs4_remote_get_read(results, &r->session, rd->to, read_size(r), &rd->got,
					      &rd->eof);
	return status == NFS4_OK ? 0 : error_of(status);
}

/* The next step after one that has succeeded. 0: it is under way, or the read has ended. */
static int nfs4_remote_go_on(struct nfs4_remote *r)
{
	if (r->step == STEP_EXCHANGE_ID)
		return nfs4_remote_send_call(r, STEP_CREATE_SESSION);
	if (r->step == STEP_CREATE_SESSION) {
		r->has_session = true;
		return nfs4_remote_send_call(r, STEP_READ);
	}
	r->file.served = true;
	nfs4_remote_finish(r, 0);
	return 0;
}

/* The server need not answer the good-bye. */
static void say_good_bye(struct nfs4_remote *r, int rc)
{
	if (rc != 0 || r->step == STEP_BYE_CLIENT || nfs4_remote_send_call(r, STEP_BYE_CLIENT) != 0)
		nfs4_remote_destroy(r);
}

static void nfs4_remote_answered(struct rpc_callback *cb, int rc, struct xdr_in *results)
{
	struct nfs4_remote *r = rn_container_of(cb, struct nfs4_remote, call);

	if (r->step == STEP_BYE_SESSION || r->step == STEP_BYE_CLIENT) {
		say_good_bye(r, rc);
		return;
	}
	if (rc == -EOPNOTSUPP)
		rc = -EACCES;
	if (rc == 0)
		rc = take_results(r, results);
	if (rc == 0)
		rc = nfs4_remote_go_on(r);
	if (rc != 0)
		nfs4_remote_finish(r, rc);
}

/* Makes a connection if there is none. */
static int connect_to(struct nfs4_remote *r)
{
	struct rpc_backchannel *conn = NULL;
	bool aborted;
	int rc;

	if (r->conn && rpc_backchannel_is_open(r->conn))
		return 0;
	nfs4_remote_drop_conn(r);
	rc = r->dialer.dial(r->dialer.ctx, &r->file.route, &conn);
	if (rc != 0)
		return rc == -RN_EFULL ? -RN_ELATER : -ENOTCONN;
	pthread_mutex_lock(&r->lock);
	aborted = r->aborted;
	r->conn = conn;
	pthread_mutex_unlock(&r->lock);
	return aborted ? -ECANCELED : 0;
}

void nfs4_remote_read(struct nfs4_remote *r, struct nfs4_remote_read *rd)
{
	int rc;

	r->read = rd;
	rd->got = 0;
	rd->eof = false;
	rc = connect_to(r);
	if (rc == 0)
		rc = nfs4_remote_send_call(r, r->has_session ? STEP_READ : STEP_EXCHANGE_ID);
	if (rc != 0)
		nfs4_remote_finish(r, rc);
}

void nfs4_remote_free(struct nfs4_remote *r)
{
	if (!r)
		return;
	if (!r->has_session || nfs4_remote_send_call(r, STEP_BYE_SESSION) != 0)
		nfs4_remote_destroy(r);
}
