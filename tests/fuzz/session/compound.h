/* SPDX-License-Identifier: BSD-2-Clause */
/* Templates of valid COMPOUNDs, with marks (message.h), from which sessions are made. */
#ifndef RN_TESTS_FUZZ_SESSION_COMPOUND_H
#define RN_TESTS_FUZZ_SESSION_COMPOUND_H

#include "rpc/xdr_out.h"

unsigned ss_compound_count(void);
const char *ss_compound_name(unsigned i);
/* Encodes the whole RPC call. */
void ss_compound_put(unsigned i, struct xdr_out *x);

#endif
