/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_DAEMON_DEADLINE_H
#define RN_DAEMON_DEADLINE_H

#include "lib/log.h"

/*
 * Ends the process successfully after so many seconds, whatever is not done by then. A thread that
 * waits for a silent file system cannot be ended, and nothing that was acknowledged depends on an
 * orderly end. The logger must live until then.
 */
void deadline_start(const struct rn_logger *log, unsigned seconds);

#endif
