/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks and set-up that several groups of cases share, on top of call.h: chunks of chosen segment
 * lengths, the data a reply has put into them, and replies that may be one of several. As
 * everywhere, false means that the verdict has been given.
 */
#ifndef RN_CONFORM_CONFORM_CHECK_H
#define RN_CONFORM_CONFORM_CHECK_H

#include "tools/conform/conform_call.h"

/* A chunk's segments, by length, up to CF_END; a window of its own for each that is not empty. */
#define CF_END UINT32_MAX

/* skew: the segment starts that many bytes behind a 64-byte boundary. */
bool cf_add_segs(struct cf_test *t, struct cf_chunk *chunk, const uint32_t *lens, uint32_t skew);

/* The segments of got are those of offered, filled in order with exactly len bytes (RFC 8166
 * section 3.4.6). */
bool cf_chunk_filled(struct cf_test *t, const struct cf_chunk *offered, const struct cf_chunk *got,
		     uint32_t len);
/* got holds len bytes of the pattern from byte `from` on, and no pad behind them. */
bool cf_chunk_has_pattern(struct cf_test *t, const struct cf_chunk *offered,
			  const struct cf_chunk *got, uint32_t from, uint32_t len);
/* got holds these bytes, and no pad behind them. */
bool cf_chunk_has(struct cf_test *t, const struct cf_chunk *offered, const struct cf_chunk *got,
		  const void *data, uint32_t len);
/* All Write chunks from `first` on are returned unused (RFC 8166 section 4.3.2.2). */
bool cf_writes_unused(struct cf_test *t, const struct cf_reply *r, unsigned first);

/* Gathered bytes of a returned chunk; NULL: verdict. */
const uint8_t *cf_gather(struct cf_test *t, const struct cf_chunk *got, uint32_t *len);

/* The reply says that the call could not be answered: RDMA_ERROR with ERR_CHUNK, or a refusal or
 * error of the RPC layer. No verdict. */
bool cf_is_refusal(const struct cf_reply *r);

/* Sends c, whose lists name memory that is not there: true if the server refuses it or closes the
 * connection, after which the case asks cf_server_alive(). */
bool cf_refused_or_closed(struct cf_test *t, struct cf_call *c);

/* The NFS status at the start of the results, which stays to be read. */
uint32_t cf_peek_status(const struct cf_reply *r);

/* A connection with the smallest inline size, where long messages begin early, or as wide as
 * given. */
bool cf_open_small(struct cf_test *t);

/*
 * Sends n calls, at most `window` of them without an answer, and takes the answers in any order:
 * each call is answered once, and passes cf_answers(). got, if not NULL, is called for each. Needs
 * a connection with as many Receives as the window.
 */
bool cf_many(struct cf_test *t, struct cf_call **calls, unsigned n, unsigned window,
	     bool (*got)(struct cf_test *t, unsigned i, struct cf_call *c, struct cf_reply *r));
/*
 * Asks for `want` credits and returns how many calls may then be under way; 0 only with a verdict.
 */
unsigned cf_credits(struct cf_test *t, uint32_t want);

/* ms, but not beyond the case's deadline. */
int64_t cf_until(const struct cf_test *t, int ms);

#endif
