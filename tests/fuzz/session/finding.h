/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver does when the server breaks a promise: says which, and ends the process as a
 * crash. */
#ifndef RN_TESTS_FUZZ_SESSION_FINDING_H
#define RN_TESTS_FUZZ_SESSION_FINDING_H

#include <stdint.h>

_Noreturn void ss_finding(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t ss_now_ms(void);

/* Without any progress for so long, the server hangs: far beyond what a loaded machine takes. */
#define SS_HANG_MS 60000

#endif
