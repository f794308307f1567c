/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/tls_client.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/tls/certs.h"

#define RECORD_HEAD 5u
#define RECORD_MOST (16384u + 256u)

static struct {
	SSL_CTX *ctx;
	struct cert server, client, stranger;
} world;

void ss_tls_start(const char **certificate, const char **key, const char **ca)
{
	if (!world.ctx) {
		cert_make(&world.server, "server");
		cert_make(&world.client, "client");
		cert_make(&world.stranger, "stranger");
		world.ctx = SSL_CTX_new(TLS_client_method());
	}
	if (!world.ctx)
		ss_finding("the driver has no TLS");
	*certificate = world.server.cert_path;
	*key = world.server.key_path;
	*ca = world.client.cert_path;
}

enum { CERT = 3, STRANGER = 2, OTHER_PROTOCOL = 2, TLS_1_2 = 3 };

static unsigned cert_of(uint8_t manners)
{
	return manners >> 4 & CERT;
}

static unsigned protocol_of(uint8_t manners)
{
	return manners >> 6;
}

bool ss_tls_is_refused(uint8_t manners)
{
	return cert_of(manners) == STRANGER || protocol_of(manners) == OTHER_PROTOCOL ||
	       protocol_of(manners) == TLS_1_2;
}

static SSL *make_ssl(uint8_t manners)
{
	static const uint8_t sunrpc[] = { 6, 's', 'u', 'n', 'r', 'p', 'c' };
	static const uint8_t other[] = { 2, 'h', '2' };
	const struct cert *c = cert_of(manners) == 1	      ? &world.client
			       : cert_of(manners) == STRANGER ? &world.stranger
							      : NULL;
	SSL *ssl = SSL_new(world.ctx);

	if (!ssl ||
	    (c && (SSL_use_certificate(ssl, c->x509) != 1 || SSL_use_PrivateKey(ssl, c->key) != 1)))
		ss_finding("the driver has no TLS session");
	if (protocol_of(manners) == 1)
		SSL_set_alpn_protos(ssl, sunrpc, sizeof(sunrpc));
	if (protocol_of(manners) == OTHER_PROTOCOL)
		SSL_set_alpn_protos(ssl, other, sizeof(other));
	if (protocol_of(manners) == TLS_1_2)
		SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
	return ssl;
}

void ss_tls_free(struct ss_tls *t)
{
	SSL_free(t->ssl);
	free(t->record);
	memset(t, 0, sizeof(*t));
}

void ss_tls_begin(struct ss_tls *t)
{
	if (!t->ssl) {
		t->ssl = make_ssl(t->manners);
		t->in = BIO_new(BIO_s_mem());
		t->out = BIO_new(BIO_s_mem());
		t->record = malloc(RECORD_HEAD + RECORD_MOST);
		if (!t->in || !t->out || !t->record)
			ss_finding("the driver has no memory for TLS");
		SSL_set_bio(t->ssl, t->in, t->out);
		SSL_set_connect_state(t->ssl);
	}
	t->state = SS_TLS_SHAKING;
}

/* RFC 8446 section 5.1: the type, the version and the length of each record. An alert about a bent version may have that
 * version. */
static const char *take_record(struct ss_tls *t)
{
	const uint8_t *r = t->record;
	const size_t len = (size_t)r[3] << 8 | r[4];

	if (r[0] < 20 || r[0] > 23 || (r[1] != 3 && r[0] != 21) || len > RECORD_MOST)
		return "plain octets after STARTTLS";
	if (t->record_len < RECORD_HEAD + len)
		return NULL;
	if (BIO_write(t->in, r, (int)t->record_len) <= 0)
		ss_finding("the driver has no memory for TLS");
	t->record_len = 0;
	return NULL;
}

const char *ss_tls_take(struct ss_tls *t, const uint8_t *p, size_t n)
{
	const char *wrong = NULL;

	while (n > 0 && !wrong) {
		const size_t len = (size_t)t->record[3] << 8 | t->record[4];
		const size_t want = t->record_len < RECORD_HEAD ? RECORD_HEAD : RECORD_HEAD + len;
		const size_t some = n < want - t->record_len ? n : want - t->record_len;

		memcpy(t->record + t->record_len, p, some);
		t->record_len += some;
		p += some;
		n -= some;
		if (t->record_len >= RECORD_HEAD)
			wrong = take_record(t);
	}
	if (!wrong && t->by_itself && t->state == SS_TLS_SHAKING)
		ss_tls_fly(t);
	return wrong;
}

void ss_tls_fly(struct ss_tls *t)
{
	const int rc = SSL_do_handshake(t->ssl);

	if (rc == 1) {
		t->state = SS_TLS_UP;
		ss_count(SS_N_TLS_UP);
	} else if (SSL_get_error(t->ssl, rc) != SSL_ERROR_WANT_READ) {
		t->state = SS_TLS_BROKEN;
	}
}

size_t ss_tls_read(struct ss_tls *t, uint8_t *to, size_t size)
{
	size_t got = 0;

	if (t->state != SS_TLS_UP || SSL_read_ex(t->ssl, to, size, &got) != 1)
		return 0;
	t->rekeys = 0;
	return got;
}

bool ss_tls_write(struct ss_tls *t, const uint8_t *p, size_t n)
{
	return n == 0 || SSL_write(t->ssl, p, (int)n) == (int)n;
}

void ss_tls_rekey(struct ss_tls *t, bool both)
{
	SSL_key_update(t->ssl, both ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
	SSL_do_handshake(t->ssl);
	t->rekeys++;
	ss_count(SS_N_TLS_REKEYED);
}

void ss_tls_close(struct ss_tls *t)
{
	SSL_shutdown(t->ssl);
	t->state = SS_TLS_BROKEN;
}

size_t ss_tls_out(struct ss_tls *t, uint8_t *to, size_t size)
{
	const int n = t->out ? BIO_read(t->out, to, size > (1u << 20) ? 1 << 20 : (int)size) : 0;

	return n > 0 ? (size_t)n : 0;
}
