/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/tcp_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/reply.h"
#include "tests/fuzz/session/sealed.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/world.h"

#define OUT_MAX (8u << 20)
#define READ_MORE (256u << 10)
#define REPLY_MAX (3u << 20) /* above the server's longest reply */
#define SLOW_BYTES 7u	     /* octets sent at a time */
#define SLOW_TOTAL 200u	     /* octets of a record sent that slowly */
/* octets waiting before them sent that slowly; more would take minutes */
#define SLOW_AHEAD 400u
#define REKEYS 8u   /* more without data between them end a connection */
#define SPAN_MS 700 /* with a margin: the server measures over a second and 32 KiB */
#define SPAN_BYTES (48u << 10)
/* a call takes at least a record mark, an xid and a type */
#define CALLS_AT_ONCE (SS_DATA_MAX / 12)

static void on_call(void *ctx, const struct ss_call *call)
{
	struct ss_tcp *c = ctx;
	struct ss_call mine = *call;

	mine.from = c->from;
	mine.claims = c->about.claims;
	mine.client = c->about.client;
	mine.tls = c->tls.state == SS_TLS_UP;
	if (mine.sealed)
		mine.claims = ss_gss_claims(mine.xid);
	if (mine.asks_tls) {
		c->tls.state = SS_TLS_ASKED;
		c->tls.asked_xid = mine.xid;
	}
	/* ss_tcp_write() leaves enough room for all but degenerate raw bytes. */
	struct ss_debt *debt = ss_debts_add(&c->debts, &mine);

	if (!debt)
		c->lost_count = c->stream.doomed = true;
	else if (mine.sealed && ss_gss_may_drop(mine.xid))
		ss_debts_forgive(&c->debts, debt);
}

/* Network number as the exports of tree.c use it. */
static uint32_t network_of(uint8_t address)
{
	return 1u + (address >> 2 & 3);
}

enum ss_from ss_client_from(uint8_t address)
{
	static const enum ss_from of[] = { SS_FROM_ADMITTED, SS_FROM_READ_ONLY, SS_FROM_STRANGER,
					   SS_FROM_SQUASHED };

	return of[network_of(address) - 1];
}

struct sockaddr_in ss_client_address(uint8_t address)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x7f000000u | network_of(address) << 8 | (address & 3))
	};
}

static int start_connect(int fd, uint16_t port, uint8_t address)
{
	struct sockaddr_in from = ss_client_address(address);
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	return 0;
}

static void begin(struct ss_tcp *c, uint32_t max_record, struct ss_values *values)
{
	ss_stream_init(&c->stream, max_record, on_call, c);
	c->debts.n = c->debts.open = 0;
	ss_back_init(&c->back);
	c->values = values;
	c->out_len = c->slow_left = c->in_len = c->msg_len = 0;
	c->held = c->muted = c->was_muted = c->shut = c->ended = c->lost_count = false;
	c->about = (struct ss_call){ .claims = 0 };
	ss_tls_free(&c->tls);
	c->from = SS_FROM_ADMITTED;
	c->span_at = ss_now_ms();
	c->span_sent = 0;
}

int ss_tcp_open(struct ss_tcp *c, uint16_t port, uint8_t address, uint32_t max_record,
		struct ss_values *values)
{
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	int err = start_connect(c->fd, port, address);
	if (err) {
		close(c->fd);
		c->fd = -1;
		return err;
	}
	begin(c, max_record, values);
	c->from = ss_client_from(address);
	/*
	 * The server may close a stranger's connection for a long call, or to serve another host.
	 */
	c->was_muted = c->from == SS_FROM_STRANGER;
	return 0;
}

void ss_tcp_adopt(struct ss_tcp *c, int fd, struct ss_values *values)
{
	c->fd = fd;
	begin(c, SS_MAX_RECORD, values);
	c->was_muted = c->stream.called = true;
}

void ss_tcp_close(struct ss_tcp *c, bool reset)
{
	struct linger now = { .l_onoff = 1 };

	if (c->fd < 0)
		return;
	if (reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(c->fd);
	c->fd = -1;
	ss_tls_free(&c->tls);
}

void ss_tcp_free(struct ss_tcp *c)
{
	ss_tcp_close(c, true);
	free(c->out);
	free(c->in);
	c->out = c->in = NULL;
	c->out_cap = c->in_cap = 0;
}

static bool grow(uint8_t **buf, size_t *cap, size_t need)
{
	if (need <= *cap)
		return true;
	size_t want = rn_min(2 * need, OUT_MAX);
	uint8_t *p = realloc(*buf, want < need ? need : want);
	if (!p)
		return false;
	*buf = p;
	*cap = want < need ? need : want;
	return true;
}

static void append(struct ss_tcp *c, const uint8_t *p, size_t n)
{
	if (!grow(&c->out, &c->out_cap, c->out_len + n))
		return;
	memcpy(c->out + c->out_len, p, n);
	c->out_len += n;
}

/* Puts on the stream what the TLS library has for the server. */
static void flush_tls(struct ss_tcp *c)
{
	uint8_t some[4096];
	size_t n;

	while ((n = ss_tls_out(&c->tls, some, sizeof(some))) > 0)
		append(c, some, n);
}

/* Octets on a connection that has asked for TLS. Those that are not protected are no calls, and the server may close. */
static bool write_tls(struct ss_tcp *c, const uint8_t *p, size_t n)
{
	if (c->tls.state != SS_TLS_UP) {
		c->was_muted = true;
		append(c, p, n);
		return true;
	}
	if (!ss_tls_write(&c->tls, p, n))
		return false;
	flush_tls(c);
	if (!ss_tls_is_refused(c->tls.manners) && !c->tls.spoilt)
		ss_stream_feed(&c->stream, p, n);
	return true;
}

bool ss_tcp_write(struct ss_tcp *c, const uint8_t *p, size_t n)
{
	if (c->fd < 0 || c->shut || c->ended || c->out_len + n > OUT_MAX ||
	    c->debts.n + CALLS_AT_ONCE > SS_DEBTS_MAX)
		return false;
	if (c->tls.state != SS_TLS_PLAIN)
		return write_tls(c, p, n);
	append(c, p, n);
	ss_stream_feed(&c->stream, p, n);
	c->was_muted |= c->stream.behind;
	return true;
}

static bool write_fragment(struct ss_tcp *c, const uint8_t *p, size_t n, bool last)
{
	uint8_t mark[4];

	ss_set_word(mark, (uint32_t)n | (last ? 0x80000000u : 0));
	return ss_tcp_write(c, mark, sizeof(mark)) && ss_tcp_write(c, p, n);
}

bool ss_tcp_record(struct ss_tcp *c, const uint8_t *msg, size_t len, uint8_t how, uint8_t claims)
{
	unsigned cuts = how & SS_CUT_FRAGMENTS;
	size_t at = 0, before = c->out_len;
	bool ok = true;

	if (!ss_stream_partial(&c->stream) && !(how & SS_CUT_SHORT)) {
		c->about.claims = ss_claims_of(msg, len) | claims;
		c->about.client = ss_claims_client_in(msg, len);
	}
	for (unsigned i = 0; ok && i < cuts; i++) {
		size_t n = i & 1 ? i : (len - at) / (cuts + 1 - i);

		n = rn_min(n, len - at);
		ok = write_fragment(c, msg + at, n, false);
		at += n;
	}
	if (how & SS_CUT_SHORT) {
		uint8_t mark[4];

		ss_set_word(mark, (uint32_t)(len - at) | 0x80000000u);
		ok = ok && ss_tcp_write(c, mark, 4) &&
		     ss_tcp_write(c, msg + at, (len - at) - rn_min(len - at, 5));
	} else {
		ok = ok && write_fragment(c, msg + at, len - at, true);
	}
	c->about = (struct ss_call){ .claims = 0 };
	c->held = how & SS_CUT_HELD;
	if ((how & SS_CUT_SLOWLY) && before < SLOW_AHEAD)
		c->slow_left = before + rn_min(c->out_len - before, SLOW_TOTAL);
	return ok;
}

void ss_tcp_answer(struct ss_tcp *c, const uint8_t *msg, size_t len)
{
	write_fragment(c, msg, len, true);
}

void ss_tcp_shut(struct ss_tcp *c)
{
	c->held = false;
	/* The session has not been closed, which ends it at once. */
	c->was_muted |= c->tls.state == SS_TLS_UP;
	if (c->fd >= 0 && !c->shut && !c->out_len && shutdown(c->fd, SHUT_WR) < 0 && !c->ended)
		c->ended = true;
	c->shut = true;
}

short ss_tcp_events(const struct ss_tcp *c)
{
	if (c->fd < 0 || c->ended)
		return 0;
	return (short)((c->muted ? 0 : POLLIN) | (c->out_len && !c->held ? POLLOUT : 0));
}

/* The server has closed the connection; a finding unless it was allowed to. */
static void end(struct ss_tcp *c, const char *how)
{
	c->ended = true;
	c->out_len = 0;
	if (c->tls.state != SS_TLS_PLAIN && c->was_muted)
		ss_count(SS_N_TLS_ENDED);
	/* A handshake that stands still ends after a while. */
	if (c->tls.state == SS_TLS_SHAKING || c->tls.state == SS_TLS_BROKEN)
		return;
	if (c->stream.doomed || c->stream.stray || c->was_muted || ss_stream_partial(&c->stream))
		return;
	if ((c->shut && !c->debts.open) || ss_world_was_jammed())
		return;
	if (!c->shut)
		ss_finding("tcp: the server closed (%s) a connection on which only calls were sent",
			   how);
	if (c->debts.open)
		ss_finding("tcp: the server closed (%s) with %u calls unanswered, %zu octets of a "
			   "reply",
			   how, c->debts.open, c->in_len);
}

/* The answer to the question for TLS: RFC 9289 section 4.1. */
static void take_starttls(struct ss_tcp *c, const uint8_t *msg, size_t len)
{
	static const uint8_t rest[] = { 0, 0, 0,   1,	0,   0,	  0,   0,   0,	 0,   0, 0, 0, 0,
					0, 8, 'S', 'T', 'A', 'R', 'T', 'T', 'L', 'S', 0, 0, 0, 0 };

	if (len != sizeof(rest) + 4 || memcmp(msg + 4, rest, sizeof(rest)) != 0)
		ss_finding("tcp: TLS is not offered: %zu octets", len);
	ss_tls_begin(&c->tls);
	c->was_muted |= ss_tls_is_refused(c->tls.manners);
	if (c->tls.by_itself)
		ss_tls_fly(&c->tls);
	flush_tls(c);
}

static void take_reply(struct ss_tcp *c, const uint8_t *msg, size_t len)
{
	if (len >= 8 && ss_word(msg + 4) == 0) {
		const char *wrong = ss_back_take(&c->back, msg, len);

		if (wrong)
			ss_finding("tcp: a call of the server: %s", wrong);
		c->stream.called = true;
		return;
	}
	struct ss_debt *debt = len >= 4 ? ss_debts_pay(&c->debts, ss_word(msg)) : NULL;

	if (!debt && c->lost_count)
		return;
	if (!debt)
		ss_finding("tcp: a reply of %zu octets, xid %x, to no call", len,
			   len >= 4 ? ss_word(msg) : 0);
	if (c->tls.state == SS_TLS_ASKED && debt->call.xid == c->tls.asked_xid) {
		take_starttls(c, msg, len);
		return;
	}
	if (c->tls.state == SS_TLS_UP)
		ss_count(SS_N_TLS_CALLS);
	if (debt->call.prog == UINT32_MAX)
		return;
	const char *bad = ss_reply_check(&debt->call, msg, len, NULL, c->values);
	if (bad)
		ss_finding("tcp: reply to program %u version %u procedure %u: %s", debt->call.prog,
			   debt->call.vers, debt->call.proc, bad);
}

/* Octets that came together with STARTTLS: an alert, if those behind the question are no handshake. */
static void take_early(struct ss_tcp *c)
{
	const char *wrong = ss_tls_take(&c->tls, c->in, c->in_len);

	if (wrong)
		ss_finding("tcp: %s, %zu of them right behind it", wrong, c->in_len);
	c->in_len = 0;
	flush_tls(c);
}

/* Joins whole fragments to records. */
static void take_input(struct ss_tcp *c)
{
	size_t at = c->msg_len;

	while (c->in_len - at >= 4) {
		uint32_t mark = ss_word(c->in + at), n = mark & 0x7fffffff;

		if (n > REPLY_MAX || at + n > REPLY_MAX)
			ss_finding("tcp: a reply of %u octets or more", n);
		if (c->in_len - at - 4 < n)
			break;
		memmove(c->in + at, c->in + at + 4, c->in_len - at - 4);
		c->in_len -= 4;
		at += n;
		if (mark >> 31) {
			const bool asked = c->tls.state == SS_TLS_ASKED;

			take_reply(c, c->in, at);
			memmove(c->in, c->in + at, c->in_len - at);
			c->in_len -= at;
			at = 0;
			if (asked && c->tls.state != SS_TLS_ASKED && c->in_len > 0)
				take_early(c);
		}
	}
	c->msg_len = at;
}

/* When the handshake is over, what the client sends are calls again. */
static void take_calls_under_tls(struct ss_tcp *c)
{
	if (c->tls.state != SS_TLS_UP)
		return;
	c->stream.secure = true;
	c->stream.stopped = false;
}

/* Octets that came since STARTTLS. */
static void take_protected(struct ss_tcp *c, const uint8_t *p, size_t n)
{
	const char *wrong = ss_tls_take(&c->tls, p, n);
	size_t got = 1;

	if (wrong)
		ss_finding("tcp: %s", wrong);
	take_calls_under_tls(c);
	flush_tls(c);
	while (got > 0 && grow(&c->in, &c->in_cap, c->in_len + READ_MORE)) {
		got = ss_tls_read(&c->tls, c->in + c->in_len, READ_MORE);
		c->in_len += got;
		take_input(c);
	}
	flush_tls(c);
}

static bool read_some(struct ss_tcp *c)
{
	static uint8_t secret[READ_MORE];
	const bool plain = c->tls.state == SS_TLS_PLAIN || c->tls.state == SS_TLS_ASKED;

	if (!grow(&c->in, &c->in_cap, c->in_len + READ_MORE))
		return false;
	ssize_t got = recv(c->fd, plain ? c->in + c->in_len : secret, READ_MORE, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		end(c, got ? strerror(errno) : "end of stream");
		return true;
	}
	if (!plain) {
		take_protected(c, secret, (size_t)got);
		return true;
	}
	c->in_len += (size_t)got;
	take_input(c);
	return true;
}

static bool write_some(struct ss_tcp *c)
{
	size_t n = c->slow_left ? rn_min(SLOW_BYTES, c->out_len) : c->out_len;
	ssize_t put = send(c->fd, c->out, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (put < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (put < 0) {
		/* Replies that arrived before are read first, then recv() reports the end. */
		c->out_len = 0;
		return true;
	}
	c->out_len -= (size_t)put;
	c->span_sent += (size_t)put;
	c->slow_left -= rn_min(c->slow_left, (size_t)put);
	memmove(c->out, c->out + put, c->out_len);
	if (!c->out_len && c->shut && shutdown(c->fd, SHUT_WR) < 0)
		c->ended = true;
	return true;
}

bool ss_tcp_ready(struct ss_tcp *c, short events)
{
	bool moved = false;

	if (c->fd >= 0 && !c->ended && (events & (POLLIN | POLLHUP | POLLERR)) && !c->muted)
		moved = read_some(c);
	if (c->fd >= 0 && !c->ended && (events & POLLOUT))
		moved |= write_some(c);
	return moved;
}

bool ss_tcp_is_slow(struct ss_tcp *c, int64_t now_ms)
{
	bool in_record = c->fd >= 0 && !c->ended && (c->out_len || ss_stream_partial(&c->stream));
	bool slow = in_record && c->span_sent < SPAN_BYTES;

	if (in_record && now_ms - c->span_at < SPAN_MS)
		return false;
	c->span_at = now_ms;
	c->span_sent = 0;
	return slow;
}

bool ss_tcp_settled(const struct ss_tcp *c)
{
	if (c->fd < 0 || c->ended)
		return true;
	return !c->out_len && !c->debts.open && !c->shut && (!c->stream.doomed || c->stream.called);
}

static void ask(struct ss_tcp *c, uint8_t how, uint32_t xid)
{
	uint8_t msg[40] = { 0 };

	ss_set_word(msg, xid);
	ss_set_word(msg + 8, 2);
	ss_set_word(msg + 12, 100003);
	ss_set_word(msg + 16, 3);
	ss_set_word(msg + 24, 7); /* AUTH_TLS */
	c->tls.manners = how & 0xf0;
	ss_tcp_record(c, msg, sizeof(msg), 0, 0);
}

/* A call under TLS, with a bit of its records flipped: it must not be run. */
static void write_bent(struct ss_tcp *c, const uint8_t *p, size_t n, uint8_t how)
{
	const size_t at = c->out_len;
	uint8_t mark[4];

	ss_set_word(mark, (uint32_t)n | 0x80000000u);
	if (!ss_tls_write(&c->tls, mark, sizeof(mark)) || !ss_tls_write(&c->tls, p, n))
		return;
	flush_tls(c);
	if (c->out_len > at)
		c->out[at + (how >> 3) * 7919u % (c->out_len - at)] ^= 0x10;
	c->was_muted = c->tls.spoilt = true;
}

/* Steps of a session that is there. */
static void tls_step(struct ss_tcp *c, uint8_t how, const uint8_t *data, size_t len)
{
	switch (how & 7) {
	case SS_TLS_REKEY:
		ss_tls_rekey(&c->tls, how & 8);
		c->was_muted |= c->tls.rekeys >= REKEYS;
		flush_tls(c);
		break;
	case SS_TLS_CLOSE:
		c->was_muted = true;
		ss_tls_close(&c->tls);
		flush_tls(c);
		break;
	case SS_TLS_BENT:
		write_bent(c, data, len, how);
		break;
	default:
		break;
	}
}

void ss_tcp_tls(struct ss_tcp *c, uint8_t how, uint32_t xid, const uint8_t *data, size_t len)
{
	const uint8_t what = how & 7;

	if (c->fd < 0 || c->shut || c->ended)
		return;
	if (c->tls.state == SS_TLS_PLAIN && !ss_stream_partial(&c->stream) && !c->stream.doomed &&
	    (what <= SS_TLS_ASK || what == SS_TLS_HELLO)) {
		c->tls.by_itself = what != SS_TLS_ASK;
		ask(c, how, xid);
		/* A client's hello has the type of a handshake, and needs not be whole. */
		if (what == SS_TLS_HELLO || (what == SS_TLS_ASK && (how & 8)))
			ss_tcp_write(c, (const uint8_t *)"\x16\3\1\0\x20hello", 10);
	} else if (c->tls.state == SS_TLS_SHAKING && what == SS_TLS_FLY) {
		ss_tls_fly(&c->tls);
		take_calls_under_tls(c);
		flush_tls(c);
	} else if (c->tls.state != SS_TLS_PLAIN && what == SS_TLS_RAW) {
		c->was_muted = c->tls.spoilt = true;
		append(c, data, len);
	} else if (c->tls.state == SS_TLS_UP) {
		tls_step(c, how, data, len);
	}
}
