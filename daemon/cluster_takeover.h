/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of a cluster's member when a machine has died: that machine's client of the file system has the state directory locked, or what
 * it had in memory keeps others waiting. Other members see to that if there are any. If all machines have died at once, nobody else does.
 */
#ifndef RN_DAEMON_CLUSTER_TAKEOVER_H
#define RN_DAEMON_CLUSTER_TAKEOVER_H

#include "conf/settings.h"
#include "lib/log.h"

/*
 * Returns when the state directory can be used, or it is clear that it cannot. If it is locked, or does not answer, members whose heartbeats stand
 * still are declared dead, and their clients evicted once all that live enforce the grace. Logged.
 * All of it is done in other processes: the store may have threads, and the keeper (daemon/keeper.h) is to be started before there are any.
 */
void cluster_await_state_dir(const struct cfg_settings *settings, const struct rn_logger *log);

#endif
