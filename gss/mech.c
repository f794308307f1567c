/* SPDX-License-Identifier: BSD-2-Clause */
/* The library: the server's keys, contexts from their first token to their end, and messages under them. */
#include "gss/mech.h"

#include <errno.h>
#include <gssapi/gssapi.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gss/token.h"

struct gss_mech_ctx {
	gss_ctx_id_t id;
	struct gss_tokens *tokens; /* of the established context; NULL: the library makes them */
	size_t mic_len;		   /* of the last MIC that was made; 0: none was */
	bool numbered;		   /* the client looks at its tokens' numbers */
};

struct gss_mech_cred {
	_Atomic unsigned refs;
	gss_cred_id_t id;
};

/* The library's words for both parts of a status. */
static void gss_mech_explain(OM_uint32 major, OM_uint32 minor, char why[GSS_MECH_WHY])
{
	OM_uint32 ignored, more = 0;
	gss_buffer_desc a = GSS_C_EMPTY_BUFFER, b = GSS_C_EMPTY_BUFFER;

	gss_display_status(&ignored, major, GSS_C_GSS_CODE, GSS_C_NO_OID, &more, &a);
	more = 0;
	gss_display_status(&ignored, minor, GSS_C_MECH_CODE, gss_mech_krb5, &more, &b);
	snprintf(why, GSS_MECH_WHY, "%.*s: %.*s", (int)a.length, (const char *)a.value,
		 (int)b.length, (const char *)b.value);
	gss_release_buffer(&ignored, &a);
	gss_release_buffer(&ignored, &b);
}

static gss_OID name_type(const char *principal)
{
	return strchr(principal, '/') ? GSS_KRB5_NT_PRINCIPAL_NAME : GSS_C_NT_HOSTBASED_SERVICE;
}

static OM_uint32 gss_mech_acquire(OM_uint32 *minor, const struct gss_mech_files *files,
				  gss_name_t name, gss_cred_id_t *out)
{
	gss_key_value_element_desc elements[2];
	gss_key_value_set_desc store = { .count = 0, .elements = elements };
	gss_OID_set_desc mechs = { 1, gss_mech_krb5 };

	if (files->keytab)
		elements[store.count++] =
			(gss_key_value_element_desc){ .key = "keytab", .value = files->keytab };
	if (files->replays)
		elements[store.count++] =
			(gss_key_value_element_desc){ .key = "rcache", .value = files->replays };
	return gss_acquire_cred_from(minor, name, GSS_C_INDEFINITE, &mechs, GSS_C_ACCEPT, &store,
				     out, NULL, NULL);
}

int gss_mech_cred_new(const struct gss_mech_files *files, const char *principal,
		      struct gss_mech_cred **out, char why[GSS_MECH_WHY])
{
	gss_buffer_desc text = { strlen(principal), (void *)(uintptr_t)principal };
	struct gss_mech_cred *c = calloc(1, sizeof(*c));
	gss_cred_id_t any = GSS_C_NO_CREDENTIAL;
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 major, minor, ignored;

	if (!c)
		return -ENOMEM;
	/* The library leaks a name's memory if there is no keytab at all, so it is asked for any key first. */
	major = gss_mech_acquire(&minor, files, GSS_C_NO_NAME, &any);
	gss_release_cred(&ignored, &any);
	if (!GSS_ERROR(major))
		major = gss_import_name(&minor, &text, name_type(principal), &name);
	if (!GSS_ERROR(major))
		major = gss_mech_acquire(&minor, files, name, &c->id);
	gss_release_name(&ignored, &name);
	if (GSS_ERROR(major)) {
		gss_mech_explain(major, minor, why);
		free(c);
		return -EACCES;
	}
	atomic_init(&c->refs, 1);
	*out = c;
	return 0;
}

struct gss_mech_cred *gss_mech_cred_ref(struct gss_mech_cred *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void gss_mech_cred_put(struct gss_mech_cred *c)
{
	OM_uint32 minor;

	if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	gss_release_cred(&minor, &c->id);
	free(c);
}

static void copy_token(const gss_buffer_desc *from, struct gss_mech_step *out)
{
	out->token = from->length ? malloc(from->length) : NULL;
	out->token_len = out->token ? from->length : 0;
	if (out->token)
		memcpy(out->token, from->value, from->length);
}

static struct rpc_principal *principal_of(gss_name_t name)
{
	gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
	struct rpc_principal *p = NULL;
	OM_uint32 minor;

	if (!GSS_ERROR(gss_display_name(&minor, name, &text, NULL)))
		p = rpc_principal_new(text.value, text.length);
	gss_release_buffer(&minor, &text);
	return p;
}

/* The enctype's number is the last arc of what the library names it by. False: it has several bytes, as no AES enctype's has. */
static bool enctype_of(const gss_buffer_desc *oid, uint32_t *enctype)
{
	const uint8_t *bytes = oid->value;

	if (oid->length < 2 || ((bytes[oid->length - 1] | bytes[oid->length - 2]) & 0x80))
		return false;
	*enctype = bytes[oid->length - 1];
	return true;
}

/* Has messages of an established context pass by the library, if that can be. A MIC of the library's own tells who has begun the
 * context, whose key it is and which number comes next. A client that has asked for numbers has the library look at them. */
static void gss_mech_established(struct gss_mech_ctx *ctx)
{
	gss_buffer_desc none = GSS_C_EMPTY_BUFFER, mic = GSS_C_EMPTY_BUFFER;
	gss_buffer_set_t set = GSS_C_NO_BUFFER_SET;
	struct gss_token_key k;
	OM_uint32 minor;

	if (!ctx->numbered &&
	    !GSS_ERROR(gss_inquire_sec_context_by_oid(&minor, ctx->id, GSS_C_INQ_SSPI_SESSION_KEY,
						      &set)) &&
	    !GSS_ERROR(gss_get_mic(&minor, ctx->id, GSS_C_QOP_DEFAULT, &none, &mic)) &&
	    set->count == 2 && enctype_of(&set->elements[1], &k.enctype)) {
		k.key = set->elements[0].value;
		k.len = set->elements[0].length;
		if (gss_token_key_from_mic(&k, mic.value, mic.length))
			ctx->tokens = gss_tokens_new(&k);
	}
	if (set && set->count > 0)
		explicit_bzero(set->elements[0].value, set->elements[0].length);
	gss_release_buffer_set(&minor, &set);
	gss_release_buffer(&minor, &mic);
}

bool gss_mech_accept(struct gss_mech_cred *c, struct gss_mech_ctx **ctx, const uint8_t *token,
		     size_t len, struct gss_mech_step *out)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)token }, answer = GSS_C_EMPTY_BUFFER;
	struct gss_mech_ctx *x = *ctx ? *ctx : calloc(1, sizeof(*x));
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 minor = 0, ignored, flags = 0;
	gss_OID mech = GSS_C_NO_OID;

	memset(out, 0, sizeof(*out));
	*ctx = NULL;
	if (!x) {
		out->major = GSS_S_FAILURE;
		return false;
	}
	out->major = gss_accept_sec_context(&minor, &x->id, c->id, &in, GSS_C_NO_CHANNEL_BINDINGS,
					    &name, &mech, &answer, &flags, &out->lifetime, NULL);
	out->minor = minor;
	out->complete = out->major == GSS_S_COMPLETE;
	x->numbered = flags & (GSS_C_REPLAY_FLAG | GSS_C_SEQUENCE_FLAG);
	copy_token(&answer, out);
	gss_release_buffer(&ignored, &answer);
	if (out->complete)
		out->principal = principal_of(name);
	gss_release_name(&ignored, &name);
	/* Another mechanism, or a name that cannot be shown, is nobody whom an export could admit. */
	if (out->complete && (!out->principal || !gss_oid_equal(mech, gss_mech_krb5)))
		out->major = GSS_S_BAD_MECH;
	if (GSS_ERROR(out->major)) {
		gss_mech_explain(out->major, minor, out->why);
		out->skewed = minor == (OM_uint32)KRB5KRB_AP_ERR_SKEW;
		rpc_principal_put(out->principal);
		out->principal = NULL;
		out->complete = false;
		gss_mech_ctx_free(x);
		return false;
	}
	if (out->complete)
		gss_mech_established(x);
	*ctx = x;
	return true;
}

static OM_uint32 import_principal(OM_uint32 *minor, const char *name, gss_name_t *out)
{
	gss_buffer_desc text = { strlen(name), (void *)(uintptr_t)name };

	return gss_import_name(minor, &text, GSS_KRB5_NT_PRINCIPAL_NAME, out);
}

/* Credentials by the keytab's key. The ticket stays in memory, so that the KDC is not asked for each client. */
static OM_uint32 acquire_own(OM_uint32 *minor, const char *keytab, const char *from,
			     gss_cred_id_t *out)
{
	char cache[sizeof("MEMORY:ringnfs ") + RPC_PRINCIPAL_MAX];
	gss_key_value_element_desc element[2] = {
		{ .key = "ccache", .value = cache },
		{ .key = "client_keytab", .value = keytab ? keytab : "FILE:/etc/krb5.keytab" },
	};
	const gss_key_value_set_desc store = { .count = 2, .elements = element };
	gss_OID_set_desc mechs = { 1, gss_mech_krb5 };
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 major, ignored;

	snprintf(cache, sizeof(cache), "MEMORY:ringnfs %s", from);
	major = import_principal(minor, from, &name);
	if (!GSS_ERROR(major))
		major = gss_acquire_cred_from(minor, name, GSS_C_INDEFINITE, &mechs, GSS_C_INITIATE,
					      &store, out, NULL, NULL);
	gss_release_name(&ignored, &name);
	return major;
}

bool gss_mech_start(const char *keytab, const char *from, const char *to, struct gss_mech_ctx **ctx,
		    struct gss_mech_step *out)
{
	struct gss_mech_ctx *x = calloc(1, sizeof(*x));
	gss_cred_id_t cred = GSS_C_NO_CREDENTIAL;
	gss_buffer_desc token = GSS_C_EMPTY_BUFFER;
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 major, minor = 0, ignored;

	memset(out, 0, sizeof(*out));
	if (!x)
		return false;
	major = acquire_own(&minor, keytab, from, &cred);
	if (!GSS_ERROR(major))
		major = import_principal(&minor, to, &name);
	if (!GSS_ERROR(major))
		major = gss_init_sec_context(&minor, cred, &x->id, name, gss_mech_krb5,
					     GSS_C_MUTUAL_FLAG, 0, GSS_C_NO_CHANNEL_BINDINGS,
					     GSS_C_NO_BUFFER, NULL, &token, NULL, NULL);
	out->major = major;
	out->minor = minor;
	copy_token(&token, out);
	if (GSS_ERROR(major))
		gss_mech_explain(major, minor, out->why);
	gss_release_buffer(&ignored, &token);
	gss_release_name(&ignored, &name);
	gss_release_cred(&ignored, &cred);
	if (GSS_ERROR(major) || !out->token) {
		gss_mech_ctx_free(x);
		return false;
	}
	*ctx = x;
	return true;
}

bool gss_mech_go_on(struct gss_mech_ctx *ctx, const char *to, const uint8_t *token, size_t len,
		    uint32_t *lifetime)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)token }, more = GSS_C_EMPTY_BUFFER;
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 major, minor, ignored;

	major = import_principal(&minor, to, &name);
	if (!GSS_ERROR(major))
		major = gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL, &ctx->id, name,
					     gss_mech_krb5, GSS_C_MUTUAL_FLAG, 0,
					     GSS_C_NO_CHANNEL_BINDINGS, &in, NULL, &more, NULL,
					     lifetime);
	gss_release_name(&ignored, &name);
	gss_release_buffer(&ignored, &more);
	if (major != GSS_S_COMPLETE)
		return false;
	gss_mech_established(ctx);
	return true;
}

struct rpc_principal *gss_mech_own_name(struct gss_mech_ctx *ctx)
{
	struct rpc_principal *p = NULL;
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 minor;

	if (!GSS_ERROR(gss_inquire_context(&minor, ctx->id, NULL, &name, NULL, NULL, NULL, NULL,
					   NULL)))
		p = principal_of(name);
	gss_release_name(&minor, &name);
	return p;
}

void gss_mech_ctx_free(struct gss_mech_ctx *ctx)
{
	OM_uint32 minor;

	if (!ctx)
		return;
	gss_tokens_free(ctx->tokens);
	gss_delete_sec_context(&minor, &ctx->id, GSS_C_NO_BUFFER);
	free(ctx);
}

bool gss_mech_may_copy(const struct gss_mech_ctx *ctx)
{
	return !ctx->numbered;
}

/* like: has the members that are not the library's. by_tokens: messages pass by the library. */
static struct gss_mech_ctx *gss_mech_ctx_import(gss_buffer_desc *from,
						const struct gss_mech_ctx *like, bool by_tokens)
{
	struct gss_mech_ctx *x = calloc(1, sizeof(*x));
	OM_uint32 minor;

	if (!x)
		return NULL;
	x->mic_len = like->mic_len;
	x->numbered = like->numbered;
	if (GSS_ERROR(gss_import_sec_context(&minor, from, &x->id))) {
		free(x);
		return NULL;
	}
	if (by_tokens)
		gss_mech_established(x);
	return x;
}

static void release_keys(gss_buffer_desc *keys)
{
	OM_uint32 minor;

	if (keys->value)
		explicit_bzero(keys->value, keys->length);
	gss_release_buffer(&minor, keys);
}

bool gss_mech_ctx_copy(struct gss_mech_ctx *ctx, struct gss_mech_ctx **out, unsigned want,
		       unsigned *n)
{
	gss_buffer_desc keys = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor, major;

	*n = 0;
	if (want == 0)
		return true;
	/* The library's context is gone after this, and the first import is in its place. */
	major = gss_export_sec_context(&minor, &ctx->id, &keys);
	if (!GSS_ERROR(major))
		major = gss_import_sec_context(&minor, &keys, &ctx->id);
	while (!GSS_ERROR(major) && *n < want &&
	       (out[*n] = gss_mech_ctx_import(&keys, ctx, ctx->tokens)))
		++*n;
	release_keys(&keys);
	return !GSS_ERROR(major);
}

bool gss_mech_save(struct gss_mech_ctx *ctx, struct gss_mech_saved *out)
{
	gss_buffer_desc keys = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	*out = (struct gss_mech_saved){ .numbered = ctx->numbered };
	if (GSS_ERROR(gss_export_sec_context(&minor, &ctx->id, &keys)))
		return false;
	out->bytes = malloc(keys.length);
	if (out->bytes) {
		memcpy(out->bytes, keys.value, keys.length);
		out->len = keys.length;
	}
	release_keys(&keys);
	return out->bytes;
}

void gss_mech_saved_clear(struct gss_mech_saved *s)
{
	explicit_bzero(s->bytes, s->len);
	free(s->bytes);
	s->bytes = NULL;
}

struct gss_mech_ctx *gss_mech_load(const struct gss_mech_saved *s, size_t mic_len)
{
	const struct gss_mech_ctx like = { .mic_len = mic_len, .numbered = s->numbered };
	gss_buffer_desc keys = { s->len, s->bytes };

	return gss_mech_ctx_import(&keys, &like, true);
}

/* Messages under an established context: their MICs (RFC 4121 section 4.2.6.1) and their encryption (4.2.6.2). */

static bool verify_whole(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece,
			 const uint8_t *mic, size_t mic_len)
{
	gss_buffer_desc msg = { piece->len, piece->base };
	gss_buffer_desc token = { mic_len, (void *)(uintptr_t)mic };
	OM_uint32 minor;

	return !GSS_ERROR(gss_verify_mic(&minor, ctx->id, &msg, &token, NULL));
}

bool gss_mech_verify(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece, unsigned n,
		     const uint8_t *mic, size_t mic_len)
{
	gss_iov_buffer_desc iov[GSS_MECH_PIECES + 1];
	OM_uint32 minor;

	if (ctx->tokens && gss_tokens_know_mic(ctx->tokens, mic, mic_len))
		return gss_tokens_verify(ctx->tokens, piece, n, mic, mic_len);
	if (n == 1)
		return verify_whole(ctx, piece, mic, mic_len);
	/* The library reads behind a MIC that is shorter than its own. */
	if (n > GSS_MECH_PIECES || mic_len != ctx->mic_len)
		return false;
	for (unsigned i = 0; i < n; i++)
		iov[i] = (gss_iov_buffer_desc){
			.type = GSS_IOV_BUFFER_TYPE_DATA,
			.buffer = { piece[i].len, piece[i].base },
		};
	iov[n] = (gss_iov_buffer_desc){
		.type = GSS_IOV_BUFFER_TYPE_MIC_TOKEN,
		.buffer = { mic_len, (void *)(uintptr_t)mic },
	};
	return !GSS_ERROR(gss_verify_mic_iov(&minor, ctx->id, NULL, iov, (int)n + 1));
}

uint32_t gss_mech_sign(struct gss_mech_ctx *ctx, const uint8_t *msg, size_t len,
		       uint8_t mic[GSS_MECH_MIC_MAX])
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)msg }, out = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor, n = 0;

	if (ctx->tokens) {
		const struct gss_mech_piece whole = { (uint8_t *)(uintptr_t)msg, len };

		return ctx->mic_len = gss_tokens_sign(ctx->tokens, &whole, 1, mic);
	}
	if (GSS_ERROR(gss_get_mic(&minor, ctx->id, GSS_C_QOP_DEFAULT, &in, &out)))
		return 0;
	if (out.length <= GSS_MECH_MIC_MAX) {
		n = (OM_uint32)out.length;
		memcpy(mic, out.value, out.length);
	}
	gss_release_buffer(&minor, &out);
	ctx->mic_len = n;
	return n;
}

static void set_part(gss_iov_buffer_desc *v, OM_uint32 type, const struct gss_mech_piece *p)
{
	*v = (gss_iov_buffer_desc){ .type = type, .buffer = { p->len, p->base } };
}

uint32_t gss_mech_sign_pieces(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece,
			      unsigned n, uint8_t mic[GSS_MECH_MIC_MAX])
{
	const struct gss_mech_piece none = { NULL, 0 };
	gss_iov_buffer_desc iov[GSS_MECH_PIECES + 1];
	OM_uint32 minor;

	if (ctx->tokens)
		return gss_tokens_sign(ctx->tokens, piece, n, mic);
	if (n > GSS_MECH_PIECES)
		return 0;
	for (unsigned i = 0; i < n; i++)
		set_part(&iov[i], GSS_IOV_BUFFER_TYPE_DATA, &piece[i]);
	set_part(&iov[n], GSS_IOV_BUFFER_TYPE_MIC_TOKEN, &none);
	/* The library does not say how much of a longer buffer it has used. */
	if (GSS_ERROR(
		    gss_get_mic_iov_length(&minor, ctx->id, GSS_C_QOP_DEFAULT, iov, (int)n + 1)) ||
	    iov[n].buffer.length > GSS_MECH_MIC_MAX)
		return 0;
	iov[n].buffer.value = mic;
	if (GSS_ERROR(gss_get_mic_iov(&minor, ctx->id, GSS_C_QOP_DEFAULT, iov, (int)n + 1)))
		return 0;
	return (uint32_t)iov[n].buffer.length;
}

/* The parts of a wrapped message, in their order on the wire. */
enum { HEADER, DATA, PADDING, TRAILER, PARTS };

static void gss_mech_make_parts(gss_iov_buffer_desc iov[PARTS], size_t len)
{
	memset(iov, 0, PARTS * sizeof(iov[0]));
	iov[HEADER].type = GSS_IOV_BUFFER_TYPE_HEADER;
	iov[DATA].type = GSS_IOV_BUFFER_TYPE_DATA;
	iov[DATA].buffer.length = len;
	iov[PADDING].type = GSS_IOV_BUFFER_TYPE_PADDING;
	iov[TRAILER].type = GSS_IOV_BUFFER_TYPE_TRAILER;
}

bool gss_mech_wrap_sizes(struct gss_mech_ctx *ctx, size_t len, size_t *before, size_t *behind)
{
	gss_iov_buffer_desc iov[PARTS];
	OM_uint32 minor;

	if (ctx->tokens) {
		*before = GSS_TOKEN_BEFORE;
		*behind = gss_tokens_behind(ctx->tokens);
		return true;
	}
	gss_mech_make_parts(iov, len);
	if (GSS_ERROR(gss_wrap_iov_length(&minor, ctx->id, 1, GSS_C_QOP_DEFAULT, NULL, iov, PARTS)))
		return false;
	*before = iov[HEADER].buffer.length;
	*behind = iov[PADDING].buffer.length + iov[TRAILER].buffer.length;
	return true;
}

/*
 * The message within a token of RFC 4121 that was decrypted in place. The library does not tell where it is if it has a
 * remark about the token's number, as calls overtake each other.
 */
static bool find_message(struct gss_mech_ctx *ctx, uint8_t *token, size_t len, gss_buffer_desc *out)
{
	size_t before, behind;

	if (len < GSS_MECH_START || !gss_mech_is_straight(token) ||
	    !gss_mech_wrap_sizes(ctx, len, &before, &behind) || before + behind > len)
		return false;
	*out = (gss_buffer_desc){ len - before - behind, token + before };
	return true;
}

bool gss_mech_unwrap(struct gss_mech_ctx *ctx, uint8_t *token, size_t len,
		     struct gss_mech_piece *out)
{
	gss_iov_buffer_desc iov[2] = {
		{ .type = GSS_IOV_BUFFER_TYPE_STREAM, .buffer = { len, token } },
		{ .type = GSS_IOV_BUFFER_TYPE_DATA },
	};
	OM_uint32 major, minor;
	int encrypted = 0;

	if (ctx->tokens && len >= GSS_TOKEN_HEAD && gss_tokens_know_wrap(ctx->tokens, token)) {
		const struct gss_mech_piece whole = { token, len };

		if (!gss_tokens_unwrap(ctx->tokens, &whole, 1, len))
			return false;
		out->base = token + GSS_TOKEN_BEFORE;
		out->len = len - GSS_TOKEN_BEFORE - gss_tokens_behind(ctx->tokens);
		return true;
	}
	major = gss_unwrap_iov(&minor, ctx->id, &encrypted, NULL, iov, 2);
	if (GSS_ERROR(major) || !encrypted)
		return false;
	if (!iov[1].buffer.value && !find_message(ctx, token, len, &iov[1].buffer))
		return false;
	out->base = iov[1].buffer.value;
	out->len = iov[1].buffer.length;
	return true;
}

/* Layout of a token: RFC 4121 section 4.2.6.2. */
enum { FLAGS_AT = 2, COUNTS_AT = 4, IS_SEALED = 2 };

bool gss_mech_is_straight(const uint8_t start[GSS_MECH_START])
{
	static const uint8_t id[2] = { 5, 4 }, none[4] = { 0 };

	return memcmp(start, id, sizeof(id)) == 0 && (start[FLAGS_AT] & IS_SEALED) &&
	       memcmp(start + COUNTS_AT, none, sizeof(none)) == 0;
}

/* Copies bytes `from` to `from` + len of the pieces. */
static void copy_out(const struct gss_mech_piece *piece, unsigned n, size_t from, uint8_t *out,
		     size_t len)
{
	for (unsigned i = 0; i < n && len > 0; i++) {
		const size_t skip = from < piece[i].len ? from : piece[i].len;
		const size_t rest = piece[i].len - skip, some = rest < len ? rest : len;

		memcpy(out, piece[i].base + skip, some);
		out += some;
		len -= some;
		from -= skip;
	}
}

#define EDGE_MAX 128u /* bytes before, or behind, an encrypted message, at most */

bool gss_mech_unwrap_pieces(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece,
			    unsigned n, size_t *before, size_t *behind)
{
	gss_iov_buffer_desc iov[GSS_MECH_PIECES + 2];
	/* Decrypting overwrites both, and either may lie in two pieces. */
	uint8_t head[EDGE_MAX], tail[EDGE_MAX];
	size_t len = 0, skip, left;
	unsigned parts = 1;
	OM_uint32 minor;
	int encrypted = 0;

	for (unsigned i = 0; i < n; i++)
		len += piece[i].len;
	if (n > GSS_MECH_PIECES || !gss_mech_wrap_sizes(ctx, len, before, behind) ||
	    *before > sizeof(head) || *behind > sizeof(tail) || *before + *behind > len)
		return false;
	copy_out(piece, n, 0, head, *before);
	if (ctx->tokens && gss_tokens_know_wrap(ctx->tokens, head))
		return gss_tokens_unwrap(ctx->tokens, piece, n, len);
	copy_out(piece, n, len - *behind, tail, *behind);
	set_part(&iov[0], GSS_IOV_BUFFER_TYPE_HEADER, &(struct gss_mech_piece){ head, *before });
	skip = *before;
	left = len - *before - *behind;
	for (unsigned i = 0; i < n; i++) {
		const size_t from = skip < piece[i].len ? skip : piece[i].len;
		const size_t rest = piece[i].len - from, some = rest < left ? rest : left;
		const struct gss_mech_piece data = { piece[i].base + from, some };

		skip -= from;
		left -= some;
		if (some > 0)
			set_part(&iov[parts++], GSS_IOV_BUFFER_TYPE_DATA, &data);
	}
	set_part(&iov[parts++], GSS_IOV_BUFFER_TYPE_TRAILER,
		 &(struct gss_mech_piece){ tail, *behind });
	return !GSS_ERROR(gss_unwrap_iov(&minor, ctx->id, &encrypted, NULL, iov, (int)parts)) &&
	       encrypted;
}

bool gss_mech_wrap(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece, unsigned n)
{
	gss_iov_buffer_desc iov[GSS_MECH_PIECES + 1];
	const struct gss_mech_piece *last = &piece[n - 1], none = { NULL, 0 };
	gss_iov_buffer_desc *padding = &iov[n - 1], *trailer = &iov[n];
	OM_uint32 minor;
	int encrypted = 0;

	if (n < 2 || n > GSS_MECH_PIECES)
		return false;
	if (ctx->tokens)
		return gss_tokens_wrap(ctx->tokens, piece, n);
	set_part(&iov[0], GSS_IOV_BUFFER_TYPE_HEADER, &none);
	for (unsigned i = 1; i < n - 1; i++)
		set_part(&iov[i], GSS_IOV_BUFFER_TYPE_DATA, &piece[i]);
	set_part(padding, GSS_IOV_BUFFER_TYPE_PADDING, &none);
	set_part(trailer, GSS_IOV_BUFFER_TYPE_TRAILER, &none);
	if (GSS_ERROR(gss_wrap_iov_length(&minor, ctx->id, 1, GSS_C_QOP_DEFAULT, NULL, iov,
					  (int)n + 1)) ||
	    iov[0].buffer.length != piece[0].len ||
	    padding->buffer.length + trailer->buffer.length != last->len)
		return false;
	iov[0].buffer.value = piece[0].base;
	padding->buffer.value = last->base;
	trailer->buffer.value = last->base + padding->buffer.length;
	return !GSS_ERROR(gss_wrap_iov(&minor, ctx->id, 1, GSS_C_QOP_DEFAULT, &encrypted, iov,
				       (int)n + 1)) &&
	       encrypted;
}
