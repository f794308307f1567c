/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the server to the client of one connection, and answers to them: right ones, errors of
 * every layer, and answers to nothing. Calls are read by a parser independent of the server's.
 */
#ifndef RN_TESTS_FUZZ_SESSION_BACK_H
#define RN_TESTS_FUZZ_SESSION_BACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_values;

#define SS_BACK_KEPT 64u /* calls without an answer; the server has no more under way */
#define SS_ANSWER_MAX 4200u
/* octets of a reply for which the server may not close the connection */
#define SS_ANSWER_FAIR 1000u

/* Parts of SS_ANSWER's how. */
#define SS_ANSWER_KIND 0x0fu
#define SS_ANSWER_CREDITS 0x30u /* by RDMA: eight, one, none, very many */
#define SS_ANSWER_AGAIN 0x40u	/* the next answer is to the same call */
#define SS_ANSWER_DATA 0x80u	/* the step's data follow the xid and the direction */

enum ss_answer {
	SS_ANSWER_RIGHT,
	SS_ANSWER_OP_DELAY, /* status of the operation */
	SS_ANSWER_DELAY,    /* status of CB_SEQUENCE, as those below */
	SS_ANSWER_BADSESSION,
	SS_ANSWER_BADSLOT,
	SS_ANSWER_BAD_HIGH_SLOT,
	SS_ANSWER_MISORDERED,
	SS_ANSWER_UNCACHED,
	SS_ANSWER_DENIED, /* errors of RPC */
	SS_ANSWER_NO_PROGRAM,
	SS_ANSWER_GARBAGE,
	SS_ANSWER_OTHER_XID,
	SS_ANSWER_CUT,
	SS_ANSWER_ONE_SLOT,   /* CB_SEQUENCE's target is slot 0 */
	SS_ANSWER_OTHER_ECHO, /* of another slot */
	SS_ANSWER_REFUSED,    /* by RDMA: RDMA_ERROR */
};

struct ss_callback {
	uint32_t xid, proc, minor, nops, op;
	uint8_t session[16];
	uint32_t seqid, slot;
	bool answered; /* kept for another answer */
};

struct ss_back {
	struct ss_callback call[SS_BACK_KEPT]; /* to be answered, the oldest first */
	unsigned n;
	uint32_t most; /* calls that may be under way: the largest grant so far */
};

/* An answer as SS_ANSWER asks for it. */
struct ss_reaction {
	uint8_t how;
	const uint8_t *data; /* without SS_ANSWER_DATA: the attributes for CB_GETATTR (held.h) */
	size_t len;
	const struct ss_values *values; /* of the client that answers */
};

void ss_back_init(struct ss_back *b);
/* Takes the RPC message of a call. NULL, or what is wrong with it. */
const char *ss_back_take(struct ss_back *b, const uint8_t *msg, size_t len);
/* Calls under way: those without any answer that the server takes. */
unsigned ss_back_waiting(const struct ss_back *b);
/* Answers the oldest call. Returns the length of the RPC message in out (SS_ANSWER_MAX octets); 0:
 * there is no call. *xid is the call's; *credits is granted by RDMA. */
size_t ss_back_answer(struct ss_back *b, const struct ss_reaction *r, uint8_t *out, uint32_t *xid,
		      uint32_t *credits);

#endif
