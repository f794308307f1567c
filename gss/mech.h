/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kerberos V5 by libgssapi_krb5 (RFC 2743, RFC 2744, RFC 4121): the only place that knows the library. Functions
 * that take a context are not thread-safe for one context.
 */
#ifndef RN_GSS_MECH_H
#define RN_GSS_MECH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/principal.h"

#define GSS_MECH_WHY 256u
#define GSS_MECH_MIC_MAX 256u /* bytes of a MIC, at most */

struct gss_mech_cred; /* the server's keys; reference-counted */
struct gss_mech_ctx;  /* a context, half-made or established */

struct gss_mech_files {
	const char *keytab; /* NULL: the system's */
	const char *
		replays; /* replay cache, as the library names it ("file2:PATH"); NULL: its default */
};

/*
 * Reads the keys. principal: "SERVICE@HOST", "SERVICE/HOST@REALM" or "SERVICE" for any host's
 * key of that service. 0 and a reference; or -EACCES, with the library's words in why.
 */
int gss_mech_cred_new(const struct gss_mech_files *files, const char *principal,
		      struct gss_mech_cred **out, char why[GSS_MECH_WHY]);
struct gss_mech_cred *gss_mech_cred_ref(struct gss_mech_cred *c);
void gss_mech_cred_put(struct gss_mech_cred *c);

struct gss_mech_step {
	uint32_t major, minor; /* the library's status, for the client */
	bool complete;
	uint8_t *token; /* the caller frees it */
	size_t token_len;
	/* Set for a complete context: the client's name (a reference), and seconds until its ticket ends. */
	struct rpc_principal *principal;
	uint32_t lifetime;
	char why[GSS_MECH_WHY]; /* the library's words, if it failed */
	bool skewed;		/* the context failed because the client's clock differs */
};

/* Takes the client's next token. Makes *ctx at the first. May wait for the disk, DNS and the replay cache. True: the
 * context goes on or is complete; false: it has failed, and *ctx is NULL. */
bool gss_mech_accept(struct gss_mech_cred *c, struct gss_mech_ctx **ctx, const uint8_t *token,
		     size_t len, struct gss_mech_step *out);
/*
 * For calls to clients. Begins a context from this server's principal `from`, whose key is in the keytab, to `to`. Waits for the KDC.
 * True: the token is for the client. False: why says what the library says.
 */
bool gss_mech_start(const char *keytab, const char *from, const char *to, struct gss_mech_ctx **ctx,
		    struct gss_mech_step *out);
/* Takes the client's answer. True: the context is complete, and lasts for so many seconds. */
bool gss_mech_go_on(struct gss_mech_ctx *ctx, const char *to, const uint8_t *token, size_t len,
		    uint32_t *lifetime);
/* The name by which the client of an accepted context calls this server: a reference, or NULL. */
struct rpc_principal *gss_mech_own_name(struct gss_mech_ctx *ctx);
void gss_mech_ctx_free(struct gss_mech_ctx *ctx); /* NULL is allowed */

/* False: the client asked for detection of replays by the library. Copies would give it tokens with the same number. */
bool gss_mech_may_copy(const struct gss_mech_ctx *ctx);
/*
 * Makes `want` more contexts with the same keys; *n: how many there are. Takes about 10 us for each, and may wait for
 * the disk. False: the library failed, and ctx is of no use any more.
 */
bool gss_mech_ctx_copy(struct gss_mech_ctx *ctx, struct gss_mech_ctx **out, unsigned want,
		       unsigned *n);

/* A context's keys and numbers in the library's own form, for the next program. */
struct gss_mech_saved {
	uint8_t *bytes;
	size_t len;
	bool numbered; /* gss_mech_may_copy() is false */
};
/* The context is of no use afterwards. False: the library failed. */
bool gss_mech_save(struct gss_mech_ctx *ctx, struct gss_mech_saved *out);
/* Wipes and frees the bytes. */
void gss_mech_saved_clear(struct gss_mech_saved *s);
/* mic_len: bytes of its MICs. NULL: no memory, or the library does not know that form. */
struct gss_mech_ctx *gss_mech_load(const struct gss_mech_saved *s, size_t mic_len);

struct gss_mech_piece {
	uint8_t *base;
	size_t len;
};

/* True if the MIC is that of the message, which lies in at most GSS_MECH_PIECES pieces. */
#define GSS_MECH_PIECES 40u
bool gss_mech_verify(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece, unsigned n,
		     const uint8_t *mic, size_t mic_len);
/* Bytes of the MIC; 0: the library failed. */
uint32_t gss_mech_sign(struct gss_mech_ctx *ctx, const uint8_t *msg, size_t len,
		       uint8_t mic[GSS_MECH_MIC_MAX]);
/* The same of a message in at most GSS_MECH_PIECES pieces. */
uint32_t gss_mech_sign_pieces(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece,
			      unsigned n, uint8_t mic[GSS_MECH_MIC_MAX]);

/* Decrypts a token in place. True: the message is in out; false: it is not genuine, or not encrypted. */
bool gss_mech_unwrap(struct gss_mech_ctx *ctx, uint8_t *token, size_t len,
		     struct gss_mech_piece *out);
#define GSS_MECH_START 16u
/* True if a token with those first bytes can be decrypted in pieces: its parts stand in their order (RFC 4121 section
 * 4.2.5), as libgssapi_krb5 and Linux send it. */
bool gss_mech_is_straight(const uint8_t start[GSS_MECH_START]);
/*
 * Decrypts such a token in place, which lies in at most GSS_MECH_PIECES pieces. True: the message lies between the first
 * *before and the last *behind bytes.
 */
bool gss_mech_unwrap_pieces(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece,
			    unsigned n, size_t *before, size_t *behind);
/* Sizes of what stands before and behind an encrypted message of that length. False: the library failed. */
bool gss_mech_wrap_sizes(struct gss_mech_ctx *ctx, size_t len, size_t *before, size_t *behind);
/* Encrypts a message in place. The first of the pieces is the room before it, the last the room behind it, with the sizes that
 * gss_mech_wrap_sizes has told. At most GSS_MECH_PIECES. */
bool gss_mech_wrap(struct gss_mech_ctx *ctx, const struct gss_mech_piece *piece, unsigned n);

#endif
