/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What targets share that send whole calls: the server of tests/unit/nfs3_fixture.h on real
 * directories, made anew now and then, so that what inputs leave behind does not pile up. It needs
 * root; without, there is none and inputs are ignored.
 */
#ifndef RN_TESTS_FUZZ_REAL_DIRS_H
#define RN_TESTS_FUZZ_REAL_DIRS_H

#include "tests/unit/nfs3_fixture.h"

#define FUZZ_MESSAGE_MAX 65536u

/* For the next input; NULL: there is none. *fresh: its directories are empty. Stopped at exit. */
struct fixture *fuzz_real_dirs(bool *fresh);

/* Ends the run unless the call was answered once, and within what the client can take. */
void fuzz_must_be_answered(const struct fixture *f);

#endif
