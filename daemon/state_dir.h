/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state directory: what must be the same after a restart. Today that is the key of file
 * handles; losing it makes every client's handles stale, so it is written once, durably, readable
 * by root alone, and never logged.
 */
#ifndef RN_DAEMON_STATE_DIR_H
#define RN_DAEMON_STATE_DIR_H

#include <stdint.h>

#include "lib/log.h"

#define STATE_SECRET_SIZE 16

/* Makes the directory (mode 0700) and the secret if they are not there. 0 or -errno, logged. */
int state_dir_secret(const char *dir, uint8_t secret[STATE_SECRET_SIZE],
		     const struct rn_logger *log);

#endif
