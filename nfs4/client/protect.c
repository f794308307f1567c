/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/protect.h"

#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/scan.h"
#include "rpc/request.h"

#define WORDS_READ 2u /* of a bitmap: later operations are neither enforced nor allowed */

static uint64_t get_ops(struct xdr_in *x)
{
	const uint32_t n = xdr_get_u32(x);
	uint64_t ops = 0;

	if (n > x->left / 4) {
		x->err = true;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t word = xdr_get_u32(x);

		if (i < WORDS_READ)
			ops |= word << (32 * i);
	}
	return ops;
}

void nfs4_get_protect(struct xdr_in *x, struct nfs4_protect *out)
{
	out->enforce = get_ops(x);
	out->allow = get_ops(x);
}

static uint64_t ops_with(const struct nfs4_compound *c, unsigned flag)
{
	uint64_t ops = 0;

	for (uint32_t i = 0; i < 32 * WORDS_READ; i++) {
		const struct nfs4_op *op = nfs4_op_find(i, c->minor);

		if (op && (op->flags & flag))
			ops |= (uint64_t)1 << i;
	}
	return ops;
}

void nfs4_grant_protect(const struct nfs4_compound *c, struct nfs4_protect *p)
{
	p->machine = true;
	p->enforce &= ops_with(c, NFS4_OP_MACHINE_IF_ASKED);
	p->enforce |= ops_with(c, NFS4_OP_MACHINE_ONLY);
	p->allow &= ops_with(c, NFS4_OP_MACHINE_TOO);
}

static void put_ops(struct xdr_out *x, uint64_t ops)
{
	xdr_put_u32(x, WORDS_READ);
	xdr_put_u32(x, (uint32_t)ops);
	xdr_put_u32(x, (uint32_t)(ops >> 32));
}

void nfs4_put_protect(struct xdr_out *x, const struct nfs4_protect *p)
{
	xdr_put_u32(x, p->machine); /* SP4_NONE, SP4_MACH_CRED */
	if (!p->machine)
		return;
	put_ops(x, p->enforce);
	put_ops(x, p->allow);
}

bool nfs4_is_machine(const struct nfs4_compound *c)
{
	const struct rpc_cred *cred = &c->req->call.cred;

	return cred->principal && (cred->sec == RPC_SEC_KRB5I || cred->sec == RPC_SEC_KRB5P);
}

bool nfs4_may_manage(const struct nfs4_compound *c, const struct nfs4_client *cl)
{
	return nfs4_principal_made(c, cl) && (!cl->protect.machine || nfs4_is_machine(c));
}

bool nfs4_may_manage_by(const struct nfs4_compound *c, const struct nfs4_client *cl, uint32_t opnum)
{
	return !(cl->protect.enforce >> opnum & 1) || nfs4_may_manage(c, cl);
}

/* Attributes may be asked for on the way to the operation that is allowed, as Linux's client does before CLOSE. */
static bool leads_to(const struct nfs4_compound *c, uint64_t ops)
{
	struct xdr_in x = *c->in;
	const struct nfs4_op *op;

	for (uint32_t i = c->index + 1; i < c->nops; i++) {
		const uint32_t opnum = xdr_get_u32(&x);

		if (x.err || opnum >= 32 * WORDS_READ)
			return false;
		if (ops >> opnum & 1)
			return true;
		op = nfs4_op_find(opnum, c->minor);
		if (!op || !(op->flags & NFS4_OP_MACHINE_PASSES) || !nfs4_scan_op(&x, opnum))
			return false;
	}
	return false;
}

bool nfs4_machine_may(const struct nfs4_compound *c)
{
	const struct nfs4_client *cl = c->client;

	return c->minor > 0 && cl && cl->protect.machine && nfs4_may_manage(c, cl) &&
	       leads_to(c, cl->protect.allow);
}
