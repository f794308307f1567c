/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages under an established context: their MICs (RFC 4121 section 4.2.6.1) and their encryption (4.2.6.2). */
#include "gss/mech_private.h"

#include <gssapi/gssapi_ext.h>
#include <string.h>

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
