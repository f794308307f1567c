/* SPDX-License-Identifier: BSD-2-Clause */
/* Valid COMPOUNDs, with marks (message.h), that sessions are made of. */
#ifndef RN_TESTS_FUZZ_SESSION_COMPOUND_H
#define RN_TESTS_FUZZ_SESSION_COMPOUND_H

#include "rpc/xdr_out.h"

unsigned ss_compound_count(void);
const char *ss_compound_name(unsigned i);
/* Puts the whole call. */
void ss_compound_put(unsigned i, struct xdr_out *x);

#endif
