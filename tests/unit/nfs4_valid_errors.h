/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors that the RFCs allow for each operation. fix4_result() checks every result with it. */
#ifndef RN_TESTS_NFS4_VALID_ERRORS_H
#define RN_TESTS_NFS4_VALID_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

bool nfs4_error_is_valid(uint32_t opnum, uint32_t minor, uint32_t status);

#endif
