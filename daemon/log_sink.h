/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The destination of the daemon's log: the journal, with fields for programs, if standard error leads there; else
 * standard error, one line a message, with the time and the level's name. Thread-safe: one system call a message.
 */
#ifndef RN_DAEMON_LOG_SINK_H
#define RN_DAEMON_LOG_SINK_H

#include "conf/diag.h"
#include "daemon/logs.h"
#include "lib/log.h"

void log_sink_init(struct logs *logs, enum rn_level level);

/* Logs every configuration message at its level. */
void log_diags(const struct rn_logger *log, const struct cfg_diags *diags);

#endif
