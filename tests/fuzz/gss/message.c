/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/gss/message.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/rpc_fake.h"

#define GSS_FLAVOR 6u
#define RESULTS_MAX (MESSAGE_MAX * 4)

static void put(struct message *m, const void *p, size_t len)
{
	if (m->len + len > sizeof(m->bytes))
		abort();
	if (len > 0)
		memmove(m->bytes + m->len, p, len);
	m->len += len;
}

static void put_word(struct message *m, uint32_t v)
{
	v = htonl(v);
	put(m, &v, sizeof(v));
}

static void put_opaque(struct message *m, const void *p, size_t len)
{
	static const uint8_t zeros[3];

	put_word(m, (uint32_t)len);
	put(m, p, len);
	put(m, zeros, -len & 3);
}

static void patch_word(struct message *m, size_t at, uint32_t v)
{
	v = htonl(v);
	memcpy(m->bytes + at, &v, sizeof(v));
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return ntohl(v);
}

static bool spoils(const struct outgoing *o, enum spoil what)
{
	return o->spoil == what;
}

static void put_cred(const struct outgoing *o, struct message *m)
{
	struct message c = { .len = 0 };
	uint32_t proc = o->gss_proc, service = o->service, version = 1;

	if (spoils(o, SPOIL_VERSION))
		version = o->value;
	if (spoils(o, SPOIL_GSS_PROC))
		proc = o->value;
	if (spoils(o, SPOIL_SERVICE))
		service = o->value;
	m->harmless = version == 1 && proc == o->gss_proc && service == o->service;
	put_word(&c, version);
	put_word(&c, proc);
	put_word(&c, o->seq);
	put_word(&c, service);
	put_opaque(&c, o->handle, o->handle_len);
	if (spoils(o, SPOIL_CRED_CUT))
		c.len = o->where % c.len;
	put_word(m, GSS_FLAVOR);
	put_opaque(m, c.bytes, c.len);
}

static void put_header(const struct outgoing *o, struct message *m)
{
	m->len = 0;
	put_word(m, o->xid);
	put_word(m, RPC_CALL);
	put_word(m, RPC_VERSION);
	put_word(m, FAKE_PROG);
	put_word(m, 4);
	put_word(m, o->proc);
	put_cred(o, m);
}

static void put_mic(const struct outgoing *o, const void *p, size_t len, bool spoilt,
		    struct message *m)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)p }, mic = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	if (GSS_ERROR(gss_get_mic(&minor, o->ctx, GSS_C_QOP_DEFAULT, &in, &mic)))
		abort();
	if (spoilt && spoils(o, SPOIL_MIC))
		((uint8_t *)mic.value)[o->where % mic.length] ^= (uint8_t)(1u << o->value % 8);
	/* The library frees no buffer whose length is 0. */
	put_opaque(m, mic.value,
		   spoilt && spoils(o, SPOIL_MIC_CUT) ? o->where % mic.length : mic.length);
	gss_release_buffer(&minor, &mic);
}

static void put_verifier(const struct outgoing *o, struct message *m)
{
	const size_t len = m->len;

	if (spoils(o, SPOIL_VERF_NONE)) {
		put_word(m, RPC_AUTH_NONE);
		put_word(m, 0);
		return;
	}
	put_word(m, GSS_FLAVOR);
	put_mic(o, m->bytes, len, true, m);
	if (spoils(o, SPOIL_XID))
		patch_word(m, 0, o->xid ^ (1u << o->value % 32));
	if (spoils(o, SPOIL_PROC))
		patch_word(m, 20, (uint32_t)o->value % FAKE_PROCS);
	m->harmless &= !spoils(o, SPOIL_PROC) || o->value % FAKE_PROCS == o->proc;
}

static void put_secret(const struct outgoing *o, const struct message *inner, struct message *m)
{
	gss_buffer_desc in = { inner->len, (void *)(uintptr_t)inner->bytes };
	gss_buffer_desc out = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	if (GSS_ERROR(gss_wrap(&minor, o->ctx, 1, GSS_C_QOP_DEFAULT, &in, NULL, &out)))
		abort();
	put_opaque(m, out.value, out.length);
	gss_release_buffer(&minor, &out);
}

static void put_body(const struct outgoing *o, struct message *m)
{
	static struct message inner;

	inner.len = 0;
	m->body_at = m->len;
	put_word(&inner, spoils(o, SPOIL_INNER_SEQ) ? o->seq ^ (1u << o->value % 32) : o->seq);
	put(&inner, o->args, o->args_len);
	if (o->service == SERVICE_INTEGRITY) {
		put_opaque(m, inner.bytes, inner.len);
		put_mic(o, inner.bytes, inner.len, false, m);
	} else if (o->service == SERVICE_PRIVACY) {
		put_secret(o, &inner, m);
	} else {
		put(m, o->args, o->args_len);
	}
}

static void spoil_body(const struct outgoing *o, struct message *m)
{
	const size_t len = m->len - m->body_at;
	const size_t at = len ? (o->where * 256u + o->value) % len : 0;

	if (spoils(o, SPOIL_BODY) && len > 0)
		m->bytes[m->body_at + at] ^= (uint8_t)(1u << o->value % 8);
	else if (spoils(o, SPOIL_BODY_CUT) && len > 0)
		m->len = m->body_at + at;
	else if (spoils(o, SPOIL_TAIL))
		put(m, m->bytes, o->where);
}

void message_make(const struct outgoing *o, struct message *m)
{
	put_header(o, m);
	put_verifier(o, m);
	put_body(o, m);
	spoil_body(o, m);
}

void message_establish(const struct outgoing *o, const gss_buffer_desc *token, uint32_t claimed,
		       struct message *m)
{
	put_header(o, m);
	put_word(m, spoils(o, SPOIL_VERF_NONE) ? GSS_FLAVOR : RPC_AUTH_NONE);
	put_word(m, 0);
	m->body_at = m->len;
	put_opaque(m, token->value, token->length);
	patch_word(m, m->body_at, claimed);
}

/* Bytes that are left from `at` on; an opaque item of them. False: they do not hold it. */
static bool take_opaque(const uint8_t *p, size_t len, size_t *at, const uint8_t **out, size_t *n)
{
	if (len - *at < 4)
		return false;
	*n = word_at(p + *at);
	*at += 4;
	if (*n > len - *at || ((*n + 3) & ~(size_t)3) > len - *at)
		return false;
	*out = p + *at;
	*at += (*n + 3) & ~(size_t)3;
	return true;
}

static void read_denied(const uint8_t *p, size_t len, struct reply *r)
{
	if (len != 20 || word_at(p + 12) != 1)
		return;
	r->kind = REPLY_DENIED;
	r->stat = word_at(p + 16);
}

void reply_read(const uint8_t *p, size_t len, uint32_t xid, struct reply *r)
{
	size_t at = 16;

	memset(r, 0, sizeof(*r));
	if (len < 20 || word_at(p) != xid || word_at(p + 4) != RPC_REPLY)
		return;
	if (word_at(p + 8) == 1) {
		read_denied(p, len, r);
		return;
	}
	r->verified = word_at(p + 12) == GSS_FLAVOR;
	if (word_at(p + 8) != 0 || !take_opaque(p, len, &at, &r->mic, &r->mic_len) || len - at < 4)
		return;
	if (!r->verified && (word_at(p + 12) != RPC_AUTH_NONE || r->mic_len > 0))
		return;
	r->stat = word_at(p + at);
	r->body = p + at + 4;
	r->body_len = len - at - 4;
	r->kind = r->stat == RPC_SUCCESS	? REPLY_SUCCESS
		  : r->stat == RPC_GARBAGE_ARGS ? REPLY_GARBAGE
						: REPLY_OTHER;
}

static bool is_signed(gss_ctx_id_t ctx, const void *p, size_t len, const uint8_t *mic,
		      size_t mic_len)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)p };
	gss_buffer_desc token = { mic_len, (void *)(uintptr_t)mic };
	OM_uint32 minor;

	return !GSS_ERROR(gss_verify_mic(&minor, ctx, &in, &token, NULL));
}

bool reply_signs(gss_ctx_id_t ctx, const struct reply *r, uint32_t word)
{
	word = htonl(word);
	return r->verified && is_signed(ctx, &word, sizeof(word), r->mic, r->mic_len);
}

/* Behind the sequence number. */
static long inside(const uint8_t *p, size_t len, uint32_t seq, uint8_t *to)
{
	if (len < 4 || len > RESULTS_MAX || word_at(p) != seq)
		return -1;
	memcpy(to, p + 4, len - 4);
	return (long)len - 4;
}

static long open_secret(gss_ctx_id_t ctx, const uint8_t *p, size_t len, uint32_t seq, uint8_t *to)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)p }, out = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	int encrypted = 0;
	long n = -1;

	if (!GSS_ERROR(gss_unwrap(&minor, ctx, &in, &out, &encrypted, NULL)) && encrypted)
		n = inside(out.value, out.length, seq, to);
	gss_release_buffer(&minor, &out);
	return n;
}

long reply_results(gss_ctx_id_t ctx, const struct reply *r, const struct outgoing *o, uint8_t *to)
{
	const uint8_t *body = NULL, *mic = NULL;
	size_t at = 0, len = 0, mic_len = 0;

	if (o->service == SERVICE_NONE) {
		if (r->body_len > RESULTS_MAX)
			return -1;
		memcpy(to, r->body, r->body_len);
		return (long)r->body_len;
	}
	if (!take_opaque(r->body, r->body_len, &at, &body, &len))
		return -1;
	if (o->service == SERVICE_INTEGRITY &&
	    (!take_opaque(r->body, r->body_len, &at, &mic, &mic_len) ||
	     !is_signed(ctx, body, len, mic, mic_len)))
		return -1;
	if (at != r->body_len)
		return -1;
	return o->service == SERVICE_INTEGRITY ? inside(body, len, o->seq, to)
					       : open_secret(ctx, body, len, o->seq, to);
}

bool reply_made(const struct reply *r, struct made *out)
{
	size_t at = 0, n;

	if (r->kind != REPLY_SUCCESS || !take_opaque(r->body, r->body_len, &at, &out->handle, &n) ||
	    r->body_len - at < 12)
		return false;
	out->handle_len = (uint32_t)n;
	out->major = word_at(r->body + at);
	out->window = word_at(r->body + at + 8);
	at += 12;
	if (!take_opaque(r->body, r->body_len, &at, &out->token, &n) || at != r->body_len)
		return false;
	out->token_len = (uint32_t)n;
	return out->handle_len <= HANDLE_MAX;
}
