/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/counters/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "rpc/client.h"

#define RESULT_AT 24u /* place of the results in an accepted reply without a verifier */
#define SHARED COUNTERS_THREADS
#define MOUNT_MNT 1u /* procedure MNT of MOUNT */
#define PROBES 32u   /* places that may have an export's bytes */

static _Atomic unsigned threads;    /* that have counted anything */
static _Thread_local unsigned self; /* this thread's shard: from 1 on; 0: has not counted yet */

static void number_thread(void)
{
	const unsigned n = atomic_load_explicit(&threads, memory_order_relaxed);

	self = SHARED;
	if (n + 1 < SHARED)
		self = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
	if (self > SHARED) /* others were faster */
		self = SHARED;
}

/* Makes this thread's shard, if there is memory. */
static struct counters_shard *first_use(struct counters *c)
{
	struct counters_shard *shard;

	if (!self)
		number_thread();
	shard = atomic_load_explicit(&c->shard[self], memory_order_acquire);
	if (shard)
		return shard;
	shard = calloc(1, sizeof(*shard));
	if (!shard)
		return atomic_load_explicit(&c->shard[SHARED], memory_order_relaxed);
	atomic_store_explicit(&c->shard[self], shard, memory_order_release);
	return shard;
}

static inline struct counters_shard *shard_of_thread(struct counters *c)
{
	struct counters_shard *shard = atomic_load_explicit(&c->shard[self], memory_order_relaxed);

	return shard ? shard : first_use(c); /* shard[0] is NULL */
}

static inline void counters_add(const struct counters_shard *shard, _Atomic uint64_t *sum,
				uint64_t n)
{
	if (shard->shared)
		atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
	else
		rn_sum_alone(sum, n);
}

static void count_shared(struct counter *c, uint64_t elapsed_ns, bool ok)
{
	rn_histogram_record(&c->time, elapsed_ns);
	atomic_fetch_add_explicit(&c->ok, ok, memory_order_relaxed);
}

/* Inline, as a GETATTR counts four times. */
static inline void counters_count(const struct counters_shard *shard, struct counter *c,
				  uint64_t elapsed_ns, bool ok)
{
	if (shard->shared) {
		count_shared(c, elapsed_ns, ok);
		return;
	}
	rn_histogram_record_alone(&c->time, elapsed_ns);
	rn_sum_alone(&c->ok, ok);
}

static void counters_count_one(_Atomic uint64_t *sum)
{
	atomic_fetch_add_explicit(sum, 1, memory_order_relaxed);
}

static uint32_t place_of_status(uint32_t status)
{
	if (status < COUNTERS_STATUS_HIGH)
		return status;
	if (status >= 10000 && status - 10000 < COUNTERS_STATUS_OTHER - COUNTERS_STATUS_HIGH)
		return status - 10000 + COUNTERS_STATUS_HIGH;
	return COUNTERS_STATUS_OTHER;
}

static bool begins_with_status(const struct rpc_call *call)
{
	if (call->prog == NFS_PROGRAM || call->prog == NFSACL_PROGRAM)
		return call->proc != 0;
	return call->prog == MOUNT_PROGRAM && call->proc == MOUNT_MNT;
}

/* Place of the status in the reply; 0: it succeeded, or has none. */
static uint32_t place_in_reply(const struct rpc_request *req, bool error)
{
	const struct xdr_out *out = &req->out;

	if (error)
		return COUNTERS_STATUS_REFUSED;
	if (!begins_with_status(&req->call) || out->used < RESULT_AT + 4)
		return 0;
	return place_of_status(rn_get32(out->base + RESULT_AT));
}

/* COMPOUNDs are counted beside their operations, which have the statuses. */
static void observe_nfs4(struct counters *c, const struct rpc_request *req, uint64_t elapsed_ns,
			 bool error)
{
	struct counters_shard *shard = shard_of_thread(c);
	struct counters_failures *f = c->failures;
	uint32_t minor = nfs4_minor_of(req);

	if (minor > COUNTERS_MINORS)
		minor = COUNTERS_MINORS;
	const bool null = req->call.proc == NFSPROC4_NULL;
	struct counter *counter = null ? &shard->null4 : &shard->compound[minor];

	counters_count(shard, counter, elapsed_ns, !error);
	if (error)
		counters_count_one(null ? &f->null4 : &f->compound[minor]);
}

static void observe_proc(struct counters *c, unsigned program, const struct rpc_request *req,
			 uint64_t elapsed_ns, bool error)
{
	struct counters_shard *shard = shard_of_thread(c);
	const uint32_t proc = req->proc ? req->call.proc : COUNTERS_PROC_UNKNOWN;
	const uint32_t place = place_in_reply(req, error);
	struct counter *counter = &shard->proc[program][proc];

	counters_count(shard, counter, elapsed_ns, !place);
	if (place)
		counters_count_one(&c->failures->proc[program][proc][place]);
}

void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	struct counters *c = ctx;
	const struct rpc_call *call = &req->call;

	if (call->prog == NFS4_PROGRAM && call->vers == NFS4_VERSION) {
		if (call->proc < NFSPROC4_COUNT)
			observe_nfs4(c, req, elapsed_ns, error);
		return;
	}
	if (req->proc && call->proc >= COUNTERS_PROC_UNKNOWN)
		return;
	if (call->prog == NFS_PROGRAM && call->vers == NFS2_VERSION) {
		observe_proc(c, COUNTERS_NFS2, req, elapsed_ns, error);
		return;
	}
	for (unsigned i = 0; i < c->server->nprograms; i++) {
		if (c->server->programs[i].prog == call->prog)
			observe_proc(c, i, req, elapsed_ns, error);
	}
}

void counters_observe_op(void *ctx, const struct rpc_request *req, const struct nfs4_op_end *end)
{
	struct counters *c = ctx;
	struct counters_shard *shard = shard_of_thread(c);
	const uint32_t op = end->opnum < NFS4_OPS ? end->opnum : 0;
	const uint32_t minor = end->minor < COUNTERS_MINORS ? end->minor : 0;

	(void)req;
	for (uint32_t i = 0; i < end->nbefore; i++)
		counters_add(shard, &shard->untimed[minor][end->before[i]], 1);
	counters_count(shard, &shard->op[minor][op], end->elapsed_ns, end->status == 0);
	if (end->status)
		counters_count_one(&c->failures->op[minor][op][place_of_status(end->status)]);
}

/* The place of the export's bytes; COUNTERS_EXPORTS: there is none for it. */
static unsigned place_of_export(struct counters *c, uint32_t id)
{
	const uint64_t wanted = (uint64_t)id + 1;
	const unsigned from = id * 2654435769u; /* spreads ids that follow each other */

	for (unsigned i = 0; i < PROBES; i++) {
		const unsigned place = ((from >> 16) + i) % COUNTERS_EXPORTS;
		uint64_t is = atomic_load_explicit(&c->export_id[place], memory_order_relaxed);

		if (is == 0)
			atomic_compare_exchange_strong(&c->export_id[place], &is, wanted);
		if (is == 0 || is == wanted)
			return place;
	}
	return COUNTERS_EXPORTS;
}

void counters_moved(void *ctx, uint32_t export_id, uint64_t read, uint64_t written)
{
	struct counters *c = ctx;
	struct counters_shard *shard = shard_of_thread(c);
	struct counters_bytes *bytes = &shard->exported[place_of_export(c, export_id)];

	if (read)
		counters_add(shard, &bytes->read, read);
	if (written)
		counters_add(shard, &bytes->written, written);
}

struct counters_bytes *counters_bytes_of(struct counters *c, bool further, uint32_t export_id)
{
	struct counters_shard *shard = atomic_load(&c->shard[SHARED]);

	return &shard->exported[further ? COUNTERS_EXPORTS : place_of_export(c, export_id)];
}

int counters_init(struct counters *c, const struct rpc_server *server)
{
	struct counters_shard *shared = calloc(1, sizeof(*shared));

	c->server = server;
	c->failures = calloc(1, sizeof(*c->failures));
	if (!shared || !c->failures) {
		free(shared);
		return -ENOMEM;
	}
	shared->shared = true;
	atomic_store(&c->shard[SHARED], shared);
	return 0;
}

void counters_fini(struct counters *c)
{
	for (unsigned i = 0; i <= SHARED; i++)
		free(atomic_load(&c->shard[i]));
	free(c->failures);
}

#define STATUS_AT 24u /* bytes of an accepted reply before its results, which begin with a status */

static bool has_failed(const struct rpc_request *req)
{
	static const uint8_t ok[4];
	const struct xdr_out *out = &req->out;

	return req->call.proc != NFSPROC3_NULL && out->used >= STATUS_AT + sizeof(ok) &&
	       memcmp(out->base + STATUS_AT, ok, sizeof(ok)) != 0;
}

void usage_observe(const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	const struct rpc_call *call = &req->call;

	if (call->prog != NFS_PROGRAM || call->vers != NFS3_VERSION || !req->proc ||
	    call->proc >= RPC_USAGE_PROCS || !req->conn->client)
		return;
	rpc_usage_call(&req->conn->client->usage, call->proc, error || has_failed(req),
		       req->arrived_ns + elapsed_ns);
}
