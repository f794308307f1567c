/* SPDX-License-Identifier: BSD-2-Clause */
/* What the RFCs allow an operation to answer: fix4_result compares each result with it. */
#ifndef RN_TESTS_NFS4_VALID_ERRORS_H
#define RN_TESTS_NFS4_VALID_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

bool nfs4_error_is_valid(uint32_t opnum, uint32_t minor, uint32_t status);

#endif
