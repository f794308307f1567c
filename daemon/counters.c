/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/counters.h"

#include <inttypes.h>

void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	struct counters *c = ctx;

	if (req->call.proc >= COUNTERS_PROCS)
		return;
	for (unsigned i = 0; i < c->server->nprograms; i++) {
		if (c->server->programs[i].prog != req->call.prog)
			continue;
		_Atomic uint64_t *max = &c->proc[i][req->call.proc].max_ns;

		atomic_fetch_add_explicit(&c->proc[i][req->call.proc].calls, 1,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&c->proc[i][req->call.proc].errors, error,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&c->proc[i][req->call.proc].total_ns, elapsed_ns,
					  memory_order_relaxed);
		/* Two racing maxima may lose the smaller one's update: it is a hint. */
		if (elapsed_ns > atomic_load_explicit(max, memory_order_relaxed))
			atomic_store_explicit(max, elapsed_ns, memory_order_relaxed);
		return;
	}
}

static const char *proc_name(const struct rpc_program *p, uint32_t proc)
{
	const struct rpc_version *newest = &p->versions[p->nversions - 1];

	return proc < newest->nprocs && newest->procs[proc].name ? newest->procs[proc].name : "?";
}

void counters_log(struct counters *c, const struct rn_logger *log, enum rn_level level)
{
	for (unsigned i = 0; i < c->server->nprograms; i++) {
		for (uint32_t p = 0; p < COUNTERS_PROCS; p++) {
			uint64_t calls = atomic_load(&c->proc[i][p].calls);

			if (!calls)
				continue;
			rn_log(log, level,
			       "%s %s: %" PRIu64 " calls, %" PRIu64 " errors, mean %" PRIu64
			       " us, longest %" PRIu64 " us",
			       c->server->programs[i].name, proc_name(&c->server->programs[i], p),
			       calls, atomic_load(&c->proc[i][p].errors),
			       atomic_load(&c->proc[i][p].total_ns) / calls / 1000,
			       atomic_load(&c->proc[i][p].max_ns) / 1000);
		}
	}
}
