/* SPDX-License-Identifier: BSD-2-Clause */
/* Mounts and unmounts file systems on an export's path and below one while the server runs, and
 * checks the promises of doc/design/exports.md. */
#ifndef RN_TESTS_FUZZ_SESSION_MOUNTS_H
#define RN_TESTS_FUZZ_SESSION_MOUNTS_H

#include <stdbool.h>

#include "tests/fuzz/session/message.h"

void ss_mounts_step(unsigned how, uint16_t port, struct ss_values *v);
/*
 * Unmounts all file systems of this file. True: there was one, and the exports must be read again.
 */
bool ss_mounts_end(void);

#endif
