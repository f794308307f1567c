/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state directory: data that must survive a restart. It has the key of file handles: losing it
 * makes every client's handles stale, so it is written once, durably, readable by root alone, and
 * never logged.
 */
#ifndef RN_DAEMON_STATE_DIR_H
#define RN_DAEMON_STATE_DIR_H

#include <stdint.h>

#include "lib/log.h"

#define STATE_SECRET_SIZE 16

/*
 * Makes the directory (mode 0700) if it does not exist, in a parent that does. Refuses one that
 * others could write to: they could put their own key there, and so make handles for any file. 0 or
 * -errno, logged.
 */
int state_dir_make(const char *dir, const struct rn_logger *log);
/* Checks whether state_dir_make() would accept the directory; makes nothing. */
int state_dir_check(const char *dir, const struct rn_logger *log);

/* Reads the key of file handles, or makes it if there is none. 0 or -errno, logged. maker: a word in the names of files, which another
 * process that makes a key in that directory at the same time does not have; all then get the same key. */
int state_dir_secret(const char *dir, const char *maker, uint8_t secret[STATE_SECRET_SIZE],
		     const struct rn_logger *log);

#endif
