/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of operations and statuses for messages of tests. Numbers without a name are printed in
 * decimal. */
#ifndef RN_TESTS_NFS4_TEXT_H
#define RN_TESTS_NFS4_TEXT_H

#include <stdint.h>

const char *nfs4_op_text(uint32_t opnum);
const char *nfs4_status_text(uint32_t status);

#endif
