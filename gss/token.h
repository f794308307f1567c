/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kerberos' per-message tokens (RFC 4121 section 4.2) of the AES enctypes, by OpenSSL: some four times as fast as libk5crypto, and in
 * the pieces in which a message lies. What this file does not know is left to the library (gss/mech.c). Objects are not thread-safe.
 */
#ifndef RN_GSS_TOKEN_H
#define RN_GSS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gss_mech_piece;
struct gss_tokens; /* both directions of one context */

struct gss_token_key {
	uint32_t
		enctype; /* as IANA has numbered them: 17 and 18 (RFC 3962), 19 and 20 (RFC 8009) */
	const uint8_t *key;
	size_t len;	 /* bytes */
	bool initiator;	 /* true if this side has begun the context */
	bool subkey;	 /* true if the acceptor has chosen the key */
	uint64_t number; /* of the next token */
};

/* Sets all but enctype, key and len from a MIC that this side has made last. False: it is no such MIC. */
bool gss_token_key_from_mic(struct gss_token_key *k, const uint8_t *mic, size_t len);

#define GSS_TOKEN_HEAD 16u
#define GSS_TOKEN_BEFORE                                                                           \
	(GSS_TOKEN_HEAD + 16u) /* bytes before an encrypted message: the head, and a confounder */

/* The caller frees it. NULL: another enctype, or no memory. */
struct gss_tokens *gss_tokens_new(const struct gss_token_key *k);
void gss_tokens_free(struct gss_tokens *t); /* NULL is allowed */

/* True if the peer's token with that head is one for the functions below. */
bool gss_tokens_know_mic(const struct gss_tokens *t, const uint8_t *mic, size_t len);
bool gss_tokens_know_wrap(const struct gss_tokens *t, const uint8_t head[GSS_TOKEN_HEAD]);

/* True if the MIC is that of the message. */
bool gss_tokens_verify(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n,
		       const uint8_t *mic, size_t len);
/* Bytes of the MIC (GSS_MECH_MIC_MAX at most); 0: OpenSSL failed. */
uint32_t gss_tokens_sign(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n,
			 uint8_t *mic);

/* Bytes behind an encrypted message. */
size_t gss_tokens_behind(const struct gss_tokens *t);
/* Encrypts a message in place. The first piece is room of GSS_TOKEN_BEFORE bytes, the last of gss_tokens_behind(). */
bool gss_tokens_wrap(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n);
/* Decrypts a token of len bytes in place. True: the message lies between its first GSS_TOKEN_BEFORE and its last gss_tokens_behind()
 * bytes. False: it is not genuine, or no token. */
bool gss_tokens_unwrap(struct gss_tokens *t, const struct gss_mech_piece *piece, unsigned n,
		       size_t len);

#endif
