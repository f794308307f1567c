/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate of a record on its way in: a peer that holds memory must use it. On the loop. */
#include "transport/tcp/tcp_rate.h"

static uint32_t received(const struct tcp_conn *c)
{
	uint32_t got = 0;

	for (unsigned i = 0; c->cur && i < c->cur->rpc->nseg; i++)
		got += c->cur->rpc->seg[i].len;
	return got;
}

void tcp_rate_measure(struct tcp_conn *c, uint64_t now)
{
	c->span_ns = now;
	c->span_got = received(c);
	c->slow = false;
}

void tcp_rate_suspend(struct tcp_conn *c, uint64_t ns)
{
	c->record_ns += ns;
	c->span_ns += ns;
}

static uint64_t tcp_rate_expected(uint64_t ns, uint64_t rate)
{
	return ns / (RN_NS_PER_SECOND / rate);
}

bool tcp_rate_is_slow(struct tcp_conn *c, uint64_t now, bool pressed)
{
	const uint64_t since = now > c->record_ns ? now - c->record_ns : 0;
	const uint64_t grace = TCP_RATE_GRACE_SECONDS * RN_NS_PER_SECOND;
	const uint32_t got = received(c);

	if (!c->cur)
		return false;
	if (now >= c->span_ns + TCP_PRESSED_SPAN_MS * (RN_NS_PER_SECOND / 1000)) {
		c->slow = got - c->span_got < tcp_rate_expected(now - c->span_ns, TCP_PRESSED_RATE);
		c->span_ns = now;
		c->span_got = got;
	}
	return (pressed && c->slow) ||
	       (since > grace && got < tcp_rate_expected(since - grace, TCP_RATE));
}
