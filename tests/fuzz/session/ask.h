/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's own calls, of which each must succeed: a finding if one does not. */
#ifndef RN_TESTS_FUZZ_SESSION_ASK_H
#define RN_TESTS_FUZZ_SESSION_ASK_H

#include <stdint.h>

#include "tests/fuzz/session/message.h"

/* Fills the handles of the tree; what was the file's becomes the stale one. */
void ss_ask_handles(uint16_t port, struct ss_values *v);
/* A fresh connection gets a NULL call answered. */
void ss_ask_alive(uint16_t port);

#endif
