/* SPDX-License-Identifier: BSD-2-Clause */
/* LAYOUTERROR (RFC 7862 section 15.6) and LAYOUTSTATS (section 15.7), and the same reports in LAYOUTRETURN. */
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/layout/layout_report.h"
#include "nfs4/layout/layouts.h"
#include "nfs4/nfs4_view.h"

uint64_t nfs4_layout_file(const struct nfs4_compound *c)
{
	const uint64_t hash = nfs4_client_hash(c->client, 0, c->current.fh.data, c->current.fh.len);

	return hash > 0 ? hash : 1;
}

/* True if the device itself is the trouble, and not this file: the client cannot reach it, or not talk with it. */
static bool is_of_device(uint32_t status)
{
	return status == NFS4ERR_NXIO || status == NFS4ERR_MINOR_VERS_MISMATCH;
}

/* The client may come again for what is busy or in grace. */
static bool is_transient(uint32_t status)
{
	return status == NFS4_OK || status == NFS4ERR_DELAY || status == NFS4ERR_GRACE;
}

static void log_layout_error(const struct nfs4_compound *c, uint32_t status)
{
	const char *name = nfs4_status_name(status);
	unsigned left_out;

	if (!rn_log_limit_pass(&c->server->layouts->told_errors, rn_now_ns(), &left_out))
		return;
	rn_notice(
		c->server->cfg.log,
		"client %llx reports %s (%u) of the data server of a layout, and reads and writes "
		"here; %u more since the last such message",
		(unsigned long long)c->client->clientid, name ? name : "an unknown status", status,
		left_out);
}

void nfs4_layout_report(struct nfs4_compound *c, const struct nfs4_layout *l,
			const struct nfs4_ff_errors *errors)
{
	const struct nfs4_ff_error *worst = NULL;

	for (uint32_t i = 0; i < errors->n; i++) {
		const struct nfs4_ff_error *e = &errors->of[i];

		if (is_transient(e->status) || memcmp(e->device, l->device, sizeof(e->device)) != 0)
			continue;
		atomic_fetch_add_explicit(&c->server->layouts->errors, 1, memory_order_relaxed);
		if (!worst || is_of_device(e->status))
			worst = e;
	}
	if (!worst)
		return;
	nfs4_layout_trouble(c->client, l->device,
			    is_of_device(worst->status) ? 0 : nfs4_layout_file(c));
	log_layout_error(c, worst->status);
}

/* The layout that a report is about, with a reference. */
static int get_reported(struct nfs4_compound *c, const struct nfs4_stateid *sid,
			struct nfs4_layout **out)
{
	const struct nfs4_object *p = &c->current;
	int status = nfs4_need(c, p, 0);

	if (!nfs4_gives_layouts(c->server))
		return NFS4ERR_NOTSUPP;
	if (status == NFS4_OK && (p->kind != NFS4_FILE || p->type != S_IFREG))
		status = NFS4ERR_WRONG_TYPE;
	return status == NFS4_OK ? nfs4_layout_get(c, sid, out) : status;
}

struct layouterror_args {
	struct nfs4_stateid sid;
	struct nfs4_ff_errors errors;
};

static void decode_layouterror(struct nfs4_compound *c, void *args)
{
	struct layouterror_args *a = args;

	xdr_skip(c->in, 8 + 8); /* offset and length */
	nfs4_get_stateid(c->in, &a->sid);
	nfs4_get_ff_errors(c->in, &a->errors);
}

static int run_layouterror(struct nfs4_compound *c, void *args)
{
	const struct layouterror_args *a = args;
	struct nfs4_layout *l;
	int status = get_reported(c, &a->sid, &l);

	if (status != NFS4_OK)
		return status;
	nfs4_layout_report(c, l, &a->errors);
	nfs4_state_unref(&l->st);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_layouterror = {
	.name = "LAYOUTERROR",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.errors = NFS4_ERRORS(NFS4_E_INVAL | NFS4_E_ISDIR | NFS4_E_NOTSUPP | NFS4_E_STALE),
	.args_size = sizeof(struct layouterror_args),
	.decode = decode_layouterror,
	.run = run_layouterror,
};

struct layoutstats_args {
	struct nfs4_stateid sid;
};

static void decode_layoutstats(struct nfs4_compound *c, void *args)
{
	struct layoutstats_args *a = args;

	xdr_skip(c->in, 8 + 8); /* offset and length */
	nfs4_get_stateid(c->in, &a->sid);
	xdr_skip(c->in, 2 * (8 + 8) + NFS4_DEVICEID_SIZE);
	xdr_get_u32(c->in); /* layout type; what it says must not be an error */
	xdr_skip_opaque(c->in, UINT32_MAX);
}

/* Nothing is done with the statistics: the data server has counted what it did. */
static int run_layoutstats(struct nfs4_compound *c, void *args)
{
	const struct layoutstats_args *a = args;
	struct nfs4_layout *l;
	int status = get_reported(c, &a->sid, &l);

	if (status == NFS4_OK)
		nfs4_state_unref(&l->st);
	return status;
}

const struct nfs4_op nfs4_op_layoutstats = {
	.name = "LAYOUTSTATS",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.errors = NFS4_ERRORS(NFS4_E_INVAL | NFS4_E_ISDIR | NFS4_E_NOTSUPP | NFS4_E_STALE),
	.args_size = sizeof(struct layoutstats_args),
	.decode = decode_layoutstats,
	.run = run_layoutstats,
};
