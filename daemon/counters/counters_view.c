/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "daemon/counters/counters.h"
#include "nfs2/nfs2_server.h"
#include "nfs4/op_table.h"

struct view {
	const struct counters *c;
	void (*each)(void *ctx, const struct counters_row *row);
	void *ctx;
	/* Called for all rows instead, with their places in a shard; untimed 0: none. */
	void (*place)(void *ctx, const struct counters_row *row, size_t at, size_t untimed);
};

/* Adds up the counter that is at this place of each shard. */
static void add_up(const struct counters *c, size_t place, struct counters_row *row)
{
	for (unsigned i = 0; i <= COUNTERS_THREADS; i++) {
		const void *shard = atomic_load_explicit(&c->shard[i], memory_order_acquire);

		if (!shard)
			continue;
		const struct counter *one = (const void *)((const char *)shard + place);

		/* Times of nothing are in the first bucket. */
		if (atomic_load_explicit(&one->time.sum_ns, memory_order_relaxed) == 0 &&
		    atomic_load_explicit(&one->time.bucket[0], memory_order_relaxed) == 0)
			continue;
		rn_histogram_add(&row->time, &one->time);
		row->ok += atomic_load_explicit(&one->ok, memory_order_relaxed);
	}
	row->calls = row->time.count;
}

/* Adds the sum at this place of each shard. */
static void add_untimed(const struct counters *c, size_t place, struct counters_row *row)
{
	for (unsigned i = 0; i <= COUNTERS_THREADS; i++) {
		const void *shard = atomic_load_explicit(&c->shard[i], memory_order_acquire);

		if (!shard)
			continue;
		const _Atomic uint64_t *n = (const void *)((const char *)shard + place);
		const uint64_t more = atomic_load_explicit(n, memory_order_relaxed);

		row->calls += more;
		row->ok += more;
	}
}

#define PLACE(member) offsetof(struct counters_shard, member)

static void counters_show_row(const struct view *v, size_t place, struct counters_row row)
{
	if (v->place) {
		v->place(v->ctx, &row, place, 0);
		return;
	}
	add_up(v->c, place, &row);
	if (row.calls)
		v->each(v->ctx, &row);
}

/* True for the versions of NFS whose calls are counted apart. */
static bool is_apart(const struct rpc_program *p, const struct rpc_version *v)
{
	return p->prog == NFS4_PROGRAM && (v->vers == NFS4_VERSION || v->vers == NFS2_VERSION);
}

static const char *name_in(const struct rpc_version *v, uint32_t proc)
{
	return proc < v->nprocs && v->procs[proc] ? v->procs[proc]->name : NULL;
}

/* The name in the newest version that has the procedure. */
static const char *proc_name(const struct rpc_program *p, uint32_t proc)
{
	for (unsigned i = p->nversions; i > 0; i--) {
		const struct rpc_version *v = &p->versions[i - 1];

		if (!is_apart(p, v) && name_in(v, proc))
			return name_in(v, proc);
	}
	return "unknown";
}

static void show_procs(const struct view *v, unsigned place, const char *version,
		       const char *(*name)(const struct rpc_program *p, uint32_t proc))
{
	const struct rpc_program *p = &v->c->server->programs[place == COUNTERS_NFS2 ? 0 : place];

	for (uint32_t proc = 0; proc < COUNTERS_PROCS; proc++)
		counters_show_row(v, PLACE(proc[place][proc]),
				  (struct counters_row){
					  .kind = COUNTERS_PROC,
					  .version = version,
					  .operation = name(p, proc),
					  .failures = v->c->failures->proc[place][proc],
					  .nfailures = COUNTERS_STATUSES,
				  });
}

static const char *nfs2_name(const struct rpc_program *nfs, uint32_t proc)
{
	const bool served = nfs->nversions > 0 && nfs->versions[0].vers == NFS2_VERSION;
	const char *name = served ? name_in(&nfs->versions[0], proc) : NULL;

	return name ? name : "unknown";
}

static void show_program(const struct view *v, unsigned i)
{
	const struct rpc_program *p = &v->c->server->programs[i];

	show_procs(v, i, p->prog == NFS4_PROGRAM ? "3" : p->name, proc_name);
}

static const char *const minors[COUNTERS_MINORS + 1] = { "4.0", "4.1", "4.2", "4" };

const char *counters_op_name(uint32_t op)
{
	const struct nfs4_op *row = nfs4_op_find(op, NFS4_MINOR_MAX);

	if (!row)
		row = nfs4_op_find(op, 0);
	return row ? row->name : "ILLEGAL";
}

static void show_compounds(const struct view *v)
{
	const struct counters_failures *f = v->c->failures;

	counters_show_row(v, PLACE(null4),
			  (struct counters_row){ .kind = COUNTERS_PROC,
						 .version = "4",
						 .operation = "NULL",
						 .failures = &f->null4,
						 .nfailures = 1 });
	for (unsigned minor = 0; minor <= COUNTERS_MINORS; minor++)
		counters_show_row(v, PLACE(compound[minor]),
				  (struct counters_row){ .kind = COUNTERS_COMPOUND,
							 .version = minors[minor],
							 .operation = "COMPOUND",
							 .failures = &f->compound[minor],
							 .nfailures = 1 });
}

static void show_op(const struct view *v, unsigned minor, uint32_t op)
{
	struct counters_row row = {
		.kind = COUNTERS_OP,
		.version = minors[minor],
		.operation = counters_op_name(op),
		.failures = v->c->failures->op[minor][op],
		.nfailures = COUNTERS_STATUSES,
	};

	if (v->place) {
		v->place(v->ctx, &row, PLACE(op[minor][op]), PLACE(untimed[minor][op]));
		return;
	}
	add_up(v->c, PLACE(op[minor][op]), &row);
	add_untimed(v->c, PLACE(untimed[minor][op]), &row);
	if (row.calls)
		v->each(v->ctx, &row);
}

static void show_ops(const struct view *v)
{
	for (uint32_t op = 0; op < NFS4_OPS; op++)
		for (unsigned minor = 0; minor < COUNTERS_MINORS; minor++)
			show_op(v, minor, op);
}

static void counters_show_all(const struct view *v)
{
	for (unsigned i = 0; i < v->c->server->nprograms; i++)
		show_program(v, i);
	show_procs(v, COUNTERS_NFS2, "2", nfs2_name);
	show_compounds(v);
	show_ops(v);
}

void counters_each(const struct counters *c,
		   void (*each)(void *ctx, const struct counters_row *row), void *ctx)
{
	counters_show_all(&(struct view){ .c = c, .each = each, .ctx = ctx });
}

struct places {
	struct counters *c;
	void (*each)(void *ctx, const struct counters_place *place);
	void *ctx;
};

static void show_place(void *ctx, const struct counters_row *row, size_t at, size_t untimed)
{
	const struct places *p = ctx;
	char *shard = (char *)atomic_load(&p->c->shard[COUNTERS_THREADS]);
	char *failures = (char *)p->c->failures;
	const struct counters_place place = {
		.kind = row->kind,
		.version = row->version,
		.operation = row->operation,
		.counter = (struct counter *)(void *)(shard + at),
		.untimed = untimed ? (_Atomic uint64_t *)(void *)(shard + untimed) : NULL,
		.failures = (_Atomic uint64_t *)(void *)(failures +
							 ((const char *)row->failures - failures)),
		.nfailures = row->nfailures,
	};

	p->each(p->ctx, &place);
}

void counters_each_place(struct counters *c,
			 void (*each)(void *ctx, const struct counters_place *place), void *ctx)
{
	struct places p = { c, each, ctx };

	counters_show_all(&(struct view){ .c = c, .ctx = &p, .place = show_place });
}

void counters_each_export(const struct counters *c,
			  void (*each)(void *ctx, const struct counters_export *row), void *ctx)
{
	for (unsigned place = 0; place <= COUNTERS_EXPORTS; place++) {
		struct counters_export row = { .further = place == COUNTERS_EXPORTS };

		if (!row.further && !c->export_id[place])
			continue;
		if (!row.further)
			row.id = (uint32_t)(c->export_id[place] - 1);
		for (unsigned i = 0; i <= COUNTERS_THREADS; i++) {
			const struct counters_shard *shard =
				atomic_load_explicit(&c->shard[i], memory_order_acquire);

			if (!shard)
				continue;
			row.read += shard->exported[place].read;
			row.written += shard->exported[place].written;
		}
		if (row.read || row.written)
			each(ctx, &row);
	}
}

uint64_t counters_failed(const struct counters_row *row)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < row->nfailures; i++)
		n += atomic_load_explicit(&row->failures[i], memory_order_relaxed);
	return n;
}

/* Operation of NFSv4 whose minor versions are logged as one. */
struct logged {
	const struct rn_logger *log;
	enum rn_level level;
	char program[16];
	const char *name;
	struct rn_durations time;
	uint64_t calls, errors;
};

static void counters_log_one(const struct logged *l)
{
	const struct rn_durations *t = &l->time;

	if (l->calls && !t->count)
		rn_log(l->log, l->level,
		       "%s %s: %" PRIu64 " calls, %" PRIu64
		       " errors, times are those of the operations behind them",
		       l->program, l->name, l->calls, l->errors);
	if (!t->count)
		return;
	rn_log(l->log, l->level,
	       "%s %s: %" PRIu64 " calls, %" PRIu64 " errors, us: mean %" PRIu64
	       ", half within %" PRIu64 ", 99 %% within %" PRIu64 ", longest %" PRIu64,
	       l->program, l->name, l->calls, l->errors, t->sum_ns / t->count / 1000,
	       rn_durations_quantile_ns(t, 500) / 1000, rn_durations_quantile_ns(t, 990) / 1000,
	       t->max_ns / 1000);
}

static const char *program_of(const struct counters_row *row)
{
	if (row->version[0] == '2')
		return "nfs2";
	if (row->version[0] == '3')
		return "nfs";
	return row->version[0] == '4' ? "nfs4" : row->version;
}

/* Rows of one operation follow each other. */
static void log_row(void *ctx, const struct counters_row *row)
{
	struct logged *l = ctx;
	const char *program = program_of(row);

	if (!l->name || strcmp(l->name, row->operation) != 0 || strcmp(l->program, program) != 0) {
		counters_log_one(l);
		l->time = (struct rn_durations){ .count = 0 };
		l->calls = l->errors = 0;
		l->name = row->operation;
		strncpy(l->program, program, sizeof(l->program) - 1);
	}
	rn_durations_add(&l->time, &row->time);
	l->calls += row->calls;
	l->errors += counters_failed(row);
}

void counters_log(const struct counters *c, const struct rn_logger *log, enum rn_level level)
{
	struct logged l = { .log = log, .level = level };

	counters_each(c, log_row, &l);
	counters_log_one(&l);
}
