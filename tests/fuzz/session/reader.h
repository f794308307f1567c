/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR decoder for replies, independent of the server's. The first error is kept and ends the
 * reading. */
#ifndef RN_TESTS_FUZZ_SESSION_READER_H
#define RN_TESTS_FUZZ_SESSION_READER_H

#include <stdbool.h>

#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/reply.h"

struct ss_in {
	const uint8_t *p;
	size_t left;
	const struct ss_bulks *bulks;
	unsigned next_bulk;
	struct ss_values *learn;    /* values to update from the reply, or NULL */
	const struct ss_call *call; /* the call that this reply answers */
	const char *bad;
};

void ss_wrong(struct ss_in *in, const char *what);
/* Next n octets. Past the end of the message: zeros, of which at most 128 may be read. */
const uint8_t *ss_get(struct ss_in *in, size_t n);
uint32_t ss_get_u32(struct ss_in *in);
uint64_t ss_get_u64(struct ss_in *in);
bool ss_get_bool(struct ss_in *in);
const uint8_t *ss_get_opaque(struct ss_in *in, uint32_t max, uint32_t *len);
void ss_get_name(struct ss_in *in, uint32_t max);
void ss_get_handle(struct ss_in *in);
/* Reads a counted opaque that may have gone by a Write chunk; returns its length. */
uint32_t ss_get_bulk(struct ss_in *in);

#endif
