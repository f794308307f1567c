/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC with TLS (RFC 9289): a TCP server with its threads, and clients that ask for TLS, shake hands, call, and break off,
 * by steps of eight octets. Octets go out in pieces of any size, bent and cut. A call is served under the protection
 * that it was sent with; calls that anybody could have put on the wire are never served; nothing plain comes after
 * STARTTLS; sessions leave no memory behind.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/client.h"
#include "tests/fuzz/tls/certs.h"
#include "tests/fuzz/tls/peer.h"
#include "tests/unit/rpc_fake.h"
#include "transport/event_loop.h"
#include "transport/tcp/tcp_server.h"
#include "transport/tls/tls.h"

#define STEP 8u
#define STEPS_MAX 40u
#define PEERS 3u
#define SESSIONS 16u /* closed ones may still be there */
#define BRIEF_MS 20  /* wait for a peer that may get no answer */
#define REKEYS 8u    /* more without data end a connection */

static struct {
	struct fake fake;
	struct rn_budget tls_budget;
	struct ev_loop *loop;
	struct rpc_clients *clients;
	struct tls *tls;
	struct tcp_server *tcp;
	struct sockaddr_storage address;
	struct cert server, client, stranger;
	SSL_CTX *ctx;
	struct peer peers[PEERS];
	unsigned rekeys[PEERS];
	uint32_t nr;
} w;

static const struct peer_way plainly = { .piece = PEER_MAX };

/* Bytes that sessions have. */
static size_t tls_used(void)
{
	struct tls_stats n;

	tls_stats(w.tls, &n);
	return w.tls_budget.used - w.tls_budget.max / TLS_PART + n.aside;
}

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* On the event thread: each call that was taken for one. */
static void submit(void *ctx, struct rpc_request *req)
{
	const enum rpc_protection protection = rpc_conn_protection(req->conn);
	const uint32_t xid = req->seg[0].len >= 4 ? word_at(req->seg[0].base) : 0;

	(void)ctx;
	if (xid >> 16 == PEER_MAGIC) {
		const unsigned kind = xid >> 12 & 15;

		if (kind == XID_FORBIDDEN)
			peer_finding("a call is served that anybody could have sent", xid,
				     protection);
		if ((kind == XID_PLAIN) != (protection == RPC_PLAIN) ||
		    (kind == XID_MUTUAL) != (protection == RPC_MUTUAL_TLS))
			peer_finding("a call is served under another protection", kind, protection);
	}
	req->worker = &w.fake.worker;
	fake_begin(&w.fake, req);
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void start_tls(void)
{
	struct tls_config cfg = { .certificate = w.server.cert_path,
				  .key = w.server.key_path,
				  .ca = w.client.cert_path,
				  .budget = &w.tls_budget };
	char why[TLS_WHY];

	rn_budget_init(&w.tls_budget, SESSIONS * TLS_SESSION_BYTES);
	if (tls_new(&cfg, &w.tls, why) < 0)
		must(false, why);
}

static void start_server(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct tcp_config cfg = { .loops = &w.loop,
				  .nloops = 1,
				  .executor = { submit, NULL },
				  .max_record = 1u << 20,
				  .max_connections = 100,
				  .max_requests = 16 };

	must(ev_loop_new("loop", NULL, &w.loop) == 0, "no event thread");
	w.clients = rpc_clients_new();
	must(w.clients, "no memory");
	cfg.clients = w.clients;
	cfg.pool = w.fake.pool;
	cfg.budget = &w.fake.budget;
	cfg.tls = w.tls;
	must(tcp_server_new(&cfg, &w.tcp) == 0 &&
		     tcp_server_listen(w.tcp, (const struct sockaddr *)&to, sizeof(to),
				       &w.address) == 0,
	     "no server");
}

static void set_up(void)
{
	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	fake_init(&w.fake, 0);
	cert_make(&w.server, "server");
	cert_make(&w.client, "client");
	cert_make(&w.stranger, "stranger");
	start_tls();
	start_server();
	w.ctx = SSL_CTX_new(TLS_client_method());
	must(w.ctx, "no TLS");
}

/* A client's session; with a certificate, protocols and versions as the bits say. */
static SSL *make_ssl(uint8_t bits)
{
	static const uint8_t sunrpc[] = { 6, 's', 'u', 'n', 'r', 'p', 'c' };
	static const uint8_t other[] = { 2, 'h', '2' };
	const struct cert *c = (bits & 3) == 1 ? &w.client : (bits & 3) == 2 ? &w.stranger : NULL;
	SSL *ssl = SSL_new(w.ctx);

	must(ssl, "no memory");
	if (c)
		must(SSL_use_certificate(ssl, c->x509) == 1 && SSL_use_PrivateKey(ssl, c->key) == 1,
		     "certificate");
	if ((bits >> 2 & 3) == 1)
		SSL_set_alpn_protos(ssl, sunrpc, sizeof(sunrpc));
	if ((bits >> 2 & 3) == 2)
		SSL_set_alpn_protos(ssl, other, sizeof(other));
	if ((bits >> 4 & 7) == 7)
		SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
	return ssl;
}

static size_t put_word(uint8_t *to, size_t at, uint32_t v)
{
	v = htonl(v);
	memcpy(to + at, &v, sizeof(v));
	return at + 4;
}

static uint32_t next_xid(enum xid_kind kind)
{
	return PEER_MAGIC << 16 | (uint32_t)kind << 12 | (w.nr++ & 0xfff);
}

/* A call's record. flavor: of the credential, whose body has cred_len octets. */
static size_t make_call(uint8_t *to, uint32_t xid, uint32_t proc, uint32_t flavor, size_t cred_len,
			size_t args)
{
	size_t at = put_word(to, 4, xid);

	at = put_word(to, at, RPC_CALL);
	at = put_word(to, at, RPC_VERSION);
	at = put_word(to, at, FAKE_PROG);
	at = put_word(to, at, 4);
	at = put_word(to, at, proc);
	at = put_word(to, at, flavor);
	at = put_word(to, at, (uint32_t)cred_len);
	memset(to + at, 0, cred_len);
	at = put_word(to, at + cred_len, RPC_AUTH_NONE);
	at = put_word(to, at, 0);
	if (proc == FAKE_STORE) {
		at = put_word(to, at, (uint32_t)args);
		memset(to + at, 'd', args);
		at += args;
	} else if (proc != FAKE_NULL) {
		at = put_word(to, at, (uint32_t)args);
	}
	put_word(to, 0, 0x80000000u | (uint32_t)(at - 4));
	return at;
}

/* The server's word that it has closed: fine only if the peer asked for it. */
static void check_end(const struct peer *p, const char *what)
{
	if (!p->tainted)
		peer_finding(what, p->state, tls_used());
}

/* Waits for the answer to a call. True: it came, and is p->stream + 4. */
static bool await_reply(struct peer *p, uint32_t xid)
{
	while (peer_reply(p) == 0) {
		if (!peer_take(p, p->tainted ? BRIEF_MS : PEER_PATIENCE) && p->tainted)
			return false;
		if (p->ended) {
			check_end(p, "a connection ends with a call unanswered");
			return false;
		}
	}
	if (word_at(p->stream + 4) != xid && !p->tainted)
		peer_finding("an answer to another call", word_at(p->stream + 4), xid);
	return true;
}

static struct peer_way way_of(const uint8_t *s)
{
	static const uint16_t pieces[8] = { 65535, 1, 2, 3, 5, 17, 100, 1400 };

	return (struct peer_way){ .piece = pieces[s[3] & 7],
				  .flip = (s[4] & 15) == 1,
				  .stop = (s[4] & 15) == 2,
				  .where = (size_t)s[5] * 256 + s[6],
				  .bit = s[7] };
}

static void run_open(const uint8_t *s, struct peer *p)
{
	const uint8_t bits = s[2];

	if (p->state != PEER_CLOSED)
		return;
	peer_open(p, &w.address, make_ssl(bits));
	p->refused = (bits & 3) == 2 || (bits >> 2 & 3) == 2 || (bits >> 4 & 7) == 7;
	p->mutual = (bits & 3) == 1;
	w.rekeys[p - w.peers] = 0;
}

/* A call that is bent has no xid that tells anything, since that may be bent too. */
static uint32_t xid_of(struct peer *p, const struct peer_way *way)
{
	if (p->state == PEER_PLAIN)
		return way->flip || way->stop ? 0 : next_xid(XID_PLAIN);
	return next_xid(XID_FORBIDDEN);
}

/* A plain call: served before the question for TLS, and never after it. */
static void run_plain(const uint8_t *s, struct peer *p)
{
	static const uint8_t procs[4] = { FAKE_NULL, FAKE_COUNT, FAKE_STORE, FAKE_BULK };
	const struct peer_way way = way_of(s);
	const uint32_t xid = xid_of(p, &way);
	uint8_t call[8192];
	const size_t len = make_call(call, xid, procs[s[2] & 3], RPC_AUTH_NONE, 0, s[2] / 4u * 64u);

	if (p->state == PEER_CLOSED)
		return;
	p->tainted |= p->state != PEER_PLAIN;
	peer_send(p, call, len, &way);
	if (p->state == PEER_PLAIN && await_reply(p, xid))
		peer_reply_done(p);
}

/* The answer to the question: after STARTTLS nothing plain may come. */
static void take_starttls(struct peer *p, uint32_t xid)
{
	static const uint8_t verifier[] = { 0,	 0,   0,   0,	0,   0,	  0,   8,
					    'S', 'T', 'A', 'R', 'T', 'T', 'L', 'S' };

	if (!await_reply(p, xid))
		return;
	if (peer_reply(p) < 32 || memcmp(p->stream + 4 + 12, verifier, sizeof(verifier)) != 0) {
		if (!p->tainted)
			peer_finding("TLS is not offered", peer_reply(p), xid);
		return;
	}
	peer_reply_done(p);
	p->state = PEER_SHAKING;
	memcpy(p->record, p->stream, p->stream_len);
	p->record_len = p->stream_len;
	p->stream_len = 0;
}

enum probe { PROBE_ALONE, PROBE_BEHIND, PROBE_CALL, PROBE_HELLO, PROBE_PROC, PROBE_BODY };

/* The question for TLS and what goes with it, in one piece; its length. */
static size_t make_probe(struct peer *p, enum probe how, uint32_t first, uint32_t xid, uint8_t *out,
			 size_t size)
{
	size_t len = 0;

	if (how == PROBE_BEHIND)
		len = make_call(out, first, FAKE_COUNT, RPC_AUTH_NONE, 0, 1);
	len += make_call(out + len, xid, how == PROBE_PROC ? FAKE_COUNT : FAKE_NULL, RPC_AUTH_TLS,
			 how == PROBE_BODY ? 4 : 0, 0);
	if (how == PROBE_CALL)
		len += make_call(out + len, p->tainted ? 0 : next_xid(XID_FORBIDDEN), FAKE_COUNT,
				 RPC_AUTH_NONE, 0, 1);
	if (how == PROBE_HELLO && SSL_do_handshake(p->ssl) < 1) {
		const int n = BIO_read(p->out, out + len, (int)(size - len));

		len += n > 0 ? (size_t)n : 0;
	}
	return len;
}

static void await_end(struct peer *p)
{
	while (!p->ended)
		peer_take(p, PEER_PATIENCE);
}

/* Octets right behind the question end the connection. Somebody else may have put a call there, and the client goes on. */
static void go_on(struct peer *p, enum probe how, uint32_t xid)
{
	while (how == PROBE_CALL && !p->ended && peer_reply(p) == 0)
		peer_take(p, PEER_PATIENCE);
	if (how == PROBE_CALL)
		take_starttls(p, xid);
	else
		await_end(p);
}

static void run_probe(const uint8_t *s, struct peer *p)
{
	const enum probe how = s[2] % 6u;
	struct peer_way way = way_of(s);
	const uint32_t first = next_xid(XID_PLAIN), xid = next_xid(XID_PLAIN);
	const bool tainted = p->tainted;
	uint8_t out[8192];

	if (p->state != PEER_PLAIN || p->ended)
		return;
	way.flip = false;
	/* In pieces, the rest may come after the answer, as a part of the handshake. */
	if (how == PROBE_CALL || how == PROBE_HELLO)
		way = plainly;
	const size_t len = make_probe(p, how, first, xid, out, sizeof(out));

	peer_send(p, out, len, &way);
	if (how == PROBE_CALL || how == PROBE_HELLO) {
		p->tainted = true;
		if (!tainted)
			go_on(p, how, xid);
		return;
	}
	if (how == PROBE_BEHIND && await_reply(p, first))
		peer_reply_done(p);
	if (how != PROBE_PROC && how != PROBE_BODY)
		take_starttls(p, xid);
	else if (await_reply(p, xid))
		peer_reply_done(p);
}

/* One flight of the handshake. False: it is over. */
static bool fly(struct peer *p, const struct peer_way *way)
{
	const int rc = SSL_do_handshake(p->ssl);
	const bool more = rc != 1 && SSL_get_error(p->ssl, rc) == SSL_ERROR_WANT_READ;

	peer_flush(p, way);
	if (rc == 1)
		p->state = PEER_TLS;
	else if (!more)
		p->tainted = true;
	return more;
}

static void run_handshake(const uint8_t *s, struct peer *p, bool whole)
{
	struct peer_way way = way_of(s);

	if (p->state != PEER_SHAKING || p->ended)
		return;
	p->tainted |= p->refused;
	while (fly(p, &way) && whole) {
		if (!peer_take(p, p->tainted ? BRIEF_MS : PEER_PATIENCE)) {
			if (p->ended)
				check_end(p, "a handshake is refused");
			return;
		}
		way.flip = way.stop = false;
	}
}

/* A call under TLS. Bent or cut, it must not be served, nor that of a peer whose handshake must fail. */
static void run_call(const uint8_t *s, struct peer *p)
{
	static const uint8_t procs[4] = { FAKE_NULL, FAKE_COUNT, FAKE_STORE, FAKE_BULK };
	const struct peer_way way = way_of(s);
	const bool bad = p->refused || way.flip || way.stop, probe = s[2] >= 0xf0;
	const uint32_t xid = next_xid(bad ? XID_FORBIDDEN : p->mutual ? XID_MUTUAL : XID_TLS);
	uint8_t call[8192];
	const size_t len = make_call(call, xid, probe ? FAKE_NULL : procs[s[2] & 3],
				     probe ? RPC_AUTH_TLS : RPC_AUTH_NONE, 0, s[2] / 4u * 64u);

	if (p->state != PEER_TLS || p->ended || SSL_write(p->ssl, call, (int)len) != (int)len)
		return;
	peer_flush(p, &way);
	if (!await_reply(p, xid))
		return;
	if (probe && word_at(p->stream + 4 + 8) != RPC_MSG_DENIED && !p->tainted)
		peer_finding("AUTH_TLS within TLS is not denied", xid, 0);
	w.rekeys[p - w.peers] = 0;
	peer_reply_done(p);
}

static void run_junk(const uint8_t *s, struct peer *p)
{
	const struct peer_way way = way_of(s);
	uint8_t junk[256];

	if (p->state == PEER_CLOSED)
		return;
	for (unsigned i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(s[5 + i % 3] + i / 3);
	p->tainted = true;
	peer_send(p, junk, s[2], &way);
	peer_take(p, 0);
}

static void run_rekey(const uint8_t *s, struct peer *p)
{
	const struct peer_way way = way_of(s);

	if (p->state != PEER_TLS || p->ended)
		return;
	SSL_key_update(p->ssl, s[2] & 1 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
	SSL_do_handshake(p->ssl);
	if (++w.rekeys[p - w.peers] > REKEYS)
		p->tainted = true;
	peer_flush(p, &way);
}

static void run_end(const uint8_t *s, struct peer *p)
{
	const struct linger reset = { 1, 0 };

	if (p->state == PEER_CLOSED)
		return;
	if ((s[2] & 3) == 0 && p->state == PEER_TLS && !p->tainted) {
		SSL_shutdown(p->ssl);
		peer_flush(p, &plainly);
		await_end(p);
	} else if ((s[2] & 3) == 1) {
		shutdown(p->fd, SHUT_WR);
		await_end(p);
	} else if ((s[2] & 3) == 2) {
		setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	peer_close(p);
}

static void run_step(const uint8_t *s)
{
	struct peer *p = &w.peers[s[1] % PEERS];

	switch (s[0] % 10) {
	case 0:
		run_open(s, p);
		break;
	case 1:
		run_plain(s, p);
		break;
	case 2:
		run_probe(s, p);
		break;
	case 3:
	case 4:
		run_handshake(s, p, s[0] % 10 == 3);
		break;
	case 7:
		run_junk(s, p);
		break;
	case 8:
		run_rekey(s, p);
		break;
	case 9:
		run_end(s, p);
		break;
	default:
		run_call(s, p);
	}
}

/* Everything is given back when the peers have gone. */
static void settle(void)
{
	struct tcp_stats tcp;
	struct tls_stats tls;

	for (unsigned i = 0; i < PEERS; i++)
		peer_close(&w.peers[i]);
	for (unsigned i = 0; i < 600000; i++) {
		tcp_server_stats(w.tcp, &tcp);
		tls_stats(w.tls, &tls);
		if (tcp.connections == 0 && tls.under_way == 0 && tls_used() == 0)
			return;
		usleep(100);
	}
	peer_finding("connections, handshakes or their memory are left",
		     tcp.connections + tls.under_way, tls_used());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < STEP)
		return 0;
	if (!w.tcp)
		set_up();
	for (unsigned i = 0; i < STEPS_MAX && size >= STEP; i++) {
		run_step(data);
		data += STEP;
		size -= STEP;
	}
	settle();
	return 0;
}
