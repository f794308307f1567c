/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of RPC with TLS (RFC 9289) on one connection, by OpenSSL over memory: octets for the server are given to
 * the caller, who puts them on the stream. All that comes after the server's STARTTLS must be TLS records.
 */
#ifndef RN_TESTS_FUZZ_SESSION_TLS_CLIENT_H
#define RN_TESTS_FUZZ_SESSION_TLS_CLIENT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ss_tls_state {
	SS_TLS_PLAIN,
	SS_TLS_ASKED,	/* the question was sent */
	SS_TLS_SHAKING, /* STARTTLS came */
	SS_TLS_UP,
	SS_TLS_BROKEN /* the handshake failed, or the client has closed the session */
};

struct ss_tls {
	enum ss_tls_state state;
	uint32_t asked_xid;
	uint8_t manners; /* certificate, protocols and versions: bits 4-7 of a step's `how` */
	bool by_itself;	 /* the handshake goes on as octets come; else by steps */
	bool spoilt; /* octets that are not the session's were put on the stream: no call behind them is taken */
	unsigned rekeys; /* changes of the key since the last answer */
	SSL *ssl;
	BIO *in, *out;
	uint8_t *record; /* octets that make no whole TLS record yet */
	size_t record_len;
};

/* Paths of the server's certificate and key, and of the certificate that signs those of clients; once. */
void ss_tls_start(const char **certificate, const char **key, const char **ca);

void ss_tls_free(struct ss_tls *t);
/* True if the server must refuse a client of these manners. */
bool ss_tls_is_refused(uint8_t manners);

/* STARTTLS came. */
void ss_tls_begin(struct ss_tls *t);
/* Takes octets of the server. NULL, or the error. */
const char *ss_tls_take(struct ss_tls *t, const uint8_t *p, size_t n);
/* One flight of the handshake, as far as it goes now. */
void ss_tls_fly(struct ss_tls *t);
/* Reads what the server has sent under TLS. Returns the number of octets; 0: there are none. */
size_t ss_tls_read(struct ss_tls *t, uint8_t *to, size_t size);
/* Encrypts. */
bool ss_tls_write(struct ss_tls *t, const uint8_t *p, size_t n);
void ss_tls_rekey(struct ss_tls *t, bool both);
/* close_notify */
void ss_tls_close(struct ss_tls *t);
/* Octets for the server; 0: there are none. */
size_t ss_tls_out(struct ss_tls *t, uint8_t *to, size_t size);

#endif
