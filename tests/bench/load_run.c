/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of the load generator: calls wait in one queue for their turn, and as many as the load
 * has in flight are under way. With as many calls as may be in flight each begins again when its
 * reply has come; with more of them, the connections take turns.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "load.h"

#define PATIENCE_MS 30000

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wait_for_turn(struct load *l, struct call *c)
{
	c->next = NULL;
	*l->idle_tail = c;
	l->idle_tail = &c->next;
}

static void start_call(struct load *l, struct call *c)
{
	struct xdr x;

	c->file = l->job->data ? c->conn->index % l->o.files
			       : (unsigned)((c->serial + c->index) % l->o.files);
	if (!load_take_prepared(l, c)) {
		l->job->encode(l, c, &x);
		rpc_end(c, &x);
	}
	c->under_way = true;
	c->start = now_ns();
	conn_queue(l, c);
	if (!c->conn->to_flush) {
		c->conn->to_flush = true;
		l->flush[l->nflush++] = c->conn;
	}
	l->in_flight++;
}

static void start_calls(struct load *l)
{
	unsigned i;

	while (l->idle_head && l->in_flight < l->o.in_flight && load_prepared_left(l)) {
		struct call *c = l->idle_head;

		l->idle_head = c->next;
		if (!l->idle_head)
			l->idle_tail = &l->idle_head;
		start_call(l, c);
	}
	for (i = 0; i < l->nflush; i++)
		conn_flush(l, l->flush[i]);
	l->nflush = 0;
}

/* The call that a reply answers. Replies mostly come in the order of the calls, so the search is short. */
static struct call *call_of(struct load *l, struct conn *k, uint32_t xid)
{
	unsigned i;

	/* Replies mostly come in the order of the calls. */
	for (i = 0; i < l->o.calls; i++) {
		struct call *c = &k->calls[(k->last_reply + 1 + i) % l->o.calls];

		if (c->under_way && c->xid == xid) {
			k->last_reply = c->index;
			return c;
		}
	}
	die("a reply to no call came on connection %u", k->index);
}

void load_reply(struct load *l, struct conn *k, struct xdr *x)
{
	const struct xdr whole = *x;
	bool opaque = false;
	const char *wrong;
	struct call *c;
	uint32_t xid;

	wrong = rpc_reply(x, &xid);
	c = call_of(l, k, xid);
	if (!wrong && c->gss)
		wrong = load_gss_results(l, c, whole, x, &opaque);
	if (!wrong && !opaque)
		wrong = l->job->check(l, c, x);
	if (!wrong && x->bad)
		wrong = "the reply is short";
	if (wrong)
		die("%s, connection %u, call %u, its %lluth", wrong, k->index, c->index,
		    (unsigned long long)c->serial);
	if (l->measuring) {
		l->done++;
		report_latency(l, now_ns() - c->start);
	}
	c->under_way = false;
	c->serial++;
	l->in_flight--;
	if (!l->finishing || c->step)
		wait_for_turn(l, c);
}

static void handle_event(struct load *l, const struct epoll_event *e)
{
	struct conn *k = e->data.ptr;
	struct xdr record, rest;

	if (k->rdma) {
		load_rdma_event(l, k);
		return;
	}
	if (e->events & EPOLLOUT)
		conn_flush(l, k);
	if (!(e->events & ~(uint32_t)EPOLLOUT) || !conn_receive(k))
		return;
	while (conn_record(k, &record)) {
		rest = record;
		load_reply(l, k, &rest);
		conn_pop(k, &record);
	}
}

static void turn(struct load *l)
{
	struct epoll_event events[64];
	int i, n = epoll_wait(l->epoll, events, 64, PATIENCE_MS);

	if (n < 0 && errno != EINTR)
		die("epoll_wait: %s", strerror(errno));
	if (n == 0)
		die("no reply within %d s, %u calls are under way", PATIENCE_MS / 1000,
		    l->in_flight);
	for (i = 0; i < n; i++)
		handle_event(l, &events[i]);
}

/* Runs until the time or the number of calls has come; 0 is no bound. */
static void run_until(struct load *l, uint64_t end, uint64_t count)
{
	while ((!end || now_ns() < end) && (!count || l->done < count)) {
		start_calls(l);
		turn(l);
	}
}

static void begin(struct load *l)
{
	unsigned i, j;

	l->idle_tail = &l->idle_head;
	l->flush = calloc(l->o.conns, sizeof(struct conn *));
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!l->flush || l->epoll < 0)
		die("no memory or descriptor");
	for (i = 0; i < l->o.conns; i++) {
		struct conn *k = &l->conns[i];
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = k };

		int fd = l->o.rdma_port ? load_rdma_connect(l, k) : k->fd;

		if (fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e))
			die("epoll_ctl: %s", strerror(errno));
	}
	for (j = 0; j < l->o.calls; j++)
		for (i = 0; i < l->o.conns; i++)
			wait_for_turn(l, &l->conns[i].calls[j]);
}

/* Lets the calls under way end, and jobs of several steps their last round, which leaves nothing behind. */
static void finish(struct load *l)
{
	struct call *c = l->idle_head;
	unsigned i;

	l->finishing = true;
	l->idle_head = NULL;
	l->idle_tail = &l->idle_head;
	while (c) {
		struct call *next = c->next;

		if (c->step)
			wait_for_turn(l, c);
		c = next;
	}
	while (l->in_flight || l->idle_head) {
		start_calls(l);
		turn(l);
	}
	for (i = 0; i < l->o.conns; i++)
		fcntl(l->conns[i].fd, F_SETFL, 0);
	close(l->epoll);
	l->epoll = -1;
}

void load_run(struct load *l)
{
	struct usage from, to;

	begin(l);
	l->warming = true;
	run_until(l, now_ns() + (uint64_t)(l->o.warmup * 1e9) + 1, 0);
	l->warming = false;
	if (l->o.prepare) {
		while (l->in_flight)
			turn(l);
		load_prepare(l);
	}
	load_usage(l, &from);
	l->measuring = true;
	run_until(l, l->o.count ? 0 : from.ns + (uint64_t)(l->o.seconds * 1e9), l->o.count);
	load_usage(l, &to);
	l->measuring = false;
	finish(l);
	report(l, &from, &to);
}
