/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/checked.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/tcp_client.h"
#include "tests/fuzz/session/tree.h"
#include "tests/fuzz/session/world.h"

#define FLOOD_MAX 200u
#define XID_OF_SESSION(n) ((uint32_t)(n) << 16)

/* One conversation, whichever transport it has. */
struct peer {
	struct ss_tcp tcp;
	uint8_t *last; /* the last message, for SS_REPEAT */
	size_t last_len;
};

static struct {
	struct ss_world world;
	struct ss_values values; /* of the session in hand */
	struct peer peer[SS_CONNS];
	uint8_t *message; /* SS_MESSAGE_MAX */
	uint32_t sessions;
	unsigned step;
} run;

static bool connected(struct peer *p)
{
	return p->tcp.fd >= 0;
}

static void connect_peer(struct peer *p, uint8_t how)
{
	if (connected(p))
		return;
	int err = ss_tcp_open(&p->tcp, run.world.port, how & 3, SS_MAX_RECORD, &run.values);
	if (err)
		ss_finding("a new connection is refused: %s", strerror(-err));
}

/* Polls all connections once; true if anything moved. */
static bool pump_once(int timeout_ms)
{
	struct pollfd fds[SS_CONNS];
	bool moved = false;

	for (unsigned i = 0; i < SS_CONNS; i++) {
		short events = ss_tcp_events(&run.peer[i].tcp);

		fds[i] =
			(struct pollfd){ .fd = events ? run.peer[i].tcp.fd : -1, .events = events };
	}
	if (poll(fds, SS_CONNS, timeout_ms) <= 0)
		return false;
	for (unsigned i = 0; i < SS_CONNS; i++)
		if (fds[i].revents)
			moved |= ss_tcp_ready(&run.peer[i].tcp, fds[i].revents);
	return moved;
}

/* Lets what can move move, without waiting for anything. */
static void pump(void)
{
	for (unsigned i = 0; i < 4 && pump_once(0); i++)
		;
}

/* Until the connections in the mask are settled. Everybody listens meanwhile, or it may take for
 * ever. */
static void settle(unsigned mask)
{
	int64_t since = ss_now_ms();
	bool settled;

	for (unsigned i = 0; i < SS_CONNS; i++)
		run.peer[i].tcp.muted = run.peer[i].tcp.held = false;
	for (;;) {
		settled = true;
		for (unsigned i = 0; i < SS_CONNS; i++)
			settled &= !(mask & 1u << i) || ss_tcp_settled(&run.peer[i].tcp);
		if (settled)
			return;
		if (pump_once(1000))
			since = ss_now_ms();
		else if (ss_now_ms() - since > SS_HANG_MS)
			ss_finding("session step %u: the server neither answers nor closes",
				   run.step);
	}
}

static void remember(struct peer *p, const uint8_t *msg, size_t len)
{
	uint8_t *copy = realloc(p->last, len ? len : 1);

	if (!copy)
		return;
	memcpy(copy, msg, len);
	p->last = copy;
	p->last_len = len;
}

/* The step's message with its marks filled in, under an xid of its own: low octet k. */
static size_t make_message(const struct ss_step *s)
{
	size_t len = ss_expand(s->data, s->len, &run.values, run.message);

	if (len >= 4)
		ss_set_word(run.message, XID_OF_SESSION(run.sessions) | run.step << 8 |
						 (ss_word(run.message) & 0xff));
	return len;
}

static void send_record(struct peer *p, const struct ss_step *s)
{
	size_t len = make_message(s);

	connect_peer(p, 0);
	remember(p, run.message, len);
	ss_tcp_record(&p->tcp, run.message, len, s->how);
}

static void send_raw(struct peer *p, const struct ss_step *s)
{
	size_t len = ss_expand(s->data, s->len, &run.values, run.message);

	connect_peer(p, 0);
	ss_tcp_write(&p->tcp, run.message, len);
}

static void repeat(struct peer *p, const struct ss_step *s)
{
	struct peer *to = &run.peer[s->how % SS_CONNS];

	if (!p->last)
		return;
	connect_peer(to, 0);
	ss_tcp_record(&to->tcp, p->last, p->last_len, 0);
}

static void flood(struct peer *p, const struct ss_step *s)
{
	size_t len = make_message(s);

	connect_peer(p, 0);
	for (unsigned i = 0; i < s->how % FLOOD_MAX && len >= 4; i++) {
		ss_set_word(run.message, XID_OF_SESSION(run.sessions) | run.step << 8 | i);
		if (!ss_tcp_record(&p->tcp, run.message, len, SS_CUT_HELD))
			break;
	}
	p->tcp.held = false;
}

static void hang_up(struct peer *p, bool reset)
{
	ss_tcp_close(&p->tcp, reset);
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
		p->tcp.muted = p->tcp.was_muted = true;
		break;
	case SS_LOCAL:
		ss_tree_change(s->how);
		break;
	case SS_ADMIN:
		ss_world_admin(s->how);
		break;
	case SS_OPS:
		break;
	}
	pump();
}

/* What was asked is answered, and then every connection ends in good order. */
static void end_session(void)
{
	run.step = SS_STEPS_MAX;
	for (unsigned i = 0; i < SS_CONNS; i++)
		if (connected(&run.peer[i]))
			ss_tcp_shut(&run.peer[i].tcp);
	settle((1u << SS_CONNS) - 1);
	for (unsigned i = 0; i < SS_CONNS; i++)
		hang_up(&run.peer[i], false);
}

void ss_run(const uint8_t *data, size_t size)
{
	struct ss_step steps[SS_STEPS_MAX];
	unsigned n = ss_decode(data, size, steps);

	run.sessions++;
	ss_world_prepare(&run.world);
	run.values = run.world.values;
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
		run.peer[i].tcp.fd = -1;
	run.message = malloc(SS_MESSAGE_MAX);
	why = run.message ? ss_world_start(&run.world) : "no memory";
	return why;
}

void ss_stop(void)
{
	ss_world_stop();
	for (unsigned i = 0; i < SS_CONNS; i++) {
		ss_tcp_free(&run.peer[i].tcp);
		free(run.peer[i].last);
		run.peer[i].last = NULL;
	}
	free(run.message);
	run.message = NULL;
}
