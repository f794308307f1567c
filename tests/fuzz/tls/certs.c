/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/tls/certs.h"

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static BIO *file(char path[64])
{
	const int fd = memfd_create("pem", 0);

	if (fd < 0 || fchmod(fd, 0600) < 0)
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return BIO_new_fd(fd, BIO_NOCLOSE);
}

static void sign(struct cert *c, const char *name)
{
	X509_NAME *n;

	c->key = EVP_EC_gen("P-256");
	c->x509 = X509_new();
	if (!c->key || !c->x509)
		abort();
	n = X509_get_subject_name(c->x509);
	X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(c->x509, n);
	X509_set_version(c->x509, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(c->x509), 1);
	X509_gmtime_adj(X509_getm_notBefore(c->x509), -86400);
	X509_gmtime_adj(X509_getm_notAfter(c->x509), 10L * 365 * 86400);
	X509_set_pubkey(c->x509, c->key);
	if (X509_sign(c->x509, c->key, EVP_sha256()) == 0)
		abort();
}

void cert_make(struct cert *c, const char *name)
{
	BIO *cert = file(c->cert_path), *key = file(c->key_path);

	sign(c, name);
	if (!cert || !key || PEM_write_bio_X509(cert, c->x509) != 1 ||
	    PEM_write_bio_PrivateKey(key, c->key, NULL, NULL, 0, NULL, NULL) != 1)
		abort();
	BIO_free(cert);
	BIO_free(key);
}
