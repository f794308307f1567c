/* SPDX-License-Identifier: BSD-2-Clause */
/* Context creation (RFC 2203 section 5.2), on the acceptor's threads. The call waits for it meanwhile. */
#include "gss/gss_private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/log.h"
#include "lib/util.h"
#include "rpc/address.h"
#include "rpc/program.h"
#include "rpc/worker.h"

#define TOKEN_MOST 65536u /* a ticket with a large authorization part */

/* How the call's wait has ended; on its stack. Under the lock of gss. */
struct ending {
	bool ended;
	bool abandoned; /* the job is not the call's any more */
	bool made_room; /* for another */
};

struct establishing {
	struct rn_job job;
	struct gss *g;
	struct rpc_waits *waits;
	struct ending *
		ending; /* of the call that waits; NULL: its client has gone. Under the lock of gss */
	struct gss_mech_cred *cred;
	struct gss_context *half; /* CONTINUE_INIT: the context so far; else NULL */
	uint8_t *token;
	uint32_t token_len;
	size_t charged; /* bytes of g->tokens */
	/* Results. */
	struct gss_context *context;
	bool ok;   /* of gss_establish_run() */
	bool made; /* the context is in the table */
	struct gss_mech_step step;
};

static void establishing_free(struct establishing *e)
{
	gss_mech_cred_put(e->cred);
	gss_context_put(e->half);
	gss_context_put(e->context);
	rpc_principal_put(e->step.principal);
	free(e->step.token);
	free(e->token);
	rn_budget_give(&e->g->tokens, e->charged);
	free(e);
}

static void say_failure(const struct rpc_request *req, struct establishing *e)
{
	char peer[RPC_ADDRESS_TEXT], why[GSS_MECH_WHY];
	unsigned left_out;

	if (!rn_log_hosts_pass(&e->g->said, &e->job.host, rn_now_ns(), &left_out))
		return;
	rpc_address_text(&req->conn->peer, peer);
	/* The library's words have names that are in the client's ticket. */
	rn_log_text(why, sizeof(why), e->step.why, strlen(e->step.why));
	rn_notice(e->g->cfg.log, "%s: no Kerberos context was made: %s%s", peer, why,
		  e->step.skewed ? "; set the clocks of that host and of this one alike" : "");
}

bool gss_measure(struct gss_context *x, struct gss_mech_ctx *mech)
{
	static const uint8_t word[4];
	uint8_t mic[GSS_MECH_MIC_MAX];
	/* Octets of results. Of the longest, too: tokens of old ciphers have a length that itself grows. */
	static const size_t lens[] = { 8, 12, RN_PAYLOAD_MAX };
	size_t before, behind, least = SIZE_MAX;

	x->may_copy = gss_mech_may_copy(mech);
	x->mic_len = gss_mech_sign(mech, word, sizeof(word), mic);
	if (x->mic_len == 0)
		return false;
	x->wrap_len = 0;
	for (size_t i = 0; i < rn_array_size(lens); i++) {
		if (!gss_mech_wrap_sizes(mech, lens[i], &before, &behind))
			return false;
		x->wrap_len = rn_max(x->wrap_len, before + behind);
		least = rn_min(least, before + behind);
	}
	/*
	 * Exact, since clients offer memory for exactly as much over RDMA. Old ciphers alone pad, to blocks of eight.
	 */
	if (least != x->wrap_len)
		x->wrap_len += 8;
	return true;
}

/* On one of the acceptor's threads. */
static void gss_establish_run(struct rn_job *job)
{
	struct establishing *e = rn_container_of(job, struct establishing, job);
	struct gss_mech_ctx *mech = NULL;
	bool ok;

	/* Two tokens for one half-made context at a time: the second finds it gone, and fails. */
	if (e->half)
		mech = gss_copies_steal(&e->half->copies);
	ok = (!e->half || mech) &&
	     gss_mech_accept(e->cred, &mech, e->token, e->token_len, &e->step);
	if (ok)
		e->context = gss_context_new(mech);
	ok = e->context && (!e->step.complete || gss_measure(e->context, mech));
	if (ok && e->step.complete) {
		e->context->established = true;
		e->context->principal = e->step.principal;
		e->context->called =
			gss_mech_own_name(mech); /* a copy of the context has no names */
		e->step.principal = NULL;
		e->context->ends_ns =
			gss_contexts_now(e->g->contexts) + e->step.lifetime * RN_NS_PER_SECOND;
	}
	e->ok = ok;
}

/* False: there is no call any more, and the job is nobody's. */
static bool end_wait(struct establishing *e, bool abandoned, bool made_room)
{
	struct rpc_waits *waits = e->waits;
	struct gss *g = e->g;

	pthread_mutex_lock(&g->lock);
	struct ending *ending = e->ending; /* of a call that may be gone when it is named */

	if (ending)
		*ending = (struct ending){ true, abandoned, made_room };
	pthread_mutex_unlock(&g->lock);
	if (ending)
		rpc_wake(waits, ending);
	return ending;
}

/* On the thread of gss_establish_run(), or on that which stops the server. */
static void gss_establish_done(struct rn_job *job)
{
	struct establishing *e = rn_container_of(job, struct establishing, job);

	if (job->abandoned || !end_wait(e, false, false))
		establishing_free(e);
}

static void gss_establish_abandon(struct rn_job *job)
{
	end_wait(rn_container_of(job, struct establishing, job), true, job->made_room);
}

/* The reply with its verifier, which signs the size of the window when the context is complete. */
static bool gss_establish_put_reply(struct rpc_request *req, const struct establishing *e)
{
	static const uint8_t window[4] = { 0, 0, GSS_WINDOW >> 8, GSS_WINDOW & 0xff };
	struct xdr_out *out = &req->out;
	uint8_t mic[GSS_MECH_MIC_MAX];
	uint32_t mic_len = 0;

	if (e->made && e->context->established) {
		struct gss_mech_ctx *mech = gss_copies_take(&e->context->copies);

		mic_len = gss_mech_sign(mech, window, sizeof(window), mic);
		gss_copies_give(&e->context->copies, mech);
	}
	xdr_out_init(out, req->head->data, req->head->size);
	xdr_put_u32(out, req->call.xid);
	xdr_put_u32(out, RPC_REPLY);
	xdr_put_u32(out, RPC_MSG_ACCEPTED);
	xdr_put_u32(out, mic_len ? RPC_RPCSEC_GSS : RPC_AUTH_NONE);
	xdr_put_opaque(out, mic, mic_len);
	xdr_put_u32(out, RPC_SUCCESS);
	xdr_put_opaque(out, e->made ? e->context->handle : NULL, e->made ? GSS_HANDLE_SIZE : 0);
	xdr_put_u32(out, e->step.major);
	xdr_put_u32(out, e->step.minor);
	xdr_put_u32(out, GSS_WINDOW);
	xdr_put_opaque(out, e->step.token, (uint32_t)e->step.token_len);
	return !out->overflow;
}

/* The job is over. */
static enum rpc_secure_verdict gss_establish_finish(struct rpc_request *req, struct establishing *e)
{
	e->made = e->ok && gss_contexts_add(e->g->contexts, e->context, &e->job.host);
	if (!e->made && e->step.major >> 16 == 0)
		e->step.major = 13u << 16; /* GSS_S_FAILURE */
	if (e->half)
		gss_contexts_remove(e->g->contexts, e->half);
	if (!e->made)
		say_failure(req, e);
	gss_count(e->made ? &e->g->accepted : &e->g->refused);
	return gss_establish_put_reply(req, e) ? RPC_SECURE_ANSWER : RPC_SECURE_FAILED;
}

/* RPC_SECURE_CALL if the token was copied, else the verdict. */
static enum rpc_secure_verdict take_token(struct rpc_request *req, struct establishing *e)
{
	e->token_len = xdr_get_u32(&req->in);
	if (req->in.err || e->token_len > TOKEN_MOST || e->token_len > req->in.left)
		return RPC_SECURE_GARBAGE;
	if (!rn_budget_take(&e->g->tokens, sizeof(*e) + e->token_len))
		return RPC_SECURE_NO_ROOM;
	e->charged = sizeof(*e) + e->token_len;
	e->token = malloc(e->token_len + 1u);
	if (!e->token)
		return RPC_SECURE_NO_ROOM;
	xdr_get_fixed(&req->in, e->token, e->token_len);
	return req->in.err ? RPC_SECURE_GARBAGE : RPC_SECURE_CALL;
}

static struct gss_mech_cred *keys_of(struct gss *g)
{
	struct gss_mech_cred *c;

	pthread_mutex_lock(&g->lock);
	c = gss_mech_cred_ref(g->cred);
	pthread_mutex_unlock(&g->lock);
	return c;
}

/* The client has gone. False: the job has ended all the same. */
static bool gss_establish_give_up(struct establishing *e, const struct ending *ending)
{
	struct gss *g = e->g;

	pthread_mutex_lock(&g->lock);
	const bool ended = ending->ended;

	if (!ended)
		e->ending = NULL;
	pthread_mutex_unlock(&g->lock);
	return !ended;
}

/* Has the context made, and waits for that. *kept: the job is still the call's. */
static enum rpc_secure_verdict gss_establish_await(struct rpc_request *req, struct establishing *e,
						   bool *kept)
{
	struct ending ending = { false, false, false };
	struct gss *g = e->g;

	e->ending = &ending;
	if (!rn_jobs_submit(g->acceptor, &e->job))
		return RPC_SECURE_NO_ROOM;
	pthread_mutex_lock(&g->lock);
	if (ending.ended)
		pthread_mutex_unlock(&g->lock);
	else if (rpc_wait(req, RN_WAIT_CONTEXT, &ending, 0, &g->lock) == -RN_EGONE &&
		 gss_establish_give_up(e, &ending))
		ending = (struct ending){ true, true, false };
	*kept = !ending.abandoned;
	if (*kept)
		return gss_establish_finish(req, e);
	return ending.made_room ? RPC_SECURE_NO_ROOM : RPC_SECURE_FAILED;
}

enum rpc_secure_verdict gss_establish(struct gss *g, struct rpc_request *req,
				      const struct gss_cred *cred)
{
	struct establishing *e = req->server->waits ? calloc(1, sizeof(*e)) : NULL;
	enum rpc_secure_verdict v;
	bool kept = true;

	if (!e)
		return RPC_SECURE_NO_ROOM;
	rpc_move(req); /* the library is asked for the verifier */
	e->g = g;
	e->waits = req->server->waits;
	e->job.run = gss_establish_run;
	e->job.done = gss_establish_done;
	e->job.abandon = gss_establish_abandon;
	e->cred = keys_of(g);
	gss_host_of(req->conn, &e->job.host);
	e->job.admitted = rpc_conn_admission(req->conn) == RPC_ADMITTED;
	v = take_token(req, e);
	if (v == RPC_SECURE_CALL && cred->proc == GSS_CONTINUE_INIT) {
		e->half = gss_contexts_find(g->contexts, cred->handle, cred->handle_len);
		if (!e->half || e->half->established)
			v = RPC_SECURE_GARBAGE;
	}
	if (v == RPC_SECURE_CALL)
		v = gss_establish_await(req, e, &kept);
	if (kept)
		establishing_free(e);
	return v;
}
