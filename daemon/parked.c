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

#include "lib/util.h"
#include "lib/clock.h"
#include "rpc/worker.h"

#define PARKED_MAX 256u
#define PARKED_OF_CLIENT 16u
/* Longest time since the call arrived: less than clients' time-outs. */
#define PATIENCE_NS (12 * 1000000000ull)
#define LOOK_NS (250 * 1000000ll)
#define PAUSE_NS (10 * 1000000ll) /* between two rounds, however many answers come */

struct parked {
	pthread_mutex_t lock; /* guards everything below; a leaf */
	pthread_cond_t changed;
	pthread_t thread;
	struct rn_inbox_node *list;
	unsigned n;
	bool answered, closed, stop;
};

static struct rpc_request *request_of(struct rn_inbox_node *node)
{
	return rn_container_of(node, struct rpc_request, node);
}

/* Calls of the client that are parked. The caller holds the lock. */
static unsigned count_of(struct parked *p, const struct rpc_client *client)
{
	unsigned n = 0;

	for (struct rn_inbox_node *at = p->list; at; at = at->next)
		n += request_of(at)->conn->client == client;
	return n;
}

bool parked_add(void *ctx, struct rpc_request *req, void (*again)(struct rpc_request *req))
{
	struct parked *p = ctx;
	bool taken;

	req->work = again;
	pthread_mutex_lock(&p->lock);
	taken = !p->closed && p->n < PARKED_MAX &&
		count_of(p, req->conn->client) < PARKED_OF_CLIENT;
	if (taken) {
		req->node.next = p->list;
		p->list = &req->node;
		if (p->n++ == 0)
			pthread_cond_signal(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
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

/* The request belongs to its worker once it is posted. */
static void send_back(struct rn_inbox_node *list, bool closed)
{
	const uint64_t now = rn_now_ns();

	while (list) {
		struct rpc_request *req = request_of(list);

		list = list->next;
		if (closed || now > req->arrived_ns + PATIENCE_NS)
			req->must_answer = true;
		rpc_requeue(req, req->work);
	}
}

/* Under the lock: waits until there are calls to send back. */
static void wait_for_change(struct parked *p)
{
	struct timespec until;
	const uint64_t at = rn_now_ns() + LOOK_NS;
	int rc = 0;

	until = (struct timespec){ .tv_sec = (time_t)(at / 1000000000u),
				   .tv_nsec = (long)(at % 1000000000u) };
	while (!p->stop && !p->closed && !p->answered && rc == 0)
		rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
	p->answered = false;
}

static void *parked_main(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct parked *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (p->n == 0) {
			p->answered = false;
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		wait_for_change(p);
		struct rn_inbox_node *list = p->list;
		const bool closed = p->closed;

		p->list = NULL;
		p->n = 0;
		pthread_mutex_unlock(&p->lock);
		send_back(list, closed);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int parked_new(struct parked **out)
{
	struct parked *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int rc;

	if (!p)
		return -ENOMEM;
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
	const unsigned n = p->n;
	pthread_mutex_unlock(&p->lock);
	return n;
}
