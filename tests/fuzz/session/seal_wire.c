/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/seal_wire.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

#define CRED_AT 24u
#define CRED_MAX 400u
#define REPLY_MOST (3u << 20)

struct out {
	uint8_t *base;
	size_t used;
};

static void put(struct out *o, const void *p, size_t n)
{
	if (n > 0)
		memmove(o->base + o->used, p, n);
	o->used += n;
}

static void put_word(struct out *o, uint32_t v)
{
	ss_set_word(o->base + o->used, v);
	o->used += 4;
}

static void put_opaque(struct out *o, const void *p, size_t n)
{
	put_word(o, (uint32_t)n);
	put(o, p, n);
	put(o, "\0\0\0", rn_xdr_pad((uint32_t)n));
}

/* Offset of the arguments; 0: there is no whole header. */
static size_t args_of(const uint8_t *msg, size_t len)
{
	size_t at = CRED_AT;

	if (len < CRED_AT || ss_word(msg + 4) != 0 || ss_word(msg + 8) != 2)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		if (len - at < 8)
			return 0;
		const uint32_t n = ss_word(msg + at + 4);
		at += 8;
		if (n > CRED_MAX || len - at < n + rn_xdr_pad(n))
			return 0;
		at += n + rn_xdr_pad(n);
	}
	return at;
}

static void put_cred(const struct ss_wire *w, struct out *o)
{
	uint8_t bytes[128];
	struct out c = { .base = bytes };

	put_word(&c, w->spoil == SS_VERSION ? 2u + w->value : 1);
	put_word(&c, w->spoil == SS_GSS_PROC ? 4u + w->value : w->gss_proc);
	put_word(&c, w->seq);
	put_word(&c, w->service);
	put_opaque(&c, w->handle, w->handle_len);
	if (w->spoil == SS_CRED_CUT)
		c.used = w->where % c.used;
	put_word(o, SS_FLAVOUR_GSS);
	put_opaque(o, c.base, c.used);
}

static void get_mic(const struct ss_wire *w, const void *p, size_t n, gss_buffer_desc *mic)
{
	gss_buffer_desc in = { n, (void *)(uintptr_t)p };
	OM_uint32 minor;

	if (GSS_ERROR(gss_get_mic(&minor, w->ctx, GSS_C_QOP_DEFAULT, &in, mic)))
		abort();
}

static void put_verifier(const struct ss_wire *w, struct out *o)
{
	gss_buffer_desc mic = GSS_C_EMPTY_BUFFER;
	const size_t n = o->used;
	OM_uint32 minor;

	if (w->spoil == SS_VERF_NONE) {
		put_word(o, 0);
		put_word(o, 0);
		return;
	}
	/* Another call's: that of the next number. */
	if (w->spoil == SS_MIC_OTHER)
		o->base[CRED_AT + 8 + 11] ^= 1;
	get_mic(w, o->base, n, &mic);
	if (w->spoil == SS_MIC_OTHER)
		o->base[CRED_AT + 8 + 11] ^= 1;
	if (w->spoil == SS_MIC_BENT)
		((uint8_t *)mic.value)[w->where % mic.length] ^= (uint8_t)(1u << w->value % 8);
	put_word(o, SS_FLAVOUR_GSS);
	put_opaque(o, mic.value, w->spoil == SS_MIC_CUT ? w->where % mic.length : mic.length);
	gss_release_buffer(&minor, &mic);
	if (w->spoil == SS_XID)
		o->base[0] ^= 0x80;
	if (w->spoil == SS_PROC)
		o->base[CRED_AT - 1] ^= (uint8_t)(1u + w->value % 7u);
}

/* The number and the arguments behind it, in place of which the protected body goes. */
static void put_body(const struct ss_wire *w, const uint8_t *args, size_t len, struct out *o)
{
	gss_buffer_desc made = GSS_C_EMPTY_BUFFER;
	uint8_t *inner = malloc(len + 4);
	OM_uint32 minor;

	if (!inner)
		abort();
	ss_set_word(inner, w->spoil == SS_INNER_NUMBER ? w->seq ^ (1u << w->value % 32) : w->seq);
	memcpy(inner + 4, args, len);
	gss_buffer_desc in = { len + 4, inner };
	if (w->body_service == 2) {
		get_mic(w, inner, len + 4, &made);
		put_opaque(o, inner, len + 4);
		put_opaque(o, made.value, made.length);
	} else if (w->body_service == 3) {
		if (GSS_ERROR(gss_wrap(&minor, w->ctx, 1, GSS_C_QOP_DEFAULT, &in, NULL, &made)))
			abort();
		put_opaque(o, made.value, made.length);
	} else {
		put(o, args, len);
	}
	gss_release_buffer(&minor, &made);
	free(inner);
}

static void spoil_body(struct ss_wire *w, size_t body_at, struct out *o)
{
	const size_t len = o->used - body_at;
	const size_t at = len ? (w->where * 256u + w->value) % len : 0;

	switch (w->spoil) {
	case SS_BODY_BENT:
		if (len > 0)
			o->base[body_at + at] ^= (uint8_t)(1u << w->value % 8);
		else
			w->spoil = SS_WHOLE;
		break;
	case SS_BODY_CUT:
		if (len > 0)
			o->used = body_at + at;
		else
			w->spoil = SS_WHOLE;
		break;
	case SS_TAIL:
		put(o, o->base, w->where & 0xfc);
		break;
	default:
		break;
	}
}

size_t ss_wire_seal(struct ss_wire *w, const uint8_t *msg, size_t len, uint8_t *out)
{
	const size_t at = args_of(msg, len);
	struct out o = { .base = out };

	if (at == 0)
		return 0;
	w->padded = (len - at) % 4 != 0;
	put(&o, msg, CRED_AT);
	put_cred(w, &o);
	put_verifier(w, &o);
	const size_t body_at = o.used;
	if (w->gss_proc == 0)
		put_body(w, msg + at, len - at, &o);
	spoil_body(w, body_at, &o);
	return o.used;
}

size_t ss_wire_init(const uint8_t null[40], const gss_buffer_desc *token, unsigned spoil,
		    uint8_t where, uint8_t *out)
{
	struct out o = { .base = out };

	put(&o, null, CRED_AT);
	put_word(&o, SS_FLAVOUR_GSS);
	put_word(&o, 20);
	put_word(&o, 1);
	put_word(&o, spoil == 4 ? 2 : 1); /* CONTINUE_INIT of nothing */
	put_word(&o, 0);
	put_word(&o, 1 + where % 3);
	put_word(&o, 0);
	put_word(&o, 0);
	put_word(&o, 0);
	const size_t at = o.used;
	put_opaque(&o, token->value, spoil == 2 ? where * token->length / 256 : token->length);
	if (spoil == 1)
		out[at + 4 + where * token->length / 256] ^= 0x20;
	if (spoil == 3)
		ss_set_word(out + at, (uint32_t)token->length + where * 0x00800001u);
	return o.used;
}

/* An opaque item at *at, which moves behind it. False: it is cut. */
static bool take_opaque(const uint8_t *p, size_t len, size_t *at, const uint8_t **out, uint32_t *n)
{
	if (len - *at < 4)
		return false;
	*n = ss_word(p + *at);
	*at += 4;
	if (*n > len - *at || *n + rn_xdr_pad(*n) > len - *at)
		return false;
	*out = p + *at;
	*at += *n + rn_xdr_pad(*n);
	return true;
}

bool ss_wire_read(const uint8_t *msg, size_t len, struct ss_wire_reply *r)
{
	size_t at = 16;

	memset(r, 0, sizeof(*r));
	if (len < 20 || ss_word(msg + 4) != 1)
		return false;
	r->xid = ss_word(msg);
	r->denied = ss_word(msg + 8) == 1;
	if (r->denied) {
		r->mismatch = ss_word(msg + 12) == 0;
		r->stat = ss_word(msg + 16);
		return true;
	}
	const uint32_t flavour = ss_word(msg + 12);
	if (ss_word(msg + 8) != 0 || !take_opaque(msg, len, &at, &r->mic, &r->mic_len) ||
	    len - at < 4)
		return false;
	if (flavour != SS_FLAVOUR_GSS && (flavour != 0 || r->mic_len > 0))
		return false;
	r->stat = ss_word(msg + at);
	r->body = msg + at + 4;
	r->body_len = len - at - 4;
	return true;
}

static bool is_signed(gss_ctx_id_t ctx, const void *p, size_t len, const uint8_t *mic,
		      uint32_t mic_len)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)p };
	gss_buffer_desc token = { mic_len, (void *)(uintptr_t)mic };
	OM_uint32 minor;

	return mic_len > 0 && !GSS_ERROR(gss_verify_mic(&minor, ctx, &in, &token, NULL));
}

bool ss_wire_signs(gss_ctx_id_t ctx, const struct ss_wire_reply *r, uint32_t word)
{
	word = htonl(word);
	return is_signed(ctx, &word, sizeof(word), r->mic, r->mic_len);
}

/* The results behind their number, at to. -1: they have another. */
static long inside(const uint8_t *p, size_t len, uint32_t seq, uint8_t *to)
{
	if (len < 4 || len > REPLY_MOST || ss_word(p) != seq)
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

static long open_results(gss_ctx_id_t ctx, const struct ss_wire_reply *r, uint32_t service,
			 uint32_t seq, uint8_t *to)
{
	const uint8_t *p = NULL, *mic = NULL;
	uint32_t n = 0, mic_len = 0;
	size_t at = 0;

	if (!take_opaque(r->body, r->body_len, &at, &p, &n))
		return -1;
	if (service == 2 && (!take_opaque(r->body, r->body_len, &at, &mic, &mic_len) ||
			     !is_signed(ctx, p, n, mic, mic_len)))
		return -1;
	if (at != r->body_len)
		return -1;
	return service == 2 ? inside(p, n, seq, to) : open_secret(ctx, p, n, seq, to);
}

const uint8_t *ss_wire_open(gss_ctx_id_t ctx, const struct ss_wire_reply *r, uint32_t service,
			    uint32_t seq, size_t *len)
{
	static uint8_t plain[REPLY_MOST + 24];
	const uint32_t words[6] = { r->xid, 1, 0, 0, 0, r->stat };
	long n = -1;

	for (unsigned i = 0; i < 6; i++)
		ss_set_word(plain + (size_t)4 * i, words[i]);
	if (r->stat != 0 || service == 1) {
		if (r->body_len <= REPLY_MOST) {
			memcpy(plain + 24, r->body, r->body_len);
			n = (long)r->body_len;
		}
	} else {
		n = open_results(ctx, r, service, seq, plain + 24);
	}
	*len = n < 0 ? 0 : (size_t)n + 24;
	return n < 0 ? NULL : plain;
}

bool ss_wire_made(const struct ss_wire_reply *r, struct ss_wire_made *out)
{
	size_t at = 0;

	if (!take_opaque(r->body, r->body_len, &at, &out->handle, &out->handle_len) ||
	    r->body_len - at < 12)
		return false;
	out->major = ss_word(r->body + at);
	out->window = ss_word(r->body + at + 8);
	at += 12;
	return take_opaque(r->body, r->body_len, &at, &out->token, &out->token_len) &&
	       at == r->body_len && out->handle_len <= SS_HANDLE_MAX;
}
