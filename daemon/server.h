/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole server: starts the parts in the order in which they need each other, and stops them in
 * the reverse order. The process holds one; this is where the daemon's mutable state hangs
 * together.
 */
#ifndef RN_DAEMON_SERVER_H
#define RN_DAEMON_SERVER_H

#include "conf/settings.h"
#include "lib/log.h"

struct server;

/* 0 or -errno; why is in the log. settings and log must outlive the server. */
int server_start(const struct cfg_settings *settings, const struct rn_logger *log,
		 struct server **out);
/* Takes no new calls, answers those in flight, and frees everything. */
void server_stop(struct server *s);

/* Reads exports again; 0 or -errno (the old ones stay in force). */
int server_reload(struct server *s);
/* About once a second. May wait for a file system. */
void server_tick(struct server *s);
/* Threads do so from now on. 0 or -errno. */
int server_tick_by_itself(struct server *s);
/* The clock of NFSv4's leases goes on by so much; for tests. */
void server_skip_lease_time(struct server *s, unsigned seconds);
void server_log_counters(struct server *s, enum rn_level level);

#endif
