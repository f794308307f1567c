/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File systems that are mounted and unmounted on an export's path and below one while the server
 * runs, and what doc/design/exports.md promises about that.
 */
#ifndef RN_TESTS_FUZZ_SESSION_MOUNTS_H
#define RN_TESTS_FUZZ_SESSION_MOUNTS_H

#include <stdbool.h>

#include "tests/fuzz/session/message.h"

void ss_mounts_step(unsigned how, uint16_t port, struct ss_values *v);
/* Nothing is mounted any more. True: something had been, and the exports are to be read again. */
bool ss_mounts_end(void);

#endif
