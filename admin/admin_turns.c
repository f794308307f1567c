/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/admin_turns.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct turn {
	TAILQ_ENTRY(turn) link;
	uint64_t round; /* the lower is served first */
	struct admin_call call;
	struct admin_request req; /* with copies of the texts */
	char *query, *accept, *body;
};

struct admin_turns {
	pthread_mutex_t lock; /* a leaf; guards the members down to stop */
	pthread_cond_t changed;
	TAILQ_HEAD(, turn) waiting; /* ordered by round, then by arrival */
	unsigned n;
	uint64_t round; /* that of the last one served */
	bool stop;
	pthread_t thread;
};

static void turn_free(struct turn *turn)
{
	free(turn->query);
	free(turn->accept);
	free(turn->body);
	free(turn);
}

static struct turn *turn_new(const struct admin_request *req)
{
	struct turn *turn = calloc(1, sizeof(*turn));

	if (!turn)
		return NULL;
	turn->call = *req->call;
	turn->req = *req;
	turn->query = req->query ? strdup(req->query) : NULL;
	turn->accept = req->accept ? strdup(req->accept) : NULL;
	turn->body = malloc(req->body_len + 1);
	if (!turn->body || (req->query && !turn->query) || (req->accept && !turn->accept)) {
		turn_free(turn);
		return NULL;
	}
	if (req->body_len)
		memcpy(turn->body, req->body, req->body_len);
	turn->req.query = turn->query;
	turn->req.accept = turn->accept;
	turn->req.body = turn->body;
	turn->req.call = &turn->call;
	return turn;
}

/* The next turn, or NULL: the thread is to end. */
static struct turn *admin_turns_take(struct admin_turns *t)
{
	struct turn *turn = NULL;

	pthread_mutex_lock(&t->lock);
	while (!t->stop && TAILQ_EMPTY(&t->waiting))
		pthread_cond_wait(&t->changed, &t->lock);
	if (!t->stop) {
		turn = TAILQ_FIRST(&t->waiting);
		TAILQ_REMOVE(&t->waiting, turn, link);
		t->n--;
		t->round = turn->round;
	}
	pthread_mutex_unlock(&t->lock);
	return turn;
}

/* A handler that has asked for the later answer gives it by itself. */
static void admin_turn_run(struct turn *turn)
{
	const struct admin_handler *h = turn->call.handler;
	struct admin_reply r = { .status = 500 };

	h->run(h->ctx, &turn->req, &r);
	if (turn->call.taken)
		return;
	*admin_later_reply(turn->call.later) = r;
	admin_later_send(turn->call.later);
}

static void *admin_turns_main(void *arg)
{
	struct turn *turn;

	pthread_setname_np(pthread_self(), "readers");
	while ((turn = admin_turns_take(arg))) {
		admin_turn_run(turn);
		turn_free(turn);
	}
	return NULL;
}

struct admin_turns *admin_turns_new(void)
{
	struct admin_turns *t = calloc(1, sizeof(*t));
	sigset_t all, old;

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	TAILQ_INIT(&t->waiting);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	const int rc = pthread_create(&t->thread, NULL, admin_turns_main, t);

	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return t;
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

void admin_turns_free(struct admin_turns *t)
{
	struct turn *turn;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	while ((turn = TAILQ_FIRST(&t->waiting))) {
		TAILQ_REMOVE(&t->waiting, turn, link);
		admin_later_send(turn->call.later);
		turn_free(turn);
	}
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* True if one more of that user may wait. */
static bool admin_turns_have_room(struct admin_turns *t, uid_t uid)
{
	const struct turn *turn;
	unsigned own = 0;

	pthread_mutex_lock(&t->lock);
	TAILQ_FOREACH (turn, &t->waiting, link)
		own += turn->call.peer.uid == uid;
	const bool room = own < ADMIN_TURNS_USER && t->n < ADMIN_TURNS_MAX;

	pthread_mutex_unlock(&t->lock);
	return room;
}

/* The user's first request that waits is served in the next round, his second one in that after it. */
static void queue(struct admin_turns *t, struct turn *turn)
{
	struct turn *other, *before = NULL;

	pthread_mutex_lock(&t->lock);
	turn->round = t->round + 1;
	TAILQ_FOREACH (other, &t->waiting, link)
		turn->round += other->call.peer.uid == turn->call.peer.uid;
	TAILQ_FOREACH (other, &t->waiting, link)
		if (other->round <= turn->round)
			before = other;
	if (before)
		TAILQ_INSERT_AFTER(&t->waiting, before, turn, link);
	else
		TAILQ_INSERT_HEAD(&t->waiting, turn, link);
	t->n++;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* One thread alone adds, so room that is found stays. */
bool admin_turns_add(struct admin_turns *t, const struct admin_request *req)
{
	struct turn *turn = admin_turns_have_room(t, req->peer.uid) ? turn_new(req) : NULL;

	if (!turn)
		return false;
	turn->call.later = admin_later(req);
	if (turn->call.later)
		queue(t, turn);
	else
		turn_free(turn);
	return req->call->later != NULL;
}
