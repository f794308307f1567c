/* SPDX-License-Identifier: BSD-2-Clause */
/* Kerberos' per-message tokens beside libkrb5's functions for the same keys, in pieces of all kinds. */
#include <criterion/criterion.h>
#include <krb5.h>
#include <stdlib.h>
#include <string.h>

#include "gss/mech.h"
#include "gss/token.h"
#include "lib/util.h"

#define HEAD GSS_TOKEN_HEAD
#define MOST (200u * 1024u)
#define CALLS 60u

static const struct {
	krb5_enctype type;
	size_t key_len, mac_len;
} enctypes[] = {
	{ ENCTYPE_AES128_CTS_HMAC_SHA1_96, 16, 12 },
	{ ENCTYPE_AES256_CTS_HMAC_SHA1_96, 32, 12 },
	{ ENCTYPE_AES128_CTS_HMAC_SHA256_128, 16, 16 },
	{ ENCTYPE_AES256_CTS_HMAC_SHA384_192, 32, 24 },
};

enum { ACCEPTOR_SEAL = 22, ACCEPTOR_SIGN, INITIATOR_SEAL, INITIATOR_SIGN };

static krb5_context lib;
static uint8_t *message, *buffer;

static void start(void)
{
	srandom(7);
	cr_assert_eq(krb5_init_context(&lib), 0);
	message = malloc(MOST);
	buffer = malloc(MOST + 256);
	for (size_t i = 0; i < MOST; i++)
		message[i] = (uint8_t)random();
}

static void stop(void)
{
	krb5_free_context(lib);
	free(message);
	free(buffer);
}

TestSuite(gss_token, .init = start, .fini = stop);

struct side {
	struct gss_tokens *tokens;
	krb5_keyblock key;
	size_t mac_len;
	unsigned seal_out, seal_in, sign_out, sign_in;
	uint8_t flags_in;
};

static void open_side(struct side *s, unsigned e, bool initiator, bool subkey)
{
	static uint8_t key[32];

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7 + e);
	s->key = (krb5_keyblock){ .enctype = enctypes[e].type,
				  .length = (unsigned)enctypes[e].key_len,
				  .contents = key };
	s->mac_len = enctypes[e].mac_len;
	s->tokens = gss_tokens_new(&(struct gss_token_key){ .enctype = (uint32_t)enctypes[e].type,
							    .key = key,
							    .len = enctypes[e].key_len,
							    .initiator = initiator,
							    .subkey = subkey,
							    .number = 41 });
	cr_assert_not_null(s->tokens);
	s->seal_out = initiator ? INITIATOR_SEAL : ACCEPTOR_SEAL;
	s->seal_in = initiator ? ACCEPTOR_SEAL : INITIATOR_SEAL;
	s->sign_out = initiator ? INITIATOR_SIGN : ACCEPTOR_SIGN;
	s->sign_in = initiator ? ACCEPTOR_SIGN : INITIATOR_SIGN;
	s->flags_in = (uint8_t)((initiator ? 1 : 0) | (subkey ? 4 : 0));
}

static size_t any_length(unsigned call)
{
	return call < 40 ? call : (size_t)random() % MOST;
}

/* Cuts len bytes into pieces, of which some are empty or short. */
static unsigned cut(uint8_t *base, size_t len, struct gss_mech_piece *out, unsigned most)
{
	unsigned n = 0;

	while (len > 0 && n + 1 < most) {
		const size_t some = rn_min((size_t)random() % (random() % 2 ? 40 : 70000), len);

		out[n++] = (struct gss_mech_piece){ base, some };
		base += some;
		len -= some;
	}
	out[n++] = (struct gss_mech_piece){ base, len };
	return n;
}

static void put_head(const struct side *s, uint8_t *head, bool sealed)
{
	static const uint8_t rest[13] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4 };

	head[0] = sealed ? 5 : 4;
	head[1] = 4;
	head[2] = (uint8_t)(s->flags_in | (sealed ? 2 : 0));
	memcpy(head + 3, rest, sizeof(rest));
}

static void check_wrap(struct side *s, size_t len)
{
	struct gss_mech_piece piece[GSS_MECH_PIECES] = { { buffer, GSS_TOKEN_BEFORE } };
	const size_t behind = gss_tokens_behind(s->tokens);
	const size_t token_len = GSS_TOKEN_BEFORE + len + behind;
	static uint8_t plain[MOST + 256];
	unsigned n;

	memcpy(buffer + GSS_TOKEN_BEFORE, message, len);
	n = 1 + cut(buffer + GSS_TOKEN_BEFORE, len, piece + 1, GSS_MECH_PIECES - 2);
	piece[n++] = (struct gss_mech_piece){ buffer + token_len - behind, behind };
	cr_assert(gss_tokens_wrap(s->tokens, piece, n));

	const krb5_enc_data in = {
		.enctype = s->key.enctype,
		.ciphertext = { .length = (unsigned)(token_len - HEAD),
				.data = (char *)buffer + HEAD },
	};
	krb5_data out = { .length = sizeof(plain), .data = (char *)plain };
	cr_assert_eq(krb5_c_decrypt(lib, &s->key, (krb5_keyusage)s->seal_out, NULL, &in, &out), 0,
		     "%zu bytes", len);
	cr_assert_eq(out.length, len + HEAD);
	cr_assert_arr_eq(plain, message, len);
	cr_assert_arr_eq(plain + len, buffer, HEAD);
}

/* A token that libkrb5 has encrypted; a bit of it is flipped if flip is set. */
static void check_unwrap(struct side *s, size_t len, bool flip)
{
	static uint8_t plain[MOST + 256];
	struct gss_mech_piece piece[GSS_MECH_PIECES];
	const size_t token_len = GSS_TOKEN_BEFORE + len + gss_tokens_behind(s->tokens);
	krb5_enc_data out = {
		.ciphertext = { .length = (unsigned)(token_len - HEAD),
				.data = (char *)buffer + HEAD },
	};
	const krb5_data in = { .length = (unsigned)(len + HEAD), .data = (char *)plain };
	unsigned n;

	memcpy(plain, message, len);
	put_head(s, plain + len, true);
	put_head(s, buffer, true);
	cr_assert_eq(krb5_c_encrypt(lib, &s->key, (krb5_keyusage)s->seal_in, NULL, &in, &out), 0);
	cr_assert_eq(out.ciphertext.length, token_len - HEAD);
	if (flip)
		buffer[HEAD + (size_t)random() % (token_len - HEAD)] ^=
			(uint8_t)(1 << random() % 8);
	n = cut(buffer, token_len, piece, GSS_MECH_PIECES);
	cr_assert_eq(gss_tokens_unwrap(s->tokens, piece, n, token_len), !flip, "%zu bytes", len);
	if (!flip)
		cr_assert_arr_eq(buffer + GSS_TOKEN_BEFORE, message, len);
}

static void check_sign(struct side *s, size_t len)
{
	struct gss_mech_piece piece[GSS_MECH_PIECES];
	static uint8_t all[MOST + 256];
	uint8_t mic[GSS_MECH_MIC_MAX];
	const unsigned n = cut(message, len, piece, GSS_MECH_PIECES);
	const uint32_t mic_len = gss_tokens_sign(s->tokens, piece, n, mic);
	const krb5_data in = { .length = (unsigned)(len + HEAD), .data = (char *)all };
	krb5_checksum sum;

	cr_assert_eq(mic_len, HEAD + s->mac_len);
	memcpy(all, message, len);
	memcpy(all + len, mic, HEAD);
	cr_assert_eq(krb5_c_make_checksum(lib, 0, &s->key, (krb5_keyusage)s->sign_out, &in, &sum),
		     0);
	cr_assert_eq(sum.length, s->mac_len);
	cr_assert_arr_eq(sum.contents, mic + HEAD, s->mac_len);
	krb5_free_checksum_contents(lib, &sum);

	put_head(s, mic, false);
	memcpy(all + len, mic, HEAD);
	cr_assert_eq(krb5_c_make_checksum(lib, 0, &s->key, (krb5_keyusage)s->sign_in, &in, &sum),
		     0);
	memcpy(mic + HEAD, sum.contents, sum.length);
	krb5_free_checksum_contents(lib, &sum);
	cr_assert(gss_tokens_know_mic(s->tokens, mic, mic_len));
	cr_assert(gss_tokens_verify(s->tokens, piece, n, mic, mic_len));
	cr_assert_not(gss_tokens_verify(s->tokens, piece, n, mic, mic_len - 1));
	mic[3 + (unsigned)random() % (mic_len - 3)] ^= 1;
	cr_assert_not(gss_tokens_verify(s->tokens, piece, n, mic, mic_len));
}

Test(gss_token, is_what_libkrb5_makes)
{
	for (unsigned e = 0; e < rn_array_size(enctypes); e++)
		for (unsigned side = 0; side < 4; side++) {
			struct side s;

			open_side(&s, e, side & 1, side & 2);
			for (unsigned call = 0; call < CALLS; call++) {
				check_wrap(&s, any_length(call));
				check_unwrap(&s, any_length(call), false);
				check_unwrap(&s, any_length(call), true);
				check_sign(&s, any_length(call));
			}
			gss_tokens_free(s.tokens);
		}
}

/* Tokens of the other direction, of another key, rotated, with a filler, not encrypted: for the library. */
Test(gss_token, others_are_not_known)
{
	uint8_t head[HEAD];
	struct side s;

	open_side(&s, 1, false, true);
	put_head(&s, head, true);
	cr_assert(gss_tokens_know_wrap(s.tokens, head));
	for (unsigned at = 0; at < 8; at++) {
		if (at == 3)
			continue; /* 0xff, which the encrypted copy of the head is compared with */
		put_head(&s, head, true);
		head[at] ^= 1;
		cr_assert_not(gss_tokens_know_wrap(s.tokens, head), "byte %u", at);
	}
	put_head(&s, head, true);
	cr_assert_not(gss_tokens_unwrap(s.tokens, &(struct gss_mech_piece){ head, HEAD }, 1, HEAD));
	cr_assert_not(gss_tokens_know_mic(s.tokens, head, HEAD));
	gss_tokens_free(s.tokens);
	cr_assert_null(gss_tokens_new(
		&(struct gss_token_key){ .enctype = ENCTYPE_ARCFOUR_HMAC, .len = 16 }));
	cr_assert_null(gss_tokens_new(&(struct gss_token_key){ .enctype = 17, .len = 32 }));
}
