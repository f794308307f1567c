/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity in a certificate that was verified. Its CA has signed the names, but a CA may be careless: a name
 * with a byte 0 or another control character is left out, as its text would look like another name.
 */
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/util.h"
#include "transport/tls/tls_private.h"

void tls_subject(const X509 *cert, char to[RN_CERT_SUBJECT_MAX])
{
	BIO *out = BIO_new(BIO_s_mem());
	char *text;

	if (!out)
		return;
	/* This form escapes control characters and bytes above 127. */
	if (X509_NAME_print_ex(out, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) >= 0) {
		const long len = BIO_get_mem_data(out, &text);
		const size_t n = rn_min(len > 0 ? (size_t)len : 0, (size_t)RN_CERT_SUBJECT_MAX - 1);

		memcpy(to, text, n);
	}
	BIO_free(out);
}

static void put_fingerprint(const X509 *cert, struct rn_certificate *to)
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (X509_digest(cert, EVP_sha256(), md, &len) != 1)
		return;
	for (unsigned i = 0; i < len && i < RN_CERT_SHA256_HEX / 2; i++)
		snprintf(to->sha256 + (size_t)2 * i, 3, "%02x", md[i]);
}

int64_t tls_expiry(const X509 *cert)
{
	struct tm tm;

	return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void put_name(struct rn_certificate *to, enum rn_cert_kind kind, const ASN1_STRING *from)
{
	const unsigned char *text = ASN1_STRING_get0_data(from);
	const int len = ASN1_STRING_length(from);
	struct rn_cert_name *n = &to->names[to->nnames];

	if (len <= 0 || (unsigned)len > RN_CERT_NAME_MAX || to->nnames == RN_CERT_NAMES_MAX)
		return;
	for (int i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] == 0x7f)
			return;
	n->kind = kind;
	memcpy(n->text, text, (size_t)len);
	n->text[len] = '\0';
	to->nnames++;
}

static void tls_put_alt_names(const X509 *cert, struct rn_certificate *to)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);

		if (n->type == GEN_DNS)
			put_name(to, RN_CERT_DNS, n->d.dNSName);
		else if (n->type == GEN_EMAIL)
			put_name(to, RN_CERT_EMAIL, n->d.rfc822Name);
		else if (n->type == GEN_URI)
			put_name(to, RN_CERT_URI, n->d.uniformResourceIdentifier);
	}
	GENERAL_NAMES_free(names);
}

void tls_identity(const X509 *cert, struct rn_certificate *to)
{
	tls_subject(cert, to->subject);
	put_fingerprint(cert, to);
	to->expires = tls_expiry(cert);
	tls_put_alt_names(cert, to);
}
