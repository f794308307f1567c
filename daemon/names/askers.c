/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/names/names.h"

#include <pthread.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/fair_queue.h"
#include "lib/host.h"
#include "lib/log_ids.h"
#include "lib/util.h"

#define NETWORKS 64u /* networks whose hashes collide share their turns and places */
#define OWN NETWORKS /* the server itself, as a network */
#define NETWORK_MAX                                                                                \
	256u /* most questions that wait, of one network; so others cannot take its places */
#define QUANTUM 1u
#define SLOW_SECONDS 2	  /* seconds after which an answer that has not come is logged */
#define QUIET_SECONDS 60  /* between two messages */
#define LEAVING_SECONDS 5 /* longest wait for answers when the server stops */

static const unsigned threads_of[ASK_KINDS] = {
	[ASK_HOSTS] = 16, [ASK_GROUPS] = 8, [ASK_OWNERS] = 8
};

struct network {
	struct rn_fq_flow flow;
	unsigned waiting, running;
};

struct line { /* one for each kind */
	struct rn_fq queue;
	struct network network[NETWORKS + 1];
	unsigned running;
	unsigned most; /* threads that may work on it */
};

struct question {
	struct rn_fq_item item;
	struct line *line;
	struct network *network;
	void (*run)(void *job, bool cancelled);
	void *job;
};

struct askers {
	struct askers_config cfg;
	uint8_t key
		[crypto_shorthash_KEYBYTES]; /* of the hash of networks: nobody can aim at another's */
	pthread_mutex_t lock;		     /* guards all members below; a leaf */
	pthread_cond_t work;
	pthread_cond_t ended; /* a thread has */
	struct line line[ASK_KINDS];
	unsigned threads, idle, waiting;
	time_t warned; /* 0: never */
	bool closed;
};

struct askers *askers_new(const struct askers_config *cfg)
{
	struct askers *a = calloc(1, sizeof(*a));
	pthread_condattr_t attr;

	if (!a)
		return NULL;
	a->cfg = *cfg;
	crypto_shorthash_keygen(a->key);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, &attr);
	pthread_cond_init(&a->ended, &attr);
	pthread_condattr_destroy(&attr);
	for (unsigned k = 0; k < ASK_KINDS; k++) {
		struct line *l = &a->line[k];

		rn_fq_init(&l->queue, QUANTUM);
		l->most = threads_of[k];
		for (unsigned i = 0; i <= NETWORKS; i++)
			rn_fq_flow_init(&l->network[i].flow);
	}
	return a;
}

static unsigned network_index(const struct askers *a, const struct sockaddr *peer)
{
	struct rn_host network;
	uint64_t h;

	if (!peer)
		return OWN;
	rn_network_of(peer, &network);
	crypto_shorthash((uint8_t *)&h, (const uint8_t *)&network, sizeof(network), a->key);
	return h % NETWORKS;
}

static struct question *question_of(const struct rn_fq_item *item)
{
	return rn_container_of((struct rn_fq_item *)item, struct question, item);
}

/* False if the network already has its quarter of the kind's threads. */
static bool may_run(void *ctx, const struct rn_fq_item *item)
{
	const struct line *l = ctx;

	return question_of(item)->network->running < (l->most + 3) / 4;
}

/* Under the lock: the next question that may be asked now. */
static struct question *askers_take_due(struct askers *a)
{
	for (unsigned k = 0; k < ASK_KINDS; k++) {
		struct line *l = &a->line[k];
		struct rn_fq_item *item = NULL;

		if (l->running < l->most)
			item = rn_fq_pop_if(&l->queue, NETWORKS + 1, may_run, l);
		if (!item)
			continue;
		struct question *q = question_of(item);

		a->waiting--;
		q->network->waiting--;
		q->network->running++;
		l->running++;
		return q;
	}
	return NULL;
}

/* Under the lock: true if a message is due. */
static bool warn_due(struct askers *a, time_t took)
{
	const time_t now = (time_t)rn_now_seconds();

	if (took < SLOW_SECONDS || (a->warned && now - a->warned < QUIET_SECONDS))
		return false;
	a->warned = now;
	return true;
}

/* Called and returns with the lock held, but releases it in between. */
static void askers_run_question(struct askers *a, struct question *q)
{
	const time_t began = (time_t)rn_now_seconds();
	struct network *n = q->network;
	struct line *l = q->line;
	bool warn;
	time_t took;

	pthread_mutex_unlock(&a->lock);
	q->run(q->job, false);
	free(q);
	took = (time_t)rn_now_seconds() - began;
	pthread_mutex_lock(&a->lock);
	n->running--;
	l->running--;
	if (a->closed)
		return; /* askers_end may have given up meanwhile */
	if (a->waiting > 0)
		/* others of the network, or of the kind, may be asked now */
		pthread_cond_broadcast(&a->work);
	warn = warn_due(a, took);
	pthread_mutex_unlock(&a->lock);
	if (warn)
		rn_log_event(a->cfg.log, RN_WARNING,
			     &(struct rn_log_event){ .id = RN_ID_NAMES_SLOW },
			     "a name service took %lld s for an answer; calls that need one wait",
			     (long long)took);
	if (a->cfg.answered)
		a->cfg.answered(a->cfg.ctx);
	pthread_mutex_lock(&a->lock);
}

static void *asker_main(void *arg)
{
	struct askers *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->closed) {
		struct question *q = askers_take_due(a);

		if (q) {
			askers_run_question(a, q);
			continue;
		}
		a->idle++;
		pthread_cond_wait(&a->work, &a->lock);
		a->idle--;
	}
	a->threads--;
	pthread_cond_signal(&a->ended);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Under the lock. If no further thread can be started, the existing ones do the work. */
static void askers_start_thread(struct askers *a)
{
	pthread_attr_t attr;
	pthread_t thread;
	unsigned most = 0;

	for (unsigned k = 0; k < ASK_KINDS; k++)
		most += a->line[k].most;
	if (a->threads >= most)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, asker_main, a) == 0) {
		pthread_setname_np(thread, "asker");
		a->threads++;
	}
	pthread_attr_destroy(&attr);
}

/* Under the lock. */
static bool askers_push(struct askers *a, struct question *q)
{
	if (a->closed || q->network->waiting >= NETWORK_MAX)
		return false;
	a->waiting++;
	q->network->waiting++;
	rn_fq_push(&q->line->queue, &q->network->flow, &q->item, QUANTUM);
	if (a->idle > 0)
		pthread_cond_signal(&a->work);
	else
		askers_start_thread(a);
	return a->threads > 0;
}

bool askers_ask(struct askers *a, enum asker_kind kind, const struct sockaddr *peer,
		void (*run)(void *job, bool cancelled), void *job)
{
	struct question *q = malloc(sizeof(*q));
	bool taken;

	if (!q)
		return false;
	*q = (struct question){ .line = &a->line[kind],
				.network = &a->line[kind].network[network_index(a, peer)],
				.run = run,
				.job = job };
	pthread_mutex_lock(&a->lock);
	taken = askers_push(a, q);
	if (!taken && q->item.flow) { /* no thread could be started */
		rn_fq_remove(&q->line->queue, &q->item);
		q->network->waiting--;
		a->waiting--;
	}
	pthread_mutex_unlock(&a->lock);
	if (!taken)
		free(q);
	return taken;
}

/* Under the lock. */
static struct question *askers_take_any(struct askers *a)
{
	for (unsigned k = 0; k < ASK_KINDS; k++) {
		struct rn_fq_item *item = rn_fq_pop(&a->line[k].queue);

		if (item)
			return question_of(item);
	}
	return NULL;
}

void askers_close(struct askers *a)
{
	struct question *q;

	pthread_mutex_lock(&a->lock);
	a->closed = true;
	pthread_cond_broadcast(&a->work);
	while ((q = askers_take_any(a)) != NULL) {
		a->waiting--;
		pthread_mutex_unlock(&a->lock);
		q->run(q->job, true);
		free(q);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
}

bool askers_free(struct askers *a)
{
	int rc = 0;

	askers_close(a);
	const struct timespec limit = rn_after_seconds(LEAVING_SECONDS);

	pthread_mutex_lock(&a->lock);
	while (a->threads > 0 && !rc)
		rc = pthread_cond_timedwait(&a->ended, &a->lock, &limit);
	const bool all = a->threads == 0;
	pthread_mutex_unlock(&a->lock);
	if (!all)
		return false;
	pthread_cond_destroy(&a->work);
	pthread_cond_destroy(&a->ended);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return true;
}
