/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates made in this process, as files that are descriptors. */
#ifndef RN_TESTS_FUZZ_TLS_CERTS_H
#define RN_TESTS_FUZZ_TLS_CERTS_H

#include <openssl/ssl.h>

struct cert {
	EVP_PKEY *key;
	X509 *x509;
	char cert_path[64], key_path[64]; /* PEM; for the process's life */
};

/* Self-signed, so that it is its own CA. */
void cert_make(struct cert *c, const char *name);

#endif
