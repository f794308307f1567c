/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPCSEC_GSS (RFC 2203): a context with the server, calls under it, and checks of their replies.
 *
 * A case of the flag CF_GSS calls cf_gss_begin() first, which makes t->gss. It builds a call as usual,
 * gives it to cf_gss_protect(), then adds chunks of the whole call or of its results, and sends it. The reply goes
 * through cf_gss_results(), after which r->x has the results as if there were no Kerberos.
 */
#ifndef RN_CONFORM_CONFORM_GSS_H
#define RN_CONFORM_CONFORM_GSS_H

#include "tools/conform/conform_call.h"
#include "tools/conform/gss_mech.h"

/* The services of RFC 2203 section 5. */
enum cf_service { CF_KRB5 = 1, CF_KRB5I, CF_KRB5P };
enum { CF_GSS_DATA, CF_GSS_INIT, CF_GSS_CONTINUE, CF_GSS_DESTROY };
enum { CF_AUTH_BADCRED = 1, CF_GSS_CREDPROBLEM = 13, CF_GSS_CTXPROBLEM = 14 };
#define CF_GSS_SEQ_MAX 0x80000000u

struct cf_gss {
	struct cf_mech *mech;
	struct cf_bytes handle;
	struct cf_bytes token; /* the next one for the server */
	uint32_t window;
	uint32_t seq;	  /* the last number used */
	uint32_t proc;	  /* CF_GSS_DATA; else of control calls, which are built as NULL calls */
	uint32_t skew;	  /* added to the number inside of a protected body: 0, but in bad calls */
	uint32_t service; /* in place of the service in the credential, if not 0 */
};

/* "krb5:krb5i": bits 1 << CF_KRB5 and so on; 0: there is a word that is no flavour. */
unsigned cf_gss_flavors(const char *list);
const char *cf_service_name(enum cf_service s);

/* Skips the case if the command line does not have that flavour; else makes a context over t->conn. */
bool cf_gss_begin(struct cf_test *t, enum cf_service s);
/* The steps of cf_gss_begin: a context of which the server knows nothing yet, its next control call, and what it answers. */
bool cf_gss_new(struct cf_test *t, enum cf_service s);
struct cf_call *cf_gss_init_call(struct cf_test *t);
bool cf_gss_init_result(struct cf_test *t, struct cf_call *c, struct cf_reply *r);
/* The call that ends the context. It is a protected one. */
struct cf_call *cf_gss_destroy_call(struct cf_test *t);
/* Ends the context, if there is one, and frees what the library has of it. */
void cf_gss_end(struct cf_test *t);

/* Puts c under the context, with the next sequence number. Read chunks of c move with their items. */
bool cf_gss_protect(struct cf_test *t, struct cf_call *c, enum cf_service s);
bool cf_gss_protect_as(struct cf_test *t, struct cf_call *c, enum cf_service s, uint32_t seq);

/* Checks the verifier, and unwraps the results of a successful reply. */
bool cf_gss_results(struct cf_test *t, const struct cf_call *c, struct cf_reply *r);
/* Sends a protected call and waits; the reply must be a success. */
struct cf_reply *cf_gss_ask(struct cf_test *t, struct cf_call *c);

#endif
