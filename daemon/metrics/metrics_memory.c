/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, caches and descriptors. */
#include "daemon/metrics/collect.h"
#include "vfs/file_state.h"

static void metrics_memory_put_number(struct metrics *m, const struct metrics_family *f,
				      uint64_t value)
{
	metrics_family(m, f);
	metrics_value(m, value, NULL);
}

/* Not below 0: the numbers are read one after the other, while they change. */
static uint64_t metrics_memory_minus(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

static void put_accounts(struct metrics *m, const struct metrics_sources *from,
			 const struct drc_stats *drc)
{
	static const struct metrics_family used = { "ringnfs_memory_used_bytes", METRICS_GAUGE,
						    "bytes",
						    "Memory in use, out of server.memory_max." };
	static const struct metrics_family limit = { "ringnfs_memory_limit_bytes", METRICS_GAUGE,
						     "bytes", "Memory that may be used." };
	static const struct metrics_family accounts = {
		"ringnfs_memory_bytes", METRICS_GAUGE, "bytes",
		"Memory in use by what it is for. All accounts but replies, which are not within "
		"memory_max, add up to "
		"ringnfs_memory_used_bytes."
	};
	static const struct metrics_family waits = {
		"ringnfs_memory_waits", METRICS_COUNTER, NULL,
		"Times that a request had to wait for memory for file data."
	};
	struct rn_payload_stats p;
	struct rr_stats rdma = { 0 };

	rn_payload_stats(from->held.pool, &p);
	if (from->held.rdma)
		rr_server_stats(from->held.rdma, &rdma);
	const uint64_t used_now = from->held.budget->used;

	metrics_memory_put_number(m, &used, used_now);
	metrics_memory_put_number(m, &limit, from->held.budget->max);
	const uint64_t slabs = p.slabs * RN_SLAB_SIZE, state = from->held.nfs4_memory->used,
		       state_max = from->held.nfs4_memory->max;
	const uint64_t known = slabs + state_max + rdma.conn_bytes;

	metrics_family(m, &accounts);
	metrics_value(m, p.bytes_in_use, "account", "payload", NULL);
	metrics_value(m, metrics_memory_minus(slabs, p.bytes_in_use), "account", "payload_unused",
		      NULL);
	metrics_value(m, state, "account", "nfs4_state", NULL);
	metrics_value(m, metrics_memory_minus(state_max, state), "account", "nfs4_state_reserved",
		      NULL);
	metrics_value(m, rdma.conn_bytes, "account", "rdma_connections", NULL);
	metrics_value(m, metrics_memory_minus(used_now, known), "account", "other", NULL);
	metrics_value(m, drc->bytes, "account", "replies", NULL);
	metrics_memory_put_number(m, &waits, p.waits);
}

/* Entries that the cache has, and how often what was looked for was there. */
struct cache {
	const char *name;
	uint64_t hits, misses;
};

static void put_looks(struct metrics *m, const struct cache *caches, unsigned n)
{
	static const struct metrics_family hits = { "ringnfs_cache_hits", METRICS_COUNTER, NULL,
						    "Times that a cache had what was asked for." };
	static const struct metrics_family misses = {
		"ringnfs_cache_misses", METRICS_COUNTER, NULL,
		"Times that a cache did not have what was asked for."
	};

	metrics_family(m, &hits);
	for (unsigned i = 0; i < n; i++)
		metrics_value(m, caches[i].hits, "cache", caches[i].name, NULL);
	metrics_family(m, &misses);
	for (unsigned i = 0; i < n; i++)
		metrics_value(m, caches[i].misses, "cache", caches[i].name, NULL);
}

static void put_caches(struct metrics *m, const struct vfs_stats *v, const struct drc_stats *drc)
{
	static const struct metrics_family entries = { "ringnfs_cache_entries", METRICS_GAUGE, NULL,
						       "Entries of the caches." };
	static const struct metrics_family evicted = {
		"ringnfs_cache_evictions", METRICS_COUNTER, NULL,
		"Entries that had to make room before their time."
	};
	static const struct metrics_family stale = { "ringnfs_stale_handles", METRICS_COUNTER, NULL,
						     "Handles of files that are gone." };
	static const struct metrics_family bad = {
		"ringnfs_bad_handles", METRICS_COUNTER, NULL,
		"Handles that are not this server's, such as forged ones."
	};
	static const struct metrics_family reach = { "ringnfs_reply_cache_reach_seconds",
						     METRICS_GAUGE, "seconds",
						     "Least age of a kept reply that made room for "
						     "another in the last two minutes, or 120." };
	const struct cache looks[] = {
		{ "nodes", v->hits, v->misses },
		{ "listed_handles", v->handles_known, v->handles_read },
		{ "replies", drc->hits, drc->misses },
	};

	metrics_family(m, &entries);
	metrics_value(m, v->nodes, "cache", "nodes", NULL);
	metrics_value(m, drc->entries, "cache", "replies", NULL);
	put_looks(m, looks, sizeof(looks) / sizeof(looks[0]));
	metrics_family(m, &evicted);
	metrics_value(m, v->evictions, "cache", "nodes", NULL);
	metrics_value(m, drc->evicted, "cache", "replies", NULL);
	metrics_memory_put_number(m, &reach, drc->reach_seconds);
	metrics_memory_put_number(m, &stale, v->stale);
	metrics_memory_put_number(m, &bad, v->bad_handles);
}

static void metrics_put_descriptors(struct metrics *m, const struct metrics_sources *from,
				    const struct vfs_stats *v)
{
	static const struct metrics_family fds = {
		"ringnfs_file_descriptors", METRICS_GAUGE, NULL,
		"Descriptors of the cache, of opened and locked files, and of workers."
	};
	struct vfs_file_stats f;
	struct workers_stats w;

	vfs_file_stats(from->held.vfs, &f);
	workers_stats(from->held.workers, &w);
	metrics_family(m, &fds);
	metrics_value(m, v->fds, "kind", "cache", NULL);
	metrics_value(m, f.held, "kind", "files", NULL);
	metrics_value(m, w.fds, "kind", "workers", NULL);
}

void metrics_memory(struct metrics *m, const struct metrics_sources *from)
{
	struct drc_stats drc;
	struct vfs_stats v;

	vfs_stats(from->held.vfs, &v);
	drc_stats(from->held.drc, &drc);
	put_accounts(m, from, &drc);
	put_caches(m, &v, &drc);
	metrics_put_descriptors(m, from, &v);
}
