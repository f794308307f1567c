/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread, which sleeps while no call is parked. While calls are parked it looks a few times a
 * second even without a wake-up, since an answer may come while a call is on its way to be parked.
 * The inbox node of a parked call is its link in the list.
 */
#include "daemon/parked.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/shares.h"
#include "lib/util.h"
#include "rpc/client.h"
#include "rpc/worker.h"

#define PARKED_MAX 256u
#define PARKED_OF_CLIENT 16u
/* Longest time since the call arrived: less than clients' time-outs. */
#define PATIENCE_NS (12 * 1000000000ull)
#define LOOK_NS (250 * 1000000ull)
#define PAUSE_NS (10 * 1000000ll) /* between two rounds, however many answers come */

struct parked {
	pthread_mutex_t lock; /* guards everything below; a leaf */
	pthread_cond_t changed;
	pthread_t thread;
	struct rn_inbox_node *list;
	struct rn_shares shares; /* of them; an item is rpc_request.place */
	const struct rn_logger *log;
	bool answered, closed, stop;
};

static struct rpc_request *request_of(struct rn_inbox_node *node)
{
	return rn_container_of(node, struct rpc_request, node);
}

/* Time when the call is to be run for the last time. */
static uint64_t end_of(const struct rpc_request *req)
{
	return req->wait_until_ns ? req->wait_until_ns : req->arrived_ns + PATIENCE_NS;
}

/* Runs calls again, for the last time if last is true. A request belongs to its worker once it is posted. */
static void send_back(struct rn_inbox_node *list, bool last)
{
	const uint64_t now = rn_now_ns();

	while (list) {
		struct rpc_request *req = request_of(list);

		list = list->next;
		if (last || now >= end_of(req))
			req->must_answer = true;
		rpc_requeue(req, req->work);
	}
}

/* Takes a call out of the list. Under the lock. */
static void take_out(struct parked *p, struct rpc_request *req)
{
	struct rn_inbox_node **at = &p->list;

	while (*at != &req->node)
		at = &(*at)->next;
	*at = req->node.next;
	rn_shares_remove(&p->shares, &req->place);
}

/* Takes the call in. Calls that make room are moved to *out. Under the lock. */
static bool take_in(struct parked *p, struct rpc_request *req, struct rn_inbox_node **out)
{
	const struct rn_host *host = &req->conn->client->key;
	const bool admitted = rpc_conn_standing(req->conn) == RPC_ADMITTED;
	struct rn_share_item *old;

	while ((old = rn_shares_in_the_way(&p->shares, host, admitted, 1)) != NULL) {
		struct rpc_request *r = rn_container_of(old, struct rpc_request, place);

		take_out(p, r);
		r->node.next = *out;
		*out = &r->node;
	}
	if (!rn_shares_add(&p->shares, host, admitted, &req->place, 1))
		return false;
	req->node.next = p->list;
	p->list = &req->node;
	return true;
}

bool parked_add(void *ctx, struct rpc_request *req, void (*again)(struct rpc_request *req))
{
	struct parked *p = ctx;
	struct rn_inbox_node *out = NULL;
	struct rn_shares_line line;
	bool taken, tell;

	req->work = again;
	pthread_mutex_lock(&p->lock);
	const bool first = !p->list;

	taken = !p->closed && take_in(p, req, &out);
	if (taken && (first || req->wait_until_ns))
		pthread_cond_signal(&p->changed);
	tell = rn_shares_line_due(&p->shares, rn_now_ns(), &line);
	pthread_mutex_unlock(&p->lock);
	send_back(out, true);
	if (tell)
		rn_shares_tell(p->log, "calls that wait for an answer", &line);
	return taken;
}

void parked_wake(void *ctx)
{
	struct parked *p = ctx;

	pthread_mutex_lock(&p->lock);
	p->answered = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* Under the lock: when there is something to do at the latest. */
static uint64_t next_look(const struct parked *p, uint64_t began)
{
	uint64_t at = began + LOOK_NS;

	for (struct rn_inbox_node *node = p->list; node; node = node->next) {
		if (end_of(request_of(node)) < at)
			at = end_of(request_of(node));
	}
	return at;
}

/* Under the lock: waits until there are calls to send back. */
static void wait_for_change(struct parked *p)
{
	const uint64_t began = rn_now_ns();

	while (!p->stop && !p->closed && !p->answered) {
		const uint64_t at = next_look(p, began);
		const struct timespec until = { .tv_sec = (time_t)(at / 1000000000u),
						.tv_nsec = (long)(at % 1000000000u) };

		if (rn_now_ns() >= at)
			break;
		pthread_cond_timedwait(&p->changed, &p->lock, &until);
	}
	p->answered = false;
}

static void *parked_main(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct parked *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (!p->list) {
			p->answered = false;
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		wait_for_change(p);
		struct rn_inbox_node *list = p->list;
		const bool closed = p->closed;

		for (struct rn_inbox_node *at = list; at; at = at->next)
			rn_shares_remove(&p->shares, &request_of(at)->place);
		p->list = NULL;
		pthread_mutex_unlock(&p->lock);
		send_back(list, closed);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int parked_new(const struct rn_logger *log, struct parked **out)
{
	struct parked *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int rc;

	if (!p)
		return -ENOMEM;
	p->log = log;
	rn_shares_init(&p->shares, PARKED_MAX, PARKED_OF_CLIENT);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = -pthread_create(&p->thread, NULL, parked_main, p);
	if (rc) {
		pthread_cond_destroy(&p->changed);
		pthread_mutex_destroy(&p->lock);
		free(p);
		return rc;
	}
	pthread_setname_np(p->thread, "parked");
	*out = p;
	return 0;
}

void parked_free(struct parked *p)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	rn_shares_fini(&p->shares);
	free(p);
}

void parked_close(struct parked *p)
{
	pthread_mutex_lock(&p->lock);
	p->closed = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

unsigned parked_count(struct parked *p)
{
	pthread_mutex_lock(&p->lock);
	const unsigned n = (unsigned)p->shares.used;
	pthread_mutex_unlock(&p->lock);
	return n;
}
