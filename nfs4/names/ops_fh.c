/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that set, save and return the current filehandle. If the export of a filehandle does
 * not accept the call's flavour, either the operation that sets it fails or a later one does: see
 * enum nfs4_op_flavor.
 */
#include <string.h>

#include "nfs4/client/protect.h"
#include "nfs4/compound.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/nfs4_private.h"
#include "nfs/caller.h"

/* Asks about the arguments that begin at ahead, without moving c->in. */
static bool fh_ask_ahead(struct nfs4_compound *c, const struct nfs4_op *op,
			 bool (*ask)(const void *args), const struct xdr_in *ahead)
{
	const struct xdr_in here = *c->in;
	const size_t used = c->req->arena.used;
	void *args = rn_arena_alloc(&c->req->arena, op->args_size);
	bool uses = false;

	if (args) {
		*c->in = *ahead;
		op->decode(c, args);
		uses = !c->in->err && ask(args);
		*c->in = here;
	}
	rn_arena_rewind(&c->req->arena, used);
	return uses;
}

static bool wants_flavor(struct nfs4_compound *c)
{
	struct xdr_in ahead = *c->in;

	for (uint32_t i = c->index + 1; i < c->nops; i++) {
		const struct nfs4_op *op = nfs4_op_find(xdr_get_u32(&ahead), c->minor);

		if (!op)
			return true;
		if (op->uses_fh)
			return fh_ask_ahead(c, op, op->uses_fh, &ahead);
		if (op->flavor != NFS4_FLAVOR_NEXT)
			return op->flavor == NFS4_FLAVOR_BEFORE;
	}
	return false;
}

static int check_flavor(struct nfs4_compound *c)
{
	if (c->current.kind != NFS4_FILE || !c->current.wrongsec)
		return NFS4_OK;
	if (nfs_transport_allowed(&c->req->call.cred, &c->current.ctx.access) &&
	    nfs4_machine_may(c)) {
		c->current.machine = true;
		return NFS4_OK;
	}
	return wants_flavor(c) ? NFS4ERR_WRONGSEC : NFS4_OK;
}

struct putfh_args {
	struct vfs_fh fh; /* len 0: too long for a handle of this server */
};

static void decode_putfh(struct nfs4_compound *c, void *args)
{
	struct putfh_args *a = args;
	uint32_t len;
	const uint8_t *p = xdr_get_opaque(c->in, NFS4_FHSIZE, &len);

	if (!p || len > VFS_FH_MAX)
		return;
	a->fh.len = len;
	memcpy(a->fh.data, p, len);
}

/* Moves ahead behind the number of the operation, if that is the next one. */
static bool next_is(struct xdr_in *ahead, uint32_t opnum)
{
	return xdr_get_u32(ahead) == opnum && !ahead->err;
}

/*
 * True if the filehandle is another server's: SAVEFH, PUTFH and a COPY follow that names that server
 * (RFC 7862 section 15.2.3). So no other operation meets it. It is not looked up here, where it could
 * be anything's.
 */
static bool is_foreign(struct nfs4_compound *c)
{
	struct xdr_in ahead = *c->in;
	const struct nfs4_op *op;

	if (c->minor < 2 || c->server->cfg.ncopy_servers == 0 || c->nops - c->index < 4 ||
	    !next_is(&ahead, OP_SAVEFH) || !next_is(&ahead, OP_PUTFH))
		return false;
	xdr_skip_opaque(&ahead, NFS4_FHSIZE);
	op = nfs4_op_find(xdr_get_u32(&ahead), c->minor);
	return !ahead.err && op && op->saved_is_foreign &&
	       fh_ask_ahead(c, op, op->saved_is_foreign, &ahead);
}

static int run_putfh(struct nfs4_compound *c, void *args)
{
	const struct putfh_args *a = args;
	int status = NFS4ERR_BADHANDLE;

	if (a->fh.len > 0 && is_foreign(c)) {
		nfs4_object_clear(&c->current);
		c->current = (struct nfs4_object){ .kind = NFS4_FOREIGN, .fh = a->fh };
		return NFS4_OK;
	}
	if (a->fh.len > 0)
		status = nfs4_object_by_fh(c, &c->current, &a->fh);
	return status == NFS4_OK ? check_flavor(c) : status;
}

static int run_putrootfh(struct nfs4_compound *c, void *args)
{
	int status = nfs4_pseudo_root(c, &c->current);

	(void)args;
	return status == NFS4_OK ? check_flavor(c) : status;
}

/* The public filehandle is that of the root. */
static int run_putpubfh(struct nfs4_compound *c, void *args)
{
	return run_putrootfh(c, args);
}

static int run_getfh(struct nfs4_compound *c, void *args)
{
	const struct vfs_fh *fh = &c->current.fh;

	(void)args;
	if (c->last_attr_index > 0 && c->last_attr_index == c->index)
		c->last_attr_index++; /* the attributes stay valid for the operation after this */
	xdr_put_opaque(c->out, fh->data, fh->len);
	return NFS4_OK;
}

static int run_savefh(struct nfs4_compound *c, void *args)
{
	(void)args;
	nfs4_object_copy(&c->saved, &c->current);
	c->saved_sid = c->current_sid;
	c->has_saved_sid = c->has_current_sid;
	return NFS4_OK;
}

static int run_restorefh(struct nfs4_compound *c, void *args)
{
	int status;

	(void)args;
	if (c->saved.kind == NFS4_NOWHERE)
		return c->minor == 0 ? NFS4ERR_RESTOREFH : NFS4ERR_NOFILEHANDLE;
	status = nfs4_object_enter(c, &c->saved);
	if (status != NFS4_OK)
		return status;
	nfs4_object_copy(&c->current, &c->saved);
	c->current_sid = c->saved_sid;
	c->has_current_sid = c->has_saved_sid;
	return check_flavor(c);
}

const struct nfs4_op nfs4_op_getfh = {
	.name = "GETFH",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.reply_max = 4 + NFS4_FHSIZE,
	.errors = NFS4_ERRORS_OWN,
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_getfh,
};

const struct nfs4_op nfs4_op_putfh = {
	.name = "PUTFH",
	.minors = { 0, 2 },
	.flags = NFS4_OP_SETS_FH | NFS4_OP_FOR_RECENT | NFS4_OP_EVENT_THREAD,
	.flavor = NFS4_FLAVOR_HERE,
	.errors = NFS4_ERRORS(NFS4_E_STALE | NFS4_E_BADHANDLE),
	.shape = NFS4_SHAPE(0, 0, 1),
	.args_size = sizeof(struct putfh_args),
	.decode = decode_putfh,
	.run = run_putfh,
};

const struct nfs4_op nfs4_op_putpubfh = {
	.name = "PUTPUBFH",
	.minors = { 0, 2 },
	.flags = NFS4_OP_SETS_FH | NFS4_OP_MOUNTS,
	.flavor = NFS4_FLAVOR_HERE,
	.errors = NFS4_ERRORS_NONE,
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_putpubfh,
};

const struct nfs4_op nfs4_op_putrootfh = {
	.name = "PUTROOTFH",
	.minors = { 0, 2 },
	.flags = NFS4_OP_SETS_FH | NFS4_OP_MOUNTS,
	.flavor = NFS4_FLAVOR_HERE,
	.errors = NFS4_ERRORS_NONE,
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_putrootfh,
};

const struct nfs4_op nfs4_op_restorefh = {
	.name = "RESTOREFH",
	.minors = { 0, 2 },
	.flags = NFS4_OP_SETS_FH | NFS4_OP_EVENT_THREAD,
	.flavor = NFS4_FLAVOR_HERE,
	.errors = NFS4_ERRORS_OWN,
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_restorefh,
};

const struct nfs4_op nfs4_op_savefh = {
	.name = "SAVEFH",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.flavor = NFS4_FLAVOR_NEXT,
	.errors = NFS4_ERRORS_OWN,
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_savefh,
};
