/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a call's bytes to its procedure, and to its end. Every path ends in exactly one of rpc_answer(), or the
 * connection's drop, garbage or too_long operation: each gives the request back to its transport. After that it must not
 * be touched.
 */
#include "rpc/program.h"

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/worker.h"

static void rpc_observe(struct rpc_request *req, bool error)
{
	const struct rpc_server *server = req->server;

	if (error)
		atomic_fetch_add_explicit(&req->conn->tally.errors, 1, memory_order_relaxed);
	if (!server->observe)
		return;
	const uint64_t now = req->ended_ns ? req->ended_ns : rn_now_ns();

	atomic_store_explicit(&req->worker->ended_ns, now, memory_order_relaxed);
	server->observe(server->observe_ctx, req, now > req->arrived_ns ? now - req->arrived_ns : 0,
			error);
}

/* The way to end a connection that gets no answer. */
static void (*closing(const struct rpc_request *req))(struct rpc_request *)
{
	return req->conn->ops->garbage ? req->conn->ops->garbage : req->conn->ops->drop;
}

static bool is_over(const struct rpc_server *server)
{
	return server->may_answer && !server->may_answer(server->may_answer_ctx);
}

/* By an operation of the connection. All answers pass here, after all that they tell of was done. */
static void rpc_give_back(struct rpc_request *req, void (*by)(struct rpc_request *req))
{
	const struct rpc_server *server = req->server;

	if (is_over(server))
		by = closing(req);
	if (server->ended)
		server->ended(server->ended_ctx, req);
	by(req);
}

/* True if results are to be wrapped, and that takes longer than an event thread may. */
static bool must_move(const struct rpc_request *req)
{
	return req->secured && req->secured->wraps && rpc_on_event_thread(req) &&
	       xdr_out_total(&req->out) > RPC_SECURE_EVENT_MOST;
}

/* Sends req->out if the client offered room for it. error: it is counted as one. */
static void rpc_answer(struct rpc_request *req, bool error)
{
	const bool fits = rpc_reply_ok(req);

	/* Refusals are short. */
	if (fits && must_move(req))
		rpc_move(req);
	rpc_observe(req, error || !fits);
	if (!fits)
		rpc_give_back(req, req->conn->ops->too_long);
	else if (req->secured && !req->server->security->protect(req))
		rpc_give_back(req, closing(req));
	else
		rpc_give_back(req, req->conn->ops->reply);
}

/* Makes req->out an empty reply again. */
static void rpc_restart_reply(struct rpc_request *req)
{
	xdr_out_release(&req->out);
	xdr_out_init(&req->out, req->head->data, rpc_reply_head_size(req, req->head->size));
}

static void rpc_refuse(struct rpc_request *req, enum rpc_accept_stat stat)
{
	rpc_restart_reply(req);
	rpc_put_accepted(&req->out, req->call.xid, stat);
	rpc_answer(req, true);
}

static void rpc_refuse_auth(struct rpc_request *req, enum rpc_auth_stat stat)
{
	rpc_restart_reply(req);
	rpc_put_auth_error(&req->out, req->call.xid, stat);
	rpc_answer(req, true);
}

static void rpc_answer_too_long(struct rpc_request *req)
{
	rpc_observe(req, true);
	rpc_give_back(req, req->conn->ops->too_long);
}

static void system_error(struct rpc_request *req)
{
	rpc_restart_reply(req);
	rpc_put_accepted(&req->out, req->call.xid, RPC_SYSTEM_ERR);
	/* The procedure may have had its effects: a retransmission must not repeat them. */
	drc_done(req->server->drc, req);
	rpc_answer(req, true);
}

/* Answers or refuses the call, as the result of its procedure's run() says, and tells the duplicate request cache. */
static void rpc_answer_run(struct rpc_request *req, enum rpc_run how)
{
	struct drc *drc = req->server->drc;

	switch (how) {
	case RPC_RUN_UNDONE:
		drc_abandon(drc, req);
		rpc_answer(req, false);
		return;
	case RPC_RUN_DONE:
		if (req->out.overflow) {
			system_error(req);
			return;
		}
		drc_done(drc, req);
		rpc_answer(req, false);
		return;
	case RPC_RUN_GARBAGE:
		drc_abandon(drc, req);
		rpc_refuse(req, RPC_GARBAGE_ARGS);
		return;
	case RPC_RUN_TOO_LONG:
		drc_abandon(drc, req);
		rpc_answer_too_long(req);
		return;
	case RPC_RUN_NO_ROOM:
		drc_done(drc, req);
		rpc_answer_too_long(req);
		return;
	case RPC_RUN_AUTH_TOOWEAK:
		drc_abandon(drc, req);
		rpc_refuse_auth(req, RPC_AUTH_TOOWEAK);
		return;
	case RPC_RUN_AUTH_BADCRED:
		drc_abandon(drc, req);
		rpc_refuse_auth(req, RPC_AUTH_BADCRED);
		return;
	case RPC_RUN_SYSTEM_ERR:
		break;
	}
	system_error(req);
}

#define ACCEPTED_HEADER 24u /* bytes of an accepted reply before its results */

/* True if the procedure has to run for this call. */
static bool first_time(struct rpc_request *req)
{
	struct drc *drc = req->server->drc;

	if (!drc || !(req->proc->flags & RPC_NONIDEMPOTENT))
		return true;
	if (req->proc->cacheable && !req->proc->cacheable(req, req->args))
		return true;
	switch (drc_lookup(drc, req)) {
	case DRC_REPLAY:
		rpc_answer(req, false);
		return false;
	case DRC_IN_PROGRESS:
		rpc_give_back(req, req->conn->ops->drop);
		return false;
	case DRC_NEW:
	case DRC_UNCACHED:
		break;
	}
	return true;
}

static bool rpc_dispatch_decode_args(struct rpc_request *req)
{
	const struct rpc_proc *proc = req->proc;

	if (proc->decode) {
		req->args = rn_arena_alloc(&req->arena, proc->args_size);
		if (!req->args || !proc->decode(&req->in, req->args) || req->in.err)
			return false;
	}
	/* Bytes behind the arguments are ignored; a Read chunk that no argument takes violates
	 * DDP-eligibility (RFC 8166 section 6.1). */
	return (proc->flags & RPC_RUN_DECODES) || !xdr_in_placed_left(&req->in);
}

/* Some procedures need to know it, and wait for the name service. */
static void find_admission(struct rpc_request *req)
{
	const struct rpc_server *server = req->server;
	const bool needs = req->proc->flags & (RPC_NO_EXPORT | RPC_AWAITS_ADMISSION);

	req->admission = RPC_ADMITTED;
	if (req->call.proc == 0 || !server->admission)
		return;
	do
		req->admission = server->admission(server->admission_ctx, req->conn);
	while (req->admission == RPC_UNKNOWN && needs && rpc_try_later(req, RN_WAIT_NAME, 0));
}

/* RPC_RUN_DONE if the procedure may run for the caller's host. */
static enum rpc_run rpc_dispatch_admit(const struct rpc_request *req)
{
	const unsigned flags = req->proc->flags;

	switch (req->admission) {
	case RPC_ADMITTED:
		return RPC_RUN_DONE;
	case RPC_UNKNOWN:
		return flags & RPC_NO_EXPORT ? RPC_RUN_SYSTEM_ERR : RPC_RUN_DONE;
	case RPC_RECENT:
		return flags & (RPC_FOR_RECENT | RPC_FOR_ALL) ? RPC_RUN_DONE : RPC_RUN_AUTH_BADCRED;
	case RPC_STRANGER:
		break;
	}
	return flags & RPC_FOR_ALL ? RPC_RUN_DONE : RPC_RUN_AUTH_BADCRED;
}

/* RPC_RUN_DONE if the caller's identity is known. */
static enum rpc_run rpc_dispatch_identify(struct rpc_request *req)
{
	const struct rpc_server *server = req->server;

	if (req->call.proc == 0 || (!req->secured && !rpc_conn_certificate(req->conn)))
		return RPC_RUN_DONE;
	if (server->identify)
		return server->identify(server->identify_ctx, req);
	return req->secured ? RPC_RUN_AUTH_BADCRED : RPC_RUN_DONE;
}

/* From an empty result on. */
static enum rpc_run run_args(struct rpc_request *req)
{
	rpc_restart_reply(req);
	rpc_put_accepted(&req->out, req->call.xid, RPC_SUCCESS);
	return req->proc->run ? req->proc->run(req, req->args) : RPC_RUN_DONE;
}

static void run_proc(struct rpc_request *req)
{
	enum rpc_run how;

	find_admission(req);
	how = rpc_dispatch_admit(req);
	if (how == RPC_RUN_DONE)
		how = rpc_dispatch_identify(req);
	if (how != RPC_RUN_DONE) {
		rpc_answer_run(req, how);
		return;
	}
	if (!rpc_dispatch_decode_args(req)) {
		rpc_refuse(req, RPC_GARBAGE_ARGS);
		return;
	}
	if (req->proc->reply_size > 0 &&
	    (size_t)ACCEPTED_HEADER + req->proc->reply_size > req->reply_max) {
		rpc_answer_too_long(req);
		return;
	}
	/* A process that stood still finds old calls, which clients have sent to another server since. */
	if (is_over(req->server))
		rpc_give_back(req, closing(req));
	else if (first_time(req))
		rpc_answer_run(req, run_args(req));
}

/* True if the transport that the call came over has that version. */
static bool rpc_dispatch_is_served(const struct rpc_request *req, const struct rpc_program *program,
				   uint32_t vers)
{
	return !req->conn->ops->datagrams || !program->streams_from || vers < program->streams_from;
}

static const struct rpc_version *find_version(const struct rpc_request *req,
					      const struct rpc_program *program)
{
	for (unsigned i = 0; i < program->nversions; i++) {
		const struct rpc_version *v = &program->versions[i];

		if (v->vers == req->call.vers && rpc_dispatch_is_served(req, program, v->vers))
			return v;
	}
	return NULL;
}

/* Tells the client which versions are served over its transport. */
static void refuse_version(struct rpc_request *req, const struct rpc_program *program)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (unsigned i = 0; i < program->nversions; i++) {
		const uint32_t vers = program->versions[i].vers;

		if (!rpc_dispatch_is_served(req, program, vers))
			continue;
		low = rn_min(low, vers);
		high = vers;
	}
	if (low > high) {
		rpc_refuse(req, RPC_PROG_UNAVAIL);
		return;
	}
	rpc_put_prog_mismatch(&req->out, req->call.xid, low, high);
	rpc_answer(req, true);
}

static const struct rpc_program *find_program(const struct rpc_server *server, uint32_t prog)
{
	for (unsigned i = 0; i < server->nprograms; i++) {
		if (server->programs[i].prog == prog && server->programs[i].nversions > 0)
			return &server->programs[i];
	}
	return NULL;
}

/* For the administrator. NULL tells nothing, as pings come without a credential. Stores are rare: most calls of a connection
 * have the same flavour. */
static void note_flavor(const struct rpc_request *req)
{
	struct rpc_conn *conn = req->conn;
	const uint8_t bit = rpc_sec_bit(req->call.cred.sec);

	if (req->call.proc != 0 && !(atomic_load_explicit(&conn->secs, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&conn->secs, bit, memory_order_relaxed);
}

/* The program, version and procedure that a call names. NULL: this server does not have it, nor what comes after it. */
struct rpc_found {
	const struct rpc_program *program;
	const struct rpc_version *version;
	const struct rpc_proc *proc;
};

static struct rpc_found rpc_find(const struct rpc_request *req)
{
	const struct rpc_call *call = &req->call;
	struct rpc_found to = { .program = find_program(req->server, call->prog) };

	if (to.program)
		to.version = find_version(req, to.program);
	if (to.version && call->proc < to.version->nprocs)
		to.proc = to.version->procs[call->proc];
	return to;
}

static void run_found(struct rpc_request *req, struct rpc_found to)
{
	if (!to.program) {
		rpc_refuse(req, RPC_PROG_UNAVAIL);
		return;
	}
	if (!to.version) {
		refuse_version(req, to.program);
		return;
	}
	if (!to.proc) {
		rpc_refuse(req, RPC_PROC_UNAVAIL);
		return;
	}
	req->proc = to.proc;
	note_flavor(req);
	rpc_call_show(req, to.program, to.proc);
	req->program_ctx = to.version->ctx ? to.version->ctx : to.program->ctx;
	if (!(req->proc->flags & RPC_EVENT_THREAD))
		rpc_move(req);
	run_proc(req);
}

/* Leaves room for the verifier and what wraps the results. */
static void limit_reply(struct rpc_request *req)
{
	const size_t overhead = req->secured->overhead;

	req->reply_max -= rn_min(overhead, req->reply_max);
	if (req->secured->wraps)
		req->nbulk_spaces = 0;
}

static void rpc_dispatch_start(struct rpc_request *req)
{
	req->args_at = 0;
	req->proc = NULL;
	req->program_ctx = NULL;
	req->args = NULL;
	req->op = NULL;
	req->drc = NULL;
	rn_arena_reset(&req->arena);
	rpc_restart_reply(req);
	xdr_in_init(&req->in, req->seg, req->nseg, &req->arena);
}

/* A verified call goes on at its arguments, which are plain text now. */
static void run_secured(struct rpc_request *req, struct rpc_found to)
{
	rpc_dispatch_start(req);
	req->args_at = req->secured->args_at;
	xdr_skip(&req->in, req->args_at);
	run_found(req, to);
}

static void secured(struct rpc_request *req, enum rpc_auth_stat stat)
{
	const struct rpc_server *server = req->server;
	const struct xdr_in credential = req->in;
	const struct rpc_found to = rpc_find(req);
	enum rpc_secure_verdict v = RPC_SECURE_REFUSE;

	/* The call may wait for its Kerberos context, and administrators look for calls that wait. */
	if (to.proc)
		rpc_call_show(req, to.program, to.proc);
	while (server->security) {
		v = server->security->accept(server->security_ctx, req, &stat);
		if (v != RPC_SECURE_NO_ROOM || !rpc_try_later(req, RN_WAIT_CONTEXT, 0))
			break;
		req->in = credential;
	}
	if (req->secured)
		limit_reply(req);
	switch (v) {
	case RPC_SECURE_CALL:
		run_secured(req, to);
		return;
	case RPC_SECURE_ANSWER:
		rpc_answer(req, false);
		return;
	case RPC_SECURE_DROP:
		rpc_give_back(req, req->conn->ops->drop);
		return;
	case RPC_SECURE_REFUSE:
		rpc_refuse_auth(req, stat);
		return;
	case RPC_SECURE_GARBAGE:
		rpc_refuse(req, RPC_GARBAGE_ARGS);
		return;
	case RPC_SECURE_NO_ROOM:
	case RPC_SECURE_FAILED:
		break;
	}
	rpc_refuse(req, RPC_SYSTEM_ERR);
}

/* RFC 9289 section 4.1: within a session there can be no other one. */
static bool is_late_probe(const struct rpc_request *req)
{
	return req->call.cred.flavor == RPC_AUTH_TLS && req->call.cred.protection != RPC_PLAIN;
}

void rpc_dispatch(struct rpc_request *req)
{
	enum rpc_auth_stat stat;

	rpc_dispatch_start(req);
	const enum rpc_header_result header = rpc_decode_call(&req->in, &req->call, &stat);

	req->call.cred.protection = rpc_conn_protection(req->conn);
	switch (header) {
	case RPC_HEADER_NOT_A_CALL:
		if (req->conn->ops->garbage)
			rpc_give_back(req, req->conn->ops->garbage);
		else
			rpc_give_back(req, req->conn->ops->drop);
		return;
	case RPC_HEADER_MISMATCH:
		rpc_put_rpc_mismatch(&req->out, req->call.xid);
		rpc_answer(req, true);
		return;
	case RPC_HEADER_GARBAGE:
		rpc_refuse(req, RPC_GARBAGE_ARGS);
		return;
	case RPC_HEADER_AUTH:
		/* NULL needs no credential, but under RPCSEC_GSS it carries a context's creation, which
		 * must not seem to succeed. */
		if (req->call.proc != 0 || req->call.cred.flavor == RPC_RPCSEC_GSS ||
		    is_late_probe(req)) {
			rpc_refuse_auth(req, stat);
			return;
		}
		break;
	case RPC_HEADER_SECURED:
		secured(req, stat);
		return;
	case RPC_HEADER_OK:
		break;
	}
	req->args_at = xdr_in_pos(&req->in);
	run_found(req, rpc_find(req));
}
