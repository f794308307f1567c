/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows the bytes that the driver sends on a stream, with a parser independent of the server's,
 * and tells which calls the server must answer, and whether it may close the connection. */
#ifndef RN_TESTS_FUZZ_SESSION_STREAM_H
#define RN_TESTS_FUZZ_SESSION_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/session/users.h"

#define SS_CALL_HEAD 24u /* octets of a call up to and including the procedure */
#define SS_HEAD_MAX 440u /* octets up to and including the longest credential */

/* Admission of the peer's host in the exports. */
enum ss_from { SS_FROM_ADMITTED, SS_FROM_READ_ONLY, SS_FROM_STRANGER, SS_FROM_SQUASHED };

/* Properties of a call that its reply is checked against. */
struct ss_call {
	uint32_t xid;
	/*
	 * true if the call is long enough and of RPC version 2, so that the members below are set
	 */
	bool known;
	uint32_t prog, vers, proc;
	struct ss_who who;    /* principal of the credential */
	struct ss_who client; /* principal of the client that the call names */
	enum ss_from from;
	uint8_t claims; /* SS_CLAIM_* flags */
	bool sealed;	/* under RPCSEC_GSS (sealed.h) */
	bool tls;	/* sent under TLS */
	bool near;	/* from the driver's own network, for which exports ask for no security */
	bool datagram;	/* sent by UDP */
	bool asks_tls;	/* the question for TLS (RFC 9289 section 4.1) */
};

struct ss_stream {
	uint32_t max_record;
	uint8_t mark[4];
	unsigned mark_len;
	uint32_t frag_left;
	bool in_record, last;
	unsigned empties;
	uint64_t total;
	uint8_t head[SS_HEAD_MAX];
	bool doomed; /* the client has sent something after which the server may close */
	bool called; /* the server has made a call, and takes replies of SS_ANSWER_FAIR octets */
	/* The client has sent a reply without a call. The server closes, unless the connection is a
	 * session's back channel. */
	bool stray;
	bool secure;  /* under TLS, where a question for it is a call like others */
	bool stopped; /* the question was sent: no call is taken before the answer */
	bool behind;  /* octets came behind it */
	void (*on_call)(void *ctx, const struct ss_call *call);
	void *ctx;
};

void ss_stream_init(struct ss_stream *s, uint32_t max_record,
		    void (*on_call)(void *ctx, const struct ss_call *call), void *ctx);
void ss_stream_feed(struct ss_stream *s, const uint8_t *p, size_t n);
/* True while a record is incomplete. */
bool ss_stream_partial(const struct ss_stream *s);

/* head: the first len bytes of a call. False if it is no call (RFC 5531 section 9). */
bool ss_call_parse(const uint8_t *head, size_t len, struct ss_call *call);

#endif
