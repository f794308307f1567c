/* SPDX-License-Identifier: BSD-2-Clause */
/* Fibers on Boost.Context, whose two functions are assembly. */
#include "config.h"

#include "lib/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/budget.h"
#include "lib/clock.h"
#include "lib/util.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#elif __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#endif

#ifdef HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HAS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(HAS_ASAN) || defined(HAS_TSAN)
#define STACK_SIZE (1u << 20) /* sanitizers put more on the stack */
#else
#define STACK_SIZE (256u << 10) /* address space: memory is what a call touches */
#endif
/* Bytes of a stack that calls usually touch, which the budget is charged for. */
#define STACK_CHARGE (16u << 10)
#define STACKS_KEPT 64u /* free ones; further ones are unmapped */

/* Boost.Context's result and its two functions, declared here since it has no header for C. */
struct transfer {
	void *context;
	void *data;
};
/* Since 1.92 they have C++ linkage: names in which size_t is "m" or "j". */
#ifdef HAVE_FCONTEXT_OF_CXX
#define CXX_NAME(name) __asm__("_ZN5boost7context6detail13" name)
#else
#define CXX_NAME(name)
#endif
#ifdef __LP64__
#define CXX_SIZE_T "m"
#else
#define CXX_SIZE_T "j"
#endif
struct transfer jump_fcontext(void *to, void *data) CXX_NAME("jump_fcontextEPvS2_");
void *make_fcontext(void *top, size_t size, void (*fn)(struct transfer t))
	CXX_NAME("make_fcontextEPv" CXX_SIZE_T "PFvNS1_10transfer_tEE");

struct rn_stack {
	struct rn_fiber fiber;
	struct rn_stacks *stacks;
	SLIST_ENTRY(rn_stack) link; /* while it is free */
	LIST_ENTRY(rn_stack) of_all;
	char *memory;
	bool charged;
	void *context; /* where it goes on, while it is at rest */
	void *thread;  /* where its thread goes on, while it runs */
	void (*main)(struct rn_fiber *f, void *arg);
	void *arg;
	bool ended;
	void (*after)(void *arg); /* of the wait that begins */
	void *after_arg;
#ifdef HAS_ASAN
	void *fake, *thread_fake; /* saved by each side when it leaves */
	const void *thread_bottom;
	size_t thread_size;
#endif
#ifdef HAS_TSAN
	void *tsan, *thread_tsan;
#endif
};

struct rn_stacks {
	pthread_mutex_t lock;
	struct rn_budget *budget;
	unsigned least;
	SLIST_HEAD(, rn_stack) free;
	LIST_HEAD(, rn_stack) all;
	unsigned nfree, n; /* free ones, and all */
};

static _Thread_local struct rn_fiber *current;

#ifdef CHECK_WAITS
static _Thread_local int locks_held;

/* The linker has calls of the function come here (RN_COUNT_LOCKS in configure.ac); programs without fibers leave that out. */
#define COUNTED(function, type, locks)                                                             \
	int __real_##function(type *lock) __attribute__((weak));                                   \
	int __wrap_##function(type *lock);                                                         \
	int __wrap_##function(type *lock)                                                          \
	{                                                                                          \
		const int rc = __real_##function(lock);                                            \
                                                                                                   \
		locks_held += rc == 0 ? (locks) : 0;                                               \
		return rc;                                                                         \
	}
COUNTED(pthread_mutex_lock, pthread_mutex_t, 1)
COUNTED(pthread_mutex_trylock, pthread_mutex_t, 1)
COUNTED(pthread_mutex_unlock, pthread_mutex_t, -1)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t, 1)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t, 1)
COUNTED(pthread_rwlock_unlock, pthread_rwlock_t, -1)

/* Whoever wants the lock would wait as long as the fiber, and another thread may go on with it. */
static void fiber_check_wait(enum rn_wait_for what)
{
	if (locks_held == 0)
		return;
	fprintf(stderr, "a fiber waits for %s with %d locks\n", rn_wait_text(what), locks_held);
	abort();
}
#else
static void fiber_check_wait(enum rn_wait_for what)
{
	(void)what;
}
#endif

/* A compiler that sees into it could keep the variable's address over a wait. */
__attribute__((noinline)) struct rn_fiber *rn_fiber_current(void)
{
	__asm__ volatile("");
	return current;
}

/* The four functions below tell a sanitizer of each switch: it would take the other stack for an overflow, or for a race. */
static void leave_thread(struct rn_stack *k, size_t guard)
{
	(void)k;
	(void)guard;
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(&k->thread_fake, k->memory + guard, STACK_SIZE);
#endif
#ifdef HAS_TSAN
	k->thread_tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(k->tsan, 0);
#endif
}

static void back_on_thread(struct rn_stack *k)
{
	(void)k;
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(k->thread_fake, NULL, NULL);
#endif
}

static void leave_fiber(struct rn_stack *k)
{
	(void)k;
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(&k->fake, k->thread_bottom, k->thread_size);
#endif
#ifdef HAS_TSAN
	__tsan_switch_to_fiber(k->thread_tsan, 0);
#endif
}

static void back_in_fiber(struct rn_stack *k)
{
	(void)k;
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(k->fake, &k->thread_bottom, &k->thread_size);
#endif
}

static size_t guard_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Fiber: gives its thread back. */
static void switch_back(struct rn_stack *k)
{
	leave_fiber(k);
	const struct transfer t = jump_fcontext(k->thread, NULL);

	back_in_fiber(k);
	k->thread = t.context;
}

/* The bottom of the stack: what the fiber does, one main() after the other. */
static void fiber_body(struct transfer t)
{
	struct rn_stack *k = t.data;

	back_in_fiber(k);
	k->thread = t.context;
	for (;;) {
		k->main(&k->fiber, k->arg);
		k->ended = true;
		switch_back(k);
	}
}

/* Thread: runs the fiber until it waits or has ended. True: it has ended. */
static bool switch_to(struct rn_stack *k)
{
	current = &k->fiber;
	leave_thread(k, guard_size());
	const struct transfer t = jump_fcontext(k->context, k);

	back_on_thread(k);
	current = NULL;
	k->context = t.context;
	if (k->ended) {
		atomic_store_explicit(&k->fiber.about[0], 0, memory_order_relaxed);
		return true;
	}
	k->after(k->after_arg); /* k may be another thread's from here on */
	return false;
}

bool rn_fiber_begin(struct rn_fiber *f, void (*main)(struct rn_fiber *f, void *arg), void *arg)
{
	struct rn_stack *k = f->stack;

	k->main = main;
	k->arg = arg;
	k->ended = false;
	return switch_to(k);
}

void rn_fiber_resume(struct rn_fiber *f)
{
	if (switch_to(f->stack))
		rn_fiber_put(f);
}

const char *rn_wait_text(enum rn_wait_for what)
{
	static const char *const text[RN_WAITS] = {
		[RN_WAIT_THREAD] = "a worker",
		[RN_WAIT_RING] = "the file system",
		[RN_WAIT_MEMORY] = "memory",
		[RN_WAIT_LOCK] = "another operation on the same open",
		[RN_WAIT_CALL] = "the same call's first transmission",
		[RN_WAIT_CONTEXT] = "a Kerberos context",
		[RN_WAIT_NAME] = "a name service",
		[RN_WAIT_USER] = "a name service (the caller)",
		[RN_WAIT_RECORD] = "a client's record on disk",
		[RN_WAIT_STATE] = "what another client holds",
		[RN_WAIT_ATTRIBUTES] = "a delegation's holder",
		[RN_WAIT_COPY] = "the end of a copy",
	};

	return what < RN_WAITS && text[what] ? text[what] : "";
}

static void note_wait(struct rn_fiber *f, enum rn_wait_for what)
{
	atomic_store_explicit(&f->waits_since_ns, rn_clock_ns(CLOCK_MONOTONIC_COARSE),
			      memory_order_relaxed);
	atomic_store_explicit(&f->waits_for, (uint8_t)what, memory_order_relaxed);
}

static void note_wait_end(struct rn_fiber *f, enum rn_wait_for what)
{
	const uint64_t since = atomic_load_explicit(&f->waits_since_ns, memory_order_relaxed);
	const uint64_t lasted = rn_clock_ns(CLOCK_MONOTONIC_COARSE) - since;

	if (lasted > f->longest_ns) {
		f->longest_ns = lasted;
		f->longest_for = what;
	}
	atomic_store_explicit(&f->waits_since_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&f->waits_for, RN_WAIT_NOTHING, memory_order_relaxed);
}

void rn_fiber_wait(struct rn_fiber *f, enum rn_wait_for what, void (*after)(void *arg), void *arg)
{
	struct rn_stack *k = f->stack;

	fiber_check_wait(what);
	note_wait(f, what);
	k->after = after;
	k->after_arg = arg;
	switch_back(k);
	note_wait_end(f, what);
}

static void move_away(void *arg)
{
	struct rn_fiber *f = arg;

	f->move(f);
}

void rn_fiber_move(struct rn_fiber *f)
{
	if (f->move && f->stack)
		rn_fiber_wait(f, RN_WAIT_THREAD, move_away, f);
	else if (f->move)
		f->move(f);
}

void rn_fiber_of_thread(struct rn_fiber *f, void *worker)
{
	*f = (struct rn_fiber){ .worker = worker };
}

struct rn_stacks *rn_stacks_new(struct rn_budget *budget, unsigned least)
{
	struct rn_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->budget = budget;
	s->least = least;
	SLIST_INIT(&s->free);
	LIST_INIT(&s->all);
	return s;
}

static void stack_free(struct rn_stack *k)
{
#ifdef HAS_TSAN
	__tsan_destroy_fiber(k->tsan);
#endif
	if (k->charged)
		rn_budget_give(k->stacks->budget, STACK_CHARGE);
	munmap(k->memory, guard_size() + STACK_SIZE);
	free(k);
}

void rn_stacks_free(struct rn_stacks *s)
{
	struct rn_stack *k;

	if (!s)
		return;
	while ((k = SLIST_FIRST(&s->free)) != NULL) {
		SLIST_REMOVE_HEAD(&s->free, link);
		stack_free(k);
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

unsigned rn_stacks_used(struct rn_stacks *s)
{
	pthread_mutex_lock(&s->lock);
	const unsigned n = s->n - s->nfree;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* False: no memory. */
static bool map(struct rn_stack *k)
{
	const size_t guard = guard_size();
	char *m = mmap(NULL, guard + STACK_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return false;
	if (mprotect(m, guard, PROT_NONE) != 0) {
		munmap(m, guard + STACK_SIZE);
		return false;
	}
	k->memory = m;
	k->context = make_fcontext(m + guard + STACK_SIZE, STACK_SIZE, fiber_body);
	return true;
}

static struct rn_stack *stack_new(struct rn_stacks *s, bool charged)
{
	struct rn_stack *k;

	if (charged && !rn_budget_take(s->budget, STACK_CHARGE))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k || !map(k)) {
		free(k);
		if (charged)
			rn_budget_give(s->budget, STACK_CHARGE);
		return NULL;
	}
	k->stacks = s;
	k->charged = charged;
	k->fiber.stack = k;
#ifdef HAS_TSAN
	k->tsan = __tsan_create_fiber(0);
#endif
	return k;
}

/* A free one, or NULL and the number of all with the one to be made. */
static struct rn_stack *take_free(struct rn_stacks *s, unsigned *n)
{
	struct rn_stack *k;

	pthread_mutex_lock(&s->lock);
	k = SLIST_FIRST(&s->free);
	if (k) {
		SLIST_REMOVE_HEAD(&s->free, link);
		s->nfree--;
	} else {
		*n = ++s->n;
	}
	pthread_mutex_unlock(&s->lock);
	return k;
}

struct rn_fiber *rn_fiber_get(struct rn_stacks *s)
{
	unsigned n = 0;
	struct rn_stack *k = take_free(s, &n);

	if (k)
		return &k->fiber;
	k = stack_new(s, n > s->least);
	pthread_mutex_lock(&s->lock);
	if (k)
		LIST_INSERT_HEAD(&s->all, k, of_all);
	else
		s->n--;
	pthread_mutex_unlock(&s->lock);
	return k ? &k->fiber : NULL;
}

void rn_fiber_put(struct rn_fiber *f)
{
	struct rn_stack *k = f ? f->stack : NULL;
	struct rn_stacks *s;
	bool keep;

	if (!k)
		return;
	s = k->stacks;
	f->move = NULL;
	pthread_mutex_lock(&s->lock);
	keep = s->nfree < STACKS_KEPT || !k->charged;
	if (keep) {
		SLIST_INSERT_HEAD(&s->free, k, link);
		s->nfree++;
	} else {
		LIST_REMOVE(k, of_all);
		s->n--;
	}
	pthread_mutex_unlock(&s->lock);
	if (!keep)
		stack_free(k);
}

static void fiber_view_fill(struct rn_fiber *f, struct rn_fiber_view *v)
{
	v->waits_for = atomic_load_explicit(&f->waits_for, memory_order_relaxed);
	v->waits_since_ns = atomic_load_explicit(&f->waits_since_ns, memory_order_relaxed);
	v->waits_until_ns = atomic_load_explicit(&f->waits_until_ns, memory_order_relaxed);
	for (unsigned i = 0; i < RN_FIBER_ABOUT; i++)
		v->about[i] = atomic_load_explicit(&f->about[i], memory_order_acquire);
}

size_t rn_stacks_view(struct rn_stacks *s, struct rn_fiber_view *out, size_t n)
{
	struct rn_fiber_view v;
	struct rn_stack *k;
	size_t found = 0;

	pthread_mutex_lock(&s->lock);
	LIST_FOREACH (k, &s->all, of_all) {
		fiber_view_fill(&k->fiber, &v);
		if (v.about[0] && found++ < n)
			out[found - 1] = v;
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* Locks that may be held over a wait. */

struct rn_lock_waiter {
	struct rn_fiber *fiber; /* NULL: a thread, which waits for woken */
	sem_t woken;
	STAILQ_ENTRY(rn_lock_waiter) link;
};

void rn_lock_init(struct rn_lock *l)
{
	pthread_mutex_init(&l->guard, NULL);
	l->held = false;
	STAILQ_INIT(&l->waiting);
}

void rn_lock_fini(struct rn_lock *l)
{
	pthread_mutex_destroy(&l->guard);
}

bool rn_lock_try(struct rn_lock *l)
{
	bool free;

	pthread_mutex_lock(&l->guard);
	free = !l->held;
	l->held = true;
	pthread_mutex_unlock(&l->guard);
	return free;
}

struct taking {
	struct rn_lock *lock;
	struct rn_lock_waiter waiter;
};

/* True if the caller has the lock, else it waits for it. */
static bool queue_up(struct rn_lock *l, struct rn_lock_waiter *w)
{
	bool free;

	pthread_mutex_lock(&l->guard);
	free = !l->held;
	l->held = true;
	if (!free)
		STAILQ_INSERT_TAIL(&l->waiting, w, link);
	pthread_mutex_unlock(&l->guard);
	return free;
}

/* The fiber is at rest: it can be woken at once. */
static void queue_fiber(void *arg)
{
	struct taking *t = arg;
	struct rn_fiber *f = t->waiter.fiber;

	if (queue_up(t->lock, &t->waiter))
		f->wake(f);
}

static void take_as_thread(struct taking *t)
{
	sem_init(&t->waiter.woken, 0, 0);
	if (!queue_up(t->lock, &t->waiter))
		while (sem_wait(&t->waiter.woken) != 0 && errno == EINTR)
			;
	sem_destroy(&t->waiter.woken);
}

void rn_lock_take(struct rn_lock *l)
{
	struct taking t = { .lock = l, .waiter.fiber = rn_fiber_current() };

	if (rn_lock_try(l))
		return;
	if (t.waiter.fiber)
		rn_fiber_wait(t.waiter.fiber, RN_WAIT_LOCK, queue_fiber, &t);
	else
		take_as_thread(&t);
}

/* The lock goes to the first who waits. */
void rn_lock_give(struct rn_lock *l)
{
	struct rn_lock_waiter *w;
	struct rn_fiber *f = NULL;

	pthread_mutex_lock(&l->guard);
	w = STAILQ_FIRST(&l->waiting);
	if (w) {
		STAILQ_REMOVE_HEAD(&l->waiting, link);
		f = w->fiber;
		if (!f)
			sem_post(&w->woken);
	} else {
		l->held = false;
	}
	pthread_mutex_unlock(&l->guard);
	if (f)
		f->wake(f);
}
