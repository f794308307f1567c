/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From plain to TLS. The client asks by a NULL call with AUTH_TLS. The answer is sent behind all earlier replies;
 * until then nothing is read, and bytes that came along with the call end the connection, since anybody could have
 * put them there. The handshake's steps run on the thread of transport/tls/, which has the session meanwhile.
 * Afterwards the connection uses another table of functions for its bytes, and all else stays as it was.
 */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/util.h"
#include "rpc/message.h"

#define PROBE_SIZE 40u	 /* a call's header, with an empty credential and verifier */
#define SHAKE_SECONDS 10 /* from the question to the end of the handshake */

static ssize_t recv_plain(struct tcp_conn *c, uint8_t *to, size_t size)
{
	const ssize_t got = recv(c->fd, to, size, MSG_DONTWAIT);

	return got < 0 ? -errno : got;
}

static ssize_t recv_tls(struct tcp_conn *c, uint8_t *to, size_t size)
{
	return tls_session_recv(c->shake.session, to, size);
}

/* Bulk items are in memory: rpc_reply_takes_pipes() says no. */
static ssize_t send_tls(struct tcp_conn *c, const struct tcp_parcel *p)
{
	return p->pipe ? -EPIPE : tls_session_send(c->shake.session, p->iov, p->niov);
}

static bool pending_tls(struct tcp_conn *c)
{
	return tls_session_pending(c->shake.session);
}

static void end_tls(struct tcp_conn *c)
{
	tls_session_close(c->shake.session);
}

const struct tcp_io tcp_io_plain = { .recv = recv_plain, .send = tcp_send_plain };

static const struct tcp_io io_tls = {
	.recv = recv_tls,
	.send = send_tls,
	.pending = pending_tls,
	.end = end_tls,
	.held = TLS_HELD_BYTES,
};

/* The kernel encrypts. */
static const struct tcp_io io_ktls = {
	.recv = recv_tls,
	.send = tcp_send_plain,
	.pending = pending_tls,
	.end = end_tls,
	.held = TLS_HELD_BYTES,
};

static uint32_t tcp_tls_call_word(const struct tcp_req *t, unsigned i)
{
	return rn_get32(t->head + (size_t)4 * i);
}

bool tcp_tls_is_probe(const struct tcp_conn *c, const struct tcp_req *t)
{
	if (!c->srv->cfg.tls || c->rpc.dialed || c->io != &tcp_io_plain || t->rpc->nseg != 1 ||
	    t->rpc->seg[0].len != PROBE_SIZE)
		return false;
	/* Behind the program and its version: NULL, the flavour, and nothing in the rest. */
	return tcp_tls_call_word(t, 1) == RPC_CALL && tcp_tls_call_word(t, 2) == RPC_VERSION &&
	       tcp_tls_call_word(t, 5) == 0 && tcp_tls_call_word(t, 6) == RPC_AUTH_TLS &&
	       tcp_tls_call_word(t, 7) == 0 && tcp_tls_call_word(t, 8) == RPC_AUTH_NONE &&
	       tcp_tls_call_word(t, 9) == 0;
}

/* True if the answer to an earlier call is not out yet: the task runs then. */
static bool owes(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->lock);
	const bool owing = c->inflight || c->sending;

	c->post_on_reply = owing;
	pthread_mutex_unlock(&c->lock);
	return owing;
}

static void tcp_tls_send_answer(struct tcp_conn *c)
{
	struct tcp_req *t = c->asked;

	c->asked = NULL;
	rpc_put_starttls(&t->rpc->out, tcp_tls_call_word(t, 0));
	t->rpc->conn = &c->rpc;
	rpc_conn_ref(&c->rpc);
	pthread_mutex_lock(&c->lock);
	c->inflight++;
	c->post_on_reply = true; /* the task runs when the answer is out */
	pthread_mutex_unlock(&c->lock);
	tcp_reply(t->rpc);
}

/* A client sends its first octets of TLS as soon as it has the answer, and takes what comes behind it for TLS. So the
 * answer waits for those to earlier calls, which are plain. */
void tcp_tls_answer(struct tcp_conn *c, struct tcp_req *t)
{
	c->pause = TCP_WAIT_TLS;
	c->shake_ns = c->useful_ns = rn_now_ns();
	c->asked = t;
	tcp_count(c->srv, calls, 1);
	tcp_conn_worked(c, TURN_WORK);
	if (!owes(c))
		tcp_tls_send_answer(c);
}

/* On the thread of handshakes, but for a step that was not queued. */
static void stepped(struct tls_shake *s, enum tls_result result)
{
	struct tcp_conn *c = rn_container_of(s, struct tcp_conn, shake);

	pthread_mutex_lock(&c->lock);
	c->shaken = result;
	c->stepped = true;
	if (!c->closed)
		tcp_conn_post_locked(c);
	pthread_mutex_unlock(&c->lock);
	rpc_conn_put(&c->rpc);
}

static void await_input(struct tcp_conn *c)
{
	if (!c->loop->quiesced && event_add(&c->rd, NULL) < 0)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory for an event");
}

static void tcp_tls_begin(struct tcp_conn *c)
{
	if (c->pending_len > 0) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "bytes behind the question for TLS");
		return;
	}
	c->shake.job.host = c->rpc.client->key;
	c->shake.job.admitted = tcp_conn_admission(c) == RPC_ADMITTED;
	c->shake.fd = c->fd;
	c->shake.aside = &c->rpc.client->tls_aside;
	c->shake.done = stepped;
	if (tls_shake_begin(c->srv->cfg.tls, &c->shake) < 0) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "too many TLS handshakes, or no memory");
		return;
	}
	c->shakes = true;
	c->pause = TCP_SHAKING;
	await_input(c);
}

void tcp_tls_step(struct tcp_conn *c)
{
	/* The thread has the session, or the turn is for something else. */
	if (!event_pending(&c->rd, EV_READ, NULL))
		return;
	event_del(&c->rd);
	tcp_conn_worked(c, TURN_WORK);
	rpc_conn_ref(&c->rpc);
	tls_shake_step(c->srv->cfg.tls, &c->shake);
}

static void end_handshake(struct tcp_conn *c, enum tls_result result)
{
	c->shakes = false;
	tls_shake_end(c->srv->cfg.tls, &c->shake, result);
}

/* Reads and sends under TLS from now on. */
static void protect(struct tcp_conn *c)
{
	const struct tls_session *s = c->shake.session;
	const bool ktls = tls_session_facts(s)->ktls;

	end_handshake(c, TLS_DONE);
	atomic_store_explicit(&c->rpc.tls, tls_session_facts(s), memory_order_release);
	atomic_store_explicit(&c->rpc.protection,
			      tls_session_facts(s)->certificate ? RPC_MUTUAL_TLS : RPC_TLS,
			      memory_order_relaxed);
	pthread_mutex_lock(&c->lock);
	c->io = ktls ? &io_ktls : &io_tls;
	c->silent = false;
	pthread_mutex_unlock(&c->lock);
	c->pause = TCP_GOING;
	c->active_ns = rn_now_ns();
	tcp_write_held(c);
	await_input(c);
	tcp_read_pending(c);
}

static bool tcp_tls_at_rest(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->lock);
	const bool rest = !c->inflight && !c->sending;

	c->silent = rest;
	c->post_on_reply = !rest;
	pthread_mutex_unlock(&c->lock);
	return rest;
}

void tcp_tls_go_on(struct tcp_conn *c)
{
	if (c->loop->quiesced)
		return;
	if (c->pause == TCP_WAIT_TLS && c->asked) {
		if (!owes(c))
			tcp_tls_send_answer(c);
		return;
	}
	if (c->pause == TCP_WAIT_TLS) {
		if (tcp_tls_at_rest(c))
			tcp_tls_begin(c);
		return;
	}
	pthread_mutex_lock(&c->lock);
	const bool news = c->stepped;
	const enum tls_result result = c->shaken;

	c->stepped = false;
	pthread_mutex_unlock(&c->lock);
	if (!news)
		return;
	if (result == TLS_DONE) {
		protect(c);
	} else if (result == TLS_FAILED) {
		end_handshake(c, TLS_FAILED);
		tcp_conn_close(c, TCP_CLOSE_ERROR, "the TLS handshake failed");
	} else {
		await_input(c);
	}
}

bool tcp_tls_is_late(const struct tcp_conn *c, uint64_t now)
{
	return (c->pause == TCP_WAIT_TLS || c->pause == TCP_SHAKING) &&
	       now > c->shake_ns + SHAKE_SECONDS * RN_NS_PER_SECOND;
}

void tcp_tls_free(struct tcp_conn *c)
{
	if (c->shakes)
		end_handshake(c, TLS_FAILED);
	tls_session_free(c->srv->cfg.tls, c->shake.session);
}
