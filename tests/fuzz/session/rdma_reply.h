/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that RFC 8166 allows a reply's transport header and chunks. */
#ifndef RN_TESTS_FUZZ_SESSION_RDMA_REPLY_H
#define RN_TESTS_FUZZ_SESSION_RDMA_REPLY_H

#include "tests/fuzz/session/rdma_client.h"

/* w: the window that the call offered, with the call's header if no other call uses it. Returns
 * NULL, or the error. */
const char *ss_rdma_reply_check(const struct cf_conn *conn, const struct ss_window *w,
				const struct ss_debt *debt, const struct cf_received *r,
				struct ss_values *learn);

#endif
