/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_TRANSPORT_TLS_PRIVATE_H
#define RN_TRANSPORT_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "transport/tls/tls.h"

struct tls {
	struct tls_config cfg;
	struct rn_budget aside; /* for sessions only; taken out of cfg.budget */
	struct rn_jobs *jobs;	/* steps of handshakes, which are bounded themselves */
	pthread_mutex_t lock;	/* guards the members below */
	SSL_CTX *ctx;		/* of new sessions; each session has a reference */
	struct rn_quota quota;	/* of handshakes under way; one that made room is in none */
	unsigned under_way;
	struct tls_stats n;
};

struct tls_session {
	pthread_mutex_t lock; /* guards ssl, which the reading and a sending thread use */
	SSL *ssl;
	unsigned *
		aside; /* its client's number of sessions in tls.aside; NULL: its memory is of the budget */
	bool require_alpn;
	bool verifies; /* certificates are verified: there is a CA */
	/* Constant after the handshake. */
	struct rpc_conn_tls facts;
	struct rn_certificate certificate; /* of the client, if facts has one */
	enum tls_reason reason;		   /* of a handshake that failed */
	bool done;			   /* the handshake is over */
	bool rekeyed; /* under the lock: the peer has changed its key in a way that ends the session */
	unsigned rekeys; /* under the lock: changes since data came last */
};

/* NULL: why tells the reason. */
SSL_CTX *tls_context_new(const struct tls_config *cfg, char why[TLS_WHY]);

/* End of its life, seconds since 1970; 0: not readable. */
int64_t tls_expiry(const X509 *cert);
/* The subject of a certificate, as printable text. to is zeroed. */
void tls_subject(const X509 *cert, char to[RN_CERT_SUBJECT_MAX]);
/* Fills in the identity; to is zeroed. */
void tls_identity(const X509 *cert, struct rn_certificate *to);

/* Gives back what a session had; aside as in it. */
void tls_give_memory(struct tls *t, unsigned *aside);
struct tls_session *tls_session_new(const struct tls_config *cfg, SSL_CTX *ctx, int fd);
enum tls_result tls_session_shake(struct tls_session *s);

#endif
