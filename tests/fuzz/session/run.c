/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/disk.h"
#include "tests/fuzz/session/faults.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/leases.h"
#include "tests/fuzz/session/mounts.h"
#include "tests/fuzz/session/rdma_client.h"
#include "tests/fuzz/session/sealed.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/tcp_client.h"
#include "tests/fuzz/session/tree.h"
#include "tests/fuzz/session/udp_client.h"
#include "tests/fuzz/session/users.h"
#include "tests/fuzz/session/world.h"

#define SLOW_MS 65000 /* a minute, with a margin of one call */
#define FLOOD_MAX 200u
#define ANSWER_LOOKS 4u
#define ANSWER_MS 5
#define POLLS (4 * SS_CONNS + 2) /* entries of poll(2) */
#define DATAGRAM_MS 20		 /* for which an answer by UDP is waited for */
#define ALL_CONNS ((1u << SS_CONNS) - 1)
#define SS_SEND_MAX 8192u
#define CLIENTS 2u
#define STALL_MS 300	/* a call that waits longer may wait for a delegation */
#define AS_CLIENT 0x80u /* SS_AS: the second client */
#define XID_OF_SESSION(n) ((uint32_t)(n) << 16)

/*
 * One connection; by RDMA if there is a device and the connection's number is SS_TCP_CONNS or more.
 */
struct peer {
	struct ss_tcp tcp;
	struct ss_rdma rdma;
	struct ss_udp udp;
	uint8_t *last; /* the last message as it was sent, for SS_REPEAT */
	size_t last_len;
	uint8_t *placed; /* RDMA: message to copy into the windows of later calls */
	size_t placed_len;
	unsigned user;	 /* user of the connection's calls: index for users.h */
	unsigned client; /* client that the connection belongs to */
	struct ss_sealing sealing;
};

static struct {
	struct ss_world world;
	struct ss_values values[CLIENTS]; /* handles and ids of the running session */
	int listener;			  /* takes callbacks of minor version 0; -1: none */
	struct ss_tcp dialled;		  /* the last connection that the server has made there */
	struct peer peer[SS_CONNS];
	uint8_t *message; /* buffer of SS_MESSAGE_MAX bytes */
	uint8_t *sealed;  /* and of SS_SEALED_MORE bytes more */
	uint32_t sessions;
	unsigned step;
	int64_t slow_until; /* milliseconds: until then the server remembers a slow client */
	bool faulty;	    /* the session has armed a fault */
	/* the session has removed hosts from the exports; their long calls end connections */
	bool narrowed;
} run;

static struct ss_values *values_of(const struct peer *p)
{
	return &run.values[p->client];
}

static bool by_rdma(const struct peer *p)
{
	return run.world.rdma && p - run.peer >= (ptrdiff_t)SS_TCP_CONNS;
}

static void connect_peer(struct peer *p, uint8_t how)
{
	int err = 0;

	if (by_rdma(p)) {
		if (p->rdma.open)
			return;
		err = ss_rdma_open(&p->rdma, run.world.port, how, values_of(p));
		p->rdma.doomed |= run.faulty;
		if (run.faulty)
			return;
	} else if (p->tcp.fd < 0) {
		err = ss_tcp_open(&p->tcp, run.world.port, how & 15, SS_MAX_RECORD, values_of(p));
		p->tcp.was_muted |= run.narrowed || ss_now_ms() < run.slow_until;
	}
	if (err)
		ss_finding("a new connection is refused: %s", strerror(-err));
}

/* Takes a connection of the server for callbacks, in place of the one before. */
static void take_dialled(void)
{
	int fd = accept4(run.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	ss_tcp_close(&run.dialled, false);
	ss_tcp_adopt(&run.dialled, fd, &run.values[0]);
}

static void listen_for_calls(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
	socklen_t len = sizeof(at);

	run.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (run.listener < 0 || bind(run.listener, (struct sockaddr *)&at, len) < 0 ||
	    listen(run.listener, 8) < 0 ||
	    getsockname(run.listener, (struct sockaddr *)&at, &len) < 0)
		ss_finding("callbacks cannot be taken: %s", strerror(errno));
	for (unsigned i = 0; i < CLIENTS; i++)
		run.values[i].cb_port = ntohs(at.sin_port);
}

/* Fills four entries of poll(2) for each peer. */
static void fill_polls(struct pollfd *fds)
{
	for (unsigned i = 0; i < SS_CONNS; i++) {
		struct peer *p = &run.peer[i];
		bool rdma = p->rdma.open && !p->rdma.ended;
		short events = ss_tcp_events(&p->tcp);

		fds[4 * i] = (struct pollfd){ .fd = events ? p->tcp.fd : -1, .events = events };
		fds[4 * i + 3] = (struct pollfd){ .fd = p->udp.fd, .events = POLLIN };
		fds[4 * i + 1] = (struct pollfd){ .fd = rdma ? p->rdma.conn.comp->fd : -1,
						  .events = POLLIN };
		fds[4 * i + 2] = (struct pollfd){ .fd = rdma ? p->rdma.conn.events->fd : -1,
						  .events = POLLIN };
	}
}

static bool poll_rdma(void)
{
	bool moved = false;

	for (unsigned i = 0; i < SS_CONNS; i++)
		moved |= ss_rdma_poll(&run.peer[i].rdma);
	return moved;
}

static void find_slow(void)
{
	int64_t now = ss_now_ms();

	for (unsigned i = 0; i < SS_CONNS; i++)
		if (ss_tcp_is_slow(&run.peer[i].tcp, now))
			run.slow_until = now + SLOW_MS;
	for (unsigned i = 0; i < SS_CONNS && now < run.slow_until; i++)
		run.peer[i].tcp.was_muted = true;
}

/* Lets all connections move once; true if anything did. */
static bool pump_once(int timeout_ms)
{
	struct pollfd fds[POLLS];
	struct pollfd *const dialled = &fds[POLLS - 2], *const listener = &fds[POLLS - 1];
	bool moved = poll_rdma();

	find_slow();
	fill_polls(fds);
	*dialled = (struct pollfd){ .fd = ss_tcp_events(&run.dialled) ? run.dialled.fd : -1,
				    .events = ss_tcp_events(&run.dialled) };
	*listener = (struct pollfd){ .fd = run.listener, .events = POLLIN };
	if (poll(fds, POLLS, moved ? 0 : timeout_ms) <= 0)
		return moved;
	if (dialled->revents)
		moved |= ss_tcp_ready(&run.dialled, dialled->revents);
	if (listener->revents)
		take_dialled();
	for (unsigned i = 0; i < SS_CONNS; i++)
		if (fds[4 * i].revents)
			moved |= ss_tcp_ready(&run.peer[i].tcp, fds[4 * i].revents);
	for (unsigned i = 0; i < SS_CONNS; i++)
		if (fds[4 * i + 3].revents)
			moved |= ss_udp_receive(&run.peer[i].udp);
	return moved | poll_rdma();
}

/* Moves connections as far as they go without waiting. */
static void pump(void)
{
	for (unsigned i = 0; i < 4 && pump_once(0); i++)
		;
}

static bool settled(unsigned mask)
{
	bool all = true;

	for (unsigned i = 0; i < SS_CONNS; i++)
		if (mask & 1u << i)
			all &= ss_tcp_settled(&run.peer[i].tcp) &&
			       ss_rdma_settled(&run.peer[i].rdma);
	return all;
}

static void show_debts(void)
{
	for (unsigned i = 0; i < SS_CONNS; i++) {
		const struct peer *p = &run.peer[i];
		const struct ss_debts *d = p->rdma.open ? &p->rdma.debts : &p->tcp.debts;

		for (unsigned k = 0; d->open && k < d->n; k++)
			fprintf(stderr,
				"  connection %u: xid %x sent %u times, answered %u times\n", i,
				d->list[k].call.xid, d->list[k].sent, d->list[k].answered);
	}
}

/* Waits until the connections in the mask are settled. All connections read meanwhile: unread
 * replies of one may hold the memory that another's calls wait for. */
static void settle(unsigned mask)
{
	int64_t since = ss_now_ms(), stalled = since;

	for (unsigned i = 0; i < SS_CONNS; i++) {
		run.peer[i].tcp.muted = run.peer[i].tcp.held = false;
		run.peer[i].rdma.muted = false;
	}
	while (!settled(mask)) {
		if (pump_once(STALL_MS))
			since = ss_now_ms();
		if (ss_now_ms() - stalled > STALL_MS && ss_world_has_delegations()) {
			/* NFSv3's calls wait for delegations. Their time runs out now. */
			ss_world_skip_time(SS_TIME_REVOKES);
			stalled = ss_now_ms();
		}
		if (ss_leases_held() && ss_now_ms() - since > SS_HANG_MS / 3) {
			show_debts();
			ss_finding("session step %u: calls wait for a local process' lease",
				   run.step);
		}
		if (ss_now_ms() - since > SS_HANG_MS) {
			show_debts();
			ss_finding("session step %u: the server neither answers nor closes",
				   run.step);
		}
	}
}

/* Gives the answers by UDP some time. None is owed. */
static void settle_datagrams(unsigned mask)
{
	for (int64_t until = ss_now_ms() + DATAGRAM_MS;;) {
		bool all = true;

		for (unsigned i = 0; i < SS_CONNS; i++)
			all &= !(mask & 1u << i) || ss_udp_settled(&run.peer[i].udp);
		if (all || (!pump_once(DATAGRAM_MS / 4) && ss_now_ms() > until))
			return;
	}
}

static void keep(uint8_t **to, size_t *to_len, const uint8_t *msg, size_t len)
{
	uint8_t *copy = realloc(*to, len ? len : 1);

	if (!copy)
		return;
	memcpy(copy, msg, len);
	*to = copy;
	*to_len = len;
}

static uint32_t own_xid(uint32_t k)
{
	return XID_OF_SESSION(run.sessions) | run.step << 8 | (k & 0xff);
}

/*
 * Builds the step's message: marks filled in, a new xid, the credential of the connection's user.
 */
static size_t make_message(const struct peer *p, const struct ss_step *s)
{
	size_t len = ss_expand(s->data, s->len, values_of(p), run.message);

	len = ss_user_put(run.message, len, SS_MESSAGE_MAX, p->user);
	if (ss_user_is_other(p->user))
		ss_count(SS_N_OTHER_USER);
	if (memmem(s->data, s->len,
		   "\xf1"
		   "FX",
		   3))
		ss_count(SS_N_EXCLUSIVE);
	if (len >= 4)
		ss_set_word(run.message, own_xid(ss_word(run.message)));
	return len;
}

/* The k-th window from the step's own on, with the message that the session has placed in it. The
 * memory of a window in use is left alone. */
static struct ss_window *take_window(struct peer *p, unsigned k)
{
	struct ss_window *w = ss_rdma_window(&p->rdma, run.step + k, values_of(p));

	if (w && !w->users && p->placed_len)
		memcpy(w->memory->data, p->placed, rn_min(p->placed_len, SS_WINDOW_SIZE));
	return w;
}

/* All connections read meanwhile: unread replies may hold the memory that these replies wait for,
 * and the server closes connections that do not read for that long. */
static void send_with_room(struct peer *p, const uint8_t *msg, size_t len, struct ss_window *w)
{
	int64_t since = ss_now_ms();

	while (p->rdma.open && !p->rdma.ended && !p->rdma.muted && !ss_rdma_has_room(&p->rdma)) {
		if (pump_once(10))
			since = ss_now_ms();
		if (ss_now_ms() - since > SS_HANG_MS)
			ss_finding("rdma: the server does not take what its credits allow");
	}
	ss_rdma_send(&p->rdma, msg, len, w);
}

static void send_by_rdma(struct peer *p, const uint8_t *rpc, size_t len, unsigned k)
{
	uint8_t out[SS_DATA_MAX];
	struct ss_window *w = take_window(p, k);

	if (!w || len < 4)
		return;
	len = ss_rdma_wrap(&p->rdma, rpc, len, w, out);
	if (!len)
		return;
	keep(&p->last, &p->last_len, out, len);
	send_with_room(p, out, len, w);
}

static void forgive(struct ss_debts *d)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->list[i].call.sealed && ss_gss_may_drop(d->list[i].call.xid))
			ss_debts_forgive(d, &d->list[i]);
}

/* Calls that may be dropped because of the last step need no answer. */
static void forgive_dropped(void)
{
	for (unsigned i = 0; i < SS_CONNS; i++) {
		forgive(&run.peer[i].tcp.debts);
		forgive(&run.peer[i].rdma.debts);
	}
}

/* The message as it goes out: sealed, if the connection's calls are and its context is there. */
static const uint8_t *sealed(struct peer *p, size_t *len)
{
	size_t n = 0;

	if (p->sealing.service)
		n = ss_gss_seal(&p->sealing, run.message, *len, run.sealed);
	if (n == 0)
		return run.message;
	p->sealing.spoil = SS_WHOLE;
	p->sealing.number = 0;
	forgive_dropped();
	*len = n;
	return run.sealed;
}

static void send_record(struct peer *p, const struct ss_step *s)
{
	size_t len = make_message(p, s);

	connect_peer(p, 0);
	if (by_rdma(p) && (s->how & SS_CUT_HELD)) {
		keep(&p->placed, &p->placed_len, run.message, len);
		return;
	}
	const uint8_t *msg = sealed(p, &len);

	if (by_rdma(p) ? len > SS_WINDOW_SIZE
		       : (s->how & SS_CUT_SHORT) || ss_stream_partial(&p->tcp.stream))
		ss_gss_bent(len >= 4 ? ss_word(msg) : 0);
	if (by_rdma(p)) {
		send_by_rdma(p, msg, len, 0);
	} else {
		keep(&p->last, &p->last_len, msg, len);
		ss_tcp_record(&p->tcp, msg, len, s->how, 0);
	}
}

/* Sends the input's bytes as one message with a new xid. If the RPC message has the header's xid,
 * it gets the new one too. */
static void send_raw_by_rdma(struct peer *p, const struct ss_step *s)
{
	static struct ss_rdma_header h;
	struct ss_window *w = take_window(p, 0);

	if (!w)
		return;
	size_t len = rn_min(ss_expand(s->data, s->len, values_of(p), run.message), SS_SEND_MAX);
	ss_rdma_parse(run.message, len, &h);
	uint8_t *rpc = h.proc == SS_RDMA_MSG ? run.message + h.size : w->memory->data;
	bool there = h.proc == SS_RDMA_MSG ? len - h.size >= 4 : !w->users;
	if (h.whole && there && ss_word(rpc) == h.xid)
		ss_set_word(rpc, own_xid(h.xid));
	if (h.fixed)
		ss_set_word(run.message, own_xid(h.xid));
	keep(&p->last, &p->last_len, run.message, len);
	send_with_room(p, run.message, len, w);
}

static void send_raw(struct peer *p, const struct ss_step *s)
{
	connect_peer(p, 0);
	if (by_rdma(p))
		send_raw_by_rdma(p, s);
	else
		ss_tcp_write(&p->tcp, run.message,
			     ss_expand(s->data, s->len, values_of(p), run.message));
}

/* Repeats the last message. From one transport to the other the bytes differ, and only the RPC
 * message is the same. */
static void repeat(struct peer *p, const struct ss_step *s)
{
	struct peer *to = &run.peer[s->how % SS_CONNS];

	if (!p->last_len)
		return;
	ss_gss_repeated(p->last_len >= 4 ? ss_word(p->last) : 0);
	forgive_dropped();
	connect_peer(to, 0);
	if (!by_rdma(to)) {
		ss_tcp_record(&to->tcp, p->last, p->last_len, 0, SS_CLAIM_REPEATED);
	} else {
		struct ss_window *w = take_window(to, 0);

		if (w)
			send_with_room(to, p->last, p->last_len, w);
	}
}

static void flood(struct peer *p, const struct ss_step *s)
{
	size_t len = make_message(p, s);

	connect_peer(p, 0);
	for (unsigned i = 0; i < s->how % FLOOD_MAX && len >= 4; i++) {
		size_t n = len;

		ss_set_word(run.message, own_xid(i));
		const uint8_t *msg = sealed(p, &n);
		if (by_rdma(p))
			send_by_rdma(p, msg, n, i);
		else if (!ss_tcp_record(&p->tcp, msg, n, SS_CUT_HELD, 0))
			break;
	}
	p->tcp.held = false;
}

static void send_datagrams(struct peer *p, const struct ss_step *s)
{
	const int err = ss_udp_open(&p->udp, run.world.port, s->how & 15, values_of(p));
	size_t len;

	if (err)
		ss_finding("a socket cannot be had: %s", strerror(-err));
	if (s->how & SS_DATAGRAM_RAW)
		len = ss_expand(s->data, s->len, values_of(p), run.message);
	else
		len = make_message(p, s);
	for (unsigned n = (s->how >> 4 & 7) + 1; n; n--)
		ss_udp_send(&p->udp, run.message, len);
	if (!by_rdma(p)) /* it may be repeated by TCP */
		keep(&p->last, &p->last_len, run.message, len);
}

/* Answers the oldest call of the server, which may be on its way still. */
static void answer(struct peer *p, const struct ss_step *s)
{
	struct ss_back *b = by_rdma(p) ? &p->rdma.back : &p->tcp.back;
	uint8_t out[SS_ANSWER_MAX];
	uint32_t xid, credits;

	for (unsigned i = 0; i < ANSWER_LOOKS && !b->n && !run.dialled.back.n; i++)
		pump_once(ANSWER_MS);
	const bool dialled = !b->n && run.dialled.back.n;
	if (dialled)
		b = &run.dialled.back;
	else if (by_rdma(p) ? !p->rdma.open || p->rdma.ended : p->tcp.fd < 0 || p->tcp.ended)
		return;
	size_t data_len = ss_expand(s->data, s->len, values_of(p), run.message);
	const struct ss_reaction r = {
		.how = s->how, .data = run.message, .len = data_len, .values = values_of(p)
	};
	size_t len = ss_back_answer(b, &r, out, &xid, &credits);
	if (!len)
		return;
	if (dialled) {
		ss_count(SS_N_CALLED_40);
		ss_tcp_answer(&run.dialled, out, len);
	} else if (!by_rdma(p))
		ss_tcp_answer(&p->tcp, out, len);
	else if ((s->how & (SS_ANSWER_KIND | SS_ANSWER_DATA)) == SS_ANSWER_REFUSED)
		ss_rdma_answer(&p->rdma, NULL, 0, xid, credits);
	else
		ss_rdma_answer(&p->rdma, out, len, xid, credits);
}

static struct ss_sealing sealing_of(const struct ss_step *s)
{
	return (struct ss_sealing){
		.context = s->how & 3,
		.service = s->how >> 2 & 3,
		.spoil = (enum ss_spoil)(s->how >> 4),
		.where = s->len > 0 ? s->data[0] : 0,
		.value = s->len > 1 ? s->data[1] : 0,
		.number = s->len > 2 ? s->data[2] : 0,
	};
}

/* Makes a context or ends one, over a stream. */
static void step_context(struct peer *p, const struct ss_step *s)
{
	const unsigned what = s->how >> 2 & 3;
	struct ss_sealing how = sealing_of(s);
	size_t len;

	connect_peer(p, 0);
	if (by_rdma(p) || ss_stream_partial(&p->tcp.stream))
		return;
	if (what == SS_GSS_DESTROY) {
		how.service = 1;
		len = ss_gss_destroy(&how, own_xid(0), run.sealed);
	} else {
		len = ss_gss_init(how.context, s->how >> 4 & 7, what == SS_GSS_SPOILT, &how,
				  own_xid(0), run.sealed);
	}
	forgive_dropped();
	if (!len)
		return;
	keep(&p->last, &p->last_len, run.sealed, len);
	ss_tcp_record(&p->tcp, run.sealed, len, 0, 0);
	if (what == SS_GSS_MAKE)
		settle(1u << s->conn);
}

static void step_tls(struct peer *p, const struct ss_step *s)
{
	connect_peer(p, 0);
	if (by_rdma(p))
		return;
	const size_t len = ss_expand(s->data, s->len, values_of(p), run.message);

	if (len >= 4)
		ss_set_word(run.message, own_xid(1));
	ss_tcp_tls(&p->tcp, s->how, own_xid(0), run.message, len);
	if ((s->how & 7) != SS_TLS_WHOLE)
		return;
	settle(1u << s->conn);
	for (int64_t until = ss_now_ms() + SS_HANG_MS; p->tcp.fd >= 0 && !p->tcp.ended &&
						       p->tcp.tls.state == SS_TLS_SHAKING &&
						       p->tcp.tls.by_itself;)
		if (!pump_once(STALL_MS) && ss_now_ms() > until)
			ss_finding("tcp: a handshake stands still");
}

static void hang_up(struct peer *p, bool reset)
{
	ss_tcp_close(&p->tcp, reset);
	ss_rdma_close(&p->rdma, reset);
}

static void mute(struct peer *p)
{
	p->tcp.muted = p->tcp.was_muted = true;
	p->rdma.muted = p->rdma.was_muted = true;
}

/* From now on RDMA connections may end, or may not be made at all. */
static void expect_faults(void)
{
	run.faulty = true;
	for (unsigned i = 0; i < SS_CONNS; i++)
		run.peer[i].rdma.doomed = true;
}

/* From now on hosts may lose their exports in the midst of a call. */
static void change_hosts(unsigned how)
{
	run.narrowed = true;
	ss_disk_end(); /* the exports file lies on the full file system */
	for (unsigned i = 0; i < SS_CONNS; i++)
		run.peer[i].tcp.was_muted = true;
	ss_world_hosts(how & 3);
}

/* Steps that change the server's surroundings. The driver makes its own calls while all connections
 * read. */
static void take_step_around(const struct ss_step *s)
{
	switch ((enum ss_op)s->op) {
	case SS_LOCAL:
		ss_leases_end();
		ss_tree_change(s->how);
		break;
	case SS_LEASE:
		settle(ALL_CONNS);
		ss_leases_step(s->how, run.world.port, &run.values[0]);
		break;
	case SS_TIME:
		ss_world_skip_time(s->how);
		forgive_dropped();
		break;
	case SS_MOUNT:
		settle(ALL_CONNS);
		ss_errors_end();
		ss_mounts_step(s->how, run.world.port, &run.values[0]);
		break;
	case SS_DISK:
		settle(ALL_CONNS);
		ss_errors_end();
		ss_disk_step(s->how, run.world.port, &run.values[0]);
		break;
	case SS_HOSTS:
		change_hosts(s->how);
		break;
	case SS_ADMIN:
		ss_errors_end(); /* an export that cannot be opened would be dropped */
		ss_world_admin(s->how);
		break;
	default:
		expect_faults();
		ss_fault_arm(s->how);
	}
}

static void take_step(const struct ss_step *s)
{
	struct peer *p = &run.peer[s->conn];

	switch ((enum ss_op)s->op) {
	case SS_RECORD:
		send_record(p, s);
		break;
	case SS_RAW:
		send_raw(p, s);
		break;
	case SS_REPEAT:
		repeat(p, s);
		break;
	case SS_FLOOD:
		flood(p, s);
		break;
	case SS_WAIT:
		settle(1u << s->conn);
		settle_datagrams(1u << s->conn);
		break;
	case SS_CONNECT:
		connect_peer(p, s->how);
		break;
	case SS_SHUT:
		ss_tcp_shut(&p->tcp);
		break;
	case SS_RESET:
	case SS_CLOSE:
		hang_up(p, s->op == SS_RESET);
		break;
	case SS_MUTE:
		mute(p);
		break;
	case SS_ANSWER:
		answer(p, s);
		break;
	case SS_GSS:
		step_context(p, s);
		break;
	case SS_DATAGRAM:
		send_datagrams(p, s);
		break;
	case SS_SEAL:
		p->sealing = sealing_of(s);
		break;
	case SS_TLS:
		step_tls(p, s);
		break;
	case SS_AS:
		p->user = s->how & ~AS_CLIENT;
		p->client = s->how / AS_CLIENT;
		p->tcp.values = p->rdma.values = p->udp.values = values_of(p);
		break;
	case SS_LOCAL:
	case SS_ADMIN:
	case SS_FAULT:
	case SS_LEASE:
	case SS_TIME:
	case SS_MOUNT:
	case SS_DISK:
	case SS_HOSTS:
		take_step_around(s);
		break;
	case SS_OPS:
		break;
	}
	pump();
}

/* Waits for all replies, then closes every connection in good order. */
static void end_session(void)
{
	run.step = SS_STEPS_MAX;
	ss_faults_clear();
	ss_disk_end();
	/* A session of TLS ends with its client's direction. */
	for (unsigned i = 0; i < SS_CONNS; i++)
		if (run.peer[i].tcp.fd >= 0 && run.peer[i].tcp.tls.state == SS_TLS_UP)
			settle(1u << i);
	for (unsigned i = 0; i < SS_CONNS; i++)
		if (run.peer[i].tcp.fd >= 0)
			ss_tcp_shut(&run.peer[i].tcp);
	settle(ALL_CONNS);
	settle_datagrams(ALL_CONNS);
	ss_leases_end();
	for (unsigned i = 0; i < SS_CONNS; i++) {
		ss_udp_close(&run.peer[i].udp);
		hang_up(&run.peer[i], false);
		run.peer[i].placed_len = run.peer[i].last_len = 0;
		run.peer[i].user = run.peer[i].client = 0;
		run.peer[i].sealing = (struct ss_sealing){ .service = 0 };
	}
	ss_tcp_close(&run.dialled, false);
	close(run.listener);
	run.listener = -1;
}

static void begin_clients(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		run.values[i] = run.world.values;
		run.values[i].client = i;
		run.values[i].other = &run.values[(i + 1) % CLIENTS];
	}
	listen_for_calls();
	ss_back_init(&run.dialled.back);
}

void ss_run(const uint8_t *data, size_t size)
{
	struct ss_step steps[SS_STEPS_MAX];
	unsigned n = ss_decode(data, size, steps);

	run.sessions++;
	ss_world_prepare(&run.world);
	begin_clients();
	run.faulty = run.narrowed = false;
	ss_gss_reset();
	ss_claims_reset(&run.values[0].fh[SS_FH_SQUASHED]);
	for (run.step = 0; run.step < n; run.step++)
		take_step(&steps[run.step]);
	end_session();
	ss_world_check(&run.world);
}

const char *ss_start(void)
{
	static const char *why;
	static bool tried;

	if (tried)
		return why;
	tried = true;
	for (unsigned i = 0; i < SS_CONNS; i++)
		run.peer[i].tcp.fd = run.peer[i].udp.fd = -1;
	run.listener = run.dialled.fd = -1;
	run.message = malloc(SS_MESSAGE_MAX);
	run.sealed = malloc(SS_MESSAGE_MAX + SS_SEALED_MORE);
	why = run.message && run.sealed ? ss_world_start(&run.world) : "no memory";
	return why;
}

void ss_stop(void)
{
	ss_world_stop();
	ss_counts_print();
	fputc('\n', stderr);
	for (unsigned i = 0; i < SS_CONNS; i++) {
		ss_tcp_free(&run.peer[i].tcp);
		free(run.peer[i].last);
		free(run.peer[i].placed);
		run.peer[i].last = run.peer[i].placed = NULL;
	}
	ss_tcp_free(&run.dialled);
	free(run.message);
	free(run.sealed);
	run.message = run.sealed = NULL;
	ss_gss_reset();
}
