/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies that the server owes on one connection. An xid that was sent n times must be answered at
 * least once and at most n times: a duplicate of a call that is still running is dropped. */
#ifndef RN_TESTS_FUZZ_SESSION_DEBTS_H
#define RN_TESTS_FUZZ_SESSION_DEBTS_H

#include "tests/fuzz/session/stream.h"

#define SS_DEBTS_MAX 1024u

struct ss_debt {
	struct ss_call call;
	unsigned sent, answered;
	bool optional;	    /* the call may stay unanswered */
	unsigned window;    /* RDMA: index of the client's window that the call offered */
	uint32_t rdma_vers; /* RDMA: version in the transport header */
};

struct ss_debts {
	struct ss_debt list[SS_DEBTS_MAX];
	unsigned n, open; /* open: mandatory debts without any answer yet */
};

/* Adds a call. NULL: the list is full. */
struct ss_debt *ss_debts_add(struct ss_debts *d, const struct ss_call *call);
/* Counts a reply to xid and returns its debt. NULL: no reply is owed. */
struct ss_debt *ss_debts_pay(struct ss_debts *d, uint32_t xid);
/* Lets the call stay unanswered. */
void ss_debts_forgive(struct ss_debts *d, struct ss_debt *debt);

#endif
