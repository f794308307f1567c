/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fibers: code that waits where it has to and goes on from there, without holding its thread meanwhile. A fiber
 * has a stack of its own. When it waits, its thread gets back to what it did before and runs others; whoever
 * wakes the fiber goes on with it, on the same thread or another.
 *
 * Two rules for code that runs in a fiber. No lock is held, and no identity borrowed, over a wait. After a wait,
 * what was looked at may have changed, and the thread may be another one, with other thread-local variables, whose
 * addresses a compiler keeps within one function: no function reads one on both sides of a wait. Builds with ASan or TSan check
 * the locks of pthreads (lib/fiber.c). TSan's take a worker's identity away after each wait for its ring (vfs/worker/ring.c).
 *
 * A fiber may also stand for a whole thread (rn_fiber_of_thread). It has no stack of its own, and waits by
 * blocking the thread.
 */
#ifndef RN_LIB_FIBER_H
#define RN_LIB_FIBER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct rn_budget;
struct rn_stack;
struct rn_stacks;

/* All that a fiber can wait for. */
enum rn_wait_for {
	RN_WAIT_NOTHING,
	RN_WAIT_THREAD, /* one that may block */
	RN_WAIT_RING,	/* an operation of the ring, or a turn on its thread */
	RN_WAIT_MEMORY,
	RN_WAIT_LOCK, /* another operation on the same open */
	RN_WAIT_CALL, /* the end of another call: the first transmission, or the slot's request */
	RN_WAIT_CONTEXT,    /* a context of RPCSEC_GSS that is being made */
	RN_WAIT_NAME,	    /* a name service: a host, a netgroup, an owner */
	RN_WAIT_USER,	    /* a name service: the caller */
	RN_WAIT_RECORD,	    /* a client's record on disk */
	RN_WAIT_STATE,	    /* what another client holds and is about to lose, or to give back */
	RN_WAIT_ATTRIBUTES, /* another client's answer to CB_GETATTR */
	RN_WAIT_COPY,	    /* the end of an asynchronous copy */
	RN_WAITS,
};
const char *rn_wait_text(enum rn_wait_for what); /* for people */

/* Numbers that tell what a fiber does, of its owner's choice. */
#define RN_FIBER_ABOUT 6u

struct rn_fiber {
	/* The wait under way (enum rn_wait_for) and its beginning (CLOCK_MONOTONIC_COARSE, ns). Atomic, since ringnfsctl calls has another
	 * thread read them. */
	_Atomic uint8_t waits_for;
	_Atomic uint64_t waits_since_ns;
	_Atomic uint64_t
		waits_until_ns; /* its end at the latest, of whoever sets a limit (CLOCK_MONOTONIC); 0: none */
	/* The longest wait since the owner has set this to 0: its length (ns, to some milliseconds), and for what.
	 * For the fiber itself. */
	uint64_t longest_ns;
	enum rn_wait_for longest_for;
	_Atomic uint64_t about
		[RN_FIBER_ABOUT]; /* likewise. The first is written last; 0: nothing to show, as at the end */
	/* The running thread's own state, such as a struct vfs_worker; set by whoever runs the fiber. */
	void *worker;
	/* Hands the fiber, which is at rest, to a thread that may block. NULL: this thread may. */
	void (*move)(struct rn_fiber *f);
	/* Any thread: has the fiber, which is at rest, go on. */
	void (*wake)(struct rn_fiber *f);
	void *owner;		/* for move() and wake() */
	struct rn_stack *stack; /* NULL: that of a whole thread */
};

/* Stacks for fibers that come and go. Thread-safe. Each is taken out of the budget, but for the first `least`,
 * which are always there. NULL: no memory. */
struct rn_stacks *rn_stacks_new(struct rn_budget *budget, unsigned least);
/* No fiber may be left. */
void rn_stacks_free(struct rn_stacks *s);
unsigned rn_stacks_used(struct rn_stacks *s); /* fibers that were got and not put */

/* A fiber as others see it; its members need not be of the same moment. */
struct rn_fiber_view {
	enum rn_wait_for waits_for;
	uint64_t waits_since_ns, waits_until_ns;
	uint64_t about[RN_FIBER_ABOUT];
};
/* Copies up to n of the fibers that have something to show, in no order. Returns how many there are. */
size_t rn_stacks_view(struct rn_stacks *s, struct rn_fiber_view *out, size_t n);

/* A fiber that can begin. NULL: no memory, or no more out of the budget. */
struct rn_fiber *rn_fiber_get(struct rn_stacks *s);
/* Gives back a fiber that has not begun, or has ended. NULL is allowed. */
void rn_fiber_put(struct rn_fiber *f);

/* Calls main(f, arg) in the fiber. True: it has ended, and can begin again. False: it waits, and whoever wakes it
 * calls rn_fiber_resume. It must not be touched: it may have ended by now. */
bool rn_fiber_begin(struct rn_fiber *f, void (*main)(struct rn_fiber *f, void *arg), void *arg);
/* Resumes a fiber that waits. The fiber frees itself at its end. */
void rn_fiber_resume(struct rn_fiber *f);

/* The fiber that runs on this thread, or NULL. */
struct rn_fiber *rn_fiber_current(void);

/* In the fiber: waits for that until it is resumed. after(arg) is called when the fiber is at rest, on the thread that it
 * had: what lets others find and resume it belongs there. Not for one that stands for a thread. */
void rn_fiber_wait(struct rn_fiber *f, enum rn_wait_for what, void (*after)(void *arg), void *arg);
/* In the fiber: makes sure that it runs on a thread that may block. */
void rn_fiber_move(struct rn_fiber *f);

/* Makes f stand for the calling thread. */
void rn_fiber_of_thread(struct rn_fiber *f, void *worker);

/*
 * A lock that may be held over a wait: a fiber that finds it taken waits without its thread, and may
 * give it back on another one. First come, first served. Callers that are in no fiber block their thread.
 */
struct rn_lock_waiter;

struct rn_lock {
	pthread_mutex_t guard; /* a leaf */
	bool held;
	STAILQ_HEAD(, rn_lock_waiter) waiting;
};

void rn_lock_init(struct rn_lock *l);
void rn_lock_fini(struct rn_lock *l); /* nobody has it or waits for it */
void rn_lock_take(struct rn_lock *l);
bool rn_lock_try(struct rn_lock *l);
void rn_lock_give(struct rn_lock *l);

#endif
