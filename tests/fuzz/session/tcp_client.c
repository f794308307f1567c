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
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/reply.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/world.h"

#define OUT_MAX (8u << 20)
#define READ_MORE (256u << 10)
#define REPLY_MAX (3u << 20) /* above the server's longest reply */
#define SLOW_BYTES 7u	     /* octets sent at a time */
#define SLOW_TOTAL 200u	     /* octets of a record sent that slowly */
/* octets waiting before them sent that slowly; more would take minutes */
#define SLOW_AHEAD 400u
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
	/* ss_tcp_write() leaves enough room for all but degenerate raw bytes. */
	if (!ss_debts_add(&c->debts, &mine))
		c->lost_count = c->stream.doomed = true;
}

/* Network number as the exports of tree.c use it. */
static uint32_t network_of(uint8_t address)
{
	return 1u + (address >> 2 & 3);
}

static enum ss_from from_of(uint8_t address)
{
	static const enum ss_from of[] = { SS_FROM_ADMITTED, SS_FROM_READ_ONLY, SS_FROM_STRANGER,
					   SS_FROM_SQUASHED };

	return of[network_of(address) - 1];
}

static int start_connect(int fd, uint16_t port, uint8_t address)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x7f000000u | network_of(address) << 8 | (address & 3))
	};
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
	c->from = from_of(address);
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

bool ss_tcp_write(struct ss_tcp *c, const uint8_t *p, size_t n)
{
	if (c->fd < 0 || c->shut || c->ended || c->out_len + n > OUT_MAX ||
	    c->debts.n + CALLS_AT_ONCE > SS_DEBTS_MAX ||
	    !grow(&c->out, &c->out_cap, c->out_len + n))
		return false;
	memcpy(c->out + c->out_len, p, n);
	c->out_len += n;
	ss_stream_feed(&c->stream, p, n);
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
	if (debt->call.prog == UINT32_MAX)
		return;
	const char *bad = ss_reply_check(&debt->call, msg, len, NULL, c->values);
	if (bad)
		ss_finding("tcp: reply to program %u version %u procedure %u: %s", debt->call.prog,
			   debt->call.vers, debt->call.proc, bad);
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
			take_reply(c, c->in, at);
			memmove(c->in, c->in + at, c->in_len - at);
			c->in_len -= at;
			at = 0;
		}
	}
	c->msg_len = at;
}

static bool read_some(struct ss_tcp *c)
{
	if (!grow(&c->in, &c->in_cap, c->in_len + READ_MORE))
		return false;
	ssize_t got = recv(c->fd, c->in + c->in_len, READ_MORE, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		end(c, got ? strerror(errno) : "end of stream");
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
