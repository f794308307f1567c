/* SPDX-License-Identifier: BSD-2-Clause */
/* Is what the server sent back what RFC 8166 lets it say to the call? */
#ifndef RN_TESTS_FUZZ_SESSION_RDMA_REPLY_H
#define RN_TESTS_FUZZ_SESSION_RDMA_REPLY_H

#include "tests/fuzz/session/rdma_client.h"

/* w: the window that the call offered, with the call's header if it is its only user. NULL, or what
 * is wrong. */
const char *ss_rdma_reply_check(const struct cf_conn *conn, const struct ss_window *w,
				const struct ss_debt *debt, const struct cf_received *r,
				struct ss_values *learn);

#endif
