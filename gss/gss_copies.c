/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/gss_copies.h"

#include <string.h>

#include "gss/mech.h"
#include "lib/util.h"

void gss_copies_init(struct gss_copies *c, struct gss_mech_ctx *mech)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->back, NULL);
	atomic_init(&c->crowded, false);
	c->most = 1;
	if (mech)
		c->idle[c->nidle++] = mech;
	c->n = c->nidle;
}

void gss_copies_fini(struct gss_copies *c)
{
	for (unsigned i = 0; i < c->nidle; i++)
		gss_mech_ctx_free(c->idle[i]);
	pthread_cond_destroy(&c->back);
	pthread_mutex_destroy(&c->lock);
}

struct gss_mech_ctx *gss_copies_take(struct gss_copies *c)
{
	struct gss_mech_ctx *m;

	pthread_mutex_lock(&c->lock);
	if (c->nidle == 0)
		atomic_store_explicit(&c->crowded, true, memory_order_relaxed);
	while (c->nidle == 0) {
		c->waiting++;
		pthread_cond_wait(&c->back, &c->lock);
		c->waiting--;
	}
	m = c->idle[--c->nidle];
	pthread_mutex_unlock(&c->lock);
	return m;
}

struct gss_mech_ctx *gss_copies_try(struct gss_copies *c)
{
	struct gss_mech_ctx *m = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->nidle > 0)
		m = c->idle[--c->nidle];
	else
		atomic_store_explicit(&c->crowded, true, memory_order_relaxed);
	pthread_mutex_unlock(&c->lock);
	return m;
}

void gss_copies_give(struct gss_copies *c, struct gss_mech_ctx *mech)
{
	struct gss_mech_ctx *over = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->n > c->most) {
		over = mech;
		c->n--;
	} else {
		c->idle[c->nidle++] = mech;
		if (c->waiting > 0)
			pthread_cond_signal(&c->back);
	}
	pthread_mutex_unlock(&c->lock);
	gss_mech_ctx_free(over);
}

struct gss_mech_ctx *gss_copies_steal(struct gss_copies *c)
{
	struct gss_mech_ctx *m = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->nidle > 0) {
		m = c->idle[--c->nidle];
		c->n--;
	}
	pthread_mutex_unlock(&c->lock);
	return m;
}

bool gss_copies_grow(struct gss_copies *c, unsigned most)
{
	struct gss_mech_ctx *made[GSS_COPIES_MOST];
	struct gss_mech_ctx *m = gss_copies_take(c);
	unsigned want, n = 0;
	bool ok;

	most = rn_min(most, GSS_COPIES_MOST);
	pthread_mutex_lock(&c->lock);
	want = most > c->n ? most - c->n : 0;
	pthread_mutex_unlock(&c->lock);
	ok = gss_mech_ctx_copy(m, made, want, &n);
	pthread_mutex_lock(&c->lock);
	c->most = most;
	/* Another thread may have made copies meanwhile. */
	for (; n > 0 && c->n < most; c->n++)
		c->idle[c->nidle++] = made[--n];
	atomic_store_explicit(&c->crowded, false, memory_order_relaxed);
	pthread_cond_broadcast(&c->back);
	pthread_mutex_unlock(&c->lock);
	while (n > 0)
		gss_mech_ctx_free(made[--n]);
	gss_copies_give(c, m);
	return ok;
}

void gss_copies_shrink(struct gss_copies *c)
{
	struct gss_mech_ctx *over[GSS_COPIES_MOST];
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	c->most = 1;
	while (c->n > c->most && c->nidle > 0) {
		over[n++] = c->idle[--c->nidle];
		c->n--;
	}
	pthread_mutex_unlock(&c->lock);
	while (n > 0)
		gss_mech_ctx_free(over[--n]);
}
