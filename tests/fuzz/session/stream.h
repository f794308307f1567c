/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads along what we send on a stream, with a parser of our own, and says what the server owes for
 * it: which calls must be answered, and whether it may close the connection.
 */
#ifndef RN_TESTS_FUZZ_SESSION_STREAM_H
#define RN_TESTS_FUZZ_SESSION_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/session/users.h"

#define SS_CALL_HEAD 24u /* up to and with the procedure */
#define SS_HEAD_MAX 440u /* and the credential */

/* What the exports say of the host at the other end. */
enum ss_from { SS_FROM_ADMITTED, SS_FROM_READ_ONLY, SS_FROM_STRANGER, SS_FROM_SQUASHED };

/* What a reply will be held against. */
struct ss_call {
	uint32_t xid;
	bool known; /* long enough, of RPC version 2: the rest is set */
	uint32_t prog, vers, proc;
	struct ss_who who;    /* by its credential */
	struct ss_who client; /* whose client it names */
	enum ss_from from;
	uint8_t claims; /* SS_CLAIM_* */
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
	bool doomed; /* something was sent after which the server may close */
	void (*on_call)(void *ctx, const struct ss_call *call);
	void *ctx;
};

void ss_stream_init(struct ss_stream *s, uint32_t max_record,
		    void (*on_call)(void *ctx, const struct ss_call *call), void *ctx);
void ss_stream_feed(struct ss_stream *s, const uint8_t *p, size_t n);
/* Is a record begun and not complete? */
bool ss_stream_partial(const struct ss_stream *s);

/* head: len bytes of a call's beginning. False: no call (RFC 5531 section 9). */
bool ss_call_parse(const uint8_t *head, size_t len, struct ss_call *call);

#endif
