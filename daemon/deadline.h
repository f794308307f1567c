/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_DAEMON_DEADLINE_H
#define RN_DAEMON_DEADLINE_H

#include "lib/log.h"

/*
 * The process ends successfully in so many seconds, whatever is not done by then: a thread that
 * waits for a file system that does not answer cannot be ended, and nothing that was acknowledged
 * depends on an orderly end. The logger lives until then.
 */
void deadline_start(const struct rn_logger *log, unsigned seconds);

#endif
