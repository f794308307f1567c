/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of one connection: plain bytes, then TLS by OpenSSL over memory, so that what goes to the socket can be cut
 * and bent. All that comes after the server's STARTTLS must be TLS records.
 */
#ifndef RN_TESTS_FUZZ_TLS_PEER_H
#define RN_TESTS_FUZZ_TLS_PEER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define PEER_MAX (256u << 10)

/* An xid tells how its call was sent: PEER_MAGIC, one of these, a number. */
#define PEER_MAGIC 0xfe57u
enum xid_kind {
	XID_PLAIN = 1,
	XID_TLS,
	XID_MUTUAL,   /* with a certificate */
	XID_FORBIDDEN /* must never be taken for a call */
};

enum peer_state { PEER_CLOSED, PEER_PLAIN, PEER_SHAKING, PEER_TLS };

struct peer {
	int fd;
	enum peer_state state;
	bool tainted; /* the peer did something that may end the connection */
	bool ended;   /* the server has closed it */
	bool refused; /* its handshake must fail */
	bool mutual;  /* it has a good certificate */
	SSL *ssl;
	BIO *in, *out;
	/* Replies, as a stream; and bytes that came since STARTTLS and make no whole TLS record yet. */
	uint8_t *stream, *record;
	size_t stream_len, record_len;
};

/* One way to send: pieces, and a defect. */
struct peer_way {
	size_t piece;
	bool flip, stop; /* a bit of the octet at `where`; or nothing from there on */
	size_t where;
	uint8_t bit;
};

void peer_finding(const char *what, unsigned long a, unsigned long b);
/* ssl is the peer's from now on. */
void peer_open(struct peer *p, const struct sockaddr_storage *to, SSL *ssl);
void peer_close(struct peer *p);
/* Sends as it is; a defect taints. */
void peer_send(struct peer *p, const uint8_t *bytes, size_t len, const struct peer_way *way);
/* Sends what the TLS library has for the server. */
void peer_flush(struct peer *p, const struct peer_way *way);
#define PEER_PATIENCE 60000
/* Takes what has come within that time in ms; PEER_PATIENCE: something must. False: nothing came, or the connection has
 * ended. */
bool peer_take(struct peer *p, int ms);
/* The next reply: its length, its bytes in p->stream + 4; 0: there is none yet. */
size_t peer_reply(const struct peer *p);
void peer_reply_done(struct peer *p);

#endif
