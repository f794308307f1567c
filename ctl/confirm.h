/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking whether a change is meant. */
#ifndef RN_CTL_CONFIRM_H
#define RN_CTL_CONFIRM_H

#include <stdbool.h>

/* True if standard input is a terminal; else prints that --yes is needed, and the caller returns CTL_USAGE. */
bool confirm_possible(void);
/* Asks the question on the terminal. True if the answer is y or yes. */
bool confirm_ask(const char *question);

#endif
