/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copies of one established context in the library, which does not promise that two threads may use one at a
 * time. There is one copy until two threads want it; then others are made of it (gss/gss_call.c), so that calls of one user
 * run beside each other. Each copy has the same keys. Thread-safe.
 */
#ifndef RN_GSS_GSS_COPIES_H
#define RN_GSS_GSS_COPIES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GSS_COPIES_MOST 16u

struct gss_mech_ctx;

struct gss_copies {
	pthread_mutex_t lock; /* guards the rest but crowded */
	pthread_cond_t back;  /* a copy was given back while somebody waited */
	struct gss_mech_ctx *idle[GSS_COPIES_MOST];
	unsigned nidle, n; /* n: all copies */
	unsigned most;	   /* copies beyond it are freed when they are given back */
	unsigned waiting;
	_Atomic bool crowded; /* a thread found no idle copy */
};

/* Takes over the library's context; NULL: there are no copies. */
void gss_copies_init(struct gss_copies *c, struct gss_mech_ctx *mech);
/* All copies must have been given back. */
void gss_copies_fini(struct gss_copies *c);

/* A copy for one thread, which gives it back. Waits until one is idle: for calls of the library, not for peers. */
struct gss_mech_ctx *gss_copies_take(struct gss_copies *c);
/* NULL: none is idle. */
struct gss_mech_ctx *gss_copies_try(struct gss_copies *c);
void gss_copies_give(struct gss_copies *c, struct gss_mech_ctx *mech);
/* Takes the only copy away for good. NULL: it has been taken. */
struct gss_mech_ctx *gss_copies_steal(struct gss_copies *c);

static inline bool gss_copies_crowded(const struct gss_copies *c)
{
	return atomic_load_explicit(&c->crowded, memory_order_relaxed);
}

/* Makes more, up to that number in all. May wait for the disk. False: the library failed, and the context is of no more use. */
bool gss_copies_grow(struct gss_copies *c, unsigned most);
/* Frees all but one, those in use when they are given back. */
void gss_copies_shrink(struct gss_copies *c);

#endif
