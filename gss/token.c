/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token's checksum is an HMAC. Encryption is AES in CBC mode with ciphertext stealing, the last two blocks exchanged always (RFC 3962
 * section 5), and an initial vector of zeros. The HMAC is of the plaintext (RFC 3962) or of the ciphertext (RFC 8009): a message passes both in
 * steps that stay in the processor's cache.
 */
#include "gss/token.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "gss/mech.h"
#include "lib/util.h"

#define BLOCK 16u
#define KEY_MAX 32u
#define MAC_MAX 24u	   /* bytes of a checksum */
#define STEP (16u * 1024u) /* bytes that are encrypted and summed at a time; whole blocks */

/* RFC 4121 section 4.2.2: flags of a token's head. */
enum { BY_ACCEPTOR = 1, SEALED = 2, BY_SUBKEY = 4 };
/* Section 2: numbers from which keys are derived. */
enum { ACCEPTOR_SEAL = 22, ACCEPTOR_SIGN, INITIATOR_SEAL, INITIATOR_SIGN };
/* RFC 3961 section 5.3, RFC 8009 section 5: what follows such a number. */
enum { FOR_CHECKSUM = 0x99, FOR_ENCRYPTION = 0xaa, FOR_INTEGRITY = 0x55 };

struct enctype {
	uint32_t number;
	const char *cipher, *block, *digest;
	size_t key_len, mac_key_len;
	size_t mac_len;
	bool sums_ciphertext; /* RFC 8009 */
};

static const struct enctype enctypes[] = {
	{ 17, "AES-128-CBC", "AES-128-ECB", "SHA1", 16, 16, 12, false },
	{ 18, "AES-256-CBC", "AES-256-ECB", "SHA1", 32, 32, 12, false },
	{ 19, "AES-128-CBC", "AES-128-ECB", "SHA2-256", 16, 16, 16, true },
	{ 20, "AES-256-CBC", "AES-256-ECB", "SHA2-384", 32, 24, 24, true },
};

/* One direction. */
struct way {
	EVP_CIPHER_CTX *cipher;
	EVP_MAC_CTX *mic, *mac;
	uint8_t flags;
};

struct gss_tokens {
	const struct enctype *type;
	struct way out, in;
	uint64_t number;
};

/* Keys. */

/* RFC 3961 section 5.1: n-fold of five bytes to a block. Copies, each rotated to the right by 13 bits more than the one before, are
 * added in ones' complement. The least common multiple of both lengths is 80 bytes. */
static void fold(const uint8_t in[5], uint8_t out[BLOCK])
{
	unsigned carry = 0;

	memset(out, 0, BLOCK);
	for (unsigned i = 80; i-- > 0;) {
		/* Bits of the copy that byte i of the long string is in. */
		const unsigned first = (40 - 13 * (i / 5) % 40 + i % 5 * 8) % 40;
		unsigned byte = 0;

		for (unsigned b = 0; b < 8; b++) {
			const unsigned bit = (first + b) % 40;

			byte = byte << 1 | (in[bit / 8] >> (7 - bit % 8) & 1u);
		}
		carry += byte + out[i % BLOCK];
		out[i % BLOCK] = (uint8_t)carry;
		carry >>= 8;
	}
	for (unsigned i = BLOCK; carry && i-- > 0;) {
		carry += out[i];
		out[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* RFC 3961 section 5.3. */
static bool derive_by_cipher(const struct enctype *e, const uint8_t *base,
			     const uint8_t constant[5], uint8_t *out, size_t len)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, e->block, NULL);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t block[BLOCK];
	int n;
	bool good = cipher && c && EVP_EncryptInit_ex2(c, cipher, base, NULL, NULL) == 1;

	fold(constant, block);
	for (size_t at = 0; good && at < len; at += BLOCK) {
		good = EVP_EncryptUpdate(c, block, &n, block, BLOCK) == 1;
		memcpy(out + at, block, BLOCK);
	}
	OPENSSL_cleanse(block, sizeof(block));
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
	return good;
}

static EVP_MAC_CTX *new_mac(const struct enctype *e, const uint8_t *key, size_t len)
{
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
						 (char *)(uintptr_t)e->digest, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *c = hmac ? EVP_MAC_CTX_new(hmac) : NULL;

	EVP_MAC_free(hmac);
	if (c && EVP_MAC_init(c, key, len, params) != 1) {
		EVP_MAC_CTX_free(c);
		c = NULL;
	}
	return c;
}

/* RFC 8009 section 3: a key that is no longer than the digest. */
static bool derive_by_hmac(const struct enctype *e, const uint8_t *base, const uint8_t constant[5],
			   uint8_t *out, size_t len)
{
	uint8_t text[4 + 5 + 1 + 4] = { 0, 0, 0, 1 }, sum[EVP_MAX_MD_SIZE];
	EVP_MAC_CTX *c = new_mac(e, base, e->key_len);
	size_t got;
	bool good;

	memcpy(text + 4, constant, 5);
	rn_put32(text + 10, (uint32_t)len * 8);
	good = c && EVP_MAC_update(c, text, sizeof(text)) == 1 &&
	       EVP_MAC_final(c, sum, &got, sizeof(sum)) == 1 && got >= len;
	if (good)
		memcpy(out, sum, len);
	OPENSSL_cleanse(sum, sizeof(sum));
	EVP_MAC_CTX_free(c);
	return good;
}

static bool derive(const struct enctype *e, const uint8_t *base, uint32_t usage, uint8_t what,
		   uint8_t *out, size_t len)
{
	uint8_t constant[5];

	rn_put32(constant, usage);
	constant[4] = what;
	return e->sums_ciphertext ? derive_by_hmac(e, base, constant, out, len)
				  : derive_by_cipher(e, base, constant, out, len);
}

static EVP_MAC_CTX *derived_mac(const struct enctype *e, const uint8_t *base, uint32_t usage,
				uint8_t what)
{
	uint8_t key[KEY_MAX];
	EVP_MAC_CTX *c = NULL;

	if (derive(e, base, usage, what, key, e->mac_key_len))
		c = new_mac(e, key, e->mac_key_len);
	OPENSSL_cleanse(key, sizeof(key));
	return c;
}

static EVP_CIPHER_CTX *derived_cipher(const struct enctype *e, const uint8_t *base, uint32_t usage,
				      bool encrypts)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, e->cipher, NULL);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t key[KEY_MAX];

	if (!cipher || !c || !derive(e, base, usage, FOR_ENCRYPTION, key, e->key_len) ||
	    EVP_CipherInit_ex2(c, cipher, key, NULL, encrypts, NULL) != 1 ||
	    EVP_CIPHER_CTX_set_padding(c, 0) != 1) {
		EVP_CIPHER_CTX_free(c);
		c = NULL;
	}
	OPENSSL_cleanse(key, sizeof(key));
	EVP_CIPHER_free(cipher);
	return c;
}

static bool way_init(struct way *w, const struct enctype *e, const struct gss_token_key *k,
		     bool by_initiator, bool encrypts)
{
	const uint32_t seal = by_initiator ? INITIATOR_SEAL : ACCEPTOR_SEAL;
	const uint32_t sign = by_initiator ? INITIATOR_SIGN : ACCEPTOR_SIGN;

	w->flags = (uint8_t)((by_initiator ? 0 : BY_ACCEPTOR) | (k->subkey ? BY_SUBKEY : 0));
	w->mic = derived_mac(e, k->key, sign, FOR_CHECKSUM);
	w->mac = derived_mac(e, k->key, seal, FOR_INTEGRITY);
	w->cipher = derived_cipher(e, k->key, seal, encrypts);
	return w->mic && w->mac && w->cipher;
}

static void way_fini(struct way *w)
{
	EVP_MAC_CTX_free(w->mic);
	EVP_MAC_CTX_free(w->mac);
	EVP_CIPHER_CTX_free(w->cipher);
}

struct gss_tokens *gss_tokens_new(const struct gss_token_key *k)
{
	const struct enctype *e = NULL;
	struct gss_tokens *t;

	for (unsigned i = 0; i < rn_array_size(enctypes); i++)
		if (enctypes[i].number == k->enctype && enctypes[i].key_len == k->len)
			e = &enctypes[i];
	t = e ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	t->type = e;
	t->number = k->number;
	if (!way_init(&t->out, e, k, k->initiator, true) ||
	    !way_init(&t->in, e, k, !k->initiator, false)) {
		gss_tokens_free(t);
		return NULL;
	}
	return t;
}

void gss_tokens_free(struct gss_tokens *t)
{
	if (!t)
		return;
	way_fini(&t->out);
	way_fini(&t->in);
	free(t);
}

/* Heads: RFC 4121 sections 4.2.6.1 and 4.2.6.2. */

static void put_token_head(struct gss_tokens *t, uint8_t head[GSS_TOKEN_HEAD], bool sealed)
{
	head[0] = sealed ? 5 : 4;
	head[1] = 4;
	head[2] = (uint8_t)(t->out.flags | (sealed ? SEALED : 0));
	memset(head + 3, 0xff, 5);
	if (sealed)
		memset(head + 4, 0, 4); /* no filler, not rotated */
	rn_put32(head + 8, (uint32_t)(t->number >> 32));
	rn_put32(head + 12, (uint32_t)t->number);
	t->number++;
}

bool gss_token_key_from_mic(struct gss_token_key *k, const uint8_t *mic, size_t len)
{
	if (len < GSS_TOKEN_HEAD || mic[0] != 4 || mic[1] != 4)
		return false;
	k->initiator = !(mic[2] & BY_ACCEPTOR);
	k->subkey = mic[2] & BY_SUBKEY;
	k->number = ((uint64_t)rn_get32(mic + 8) << 32 | rn_get32(mic + 12)) + 1;
	return true;
}

bool gss_tokens_know_mic(const struct gss_tokens *t, const uint8_t *mic, size_t len)
{
	return len >= GSS_TOKEN_HEAD && mic[0] == 4 && mic[1] == 4 && mic[2] == t->in.flags;
}

bool gss_tokens_know_wrap(const struct gss_tokens *t, const uint8_t head[GSS_TOKEN_HEAD])
{
	static const uint8_t none[4] = { 0 };

	return head[0] == 5 && head[1] == 4 && head[2] == (t->in.flags | SEALED) &&
	       memcmp(head + 4, none, sizeof(none)) == 0;
}

/* Checksums. */

static bool mac_end(EVP_MAC_CTX *c, uint8_t out[MAC_MAX], size_t len)
{
	uint8_t sum[EVP_MAX_MD_SIZE];
	size_t got;

	if (EVP_MAC_final(c, sum, &got, sizeof(sum)) != 1 || got < len)
		return false;
	memcpy(out, sum, len);
	return true;
}

static bool sum_message(const struct gss_tokens *t, EVP_MAC_CTX *c,
			const struct gss_mech_piece *piece, unsigned n,
			const uint8_t head[GSS_TOKEN_HEAD], uint8_t out[MAC_MAX])
{
	if (EVP_MAC_init(c, NULL, 0, NULL) != 1)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (piece[i].len > 0 && EVP_MAC_update(c, piece[i].base, piece[i].len) != 1)
			return false;
	return EVP_MAC_update(c, head, GSS_TOKEN_HEAD) == 1 && mac_end(c, out, t->type->mac_len);
}

bool gss_tokens_verify(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n,
		       const uint8_t *mic, size_t len)
{
	uint8_t sum[MAC_MAX];

	return len == GSS_TOKEN_HEAD + t->type->mac_len &&
	       sum_message(t, t->in.mic, piece, n, mic, sum) &&
	       CRYPTO_memcmp(sum, mic + GSS_TOKEN_HEAD, t->type->mac_len) == 0;
}

uint32_t gss_tokens_sign(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n,
			 uint8_t *mic)
{
	put_token_head(t, mic, false);
	if (!sum_message(t, t->out.mic, piece, n, mic, mic + GSS_TOKEN_HEAD))
		return 0;
	return (uint32_t)(GSS_TOKEN_HEAD + t->type->mac_len);
}

/* Encryption. */

/* A place in a message that lies in pieces. */
struct cursor {
	const struct gss_mech_piece *piece, *end;
	size_t at; /* in the piece */
};

/* Skips empty pieces. Returns the bytes that lie in one piece; 0: the message has ended. */
static size_t cursor_run(struct cursor *c)
{
	while (c->piece < c->end && c->at == c->piece->len) {
		c->piece++;
		c->at = 0;
	}
	return c->piece < c->end ? c->piece->len - c->at : 0;
}

/* Skips bytes of the message. */
static void cursor_skip(struct cursor *c, size_t len)
{
	while (len > 0) {
		const size_t some = rn_min(cursor_run(c), len);

		if (some == 0)
			return;
		c->at += some;
		len -= some;
	}
}

/* Copies bytes out of the message, or into it. */
static void cursor_copy(struct cursor c, uint8_t *buf, size_t len, bool into)
{
	while (len > 0) {
		const size_t some = rn_min(cursor_run(&c), len);

		if (some == 0)
			return;
		if (into)
			memcpy(c.piece->base + c.at, buf, some);
		else
			memcpy(buf, c.piece->base + c.at, some);
		c.at += some;
		buf += some;
		len -= some;
	}
}

struct pass {
	EVP_CIPHER_CTX *cipher;
	EVP_MAC_CTX *mac;
	bool encrypts;
	bool sums_first;       /* true if what comes is summed, false if what goes is */
	uint8_t before[BLOCK]; /* the last block of ciphertext so far */
};

static bool crypt_blocks(struct pass *p, const uint8_t *in, uint8_t *out, size_t len)
{
	int n;

	return EVP_CipherUpdate(p->cipher, out, &n, in, (int)len) == 1 && (size_t)n == len;
}

/* Whole blocks, in place; not the last two. */
static bool pass_blocks(struct pass *p, uint8_t *data, size_t len)
{
	if (p->sums_first && EVP_MAC_update(p->mac, data, len) != 1)
		return false;
	memcpy(p->before, data + len - BLOCK, BLOCK);
	if (!crypt_blocks(p, data, data, len))
		return false;
	return p->sums_first || EVP_MAC_update(p->mac, data, len) == 1;
}

/* The last two blocks; the second has `rest` bytes. */
static bool steal_encrypt(struct pass *p, uint8_t data[2 * BLOCK], size_t rest)
{
	uint8_t out[2 * BLOCK];

	memset(data + BLOCK + rest, 0, BLOCK - rest);
	if (!crypt_blocks(p, data, out, sizeof(out)))
		return false;
	memcpy(data, out + BLOCK, BLOCK);
	memcpy(data + BLOCK, out, rest);
	return true;
}

static bool steal_decrypt(struct pass *p, uint8_t data[2 * BLOCK], size_t rest)
{
	uint8_t stolen[BLOCK], first[BLOCK];

	/* In CBC mode, so what was before is taken off again. */
	if (!crypt_blocks(p, data, stolen, BLOCK))
		return false;
	for (unsigned i = 0; i < BLOCK; i++)
		stolen[i] ^= p->before[i];
	memcpy(first, stolen, BLOCK);
	memcpy(first, data + BLOCK, rest);
	for (size_t i = 0; i < rest; i++)
		data[BLOCK + i] ^= stolen[i];
	return EVP_CipherInit_ex2(p->cipher, NULL, NULL, p->before, -1, NULL) == 1 &&
	       crypt_blocks(p, first, data, BLOCK);
}

static bool pass_end(struct pass *p, struct cursor c, size_t len)
{
	uint8_t data[2 * BLOCK];
	bool good;

	cursor_copy(c, data, len, false);
	if (p->sums_first && EVP_MAC_update(p->mac, data, len) != 1)
		return false;
	good = p->encrypts ? steal_encrypt(p, data, len - BLOCK)
			   : steal_decrypt(p, data, len - BLOCK);
	if (good && !p->sums_first)
		good = EVP_MAC_update(p->mac, data, len) == 1;
	if (good)
		cursor_copy(c, data, len, true);
	OPENSSL_cleanse(data, sizeof(data));
	return good;
}

/* Encrypts or decrypts len bytes from c on, more than a block, and sums them. */
static bool pass_all(struct pass *p, struct cursor c, size_t len, bool sums_vector)
{
	static const uint8_t vector[BLOCK] = { 0 };
	size_t left = (len - 1) / BLOCK * BLOCK - BLOCK;

	len -= left;
	if (EVP_CipherInit_ex2(p->cipher, NULL, NULL, vector, -1, NULL) != 1 ||
	    EVP_MAC_init(p->mac, NULL, 0, NULL) != 1 ||
	    (sums_vector && EVP_MAC_update(p->mac, vector, BLOCK) != 1))
		return false;
	while (left > 0) {
		const size_t run = rn_min(rn_min(cursor_run(&c), left), STEP) / BLOCK * BLOCK;
		uint8_t block[BLOCK];
		bool good;

		if (run > 0) {
			good = pass_blocks(p, c.piece->base + c.at, run);
		} else {
			cursor_copy(c, block, BLOCK, false);
			good = pass_blocks(p, block, BLOCK);
			cursor_copy(c, block, BLOCK, true);
		}
		if (!good)
			return false;
		cursor_skip(&c, run ? run : BLOCK);
		left -= run ? run : BLOCK;
	}
	return pass_end(p, c, len);
}

size_t gss_tokens_behind(const struct gss_tokens *t)
{
	return GSS_TOKEN_HEAD + t->type->mac_len;
}

bool gss_tokens_wrap(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n)
{
	struct pass p = { .cipher = t->out.cipher,
			  .mac = t->out.mac,
			  .encrypts = true,
			  .sums_first = !t->type->sums_ciphertext };
	uint8_t *head = piece[0].base, *last = piece[n - 1].base;
	size_t len = GSS_TOKEN_HEAD;

	if (n < 2 || piece[0].len != GSS_TOKEN_BEFORE || piece[n - 1].len != gss_tokens_behind(t))
		return false;
	for (unsigned i = 0; i < n - 1; i++)
		len += piece[i].len;
	put_token_head(t, head, true);
	memcpy(last, head, GSS_TOKEN_HEAD);
	return RAND_bytes(head + GSS_TOKEN_HEAD, BLOCK) == 1 &&
	       pass_all(&p, (struct cursor){ piece, piece + n, GSS_TOKEN_HEAD },
			len - GSS_TOKEN_HEAD, t->type->sums_ciphertext) &&
	       mac_end(p.mac, last + GSS_TOKEN_HEAD, t->type->mac_len);
}

bool gss_tokens_unwrap(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n,
		       size_t len)
{
	struct pass p = { .cipher = t->in.cipher,
			  .mac = t->in.mac,
			  .sums_first = t->type->sums_ciphertext };
	const size_t mac_len = t->type->mac_len;
	struct cursor c = { piece, piece + n, 0 }, tail = c, inner = c;
	uint8_t head[GSS_TOKEN_HEAD], copy[GSS_TOKEN_HEAD], mac[MAC_MAX], sum[MAC_MAX];

	if (len < GSS_TOKEN_BEFORE + gss_tokens_behind(t))
		return false;
	cursor_copy(c, head, sizeof(head), false);
	if (!gss_tokens_know_wrap(t, head))
		return false;
	cursor_skip(&tail, len - mac_len);
	cursor_copy(tail, mac, mac_len, false);
	cursor_skip(&c, GSS_TOKEN_HEAD);
	if (!pass_all(&p, c, len - GSS_TOKEN_HEAD - mac_len, t->type->sums_ciphertext) ||
	    !mac_end(p.mac, sum, mac_len) || CRYPTO_memcmp(sum, mac, mac_len) != 0)
		return false;
	cursor_skip(&inner, len - gss_tokens_behind(t));
	cursor_copy(inner, copy, sizeof(copy), false);
	return memcmp(copy, head, sizeof(head)) == 0;
}
