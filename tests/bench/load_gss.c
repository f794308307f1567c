/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPCSEC_GSS (RFC 2203) of the load generator, krb5 and krb5p: one context for all connections. Credentials come from
 * the environment, as libgssapi_krb5 has it.
 */
#include <arpa/inet.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <stdlib.h>
#include "load.h"

#define RPCSEC_GSS 6u
#define TOKEN_EXTRA 512u /* bytes by which encryption makes a message longer, at most */
#define SAMPLE 64u	 /* replies of which one is decrypted, behind the warm-up */
enum { PROC_DATA = 0, PROC_INIT = 1 };

struct gss {
	gss_ctx_id_t ctx;
	uint32_t service, seq;
	const uint8_t *handle;
	uint32_t handle_len;
	uint32_t token_len; /* of replies */
};

static void need(OM_uint32 major, const char *what)
{
	if (GSS_ERROR(major))
		die("%s: status %x", what, major);
}

static void put_credential(struct xdr *x, const struct gss *g, uint32_t proc, uint32_t seq)
{
	put32(x, RPCSEC_GSS);
	put32(x, 20 + g->handle_len);
	put32(x, 1); /* version */
	put32(x, proc);
	put32(x, seq);
	put32(x, g->service);
	put_opaque(x, g->handle, g->handle_len);
}

static void step(struct gss *g, gss_buffer_desc *in, gss_buffer_desc *out)
{
	static char name_text[] = "nfs@localhost";
	gss_buffer_desc text = { sizeof(name_text) - 1, name_text };
	OM_uint32 minor;
	gss_name_t name;

	need(gss_import_name(&minor, &text, GSS_C_NT_HOSTBASED_SERVICE, &name), "gss_import_name");
	need(gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL, &g->ctx, name,
				  (gss_OID)(uintptr_t)gss_mech_krb5, GSS_C_MUTUAL_FLAG, 0, NULL, in,
				  NULL, out, NULL, NULL),
	     "gss_init_sec_context");
	gss_release_name(&minor, &name);
}

/* Takes the handle and the server's token from the reply to INIT. */
static void take_context(struct gss *g, struct xdr *reply)
{
	gss_buffer_desc in, out = GSS_C_EMPTY_BUFFER;
	const uint8_t *bytes = get_opaque(reply, &g->handle_len);
	uint8_t *handle = malloc(g->handle_len + 1);
	uint32_t n;

	if (!handle || reply->bad || get32(reply) || (get32(reply), get32(reply), reply->bad))
		die("the server made no Kerberos context");
	memcpy(handle, bytes, g->handle_len);
	g->handle = handle;
	in.value = (void *)(uintptr_t)get_opaque(reply, &n);
	in.length = n;
	step(g, &in, &out);
}

void load_gss_start(struct load *l, struct call *c)
{
	gss_buffer_desc none = GSS_C_EMPTY_BUFFER, token = GSS_C_EMPTY_BUFFER;
	struct gss *g = calloc(1, sizeof(*g));
	struct xdr x, reply;
	OM_uint32 minor;

	if (!g)
		die("no memory");
	g->service = l->o.service;
	step(g, &none, &token);
	rpc_call(l, c, &x, PROG_NFS, 0);
	put_credential(&x, g, PROC_INIT, 0);
	put32(&x, 0); /* AUTH_NONE */
	put32(&x, 0);
	put_opaque(&x, token.value, token.length);
	rpc_wait(l, c, &x, &reply);
	take_context(g, &reply);
	gss_release_buffer(&minor, &token);
	l->gss = g;
}

void load_gss_end(struct load *l)
{
	OM_uint32 minor;

	if (!l->gss)
		return;
	gss_delete_sec_context(&minor, &l->gss->ctx, GSS_C_NO_BUFFER);
	free((void *)(uintptr_t)l->gss->handle);
	free(l->gss);
}

void load_gss_begin(struct gss *g, struct call *c, struct xdr *x)
{
	gss_buffer_desc head, mic = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	c->gss = g;
	c->gss_seq = ++g->seq;
	put_credential(x, g, PROC_DATA, c->gss_seq);
	head.value = c->head + 4; /* behind the record's mark */
	head.length = (size_t)(x->p - c->head) - 4;
	need(gss_get_mic(&minor, g->ctx, GSS_C_QOP_DEFAULT, &head, &mic), "gss_get_mic");
	put32(x, RPCSEC_GSS);
	put_opaque(x, mic.value, mic.length);
	gss_release_buffer(&minor, &mic);
	c->args_at = (size_t)(x->p - c->head);
}

/* The arguments, with the data behind them, as one encrypted message. */
void load_gss_wrap(struct call *c, struct xdr *x)
{
	const size_t args = (size_t)(x->p - c->head) - c->args_at, len = 4 + args + c->data_len;
	gss_iov_buffer_desc v[4] = { { .type = GSS_IOV_BUFFER_TYPE_HEADER },
				     { .type = GSS_IOV_BUFFER_TYPE_DATA, .buffer = { len, NULL } },
				     { .type = GSS_IOV_BUFFER_TYPE_PADDING },
				     { .type = GSS_IOV_BUFFER_TYPE_TRAILER } };
	struct xdr body;
	OM_uint32 minor;

	if (c->gss->service != LOAD_KRB5P)
		return;
	if (!c->cipher)
		c->cipher = calloc(1, HEAD_MAX + SIZE_MAX_IO + TOKEN_EXTRA);
	if (!c->cipher)
		die("no memory");
	need(gss_wrap_iov_length(&minor, c->gss->ctx, 1, 0, NULL, v, 4), "gss_wrap_iov_length");
	v[0].buffer.value = c->cipher;
	for (unsigned i = 1; i < 4; i++)
		v[i].buffer.value = (uint8_t *)v[i - 1].buffer.value + v[i - 1].buffer.length;
	body = (struct xdr){ .p = v[1].buffer.value, .end = (uint8_t *)v[1].buffer.value + len };
	put32(&body, c->gss_seq);
	put_bytes(&body, c->head + c->args_at, args);
	put_bytes(&body, c->data, c->data_len);
	need(gss_wrap_iov(&minor, c->gss->ctx, 1, 0, NULL, v, 4), "gss_wrap_iov");
	x->p = c->head + c->args_at;
	c->data_len = v[0].buffer.length + len + v[2].buffer.length + v[3].buffer.length;
	put32(x, (uint32_t)c->data_len);
	c->data = c->cipher;
	while (c->data_len % 4)
		c->cipher[c->data_len++] = 0;
}

static const char *check_verifier(const struct gss *g, const struct call *c, struct xdr *whole)
{
	uint32_t seq = htonl(c->gss_seq), n;
	gss_buffer_desc msg = { sizeof(seq), &seq }, mic;
	OM_uint32 minor;

	get32(whole), get32(whole), get32(whole);
	if (get32(whole) != RPCSEC_GSS)
		return "no verifier";
	mic.value = (void *)(uintptr_t)get_opaque(whole, &n);
	mic.length = n;
	if (!mic.value || GSS_ERROR(gss_verify_mic(&minor, g->ctx, &msg, &mic, NULL)))
		return "a wrong verifier";
	return NULL;
}

const char *load_gss_results(struct load *l, struct call *c, struct xdr whole, struct xdr *x,
			     bool *opaque)
{
	gss_iov_buffer_desc v[2] = { { .type = GSS_IOV_BUFFER_TYPE_STREAM },
				     { .type = GSS_IOV_BUFFER_TYPE_DATA } };
	const char *wrong = check_verifier(l->gss, c, &whole);
	OM_uint32 minor;
	uint8_t *token;
	uint32_t n;
	int secret = 0;

	*opaque = false;
	if (wrong || l->gss->service != LOAD_KRB5P)
		return wrong;
	token = (uint8_t *)(uintptr_t)get_opaque(x, &n);
	if (!token)
		return "no encrypted results";
	if (!l->warming && c->serial % SAMPLE) {
		*opaque = true;
		return n == l->gss->token_len ? NULL : "encrypted results of another length";
	}
	v[0].buffer = (gss_buffer_desc){ n, token };
	if (GSS_ERROR(gss_unwrap_iov(&minor, l->gss->ctx, &secret, NULL, v, 2)) || !secret)
		return "results that cannot be decrypted";
	l->gss->token_len = n;
	*x = (struct xdr){ .p = v[1].buffer.value,
			   .end = (uint8_t *)v[1].buffer.value + v[1].buffer.length };
	return get32(x) == c->gss_seq ? NULL : "results of another call";
}
