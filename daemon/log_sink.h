/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The destination of the daemon's log: standard error, one line a message. Under systemd each line
 * starts with the journal's <level> prefix; else with the time and the level's name. Thread-safe:
 * one write(2) a line.
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
