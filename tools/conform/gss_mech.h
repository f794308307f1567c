/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's side of Kerberos, by libgssapi_krb5: contexts, MICs, encrypted messages. Nothing here knows of RPC.
 *
 * Functions that take a test give its verdict when they fail; the bytes that they return live until the end of the case.
 */
#ifndef RN_CONFORM_GSS_MECH_H
#define RN_CONFORM_GSS_MECH_H

#include "tools/conform/conform.h"

struct cf_bytes {
	uint8_t *data;
	uint32_t len;
};

/* Identity of the caller, and the service that it talks to. */
struct cf_login;
/* service: "nfs@HOST". keytab NULL: the caller's ticket cache. A ticket for the service is got at once. NULL: the reason is in why. */
struct cf_login *cf_login_new(const char *service, const char *keytab, char *why, size_t size);
void cf_login_free(struct cf_login *l);

struct cf_mech;
struct cf_mech *cf_mech_new(struct cf_test *t, const struct cf_login *l);
void cf_mech_free(struct cf_mech *m);
/* Takes the server's token, none at first, and returns the next one for it, which may be empty. */
bool cf_mech_step(struct cf_test *t, struct cf_mech *m, struct cf_bytes in, struct cf_bytes *out);
/* True if the context is complete on this side. */
bool cf_mech_complete(const struct cf_mech *m);
bool cf_mech_sign(struct cf_test *t, struct cf_mech *m, struct cf_bytes data, struct cf_bytes *mic);
bool cf_mech_wrap(struct cf_test *t, struct cf_mech *m, struct cf_bytes data,
		  struct cf_bytes *token);
/* what: a name for the verdict. */
bool cf_mech_verify(struct cf_test *t, struct cf_mech *m, struct cf_bytes data, struct cf_bytes mic,
		    const char *what);
/* Fails too if the message was not encrypted. */
bool cf_mech_unwrap(struct cf_test *t, struct cf_mech *m, struct cf_bytes token,
		    struct cf_bytes *data);

#endif
