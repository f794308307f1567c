/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: one thread of the process, which waits for sockets and timers. Every callback runs
 * with the fabric's lock held, in the engine's thread or in a thread that polls an empty completion
 * queue (sv_engine_drive). Callbacks never block.
 */
#ifndef SV_ENGINE_H
#define SV_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#define SV_BATCH 64

struct sv_watch {
	int fd;
	void (*fn)(struct sv_watch *w, uint32_t events); /* epoll's bits */
};

struct sv_timer {
	TAILQ_ENTRY(sv_timer) link;
	uint64_t due; /* CLOCK_MONOTONIC, ns */
	void (*fn)(void *arg);
	void *arg;
	bool armed;
};

struct sv_engine {
	bool running;
	int epoll_fd;
	int wake_fd;
	struct sv_watch wake;
	pthread_t thread;
	TAILQ_HEAD(sv_timers, sv_timer) timers; /* ordered by due time */
	struct epoll_event batch[SV_BATCH];	/* ready descriptors of the current round */
	int nbatch;
	/* Hints without a lock; they decide which thread waits for the sockets. */
	atomic_uint idle_polls; /* polls of empty queues since the last request for an event */
	_Atomic uint64_t polled_at;
	_Atomic uint64_t wakes_at; /* end of the engine thread's wait (ns); 0 if it does not wait */
	atomic_bool backing_off;
};

uint64_t sv_now(void); /* ns */

int sv_engine_start(struct sv_engine *e);

/* In a child of fork(): closes the descriptors of the parent's engine. */
void sv_engine_forget(struct sv_engine *e);

/* All with the lock held. A watch or a timer may be removed in any callback, its own included. */
int sv_watch_add(struct sv_watch *w, uint32_t events);
int sv_watch_change(struct sv_watch *w, uint32_t events);
void sv_watch_remove(struct sv_watch *w); /* before its fd is closed */

/* Calls fn(arg) once, after usec microseconds. Starting a running timer changes its time. */
void sv_timer_start(struct sv_timer *t, uint64_t usec, void (*fn)(void *arg), void *arg);
void sv_timer_stop(struct sv_timer *t);

/* Called by an empty poll, without the lock: runs ready callbacks unless another thread does. */
void sv_engine_drive(void);

/* A thread will wait for an event now: the engine's thread must not leave its work to pollers. */
void sv_engine_waiter(void);

#endif
