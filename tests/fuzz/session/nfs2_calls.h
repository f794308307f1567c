/* SPDX-License-Identifier: BSD-2-Clause */
/* One valid call or more for each procedure of NFSv2 and of what serves it: MOUNT 1 and 2, NFSACL 2, NLM 1. Handles
 * and cookies are marks (message.h). */
#ifndef RN_TESTS_FUZZ_SESSION_NFS2_CALLS_H
#define RN_TESTS_FUZZ_SESSION_NFS2_CALLS_H

#include "tests/unit/nfs3_samples.h"

extern const struct sample ss_nfs2_calls[];
extern const unsigned ss_nfs2_call_count;

#endif
