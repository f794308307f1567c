/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a reply what the protocol lets the server say to a call? A decoder of our own: it shares
 * nothing with the server's encoder.
 */
#ifndef RN_TESTS_FUZZ_SESSION_REPLY_H
#define RN_TESTS_FUZZ_SESSION_REPLY_H

#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/stream.h"

/*
 * msg: the whole RPC reply. by_chunk: its bulk item, of bulk_len bytes, went by an RDMA Write chunk
 * and is not in msg. learn, unless NULL, takes handles and cookies. NULL if all is well, else what
 * is wrong.
 */
const char *ss_reply_check(const struct ss_call *call, const uint8_t *msg, size_t len,
			   bool by_chunk, uint32_t bulk_len, struct ss_values *learn);

/* The status of an accepted, successful reply's results (their first word), or -1. */
int64_t ss_reply_status(const uint8_t *msg, size_t len);

#endif
