/* SPDX-License-Identifier: BSD-2-Clause */
/* --check-config: reports what a start and a reload with these settings would report, using their
 * code. Serves and writes nothing. */
#ifndef RN_DAEMON_DAEMON_CHECK_H
#define RN_DAEMON_DAEMON_CHECK_H

#include "conf/settings.h"
#include "lib/log.h"

/* Messages go to log, the verdict to standard output. 0, or -errno if a start or a reload would
 * fail. */
int check_config(const struct cfg_settings *settings, const struct rn_logger *log);

#endif
