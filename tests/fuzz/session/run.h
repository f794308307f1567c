/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one session against the server and checks what must hold after it. */
#ifndef RN_TESTS_FUZZ_SESSION_RUN_H
#define RN_TESTS_FUZZ_SESSION_RUN_H

#include <stddef.h>
#include <stdint.h>

/* Starts the server at the first call. NULL, or the reason why sessions cannot run here (not root,
 * no namespaces); later calls return the same. */
const char *ss_start(void);
void ss_stop(void);

void ss_run(const uint8_t *data, size_t size);

#endif
