/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/tls/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

#define RECORD_HEAD 5u
#define RECORD_MOST (16384u + 256u)

void peer_finding(const char *what, unsigned long a, unsigned long b)
{
	fprintf(stderr, "FINDING: %s: %lu, %lu\n", what, a, b);
	abort();
}

void peer_open(struct peer *p, const struct sockaddr_storage *to, SSL *ssl)
{
	const int on = 1;

	memset(p, 0, sizeof(*p));
	p->ssl = ssl;
	p->in = BIO_new(BIO_s_mem());
	p->out = BIO_new(BIO_s_mem());
	p->stream = malloc(PEER_MAX);
	p->record = malloc(PEER_MAX);
	p->fd = socket(to->ss_family, SOCK_STREAM, 0);
	if (!ssl || !p->in || !p->out || !p->stream || !p->record || p->fd < 0 ||
	    connect(p->fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)) < 0)
		abort();
	setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	SSL_set_bio(ssl, p->in, p->out);
	SSL_set_connect_state(ssl);
	p->state = PEER_PLAIN;
}

void peer_close(struct peer *p)
{
	if (p->state == PEER_CLOSED)
		return;
	close(p->fd);
	SSL_free(p->ssl);
	free(p->stream);
	free(p->record);
	memset(p, 0, sizeof(*p));
}

static void send_all(struct peer *p, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		const ssize_t n = send(p->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0)
			return; /* seen as the end by peer_take() */
		bytes += n;
		len -= (size_t)n;
	}
}

void peer_send(struct peer *p, const uint8_t *bytes, size_t len, const struct peer_way *way)
{
	uint8_t *copy = malloc(len + 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	if (way->flip && len > 0) {
		copy[way->where % len] ^= (uint8_t)(1u << way->bit % 8);
		p->tainted = true;
	} else if (way->stop && len > 0) {
		len = way->where % len;
		p->tainted = true;
	}
	for (size_t at = 0; at < len; at += way->piece)
		send_all(p, copy + at, rn_min(way->piece, len - at));
	free(copy);
}

void peer_flush(struct peer *p, const struct peer_way *way)
{
	static uint8_t bytes[PEER_MAX];
	const int n = BIO_read(p->out, bytes, sizeof(bytes));

	if (n > 0)
		peer_send(p, bytes, (size_t)n, way);
}

/* RFC 8446 section 5.1: the type, the version and the length of each record. Whole ones go to the library. An alert about
 * a bent version has that version. */
static void take_records(struct peer *p)
{
	size_t at = 0;

	while (p->record_len - at >= RECORD_HEAD) {
		const uint8_t *r = p->record + at;
		const size_t len = (size_t)r[3] << 8 | r[4];

		if (r[0] < 20 || r[0] > 23 || (r[1] != 3 && !p->tainted) || len > RECORD_MOST)
			peer_finding("plain bytes after STARTTLS", r[0], len);
		if (p->record_len - at < RECORD_HEAD + len)
			break;
		if (BIO_write(p->in, r, (int)(RECORD_HEAD + len)) <= 0)
			abort();
		at += RECORD_HEAD + len;
	}
	memmove(p->record, p->record + at, p->record_len - at);
	p->record_len -= at;
}

static void take_plain_text(struct peer *p)
{
	size_t got;

	while (p->stream_len < PEER_MAX &&
	       SSL_read_ex(p->ssl, p->stream + p->stream_len, PEER_MAX - p->stream_len, &got) == 1)
		p->stream_len += got;
}

bool peer_take(struct peer *p, int ms)
{
	struct pollfd f = { .fd = p->fd, .events = POLLIN };
	const bool plain = p->state == PEER_PLAIN;
	uint8_t *to = plain ? p->stream : p->record;
	size_t *len = plain ? &p->stream_len : &p->record_len;

	if (p->ended)
		return false;
	if (poll(&f, 1, ms) == 0) {
		if (ms == PEER_PATIENCE)
			peer_finding("neither an answer nor an end", p->state, p->tainted);
		return false;
	}
	const ssize_t n = recv(p->fd, to + *len, PEER_MAX - *len, MSG_DONTWAIT);

	if (n <= 0) {
		p->ended = n == 0 || errno != EAGAIN;
		return false;
	}
	*len += (size_t)n;
	if (!plain)
		take_records(p);
	if (p->state == PEER_TLS)
		take_plain_text(p);
	return true;
}

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

size_t peer_reply(const struct peer *p)
{
	if (p->stream_len < 4)
		return 0;
	const uint32_t mark = word_at(p->stream), len = mark & 0x7fffffff;

	if (!(mark & 0x80000000) || len < 8 || len > PEER_MAX - 4)
		peer_finding("a malformed reply", mark, p->state);
	return p->stream_len - 4 >= len ? len : 0;
}

void peer_reply_done(struct peer *p)
{
	const size_t n = 4 + peer_reply(p);

	memmove(p->stream, p->stream + n, p->stream_len - n);
	p->stream_len -= n;
}
