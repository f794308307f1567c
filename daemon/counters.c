/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/counters.h"

#include <inttypes.h>

#include "nfs4/op_table.h"

static _Atomic unsigned threads;    /* that have counted anything */
static _Thread_local unsigned self; /* 1 for the first of them; 0: has not counted yet */

static struct counters_shard *shard_of_thread(struct counters *c)
{
	if (!self)
		self = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
	return &c->shard[self % COUNTERS_SHARDS];
}

static void count(struct counter *c, uint64_t elapsed_ns, bool error)
{
	if (error)
		atomic_fetch_add_explicit(&c->errors, 1, memory_order_relaxed);
	rn_histogram_record(&c->time, elapsed_ns);
}

void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	struct counters *c = ctx;
	struct counters_shard *shard = shard_of_thread(c);
	const struct rpc_call *call = &req->call;

	if (call->prog == NFS4_PROGRAM && call->vers == NFS4_VERSION) {
		if (call->proc < NFSPROC4_COUNT)
			count(&shard->v4[call->proc], elapsed_ns, error);
		return;
	}
	for (unsigned i = 0; i < c->server->nprograms && call->proc < COUNTERS_PROCS; i++) {
		if (c->server->programs[i].prog == call->prog)
			count(&shard->proc[i][call->proc], elapsed_ns, error);
	}
}

void counters_observe_op(void *ctx, const struct rpc_request *req, uint32_t opnum,
			 uint64_t elapsed_ns, bool error)
{
	struct counters_shard *shard = shard_of_thread(ctx);

	(void)req;
	count(&shard->op[opnum < NFS4_OPS ? opnum : 0], elapsed_ns, error);
}

/* The sum over all shards of the counter that is at this place of the first one. */
static uint64_t add_up(const struct counters *c, const struct counter *first,
		       struct rn_durations *times)
{
	const size_t place = (size_t)((const char *)first - (const char *)&c->shard[0]);
	uint64_t errors = 0;

	for (unsigned i = 0; i < COUNTERS_SHARDS; i++) {
		const struct counter *one = (const void *)((const char *)&c->shard[i] + place);

		errors += atomic_load_explicit(&one->errors, memory_order_relaxed);
		rn_histogram_add(times, &one->time);
	}
	return errors;
}

static void log_one(const struct counters *c, const struct rn_logger *log, enum rn_level level,
		    const char *program, const char *name, const struct counter *first)
{
	struct rn_durations t = { .count = 0 };
	const uint64_t errors = add_up(c, first, &t);

	if (!t.count)
		return;
	rn_log(log, level,
	       "%s %s: %" PRIu64 " calls, %" PRIu64 " errors, us: mean %" PRIu64
	       ", half within %" PRIu64 ", 99 %% within %" PRIu64 ", longest %" PRIu64,
	       program, name, t.count, errors, t.sum_ns / t.count / 1000,
	       rn_durations_quantile_ns(&t, 500) / 1000, rn_durations_quantile_ns(&t, 990) / 1000,
	       t.max_ns / 1000);
}

/* Procedures of the newest version but NFSv4, whose operations are counted apart. */
static const char *proc_name(const struct rpc_program *p, uint32_t proc)
{
	const struct rpc_version *v = &p->versions[p->nversions - 1];

	if (p->prog == NFS4_PROGRAM)
		v = &p->versions[0];
	return proc < v->nprocs && v->procs[proc] ? v->procs[proc]->name : "?";
}

static void log_nfs4(const struct counters *c, const struct rn_logger *log, enum rn_level level)
{
	const struct counters_shard *first = &c->shard[0];

	log_one(c, log, level, "nfs4", "NULL", &first->v4[NFSPROC4_NULL]);
	log_one(c, log, level, "nfs4", "COMPOUND", &first->v4[NFSPROC4_COMPOUND]);
	for (uint32_t op = 0; op < NFS4_OPS; op++) {
		const struct nfs4_op *row = nfs4_op_find(op, NFS4_MINOR_MAX);

		log_one(c, log, level, "nfs4", row ? row->name : "ILLEGAL", &first->op[op]);
	}
}

void counters_log(const struct counters *c, const struct rn_logger *log, enum rn_level level)
{
	for (unsigned i = 0; i < c->server->nprograms; i++) {
		const struct rpc_program *p = &c->server->programs[i];

		for (uint32_t proc = 0; proc < COUNTERS_PROCS; proc++)
			log_one(c, log, level, p->name, proc_name(p, proc),
				&c->shard[0].proc[i][proc]);
	}
	log_nfs4(c, log, level);
}
