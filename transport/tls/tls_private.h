/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_TRANSPORT_TLS_PRIVATE_H
#define RN_TRANSPORT_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "transport/tls/tls.h"

struct tls {
	struct tls_config cfg;
	pthread_t thread;
	pthread_cond_t wake;
	pthread_mutex_t lock; /* guards the members below */
	SSL_CTX *ctx;	      /* of new sessions; each session has a reference */
	struct rn_fq queue;   /* of struct tls_shake */
	unsigned under_way;
	bool stopping;
	struct tls_stats n;
};

struct tls_session {
	pthread_mutex_t lock; /* guards ssl, which the reading and a sending thread use */
	SSL *ssl;
	bool require_alpn;
	bool verifies; /* certificates are verified: there is a CA */
	/* Constant after the handshake. */
	bool ktls, mutual;
	bool done;    /* the handshake is over */
	bool rekeyed; /* under the lock: the peer has changed its key in a way that ends the session */
	unsigned rekeys; /* under the lock: changes since data came last */
};

/* NULL: why tells the reason. */
SSL_CTX *tls_context_new(const struct tls_config *cfg, char why[TLS_WHY]);

struct tls_session *tls_session_new(const struct tls_config *cfg, SSL_CTX *ctx, int fd);
enum tls_result tls_session_shake(struct tls_session *s);

#endif
