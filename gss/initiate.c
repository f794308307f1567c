/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts that this server begins, to call clients of NFSv4.0. The first token needs tickets, which the KDC gives: threads of their own
 * wait for it, so a KDC that is silent holds up nothing but other calls of this kind. The exchange with the client comes next: gss/cb_init.c.
 */
#include <stdlib.h>
#include <string.h>

#include "gss/gss_cb_auth.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/util.h"
#include "rpc/principal.h"

struct starting {
	struct gss_job job;
	struct gss *g;
	struct rpc_cb_initiation *init;
	_Atomic bool answered;		       /* the initiation is its owner's again */
	const struct rpc_principal *from, *to; /* references */
	uint32_t service;
	uint64_t due_ns;
	struct rpc_cb_auth *made;
};

/* On a thread of its own. */
static void gss_initiate_run(struct gss_job *job)
{
	struct starting *w = rn_container_of(job, struct starting, job);
	struct gss_mech_step step = { 0 };
	struct gss_mech_ctx *mech = NULL;
	char to[RN_LOG_TEXT], from[RN_LOG_TEXT];
	unsigned left_out;

	if (rn_now_ns() > w->due_ns)
		return;
	if (gss_mech_start(w->g->cfg.keytab, w->from->name, w->to->name, &mech, &step))
		w->made = gss_cb_init_new(mech, &step, w->to, w->service);
	else if (rn_log_hosts_pass(&w->g->said, &w->job.host, rn_now_ns(), &left_out)) {
		rn_log_text(to, sizeof(to), w->to->name, w->to->len);
		rn_log_text(from, sizeof(from), w->from->name, w->from->len);
		rn_notice(
			w->g->cfg.log,
			"%s gets no delegations by NFSv4.0, as it cannot be called back as %s: %s",
			to, from, step.why);
	}
	free(step.token);
}

static void gss_initiate_answer(struct starting *w, struct rpc_cb_auth *made)
{
	if (atomic_exchange(&w->answered, true))
		rpc_cb_auth_put(made);
	else
		w->init->made(w->init, made);
}

static void gss_initiate_abandon(struct gss_job *job)
{
	gss_initiate_answer(rn_container_of(job, struct starting, job), NULL);
}

static void gss_initiate_done(struct gss_job *job)
{
	struct starting *w = rn_container_of(job, struct starting, job);

	gss_initiate_answer(w, w->made);
	rpc_principal_put(w->from);
	rpc_principal_put(w->to);
	free(w);
}

bool gss_initiate(void *ctx, struct rpc_cb_initiation *init)
{
	struct starting *w = calloc(1, sizeof(*w));
	struct gss *g = ctx;

	if (!w)
		return false;
	w->job.host = init->host;
	w->job.admitted = true;
	w->job.run = gss_initiate_run;
	w->job.done = gss_initiate_done;
	w->job.abandon = gss_initiate_abandon;
	w->g = g;
	w->init = init;
	w->from = rpc_principal_ref(init->from);
	w->to = rpc_principal_ref(init->to);
	w->service = init->service;
	w->due_ns = init->due_ns;
	if (gss_acceptor_submit(g->initiator, &w->job))
		return true;
	rpc_principal_put(w->from);
	rpc_principal_put(w->to);
	free(w);
	return false;
}
