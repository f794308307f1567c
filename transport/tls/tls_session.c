/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions. The library's object is not made for two threads, so a lock is held around each call, none of which
 * waits for the socket.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "transport/tls/tls_private.h"

#define RECORD 16384u /* most bytes in a record */
#define SMALL 4096u   /* shorter pieces are copied into one record with their neighbours */
#define REKEYS_MAX 8u /* changes of the peer's key without any data between them */

/* Looks for KeyUpdate. With kernel TLS this version of the library cannot change the key that the kernel has, so
 * the session ends. */
static void on_message(int write_p, int version, int type, const void *buf, size_t len, SSL *ssl,
		       void *arg)
{
	struct tls_session *s = arg;

	(void)version;
	(void)ssl;
	if (write_p || type != SSL3_RT_HANDSHAKE || len == 0 ||
	    *(const uint8_t *)buf != SSL3_MT_KEY_UPDATE)
		return;
	s->rekeyed = s->rekeyed || s->facts.ktls || ++s->rekeys > REKEYS_MAX;
}

struct tls_session *tls_session_new(const struct tls_config *cfg, SSL_CTX *ctx, int fd)
{
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ssl = SSL_new(ctx);
	if (!s->ssl || SSL_set_fd(s->ssl, fd) != 1) {
		SSL_free(s->ssl);
		ERR_clear_error();
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->require_alpn = cfg->require_alpn;
	s->verifies = cfg->ca != NULL;
	SSL_set_msg_callback(s->ssl, on_message);
	SSL_set_msg_callback_arg(s->ssl, s);
	SSL_set_accept_state(s->ssl);
	return s;
}

void tls_session_free(struct tls *t, struct tls_session *s)
{
	if (!s)
		return;
	unsigned *const aside = s->aside;

	SSL_free(s->ssl);
	pthread_mutex_destroy(&s->lock);
	free(s);
	tls_give_memory(t, aside);
}

/* Looks at what was agreed on. */
static enum tls_result tls_session_judge(struct tls_session *s)
{
	const unsigned char *proto;
	unsigned len;
	X509 *cert = SSL_get0_peer_certificate(s->ssl);

	SSL_get0_alpn_selected(s->ssl, &proto, &len);
	if (s->require_alpn && len == 0) {
		s->reason = TLS_BAD_ALPN;
		return TLS_FAILED;
	}
	if (s->verifies && cert && SSL_get_verify_result(s->ssl) == X509_V_OK) {
		tls_identity(cert, &s->certificate);
		s->facts.certificate = &s->certificate;
	}
	s->facts.version = SSL_get_version(s->ssl);
	s->facts.cipher = SSL_get_cipher_name(s->ssl);
	s->facts.alpn = len > 0;
	s->facts.ktls = BIO_get_ktls_send(SSL_get_wbio(s->ssl));
	s->done = true;
	return TLS_DONE;
}

/* The reason of a failure, by the first error that the library has noted. */
static enum tls_reason reason_of(int error)
{
	const unsigned long e = ERR_peek_error();
	const int reason = ERR_GET_REASON(e);

	if (e == 0)
		return error == SSL_ERROR_SYSCALL ? TLS_CLOSED : TLS_BAD_MESSAGE;
	if (ERR_GET_LIB(e) != ERR_LIB_SSL)
		return TLS_BAD_MESSAGE;
	switch (reason) {
	case SSL_R_UNEXPECTED_EOF_WHILE_READING:
		return TLS_CLOSED;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
		return TLS_BAD_VERSION;
	case SSL_R_NO_APPLICATION_PROTOCOL:
		return TLS_BAD_ALPN;
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		return TLS_BAD_CERTIFICATE;
	default:
		return reason >= SSL_AD_REASON_OFFSET ? TLS_CLIENT_REFUSED : TLS_BAD_MESSAGE;
	}
}

enum tls_result tls_session_shake(struct tls_session *s)
{
	enum tls_result result = TLS_FAILED;

	pthread_mutex_lock(&s->lock);
	ERR_clear_error();
	const int rc = SSL_do_handshake(s->ssl);

	const int error = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, rc);

	if (rc == 1)
		result = tls_session_judge(s);
	else if (error == SSL_ERROR_WANT_READ)
		result = TLS_WANT_INPUT;
	else
		s->reason = reason_of(error);
	ERR_clear_error();
	pthread_mutex_unlock(&s->lock);
	return result;
}

/* One read. Bytes, or as tls_session_recv. */
static ssize_t tls_session_read(struct tls_session *s, uint8_t *to, size_t size)
{
	size_t got = 0;
	int rc, calls = 0;

	/* A record of the protocol itself gives no data, and more may be behind it. */
	do {
		rc = SSL_read_ex(s->ssl, to, size, &got);
		if (rc == 1) {
			s->rekeys = 0;
			return s->rekeyed ? -ECONNRESET : (ssize_t)got;
		}
		rc = SSL_get_error(s->ssl, rc);
		if (s->rekeyed)
			return -ECONNRESET;
	} while (rc == SSL_ERROR_WANT_READ && SSL_has_pending(s->ssl) && ++calls < 4);
	switch (rc) {
	case SSL_ERROR_WANT_READ:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default: /* also if the library must write first and cannot: the peer does not read */
		return -ECONNRESET;
	}
}

ssize_t tls_session_recv(struct tls_session *s, uint8_t *to, size_t size)
{
	size_t have = 0;
	ssize_t got = 0;

	pthread_mutex_lock(&s->lock);
	ERR_clear_error();
	while (have < size && (got = tls_session_read(s, to + have, size - have)) > 0)
		have += (size_t)got;
	ERR_clear_error();
	pthread_mutex_unlock(&s->lock);
	/* Bytes that came before the end are used first. The next call finds the end again. */
	return have > 0 && got != -ECONNRESET ? (ssize_t)have : got;
}

bool tls_session_pending(struct tls_session *s)
{
	pthread_mutex_lock(&s->lock);
	/* The end of the session may have come with the data before it, and nothing else makes it known. */
	const bool pending =
		SSL_pending(s->ssl) > 0 || (SSL_get_shutdown(s->ssl) & SSL_RECEIVED_SHUTDOWN);
	pthread_mutex_unlock(&s->lock);
	return pending;
}

/* Position of sending in the pieces. */
struct position {
	const struct iovec *iov;
	unsigned n;
	size_t off; /* in the first */
};

static void skip(struct position *p, size_t bytes)
{
	while (p->n > 0 && bytes >= p->iov->iov_len - p->off) {
		bytes -= p->iov->iov_len - p->off;
		p->iov++;
		p->n--;
		p->off = 0;
	}
	p->off += bytes;
}

/* The bytes of the next record: in place, or small pieces together in buf. They depend on the pieces only, so that a
 * record that did not go out is repeated. */
static const uint8_t *next_record(struct position p, uint8_t buf[RECORD], size_t *len)
{
	size_t have = 0;

	if (p.iov->iov_len - p.off >= SMALL) {
		*len = rn_min(p.iov->iov_len - p.off, (size_t)RECORD);
		return (const uint8_t *)p.iov->iov_base + p.off;
	}
	while (p.n > 0 && have < RECORD && p.iov->iov_len - p.off < SMALL) {
		const size_t part = rn_min(p.iov->iov_len - p.off, RECORD - have);

		memcpy(buf + have, (const uint8_t *)p.iov->iov_base + p.off, part);
		have += part;
		skip(&p, part);
	}
	*len = have;
	return buf;
}

ssize_t tls_session_send(struct tls_session *s, const struct iovec *iov, unsigned niov)
{
	struct position p = { iov, niov, 0 };
	uint8_t buf[RECORD];
	size_t total = 0;
	ssize_t rc = 0;

	pthread_mutex_lock(&s->lock);
	ERR_clear_error();
	while (p.n > 0) {
		size_t len, put = 0;
		const uint8_t *from = next_record(p, buf, &len);

		if (SSL_write_ex(s->ssl, from, len, &put) != 1) {
			if (SSL_get_error(s->ssl, 0) != SSL_ERROR_WANT_WRITE)
				rc = -EPIPE;
			break;
		}
		total += put;
		skip(&p, put);
	}
	ERR_clear_error();
	pthread_mutex_unlock(&s->lock);
	return total > 0 ? (ssize_t)total : rc;
}

void tls_session_close(struct tls_session *s)
{
	pthread_mutex_lock(&s->lock);
	ERR_clear_error();
	if (s->done)
		(void)SSL_shutdown(s->ssl);
	ERR_clear_error();
	pthread_mutex_unlock(&s->lock);
}

const struct rpc_conn_tls *tls_session_facts(const struct tls_session *s)
{
	return &s->facts;
}
