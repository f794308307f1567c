/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Kerberos realm within this process, without a KDC: a keytab in memory, and clients whose tickets for the service are
 * made here. Their ciphers differ.
 */
#ifndef RN_TESTS_FUZZ_GSS_REALM_H
#define RN_TESTS_FUZZ_GSS_REALM_H

#include <gssapi/gssapi_krb5.h>
#include <stdbool.h>
#include <stdint.h>

#define REALM_KEYTAB "MEMORY:fuzz"
#define REALM_SERVICE "nfs/server@FUZZ"
#define REALM_CLIENTS 5u

/* The last client's ticket is made with a key that the keytab has not. */
#define REALM_LIAR (REALM_CLIENTS - 1)

void realm_init(void); /* once in a process */

const char *realm_principal(unsigned who); /* "alice@FUZZ" */
/* True if every octet of a MIC and of a secret counts. Older ciphers leave their own sequence number, which RPCSEC_GSS
 * does not use, unprotected. */
bool realm_is_strict(unsigned who);

/* Gives that client a ticket of so many seconds, in place of the one before. The server takes it for up to a minute more. */
void realm_renew(unsigned who, unsigned seconds);

/* One step of a client's context; flags as of gss_init_sec_context(). *out is released by the caller. False: it failed. */
bool realm_step(unsigned who, OM_uint32 flags, gss_ctx_id_t *ctx, const gss_buffer_desc *in,
		gss_buffer_desc *out);

#endif
