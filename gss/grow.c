/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies for a context that several threads want, made on the acceptor's threads: the library looks at its
 * configuration file for each. */
#include "gss/gss_private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

struct growing {
	struct gss_job job;
	struct gss *g;
	struct gss_context *context; /* a reference */
};

static void gss_grow_run(struct gss_job *job)
{
	struct growing *w = rn_container_of(job, struct growing, job);
	struct gss_context *x = w->context;

	if (!gss_copies_grow(&x->copies, w->g->memory.copies))
		gss_contexts_remove(w->g->contexts, x);
	/* Another context may have taken its place meanwhile. */
	if (!gss_contexts_is_grown(w->g->contexts, x))
		gss_copies_shrink(&x->copies);
}

static void gss_grow_done(struct gss_job *job)
{
	struct growing *w = rn_container_of(job, struct growing, job);

	gss_context_put(w->context);
	free(w);
}

void gss_grow(struct gss *g, struct gss_context *x, const struct rn_host *host)
{
	struct growing *w;

	if (!x->may_copy || !gss_contexts_may_grow(g->contexts, x))
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	w->job.host = *host;
	w->job.admitted = true;
	w->job.run = gss_grow_run;
	w->job.done = gss_grow_done;
	w->g = g;
	w->context = x;
	atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	if (!gss_acceptor_submit(g->acceptor, &w->job))
		gss_grow_done(&w->job);
}
