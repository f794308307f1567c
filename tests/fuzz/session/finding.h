/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports a broken promise of the server, and ends the process as a crash. */
#ifndef RN_TESTS_FUZZ_SESSION_FINDING_H
#define RN_TESTS_FUZZ_SESSION_FINDING_H

#include <stdint.h>

_Noreturn void ss_finding(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t ss_now_ms(void);

/* Milliseconds without progress after which the server counts as hanging; far longer than a loaded
 * machine needs. */
#define SS_HANG_MS 60000

#endif
