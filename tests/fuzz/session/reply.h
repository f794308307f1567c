/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that the protocol allows a reply to a call. The decoder shares no code with the server's
 * encoder. */
#ifndef RN_TESTS_FUZZ_SESSION_REPLY_H
#define RN_TESTS_FUZZ_SESSION_REPLY_H

#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/stream.h"

#define SS_BULKS_MAX 32u

/* The Write chunks of a call by RDMA, in order: the n-th bulk item of a reply goes by the n-th that
 * is not empty (RFC 8267 section 6.4.1). */
struct ss_bulks {
	unsigned n;
	uint32_t offered[SS_BULKS_MAX], written[SS_BULKS_MAX]; /* octets */
};

/* msg: the whole RPC reply, without data that went by Write chunks. bulks: NULL for none. learn:
 * NULL, or updated with handles and ids for later calls. Returns NULL, or the error. */
const char *ss_reply_check(const struct ss_call *call, const uint8_t *msg, size_t len,
			   const struct ss_bulks *bulks, struct ss_values *learn);

/* The status of an accepted, successful reply's results (their first word), or -1. */
int64_t ss_reply_status(const uint8_t *msg, size_t len);

#endif
