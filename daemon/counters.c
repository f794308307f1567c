/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/counters.h"

#include <inttypes.h>

#include "nfs4/op_table.h"
#include "rpc/worker.h"

static void count(struct counter *c, uint64_t elapsed_ns, bool error)
{
	atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed);
	if (error)
		atomic_fetch_add_explicit(&c->errors, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->total_ns, elapsed_ns, memory_order_relaxed);
	/* Two racing maxima may lose the smaller one's update: it is a hint. */
	if (elapsed_ns > atomic_load_explicit(&c->max_ns, memory_order_relaxed))
		atomic_store_explicit(&c->max_ns, elapsed_ns, memory_order_relaxed);
}

void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	struct counters *c = ctx;
	const struct rpc_call *call = &req->call;

	if (call->prog == NFS4_PROGRAM && call->vers == NFS4_VERSION) {
		if (call->proc < NFSPROC4_COUNT)
			count(&c->v4[call->proc], elapsed_ns, error);
		return;
	}
	for (unsigned i = 0; i < c->server->nprograms && call->proc < COUNTERS_PROCS; i++) {
		if (c->server->programs[i].prog == call->prog)
			count(&c->proc[i][call->proc], elapsed_ns, error);
	}
}

void counters_observe_op(void *ctx, const struct rpc_request *req, uint32_t opnum,
			 uint64_t elapsed_ns, bool error)
{
	struct counters *c = ctx;
	const unsigned shard = req->worker ? req->worker->index % COUNTERS_SHARDS : 0;

	count(&c->shard[shard].op[opnum < NFS4_OPS ? opnum : 0], elapsed_ns, error);
}

static void add(struct counter *sum, struct counter *c)
{
	const uint64_t max = atomic_load(&c->max_ns);

	sum->calls += atomic_load(&c->calls);
	sum->errors += atomic_load(&c->errors);
	sum->total_ns += atomic_load(&c->total_ns);
	if (max > sum->max_ns)
		sum->max_ns = max;
}

static void log_one(const struct rn_logger *log, enum rn_level level, const char *program,
		    const char *name, struct counter *c)
{
	const uint64_t calls = atomic_load(&c->calls);

	if (!calls)
		return;
	rn_log(log, level,
	       "%s %s: %" PRIu64 " calls, %" PRIu64 " errors, mean %" PRIu64 " us, longest %" PRIu64
	       " us",
	       program, name, calls, atomic_load(&c->errors),
	       atomic_load(&c->total_ns) / calls / 1000, atomic_load(&c->max_ns) / 1000);
}

/* Procedures of the newest version but NFSv4, whose operations are counted apart. */
static const char *proc_name(const struct rpc_program *p, uint32_t proc)
{
	const struct rpc_version *v = &p->versions[p->nversions - 1];

	if (p->prog == NFS4_PROGRAM)
		v = &p->versions[0];
	return proc < v->nprocs && v->procs[proc] ? v->procs[proc]->name : "?";
}

static void log_nfs4(struct counters *c, const struct rn_logger *log, enum rn_level level)
{
	log_one(log, level, "nfs4", "NULL", &c->v4[NFSPROC4_NULL]);
	log_one(log, level, "nfs4", "COMPOUND", &c->v4[NFSPROC4_COMPOUND]);
	for (uint32_t op = 0; op < NFS4_OPS; op++) {
		const struct nfs4_op *row = nfs4_op_find(op, NFS4_MINOR_MAX);
		struct counter sum = { 0 };

		for (unsigned i = 0; i < COUNTERS_SHARDS; i++)
			add(&sum, &c->shard[i].op[op]);
		log_one(log, level, "nfs4", row ? row->name : "ILLEGAL", &sum);
	}
}

void counters_log(struct counters *c, const struct rn_logger *log, enum rn_level level)
{
	for (unsigned i = 0; i < c->server->nprograms; i++) {
		const struct rpc_program *p = &c->server->programs[i];

		for (uint32_t proc = 0; proc < COUNTERS_PROCS; proc++)
			log_one(log, level, p->name, proc_name(p, proc), &c->proc[i][proc]);
	}
	log_nfs4(c, log, level);
}
