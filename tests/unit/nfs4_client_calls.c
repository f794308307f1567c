/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_client_calls.h"

#include <string.h>

const struct nfs4_channel usual_channel = {
	.header_pad = 0,
	.max_request = 1u << 20,
	.max_reply = 1u << 20,
	.max_cached = 4096,
	.max_ops = 16,
	.max_requests = 8,
};

static void begin(struct fixture *f, struct fix4_session *in, uint32_t minor, uint32_t op)
{
	if (in)
		fix4_begin(f, in);
	else
		fix4_begin_bare(f, minor, "");
	fix4_op(f, op);
}

/* Sends the COMPOUND; returns the status of the operation, or of a failed SEQUENCE before it. */
static uint32_t send_op(struct fixture *f, uint32_t op)
{
	const uint32_t status = fix4_send(f);

	return fix4_results_left(f) > 0 ? fix4_result(f, op) : status;
}

static void get_text(struct fixture *f, char *out, size_t size)
{
	uint32_t len;
	const uint8_t *p = xdr_get_opaque(&f->in, (uint32_t)size - 1, &len);

	memset(out, 0, size);
	if (p)
		memcpy(out, p, len);
}

static void put_ssv(struct xdr_out *c, const struct eid_args *a)
{
	for (unsigned k = 0; k < 2; k++) {
		xdr_put_u32(c, a->nalgs);
		for (uint32_t i = 0; i < a->nalgs; i++)
			xdr_put_opaque(c, "oid", 3);
	}
	xdr_put_u32(c, a->window);
	xdr_put_u32(c, 1);
}

uint32_t call_exchange_id(struct fixture *f, struct fix4_session *in, const struct eid_args *a,
			  struct eid_result *r)
{
	struct xdr_out *c = &f->out;
	uint32_t status;

	begin(f, in, a->minor ? a->minor : 1, OP_EXCHANGE_ID);
	xdr_put_fixed(c, a->verifier, NFS4_VERIFIER_SIZE);
	fix4_name(f, a->owner);
	xdr_put_u32(c, a->flags);
	xdr_put_u32(c, a->protect);
	if (a->protect > 0) {
		xdr_put_u32(c, 1); /* bitmaps */
		xdr_put_u32(c, 0x20);
		xdr_put_u32(c, 0);
	}
	if (a->protect == 2)
		put_ssv(c, a);
	xdr_put_u32(c, a->impl_id);
	if (a->impl_id) {
		fix4_name(f, "example.org");
		fix4_name(f, "a client");
		xdr_put_u64(c, 1);
		xdr_put_u32(c, 2);
	}
	memset(r, 0, sizeof(*r));
	status = send_op(f, OP_EXCHANGE_ID);
	if (status != NFS4_OK)
		return status;
	r->clientid = xdr_get_u64(&f->in);
	r->seqid = xdr_get_u32(&f->in);
	r->flags = xdr_get_u32(&f->in);
	r->protect = xdr_get_u32(&f->in);
	r->minor_id = xdr_get_u64(&f->in);
	get_text(f, r->major, sizeof(r->major));
	get_text(f, r->scope, sizeof(r->scope));
	if (xdr_get_u32(&f->in) == 1) {
		get_text(f, r->impl, sizeof(r->impl));
		get_text(f, r->impl, sizeof(r->impl));
		xdr_skip(&f->in, 12);
	}
	return status;
}

uint32_t call_create_session(struct fixture *f, struct fix4_session *in, const struct cs_args *a,
			     struct cs_result *r)
{
	struct xdr_out *c = &f->out;
	uint32_t status;

	begin(f, in, 1, OP_CREATE_SESSION);
	xdr_put_u64(c, a->clientid);
	xdr_put_u32(c, a->seqid);
	xdr_put_u32(c, a->flags);
	nfs4_put_channel(c, &a->fore);
	nfs4_put_channel(c, &a->back);
	xdr_put_u32(c, 0x40000000);
	xdr_put_u32(c, a->gss && !a->gss_only ? 2 : 1);
	if (!a->gss_only)
		xdr_put_u32(c, RPC_AUTH_NONE);
	if (a->gss || a->gss_only) {
		xdr_put_u32(c, RPC_RPCSEC_GSS);
		xdr_put_u32(c, 2);
		fix4_name(f, "handle");
		fix4_name(f, "handle");
	}
	memset(r, 0, sizeof(*r));
	status = send_op(f, OP_CREATE_SESSION);
	if (status != NFS4_OK)
		return status;
	xdr_get_fixed(&f->in, r->id, sizeof(r->id));
	r->seqid = xdr_get_u32(&f->in);
	r->flags = xdr_get_u32(&f->in);
	nfs4_get_channel(&f->in, &r->fore);
	nfs4_get_channel(&f->in, &r->back);
	return status;
}

void use_session(struct fix4_session *s, uint64_t clientid, const struct cs_result *r)
{
	memset(s, 0, sizeof(*s));
	s->minor = 1;
	s->clientid = clientid;
	memcpy(s->id, r->id, sizeof(s->id));
	s->seqid = 1;
}

uint64_t confirmed_client(struct fixture *f, const char *owner, const char *verifier,
			  struct fix4_session *s)
{
	const struct eid_args e = { .owner = owner, .verifier = verifier };
	struct cs_args a = { .fore = usual_channel, .back = usual_channel };
	struct eid_result er;
	struct cs_result cr;

	if (call_exchange_id(f, NULL, &e, &er) != NFS4_OK)
		return 0;
	a.clientid = er.clientid;
	a.seqid = er.seqid;
	if (call_create_session(f, NULL, &a, &cr) != NFS4_OK)
		return 0;
	use_session(s, er.clientid, &cr);
	return er.clientid;
}

uint32_t call_destroy_session(struct fixture *f, struct fix4_session *in,
			      const uint8_t id[NFS4_SESSIONID_SIZE])
{
	begin(f, in, 1, OP_DESTROY_SESSION);
	xdr_put_fixed(&f->out, id, NFS4_SESSIONID_SIZE);
	return send_op(f, OP_DESTROY_SESSION);
}

uint32_t call_destroy_clientid(struct fixture *f, struct fix4_session *in, uint64_t clientid)
{
	begin(f, in, 1, OP_DESTROY_CLIENTID);
	xdr_put_u64(&f->out, clientid);
	return send_op(f, OP_DESTROY_CLIENTID);
}

uint32_t call_reclaim_complete(struct fixture *f, struct fix4_session *in, bool one_fs)
{
	begin(f, in, 1, OP_RECLAIM_COMPLETE);
	xdr_put_bool(&f->out, one_fs);
	return send_op(f, OP_RECLAIM_COMPLETE);
}

uint32_t call_setclientid(struct fixture *f, const struct scid_args *a, struct scid_result *r)
{
	uint32_t status;

	begin(f, NULL, 0, OP_SETCLIENTID);
	xdr_put_fixed(&f->out, a->verifier, NFS4_VERIFIER_SIZE);
	fix4_name(f, a->owner);
	xdr_put_u32(&f->out, a->program);
	fix4_name(f, a->netid ? a->netid : "tcp");
	fix4_name(f, a->addr ? a->addr : "192.0.2.1.3.232");
	xdr_put_u32(&f->out, a->ident);
	memset(r, 0, sizeof(*r));
	status = send_op(f, OP_SETCLIENTID);
	if (status == NFS4_OK) {
		r->clientid = xdr_get_u64(&f->in);
		xdr_get_fixed(&f->in, r->confirm, sizeof(r->confirm));
	} else if (status == NFS4ERR_CLID_INUSE) {
		get_text(f, r->netid, sizeof(r->netid));
		get_text(f, r->addr, sizeof(r->addr));
	}
	return status;
}

uint32_t call_setclientid_confirm(struct fixture *f, const struct scid_result *r)
{
	begin(f, NULL, 0, OP_SETCLIENTID_CONFIRM);
	xdr_put_u64(&f->out, r->clientid);
	xdr_put_fixed(&f->out, r->confirm, sizeof(r->confirm));
	return send_op(f, OP_SETCLIENTID_CONFIRM);
}

uint32_t call_renew(struct fixture *f, uint64_t clientid)
{
	begin(f, NULL, 0, OP_RENEW);
	xdr_put_u64(&f->out, clientid);
	return send_op(f, OP_RENEW);
}

uint32_t call_sequence(struct fixture *f, struct fix4_session *s)
{
	fix4_begin(f, s);
	return fix4_send(f);
}
