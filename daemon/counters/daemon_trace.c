/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/counters/daemon_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

void trace_ring_init(struct trace_ring *r)
{
	atomic_init(&r->tail, 0);
	atomic_init(&r->lost, 0);
	r->head = 0;
	for (uint64_t i = 0; i < TRACE_RING; i++)
		atomic_init(&r->cell[i].turn, i);
}

void trace_ring_put(struct trace_ring *r, const struct trace_call *call)
{
	uint64_t at = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct trace_cell *c;

	do {
		c = &r->cell[at % TRACE_RING];
		/* The call of a round before is still in it. If another writer has taken the cell, the tail has moved
		 * on and the exchange fails. */
		if (atomic_load_explicit(&c->turn, memory_order_acquire) < at) {
			atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
			return;
		}
	} while (!atomic_compare_exchange_weak_explicit(&r->tail, &at, at + 1, memory_order_relaxed,
							memory_order_relaxed));
	c->call = *call;
	atomic_store_explicit(&c->turn, at + 1, memory_order_release);
}

bool trace_ring_take(struct trace_ring *r, struct trace_call *out)
{
	struct trace_cell *c = &r->cell[r->head % TRACE_RING];

	if (atomic_load_explicit(&c->turn, memory_order_acquire) != r->head + 1)
		return false;
	*out = c->call;
	atomic_store_explicit(&c->turn, r->head + TRACE_RING, memory_order_release);
	r->head++;
	return true;
}

uint64_t trace_ring_lost(struct trace_ring *r)
{
	return atomic_exchange_explicit(&r->lost, 0, memory_order_relaxed);
}

static _Atomic unsigned threads;    /* that have recorded a call */
static _Thread_local unsigned self; /* 1 for the first of them; 0: has recorded none yet */

void trace_init(struct trace *t)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
}

void trace_fini(struct trace *t)
{
	for (unsigned i = 0; i < TRACES_MAX; i++)
		free(atomic_load(&t->session[i].rings));
	pthread_mutex_destroy(&t->lock);
}

static void publish_filter(struct trace_session *s, const struct trace_filter *f)
{
	uint64_t words[TRACE_FILTER_WORDS] = { 0 };

	memcpy(words, f, sizeof(*f));
	for (size_t i = 0; i < TRACE_FILTER_WORDS; i++)
		atomic_store_explicit(&s->filter[i], words[i], memory_order_relaxed);
}

/* A pointer is one word, so that of another filter is whole, too. */
static void trace_read_filter(const struct trace_session *s, struct trace_filter *f)
{
	uint64_t words[TRACE_FILTER_WORDS];

	for (size_t i = 0; i < TRACE_FILTER_WORDS; i++)
		words[i] = atomic_load_explicit(&s->filter[i], memory_order_relaxed);
	memcpy(f, words, sizeof(*f));
}
_Static_assert(offsetof(struct trace_filter, name) % 8 == 0, "a pointer is not in two words");

static bool has_operation(const struct trace_filter *f, const struct trace_call *c)
{
	if (f->name && c->name && strcmp(f->name, c->name) == 0)
		return true;
	for (uint32_t i = 0; f->opnum && i < c->nkept; i++)
		if (c->ops[i] == f->opnum)
			return true;
	return false;
}

static bool trace_filter_passes(const struct trace_filter *f, const struct trace_call *c)
{
	return c->took_ns >= f->slower_ns && (!f->errors || trace_call_failed(c)) &&
	       (!f->clientid || f->clientid == c->clientid) &&
	       (!f->by_peer || rpc_address_equal(&f->peer, &c->peer)) &&
	       (!f->by_export || (c->has_export && c->export_id == f->export_id)) &&
	       (!f->by_operation || has_operation(f, c));
}

static struct trace_ring *ring_of_thread(struct trace_ring *rings)
{
	if (!self)
		self = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
	return &rings[self % TRACE_SHARDS];
}

void trace_record(struct trace *t, const struct rpc_request *req, uint64_t took_ns, bool error)
{
	const unsigned active = atomic_load_explicit(&t->active, memory_order_acquire);
	struct trace_filter f;
	struct trace_call call;
	bool made = false;

	for (unsigned i = 0; i < TRACES_MAX; i++) {
		struct trace_session *s = &t->session[i];

		if (!(active & 1u << i))
			continue;
		trace_read_filter(s, &f);
		if (took_ns < f.slower_ns)
			continue;
		if (!made)
			trace_call_make(&call, req, took_ns, error);
		made = true;
		if (trace_filter_passes(&f, &call))
			trace_ring_put(ring_of_thread(atomic_load_explicit(&s->rings,
									   memory_order_relaxed)),
				       &call);
	}
}

static struct trace_session *trace_find_session(struct trace *t, uint64_t id)
{
	for (unsigned i = 0; i < TRACES_MAX; i++)
		if (t->session[i].id == id)
			return &t->session[i];
	return NULL;
}

/* A call of the trace before may still be on its way into the rings: trace_take() leaves it out by its time. */
static int make_rings(struct trace_session *s)
{
	struct trace_ring *rings = atomic_load_explicit(&s->rings, memory_order_relaxed);
	struct trace_call dropped;

	if (!rings) {
		rings = aligned_alloc(_Alignof(struct trace_ring), TRACE_SHARDS * sizeof(*rings));
		if (!rings)
			return -ENOMEM;
		for (unsigned i = 0; i < TRACE_SHARDS; i++)
			trace_ring_init(&rings[i]);
		atomic_store_explicit(&s->rings, rings, memory_order_relaxed);
	}
	for (unsigned i = 0; i < TRACE_SHARDS; i++) {
		while (trace_ring_take(&rings[i], &dropped))
			;
		trace_ring_lost(&rings[i]);
	}
	return 0;
}

static int start_locked(struct trace *t, const struct trace_filter *filter, uint64_t *id)
{
	struct trace_session *s = trace_find_session(t, 0);
	int rc = s ? make_rings(s) : -EBUSY;

	if (rc)
		return rc;
	s->own = *filter;
	s->asked_ns = s->began_ns = rn_now_ns();
	*id = s->id = ++t->last_id;
	publish_filter(s, filter);
	atomic_fetch_or_explicit(&t->active, 1u << (s - t->session), memory_order_release);
	return 0;
}

int trace_start(struct trace *t, const struct trace_filter *filter, uint64_t *id)
{
	pthread_mutex_lock(&t->lock);
	const int rc = start_locked(t, filter, id);

	pthread_mutex_unlock(&t->lock);
	return rc;
}

static int trace_compare_calls(const void *a, const void *b)
{
	const struct trace_call *x = a, *y = b;

	return (x->ended_ns > y->ended_ns) - (x->ended_ns < y->ended_ns);
}

/* From each shard in turn, so that none runs over while others are emptied. */
static size_t take_locked(struct trace_session *s, struct trace_call *calls, size_t most)
{
	struct trace_ring *rings = atomic_load_explicit(&s->rings, memory_order_relaxed);
	size_t n = 0;
	bool any = true;

	while (any && n < most) {
		any = false;
		for (unsigned i = 0; i < TRACE_SHARDS && n < most; i++) {
			if (!trace_ring_take(&rings[i], &calls[n]))
				continue;
			any = true;
			n += calls[n].ended_ns >= s->began_ns &&
			     trace_filter_passes(&s->own, &calls[n]);
		}
	}
	return n;
}

int trace_take(struct trace *t, uint64_t id, struct trace_call *calls, size_t *n, uint64_t *lost)
{
	pthread_mutex_lock(&t->lock);
	struct trace_session *s = id ? trace_find_session(t, id) : NULL;

	*lost = 0;
	if (s) {
		s->asked_ns = rn_now_ns();
		*n = take_locked(s, calls, *n);
		for (unsigned i = 0; i < TRACE_SHARDS; i++)
			*lost += trace_ring_lost(&atomic_load(&s->rings)[i]);
	}
	pthread_mutex_unlock(&t->lock);
	if (!s)
		return -ENOENT;
	qsort(calls, *n, sizeof(calls[0]), trace_compare_calls);
	return 0;
}

static void stop_locked(struct trace *t, struct trace_session *s)
{
	atomic_fetch_and_explicit(&t->active, ~(1u << (s - t->session)), memory_order_relaxed);
	s->id = 0;
}

int trace_stop(struct trace *t, uint64_t id)
{
	pthread_mutex_lock(&t->lock);
	struct trace_session *s = id ? trace_find_session(t, id) : NULL;

	if (s)
		stop_locked(t, s);
	pthread_mutex_unlock(&t->lock);
	return s ? 0 : -ENOENT;
}

void trace_tick(struct trace *t)
{
	if (!trace_is_on(t))
		return;
	pthread_mutex_lock(&t->lock);
	const uint64_t now_ns = rn_now_ns();

	for (unsigned i = 0; i < TRACES_MAX; i++) {
		struct trace_session *s = &t->session[i];

		if (s->id && now_ns - s->asked_ns > TRACE_PATIENCE_S * RN_NS_PER_SECOND)
			stop_locked(t, s);
	}
	pthread_mutex_unlock(&t->lock);
}
