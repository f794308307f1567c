/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The payload pool. A slab is cut into buffers of one class when it is first needed. It is cut
 * again for another class when all its buffers are back and the budget has no more, so that no
 * class starves the others by its past use.
 *
 * A request for which no slab can be had takes a larger buffer than it asked for, if there is one.
 *
 * Two slabs are set aside at the start: one for long buffers, one for short ones. Buffers that are
 * kept for long, such as heads of replies, never come from them. They could else pin a piece of each
 * slab, and nothing would be left for the data of any call. The slabs serve when no other can be had.
 * Long and short requests do not meet there, so neither can use up the last memory of the other.
 *
 * Each class lists its slabs that have free buffers, partly used ones first and wholly free ones
 * last: partly used slabs fill up, the others stay whole, and a slab that may be cut again is found
 * at the end of a list. One mutex guards everything but the table of slab bases, which only grows
 * and is read without it. ready() is called outside the mutex.
 *
 * A waiter is in one of two places: in the fair queue, until its account may hold the buffer and it
 * is its turn; then it is pool->next until there is a buffer. While there is a next, nobody passes
 * it, or a large buffer would never come together. An account may hold as much as is still free: a
 * dynamic threshold, as shared-memory switches have it.
 */
#include "lib/payload.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/fiber.h"
#include "lib/util.h"

#if defined(__SANITIZE_ADDRESS__)
#define RN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RN_ASAN 1
#endif
#endif
#ifdef RN_ASAN
#include <sanitizer/asan_interface.h>
#define poison(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define poison(p, n) ((void)(p), (void)(n))
#define unpoison(p, n) ((void)(p), (void)(n))
#endif

static const uint32_t class_sizes[] = { 4u << 10,   8u << 10, 16u << 10, 64u << 10,
					256u << 10, 1u << 20, 2u << 20 };
#define NCLASSES 7
#define CLASS_SHORT 3 /* the slab set aside for requests up to this class has buffers of it */
#define CLASS_LONG 5  /* the smallest class of the slab set aside for longer requests */

/* Requests that a slab serves. */
enum use { USE_ANY, USE_SHORT, USE_LONG, USES };

TAILQ_HEAD(payload_list, rn_payload);

#define WAITER_QUANTUM RN_PAYLOAD_MAX /* each turn gives one buffer, whatever its size */
/* Accounts asked when a buffer comes back. An account that may not hold more holds a buffer: when
 * that one comes back, the search goes on. */
#define WAITER_TRIES 64

struct slab {
	TAILQ_ENTRY(slab) link; /* in the list of its class while nfree > 0 */
	uint8_t *base;
	uint32_t index;
	uint32_t class_index;
	enum use use;
	uint32_t nbuf, nfree;
	struct payload_list free;
	struct rn_payload *bufs; /* nbuf */
};
TAILQ_HEAD(slab_list, slab);

struct rn_payload_pool {
	struct rn_budget *budget;
	pthread_mutex_t lock;
	struct slab_list classes[USES][NCLASSES];
	struct rn_fq waiters;
	struct rn_payload_waiter *next;
	struct rn_payload_account nobody; /* waiters that have no account */
	uint64_t in_use, waits;
	_Atomic size_t bytes_in_use;
	_Atomic unsigned waiting;
	_Atomic uint32_t nslabs;
	struct slab *slabs[RN_SLABS_MAX]; /* elements [0, nslabs) are set and do not change */
};

static uint32_t class_of(size_t size)
{
	uint32_t c = 0;

	while (class_sizes[c] < size)
		c++;
	return c;
}

struct rn_payload_pool *rn_payload_pool_new(struct rn_budget *budget)
{
	struct rn_payload_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->budget = budget;
	pthread_mutex_init(&pool->lock, NULL);
	for (unsigned u = 0; u < USES; u++)
		for (unsigned i = 0; i < NCLASSES; i++)
			TAILQ_INIT(&pool->classes[u][i]);
	rn_fq_init(&pool->waiters, WAITER_QUANTUM);
	rn_payload_account_init(&pool->nobody);
	return pool;
}

void rn_payload_account_init(struct rn_payload_account *a)
{
	atomic_init(&a->bytes, 0);
	atomic_init(&a->waiting, 0);
	atomic_init(&a->taken, 0);
	rn_fq_flow_init(&a->waiters);
}

static void slab_free(struct rn_payload_pool *pool, struct slab *s)
{
	unpoison(s->base, RN_SLAB_SIZE);
	munmap(s->base, RN_SLAB_SIZE);
	free(s->bufs);
	free(s);
	rn_budget_give(pool->budget, RN_SLAB_SIZE);
}

void rn_payload_pool_free(struct rn_payload_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->nslabs; i++)
		slab_free(pool, pool->slabs[i]);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Memory aligned to its size, so that a huge page can back it. */
static uint8_t *map_slab(void)
{
	const size_t twice = 2 * (size_t)RN_SLAB_SIZE;
	uint8_t *p = mmap(NULL, twice, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	const size_t before = -(uintptr_t)p & (RN_SLAB_SIZE - 1);
	if (before > 0)
		munmap(p, before);
	munmap(p + before + RN_SLAB_SIZE, RN_SLAB_SIZE - before);
	p += before;
	madvise(p, RN_SLAB_SIZE, MADV_HUGEPAGE); /* advice only: plain pages do as well */
	poison(p, RN_SLAB_SIZE);
	return p;
}

/* Cuts a slab without live buffers into buffers of class c. False: no memory for their headers. */
static bool slab_cut(struct rn_payload_pool *pool, struct slab *s, uint32_t c)
{
	const uint32_t n = RN_SLAB_SIZE / class_sizes[c];
	struct rn_payload *bufs = calloc(n, sizeof(*bufs));

	if (!bufs)
		return false;
	free(s->bufs);
	s->bufs = bufs;
	s->class_index = c;
	s->nbuf = s->nfree = n;
	TAILQ_INIT(&s->free);
	for (uint32_t i = 0; i < n; i++) {
		struct rn_payload *p = &bufs[i];

		p->size = class_sizes[c];
		p->slab = s->index;
		p->offset = i * class_sizes[c];
		p->data = s->base + p->offset;
		p->class_index = c;
		p->pool = pool;
		TAILQ_INSERT_TAIL(&s->free, p, free_link);
	}
	TAILQ_INSERT_TAIL(&pool->classes[s->use][c], s, link);
	return true;
}

static bool payload_pool_grow(struct rn_payload_pool *pool, enum use use, uint32_t c)
{
	const uint32_t index = pool->nslabs;

	if (index == RN_SLABS_MAX || !rn_budget_take(pool->budget, RN_SLAB_SIZE))
		return false;
	struct slab *s = calloc(1, sizeof(*s));
	if (!s)
		goto give_back;
	s->index = index;
	s->use = use;
	s->base = map_slab();
	if (!s->base)
		goto free_slab;
	if (!slab_cut(pool, s, c))
		goto unmap;
	pool->slabs[index] = s;
	atomic_store_explicit(&pool->nslabs, index + 1, memory_order_release);
	return true;

unmap:
	unpoison(s->base, RN_SLAB_SIZE);
	munmap(s->base, RN_SLAB_SIZE);
free_slab:
	free(s);
give_back:
	rn_budget_give(pool->budget, RN_SLAB_SIZE);
	return false;
}

int rn_payload_set_aside(struct rn_payload_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	const bool ok = payload_pool_grow(pool, USE_SHORT, CLASS_SHORT) &&
			payload_pool_grow(pool, USE_LONG, CLASS_LONG);
	pthread_mutex_unlock(&pool->lock);
	return ok ? 0 : -ENOMEM;
}

/* Takes a wholly free slab away from another class. */
static bool recut(struct rn_payload_pool *pool, enum use use, uint32_t c)
{
	for (uint32_t i = 0; i < NCLASSES; i++) {
		struct slab *s = TAILQ_LAST(&pool->classes[use][i], slab_list);

		if (!s || s->nfree < s->nbuf)
			continue;
		TAILQ_REMOVE(&pool->classes[use][i], s, link);
		if (slab_cut(pool, s, c))
			return true;
		TAILQ_INSERT_TAIL(&pool->classes[use][i], s, link);
		return false;
	}
	return false;
}

/* The smallest class, from c on, that has a free buffer which the account may hold; NCLASSES: none. */
static uint32_t class_at_hand(struct rn_payload_pool *pool, uint32_t c,
			      const struct rn_payload_account *a)
{
	while (c < NCLASSES && (TAILQ_EMPTY(&pool->classes[USE_ANY][c]) ||
				(a && !rn_payload_may_hold(pool, a, class_sizes[c]))))
		c++;
	return c;
}

/*
 * The list with a buffer for a request of class c; NULL: there is none. A larger one is taken when there
 * is no slab for the right class: all slabs may be in use in parts. But not to keep it: the head of a reply
 * would take what serves many READs.
 */
static struct slab_list *payload_find_slabs(struct rn_payload_pool *pool, uint32_t c,
					    const struct rn_payload_account *a, bool keep)
{
	if (TAILQ_EMPTY(&pool->classes[USE_ANY][c]) && !payload_pool_grow(pool, USE_ANY, c) &&
	    !recut(pool, USE_ANY, c))
		c = keep ? NCLASSES : class_at_hand(pool, c + 1, a);
	return c < NCLASSES ? &pool->classes[USE_ANY][c] : NULL;
}

/* Like payload_find_slabs(), in the slabs that are set aside. The account's quota was asked for the request's own class:
 * a larger buffer is no reason to wait here, since nobody would be served meanwhile. */
static struct slab_list *find_aside(struct rn_payload_pool *pool, uint32_t c)
{
	const enum use use = c <= CLASS_SHORT ? USE_SHORT : USE_LONG;

	c = use == USE_SHORT ? CLASS_SHORT : (uint32_t)rn_max(c, CLASS_LONG);
	if (TAILQ_EMPTY(&pool->classes[use][c]) && !recut(pool, use, c))
		return NULL;
	return &pool->classes[use][c];
}

/* Under the lock: a buffer for an account that may hold one of that size. It has one reference; its
 * memory is still poisoned. keep: it is needed for long. */
static struct rn_payload *payload_take(struct rn_payload_pool *pool, size_t size,
				       const struct rn_payload_account *a, bool keep)
{
	const uint32_t c = class_of(size);
	struct slab_list *list = payload_find_slabs(pool, c, a, keep);

	if (!list && !keep)
		list = find_aside(pool, c);
	if (!list)
		return NULL;
	struct slab *s = TAILQ_FIRST(list);
	struct rn_payload *p = TAILQ_FIRST(&s->free);
	TAILQ_REMOVE(&s->free, p, free_link);
	if (--s->nfree == 0)
		TAILQ_REMOVE(list, s, link);
	pool->in_use++;
	atomic_fetch_add_explicit(&pool->bytes_in_use, p->size, memory_order_relaxed);
	atomic_store_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

/* Bytes that could still be taken, in pieces of any size. */
static size_t payload_bytes_left(struct rn_payload_pool *pool)
{
	const size_t max = pool->budget->max;
	const size_t all = atomic_load_explicit(&pool->budget->used, memory_order_relaxed) +
			   atomic_load_explicit(&pool->bytes_in_use, memory_order_relaxed);
	const size_t slabs = (size_t)rn_payload_slab_count(pool) * RN_SLAB_SIZE;

	return all < max + slabs ? max + slabs - all : 0;
}

bool rn_payload_may_hold(struct rn_payload_pool *pool, const struct rn_payload_account *a,
			 size_t size)
{
	const size_t held = atomic_load_explicit(&a->bytes, memory_order_relaxed);

	return held == 0 || held + size <= payload_bytes_left(pool);
}

static void payload_assign(struct rn_payload *p, struct rn_payload_account *a)
{
	p->account = a;
	if (!a)
		return;
	atomic_fetch_add_explicit(&a->bytes, p->size, memory_order_relaxed);
	atomic_fetch_add_explicit(&a->taken, 1, memory_order_relaxed);
}

/* Under the lock. */
static void payload_put_back(struct rn_payload_pool *pool, struct rn_payload *p)
{
	struct slab *s = pool->slabs[p->slab];
	struct slab_list *list = &pool->classes[s->use][s->class_index];

	pool->in_use--;
	atomic_fetch_sub_explicit(&pool->bytes_in_use, p->size, memory_order_relaxed);
	if (p->account)
		atomic_fetch_sub_explicit(&p->account->bytes, p->size, memory_order_relaxed);
	p->account = NULL;
	TAILQ_INSERT_HEAD(&s->free, p, free_link); /* the warmest memory goes out first */
	if (++s->nfree == s->nbuf) {
		if (s->nbuf > 1)
			TAILQ_REMOVE(list, s, link);
		TAILQ_INSERT_TAIL(list, s, link);
	} else if (s->nfree == 1) {
		TAILQ_INSERT_HEAD(list, s, link);
	}
}

static struct rn_payload_waiter *payload_waiter_of(const struct rn_fq_item *it)
{
	return rn_container_of(it, struct rn_payload_waiter, turn);
}

/* Under the lock: a buffer if no waiter is passed over by it. *may: true if the account's quota
 * allows it. */
static struct rn_payload *take_for(struct rn_payload_pool *pool, size_t size,
				   struct rn_payload_account *a, bool keep, bool *may)
{
	const struct rn_payload_account *queued = a != NULL ? a : &pool->nobody;

	*may = !rn_fq_waits(&queued->waiters) &&
	       (!a || rn_payload_may_hold(pool, a, class_sizes[class_of(size)]));
	if (!*may || pool->next)
		return NULL;
	struct rn_payload *p = payload_take(pool, size, a, keep);
	if (p)
		payload_assign(p, a);
	return p;
}

static void count_waiting(struct rn_payload_pool *pool, struct rn_payload_waiter *w, int n)
{
	atomic_fetch_add_explicit(&pool->waiting, (unsigned)n, memory_order_relaxed);
	if (w->account)
		atomic_fetch_add_explicit(&w->account->waiting, (unsigned)n, memory_order_relaxed);
}

static void wait_in_turn(struct rn_payload_pool *pool, struct rn_payload_waiter *w, bool may)
{
	struct rn_payload_account *a = w->account != NULL ? w->account : &pool->nobody;

	pool->waits++;
	count_waiting(pool, w, 1);
	w->turn.flow = NULL;
	if (may && !pool->next)
		pool->next = w;
	else
		rn_fq_push(&pool->waiters, &a->waiters, &w->turn, (uint32_t)w->size);
}

static struct rn_payload *payload_try_get(struct rn_payload_pool *pool, size_t size,
					  struct rn_payload_account *account, bool keep)
{
	bool may;

	if (size > RN_PAYLOAD_MAX)
		return NULL;
	pthread_mutex_lock(&pool->lock);
	struct rn_payload *p = take_for(pool, size, account, keep, &may);
	pthread_mutex_unlock(&pool->lock);
	if (p)
		unpoison(p->data, p->size);
	return p;
}

struct rn_payload *rn_payload_get_for(struct rn_payload_pool *pool, size_t size,
				      struct rn_payload_account *account)
{
	return payload_try_get(pool, size, account, false);
}

struct rn_payload *rn_payload_get_to_keep(struct rn_payload_pool *pool, size_t size)
{
	return payload_try_get(pool, size, NULL, true);
}

struct rn_payload *rn_payload_get(struct rn_payload_pool *pool, size_t size)
{
	return rn_payload_get_for(pool, size, NULL);
}

struct rn_payload *rn_payload_get_or_wait(struct rn_payload_pool *pool, size_t size,
					  struct rn_payload_waiter *w)
{
	bool may;

	if (size > RN_PAYLOAD_MAX)
		return NULL;
	pthread_mutex_lock(&pool->lock);
	struct rn_payload *p = take_for(pool, size, w->account, false, &may);
	if (!p) {
		w->size = size;
		wait_in_turn(pool, w, may);
	}
	pthread_mutex_unlock(&pool->lock);
	if (p)
		unpoison(p->data, p->size);
	return p;
}

static bool may_be_next(void *ctx, const struct rn_fq_item *it)
{
	const struct rn_payload_waiter *w = payload_waiter_of(it);

	return !w->account || rn_payload_may_hold(ctx, w->account, class_sizes[class_of(w->size)]);
}

/* Under the lock: the next waiter, if there is a buffer for it. */
static struct rn_payload_waiter *next_served(struct rn_payload_pool *pool, struct rn_payload **p)
{
	if (!pool->next) {
		struct rn_fq_item *it =
			rn_fq_pop_if(&pool->waiters, WAITER_TRIES, may_be_next, pool);

		pool->next = it != NULL ? payload_waiter_of(it) : NULL;
	}
	struct rn_payload_waiter *w = pool->next;
	*p = w != NULL ? payload_take(pool, w->size, w->account, false) : NULL;
	if (!*p)
		return NULL;
	payload_assign(*p, w->account);
	count_waiting(pool, w, -1);
	pool->next = NULL;
	return w;
}

/* Serves one waiter if there is memory for it now. */
static bool serve_one(struct rn_payload_pool *pool)
{
	struct rn_payload *p;

	pthread_mutex_lock(&pool->lock);
	struct rn_payload_waiter *w = next_served(pool, &p);
	pthread_mutex_unlock(&pool->lock);
	if (!w)
		return false;
	unpoison(p->data, p->size);
	w->ready(w, p);
	return true;
}

/* A fiber that waits for memory. */
struct awaiting {
	struct rn_payload_waiter waiter;
	struct rn_payload_pool *pool;
	size_t size;
	struct rn_fiber *fiber;
	struct rn_payload *got;
};

static void payload_wake_fiber(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct awaiting *a = rn_container_of(w, struct awaiting, waiter);

	a->got = p;
	a->fiber->wake(a->fiber);
}

/* Called when the fiber is at rest, as the buffer may come at once. */
static void queue_for_memory(void *arg)
{
	struct awaiting *a = arg;
	struct rn_payload *p = rn_payload_get_or_wait(a->pool, a->size, &a->waiter);

	if (p)
		payload_wake_fiber(&a->waiter, p);
}

struct rn_payload *rn_payload_await(struct rn_payload_pool *pool, size_t size,
				    struct rn_payload_account *account)
{
	struct awaiting a = { .waiter = { .account = account, .ready = payload_wake_fiber },
			      .pool = pool,
			      .size = size,
			      .fiber = rn_fiber_current() };
	struct rn_payload *p = rn_payload_get_for(pool, size, account);

	if (p || !a.fiber)
		return p;
	rn_fiber_wait(a.fiber, RN_WAIT_MEMORY, queue_for_memory, &a);
	return a.got;
}

int rn_payload_wait_cancel(struct rn_payload_pool *pool, struct rn_payload_waiter *w)
{
	int ret = -ENOENT;

	pthread_mutex_lock(&pool->lock);
	if (pool->next == w) {
		pool->next = NULL;
		ret = 0;
	} else if (w->turn.flow) {
		rn_fq_remove(&pool->waiters, &w->turn);
		ret = 0;
	}
	if (ret == 0)
		count_waiting(pool, w, -1);
	pthread_mutex_unlock(&pool->lock);
	while (ret == 0 && serve_one(pool))
		; /* a smaller request may have been behind it */
	return ret;
}

void rn_payload_ref(struct rn_payload *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void rn_payload_put(struct rn_payload *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
		return;
	struct rn_payload_pool *pool = p->pool;

	poison(p->data, p->size);
	pthread_mutex_lock(&pool->lock);
	payload_put_back(pool, p);
	const bool waiting = pool->next != NULL || pool->waiters.nitems > 0;
	pthread_mutex_unlock(&pool->lock);
	while (waiting && serve_one(pool))
		;
}

uint32_t rn_payload_slab_count(struct rn_payload_pool *pool)
{
	return atomic_load_explicit(&pool->nslabs, memory_order_acquire);
}

void *rn_payload_slab_base(struct rn_payload_pool *pool, uint32_t index)
{
	return index < rn_payload_slab_count(pool) ? pool->slabs[index]->base : NULL;
}

bool rn_payload_short(struct rn_payload_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	const bool is = pool->next != NULL;
	pthread_mutex_unlock(&pool->lock);
	return is;
}

unsigned rn_payload_waiting(const struct rn_payload_pool *pool)
{
	return atomic_load_explicit(&pool->waiting, memory_order_relaxed);
}

bool rn_payload_is_ample(struct rn_payload_pool *pool)
{
	return payload_bytes_left(pool) > pool->budget->max / 2;
}

void rn_payload_stats(struct rn_payload_pool *pool, struct rn_payload_stats *out)
{
	pthread_mutex_lock(&pool->lock);
	*out = (struct rn_payload_stats){
		.slabs = pool->nslabs,
		.buffers_in_use = pool->in_use,
		.bytes_in_use = pool->bytes_in_use,
		.waits = pool->waits,
	};
	pthread_mutex_unlock(&pool->lock);
}
