/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's certificate, its key and the rules of each handshake; identities in certificates. */
#include "transport/tls/tls_private.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/util.h"

/*
 * The identity in a certificate that was verified. Its CA has signed the names, but a CA may be careless: a name
 * with a byte 0 or another control character is left out, as its text would look like another name.
 */

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

static const uint8_t alpn[] = { 6, 's', 'u', 'n', 'r', 'p', 'c' };

/* Writes the message, with the library's own reason. */
static int __attribute__((format(printf, 2, 3)))
tls_context_error(char why[TLS_WHY], const char *form, ...)
{
	const unsigned long e = ERR_peek_last_error();
	const char *reason = e ? ERR_reason_error_string(e) : NULL;
	va_list ap;
	int n;

	va_start(ap, form);
	n = vsnprintf(why, TLS_WHY, form, ap);
	va_end(ap);
	if (reason && n >= 0 && n < TLS_WHY)
		snprintf(why + n, (size_t)(TLS_WHY - n), " (%s)", reason);
	ERR_clear_error();
	return -1;
}

/* RFC 9289 section 4: a client that offers protocols must offer this one. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
		       const unsigned char *in, unsigned int in_len, void *arg)
{
	unsigned char *found;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&found, len, alpn, sizeof(alpn), in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = found;
	return SSL_TLSEXT_ERR_OK;
}

/* Without a CA a client's certificate proves nothing, and is not refused either. */
static int tls_accept_any_cert(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 1;
}

/* Nobody is there to type a password. The library's own way would wait for the terminal. */
static int no_password(char *buf, int size, int rwflag, void *asked)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	*(bool *)asked = true;
	return -1;
}

/* 0 if the file can be read. */
static int tls_check_readable(const char *setting, const char *path, char why[TLS_WHY])
{
	FILE *f = fopen(path, "re");
	const int error = errno;

	if (!f)
		return tls_context_error(
			why, "%s: %s cannot be read: %s: correct the path or its permissions",
			setting, path, strerror(error));
	fclose(f);
	return 0;
}

static int read_key(SSL_CTX *ctx, const char *path, bool *encrypted)
{
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	SSL_CTX_set_default_passwd_cb_userdata(ctx, encrypted);
	const int rc = SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM);

	SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
	SSL_CTX_set_default_passwd_cb(ctx, NULL);
	return rc;
}

static int load_key(SSL_CTX *ctx, const struct tls_config *cfg, char why[TLS_WHY])
{
	bool encrypted = false;
	struct stat st;

	if (tls_check_readable("tls.key", cfg->key, why))
		return -1;
	if (stat(cfg->key, &st) == 0 && (st.st_mode & (S_IROTH | S_IWOTH)))
		return tls_context_error(
			why,
			"tls.key: everybody may read or write %s: chmod 600 %s, and "
			"replace the key if it is not a secret any more",
			cfg->key, cfg->key);
	const int rc = read_key(ctx, cfg->key, &encrypted);

	if (rc != 1 && encrypted)
		return tls_context_error(
			why,
			"tls.key: %s has a password, and nobody is there to give it at a "
			"start: write the key without one (openssl pkey -in %s), and make that "
			"file readable by root alone",
			cfg->key, cfg->key);
	if (rc != 1)
		return tls_context_error(
			why,
			"tls.key: %s has no usable private key for the certificate: give a PEM "
			"file with the key, without a password, that tls.certificate was "
			"made for",
			cfg->key);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return tls_context_error(
			why,
			"tls.key: %s is not the key of tls.certificate: give the key "
			"that the certificate was made for",
			cfg->key);
	return 0;
}

static int load_crl(SSL_CTX *ctx, const struct tls_config *cfg, char why[TLS_WHY])
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	if (tls_check_readable("tls.crl", cfg->crl, why))
		return -1;
	if (!lookup || X509_load_crl_file(lookup, cfg->crl, X509_FILETYPE_PEM) <= 0)
		return tls_context_error(
			why,
			"tls.crl: %s has no certificate revocation list: give a PEM file "
			"with one, signed by tls.ca",
			cfg->crl);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	return 0;
}

static int load_ca(SSL_CTX *ctx, const struct tls_config *cfg, char why[TLS_WHY])
{
	if (!cfg->ca) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, tls_accept_any_cert);
		return cfg->crl ? tls_context_error(
					  why, "tls.crl: a revocation list needs the CA that has "
					       "signed it: set tls.ca")
				: 0;
	}
	if (tls_check_readable("tls.ca", cfg->ca, why))
		return -1;
	if (SSL_CTX_load_verify_locations(ctx, cfg->ca, NULL) != 1)
		return tls_context_error(
			why,
			"tls.ca: %s has no certificate of a CA: give a PEM file with "
			"those that sign clients' certificates",
			cfg->ca);
	SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(cfg->ca));
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return cfg->crl ? load_crl(ctx, cfg, why) : 0;
}

static int tls_context_load(SSL_CTX *ctx, const struct tls_config *cfg, char why[TLS_WHY])
{
	if (tls_check_readable("tls.certificate", cfg->certificate, why))
		return -1;
	if (SSL_CTX_use_certificate_chain_file(ctx, cfg->certificate) != 1)
		return tls_context_error(
			why,
			"tls.certificate: %s has no certificate: give a PEM file with the "
			"server's certificate first, then those of its CAs",
			cfg->certificate);
	return load_key(ctx, cfg, why) || load_ca(ctx, cfg, why) ? -1 : 0;
}

SSL_CTX *tls_context_new(const struct tls_config *cfg, char why[TLS_WHY])
{
	SSL_CTX *ctx;

	ERR_clear_error();
	ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1) {
		tls_context_error(why, "OpenSSL has no TLS 1.3");
		SSL_CTX_free(ctx);
		return NULL;
	}
	/* No tickets: a session lasts as long as its connection. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_NO_COMPRESSION |
					 (cfg->ktls ? SSL_OP_ENABLE_KTLS : 0));
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	SSL_CTX_set_max_cert_list(ctx, 32 << 10);
	if (tls_context_load(ctx, cfg, why) == 0)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}
