/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server of tests/unit/nfs3_fixture.h on real directories, for fuzz targets that send whole
 * calls. The directories are on a small tmpfs in a mount namespace of this process. The server is made
 * anew now and then, so that files left by inputs do not pile up. Needs root; without, inputs are
 * ignored.
 */
#ifndef RN_TESTS_FUZZ_REAL_DIRS_H
#define RN_TESTS_FUZZ_REAL_DIRS_H

#include "tests/unit/nfs3_fixture.h"

#define FUZZ_MESSAGE_MAX 65536u

/* Fixture for the next input, or NULL without root. *fresh: true if its directories are empty. The
 * server is stopped at exit. */
struct fixture *fuzz_real_dirs(bool *fresh);

/* Aborts unless the call was answered once, and within the size that the client can take. */
void fuzz_must_be_answered(const struct fixture *f);

#endif
