/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that RFC 1094 allows a reply of NFSv2, that doc/design/nfs3-companions.md allows one of NFSACL version 2, and
 * that who may only read has changed nothing. */
#ifndef RN_TESTS_FUZZ_SESSION_NFS2_RESULTS_H
#define RN_TESTS_FUZZ_SESSION_NFS2_RESULTS_H

#include "tests/fuzz/session/reader.h"

/* Read the results of a procedure. Handles and the cookie in them are kept for later calls. */
void ss_nfs2_check(struct ss_in *in, uint32_t proc);
void ss_nfsacl2_check(struct ss_in *in, uint32_t proc);

#endif
