/* SPDX-License-Identifier: BSD-2-Clause */
/* NFS version 4 as an RPC program: assembles the parts of the server, for the daemon. */
#include "nfs4/nfs4_private.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"
#include "nfs4/attr/held_attrs.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/data/nfs4_copies.h"
#include "nfs4/deleg/deleg_pressure.h"
#include "nfs4/deleg/delegations.h"
#include "nfs4/layout/layouts.h"
#include "nfs4/nfs4_image.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery.h"
#include "nfs4/scan.h"
#include "nfs4/session/registry.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/state.h"

/* Sessions have their own reply cache, and calls that change nothing may run again. */
static bool cacheable(const struct rpc_request *req, const void *args)
{
	const struct nfs4_compound_args *a = args;

	return a->minor == 0 && !nfs4_scan_idempotent(&req->in, a->nops);
}

static const struct rpc_proc null_proc = { .name = "NULL", .flags = RPC_EVENT_THREAD };

static const struct rpc_proc compound_proc = {
	.name = "COMPOUND",
	.decode = nfs4_compound_decode,
	.args_size = sizeof(struct nfs4_compound_args),
	.run = nfs4_compound_run,
	.flags = RPC_RUN_DECODES | RPC_NONIDEMPOTENT | RPC_FOR_RECENT | RPC_EVENT_THREAD |
		 RPC_AWAITS_ADMISSION,
	.cacheable = cacheable,
};

static const struct rpc_proc *const procs[NFSPROC4_COUNT] = {
	[NFSPROC4_NULL] = &null_proc,
	[NFSPROC4_COMPOUND] = &compound_proc,
};

/* In start order. */
static int (*const parts[])(struct nfs4_server *s) = {
	nfs4_pseudo_new,	nfs4_recovery_new,     nfs4_totals_new,		 nfs4_recalls_new,
	nfs4_deleg_holders_new, nfs4_queries_new,      nfs4_dir_notify_list_new, nfs4_layouts_new,
	nfs4_clients_new,	nfs4_copy_sources_new, nfs4_copies_new,
};

int nfs4_server_new(const struct nfs4_config *cfg, struct nfs4_server **out)
{
	struct nfs4_server *s = calloc(1, sizeof(*s));
	int rc = 0;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	crypto_shorthash_keygen(s->hash_key);
	rpc_sum_draw(&s->sum_secret);
	rn_log_hosts_init(&s->told);
	if (s->cfg.image)
		rc = nfs4_image_begin(s, s->cfg.image);
	if (rc == -ENOENT) {
		s->cfg.image = NULL;
		rc = 0;
	}
	for (unsigned i = 0; i < rn_array_size(parts) && rc == 0; i++)
		rc = parts[i](s);
	if (rc == 0 && s->cfg.image)
		rc = nfs4_image_load(s, s->cfg.image);
	s->cfg.image = NULL;
	if (rc < 0) {
		nfs4_server_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void nfs4_server_free(struct nfs4_server *s)
{
	if (!s)
		return;
	nfs4_copies_free(s->copies);
	nfs4_copy_sources_free(s->copy_sources);
	nfs4_layouts_free(s->layouts);
	nfs4_clients_free(s->clients);
	nfs4_queries_free(s->queries);
	nfs4_deleg_holders_free(s->deleg_holders);
	nfs4_dir_notify_list_free(s->dir_notifies);
	nfs4_recalls_free(s->recalls);
	nfs4_totals_free(s->totals);
	nfs4_recovery_free(s);
	nfs4_pseudo_free(s);
	rn_log_hosts_fini(&s->told);
	free(s);
}

void nfs4_version(struct nfs4_server *s, struct rpc_version *out)
{
	*out = (struct rpc_version){
		.vers = NFS4_VERSION,
		.procs = procs,
		.nprocs = NFSPROC4_COUNT,
		.ctx = s,
	};
}

int nfs4_exports_changed(struct nfs4_server *s)
{
	return nfs4_pseudo_changed(s);
}

uint64_t nfs4_revoke_exports(struct nfs4_server *s, const struct vfs_exports_lost *lost)
{
	return nfs4_clients_revoke(s->clients, lost);
}

void nfs4_count_exports(struct nfs4_server *s, const struct vfs_exports_lost *lost,
			void (*each)(void *ctx, const struct nfs4_loss *loss), void *ctx)
{
	nfs4_clients_count_lost(s->clients, lost, each, ctx);
}

int nfs4_forget_client(struct nfs4_server *s, uint64_t clientid)
{
	return nfs4_clients_forget_one(s->clients, clientid);
}

bool nfs4_reclaiming(struct nfs4_server *s)
{
	return nfs4_in_grace(s);
}

bool nfs4_takes_reclaims_later(struct nfs4_server *s)
{
	return nfs4_grace_takes_later(s);
}

bool nfs4_takes_reclaim(struct nfs4_server *s)
{
	return nfs4_grace_takes_reclaim(s);
}

bool nfs4_blocks_locks(struct nfs4_server *s)
{
	return nfs4_grace_blocks_locks(s);
}

bool nfs4_blocks_io(struct nfs4_server *s)
{
	return nfs4_grace_blocks_io(s);
}

void nfs4_drain(struct nfs4_server *s, enum nfs4_drain what)
{
	atomic_store(&s->drain, what);
}

bool nfs4_records_failing(const struct nfs4_server *s)
{
	return nfs4_recovery_is_failing(s);
}

static void record_all_again(struct nfs4_server *s)
{
	struct nfs4_client *cl;
	uint32_t number = 0;

	while ((cl = nfs4_client_after(s, number))) {
		number = cl->number;
		nfs4_record_again(s, &cl->record);
		nfs4_client_put(cl);
	}
}

void nfs4_tick(struct nfs4_server *s)
{
	nfs4_clients_tick(s);
	nfs4_drain_tick(s);
	nfs4_recalls_tick(s);
	nfs4_deleg_pressure_tick(s);
	nfs4_dir_notify_tick(s);
	nfs4_layouts_tick(s);
	if (nfs4_recovery_tick(s))
		record_all_again(s);
	nfs4_copy_sources_tick(s->copy_sources);
	nfs4_copies_tick(s->copies);
}

bool nfs4_rest_copies(struct nfs4_server *s)
{
	return nfs4_copies_rest(s->copies);
}

void nfs4_stop_copies(struct nfs4_server *s)
{
	nfs4_copies_stop(s->copies);
}

void nfs4_skip_lease_time(struct nfs4_server *s, uint64_t seconds)
{
	nfs4_clients_skip_time(s, seconds);
}

void nfs4_held(struct nfs4_server *s, struct nfs4_held *out)
{
	*out = (struct nfs4_held){ 0 };
	nfs4_clients_held(s->clients, out);
	nfs4_totals_held(s->totals, out);
	nfs4_copies_held(s->copies, out);
	nfs4_layouts_held(s->layouts, out);
	out->copy_sources = nfs4_copy_sources_count(s->copy_sources);
}
