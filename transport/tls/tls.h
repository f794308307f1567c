/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 for RPC (RFC 9289), by OpenSSL: the server's certificate, the handshakes with a thread of their
 * own, and sessions over sockets that do not block. Nothing else in the server knows the library.
 */
#ifndef RN_TRANSPORT_TLS_H
#define RN_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "lib/budget.h"
#include "lib/jobs.h"
#include "lib/log.h"
#include "lib/quota.h"
#include "rpc/request.h"

#define TLS_WHY 512 /* room for a message of why files were refused */

/* Handshakes at once; hosts share them as lib/quota.h says. */
#define TLS_HANDSHAKES_MAX 2048u
/*
 * Bytes that a session may hold, taken from the budget: the library's state and two records. This fraction of the whole
 * budget is set aside for sessions, since payload, which is never given back, could leave none to new ones. It serves when there is nothing else; a client may have as
 * much of it as is still left.
 */
#define TLS_PART 16u
#define TLS_SESSION_BYTES (size_t)(64u << 10)
/* Bytes that a session may hold that the socket does not count: a record and a part of another. */
#define TLS_HELD_BYTES (size_t)(34u << 10)

struct tls;
struct tls_session;
struct tls_shake;

struct tls_config {
	const char *certificate, *key; /* PEM files: the chain, and its private key */
	const char *ca, *crl;	       /* PEM files to verify clients with; NULL: none */
	bool require_alpn;	       /* refuse clients that do not name "sunrpc" */
	bool ktls;		       /* let the kernel encrypt, where it can */
	struct rn_budget *budget;
	const struct rn_logger *log;
};

/* 0, -EINVAL: why tells which file is wrong and what would be right, or another -errno. cfg is copied, but not the
 * strings, which outlive the object. */
int tls_new(const struct tls_config *cfg, struct tls **out, char why[TLS_WHY]);
void tls_free(struct tls *t); /* after all sessions have gone. NULL is allowed */
/* Reads the files again. On an error the old ones stay in use. Any thread. */
int tls_reload(struct tls *t, char why[TLS_WHY]);

/* Reasons why handshakes fail. */
enum tls_reason {
	TLS_UNFINISHED,	     /* the handshake took too long, or this server closed the connection */
	TLS_CLOSED,	     /* the client has closed the connection */
	TLS_BAD_VERSION,     /* the client has no TLS 1.3 */
	TLS_BAD_ALPN,	     /* no protocol, or another one */
	TLS_BAD_CERTIFICATE, /* the client's is expired, revoked, or of another CA */
	TLS_CLIENT_REFUSED, /* an alert: the client does not take this server's certificate, or its offers */
	TLS_BAD_MESSAGE, /* anything else */
	TLS_MADE_ROOM,	 /* for a handshake of another host */
	TLS_REASONS,
};
const char *tls_reason_name(enum tls_reason reason);

struct tls_stats {
	uint64_t done, failed, refused; /* handshakes; refused: there was no room for one more */
	uint64_t reasons[TLS_REASONS];	/* of failed */
	uint64_t ktls;			/* of done: the kernel encrypts */
	uint64_t with_certificate;	/* of done: the client has proved an identity */
	uint64_t under_way;
	uint64_t aside; /* bytes that sessions have of what is set aside */
};
void tls_stats(struct tls *t, struct tls_stats *out);

/* The server's certificate as it is in force. */
struct tls_own {
	char subject[RN_CERT_SUBJECT_MAX];
	int64_t expires;     /* seconds since 1970 */
	bool verifies, ktls; /* clients' certificates are verified; the kernel is to encrypt */
};
void tls_own(struct tls *t, struct tls_own *out);

enum tls_result { TLS_WANT_INPUT, TLS_DONE, TLS_FAILED };

/* A handshake. The client's number, which outlives the session, is guarded by the lock of struct tls. */
struct tls_shake {
	struct rn_job job; /* host and admitted are set by the caller */
	struct rn_quota_item place;
	int fd;
	unsigned *aside; /* sessions in memory that is set aside */
	struct tls_session *session;
	enum tls_result result; /* of the step */
	void (*done)(
		struct tls_shake *s,
		enum tls_result
			result); /* on the thread, or on the caller's if the step cannot be queued */
};

/*
 * Begins a handshake of a client over s->fd. 0; -RN_EFULL: too many, or no memory. After that tls_shake_step() is called
 * whenever there is input, and tls_shake_end() once. If it has to make room for another, its socket is shut down.
 */
int tls_shake_begin(struct tls *t, struct tls_shake *s);
/* Goes on with the handshake on the thread, which calls s->done. One step at a time. */
void tls_shake_step(struct tls *t, struct tls_shake *s);
void tls_shake_end(struct tls *t, struct tls_shake *s, enum tls_result result);

void tls_session_free(struct tls *t, struct tls_session *s); /* NULL is allowed */
/* Like recv(2), but for errors: bytes, 0 at the end of the stream, -EAGAIN, or -ECONNRESET: it is broken. Reads
 * until size bytes are there or no more are. */
ssize_t tls_session_recv(struct tls_session *s, uint8_t *to, size_t size);
/* True if bytes, or the end of the stream, lie in the session that the socket does not tell of. */
bool tls_session_pending(struct tls_session *s);
/* Encrypts and sends. Bytes, 0 if the socket is full, or -EPIPE. After 0 the next call must begin with the same
 * bytes. One thread at a time. */
ssize_t tls_session_send(struct tls_session *s, const struct iovec *iov, unsigned niov);
/* Tells the peer that no more comes, if that can be told at once. */
void tls_session_close(struct tls_session *s);
/* Result of a handshake that is done; valid as long as the session. If the kernel encrypts what is sent to the socket,
 * tls_session_send must not be used. */
const struct rpc_conn_tls *tls_session_facts(const struct tls_session *s);

#endif
