/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC headers (RFC 5531) of the load generator, and calls that are made one by one. */
#include "load.h"

#define AUTH_NONE 0u
#define AUTH_SYS 1u

/* Version 3 of MOUNT goes with version 3 of NFS, and both programs are versioned alike here. */
void rpc_call(struct load *l, struct call *c, struct xdr *x, uint32_t prog, uint32_t proc)
{
	*x = (struct xdr){ .p = c->head, .end = c->head + sizeof(c->head) };
	c->xid = l->next_xid++;
	c->data = NULL;
	c->data_len = 0;
	c->gss = NULL;
	put32(x, 0); /* record mark: rpc_end */
	put32(x, c->xid);
	put32(x, 0); /* CALL */
	put32(x, 2);
	put32(x, prog);
	put32(x, l->protocol->version);
	put32(x, proc);
}

void rpc_begin(struct load *l, struct call *c, struct xdr *x, uint32_t prog, uint32_t proc)
{
	rpc_call(l, c, x, prog, proc);
	if (l->gss) {
		load_gss_begin(l->gss, c, x);
		return;
	}
	put32(x, AUTH_SYS);
	put32(x, 4 + 4 + 8 + 4 + 4 + 4);
	put32(x, 0); /* stamp */
	put_string(x, "nfsload");
	put32(x, l->o.uid);
	put32(x, l->o.gid);
	put32(x, 0);
	put32(x, AUTH_NONE);
	put32(x, 0);
}

void rpc_end(struct call *c, struct xdr *x)
{
	struct xdr mark = { .p = c->head, .end = c->head + 4 };

	if (c->gss && !x->bad)
		load_gss_wrap(c, x);
	if (x->bad)
		die("a call of %s is too long", c->conn ? "this job" : "setting up");
	c->head_len = (size_t)(x->p - c->head);
	put32(&mark, 0x80000000u | (uint32_t)(c->head_len - 4 + c->data_len));
}

/* Reads a reply's header up to the results. */
const char *rpc_reply(struct xdr *x, uint32_t *xid)
{
	uint32_t n;

	*xid = get32(x);
	if (get32(x) != 1)
		return "no reply";
	if (get32(x) != 0)
		return "the call was denied";
	get32(x);
	get_opaque(x, &n);
	if (get32(x) != 0)
		return "the call was not accepted";
	return x->bad ? "the reply is short" : NULL;
}

void rpc_wait(struct load *l, struct call *c, struct xdr *x, struct xdr *reply)
{
	const char *wrong;
	uint32_t xid;

	rpc_end(c, x);
	conn_queue(l, c);
	conn_flush(l, c->conn);
	while (!conn_record(c->conn, reply))
		if (!conn_receive(c->conn))
			die("no reply within 30 s");
	/* The bytes stay where they are until the next call. */
	conn_pop(c->conn, &(struct xdr){ .end = reply->end });
	wrong = rpc_reply(reply, &xid);
	if (wrong || xid != c->xid)
		die("setting up: %s", wrong ? wrong : "reply to another call");
}
