/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole server: starts the parts in the order of their dependencies, and stops them in the
 * reverse order. The process has one, which owns the daemon's mutable state. */
#ifndef RN_DAEMON_DAEMON_SERVER_H
#define RN_DAEMON_DAEMON_SERVER_H

#include <stdbool.h>

#include "conf/settings.h"
#include "daemon/logs.h"
#include "lib/image.h"

struct server;

/* 0 or -errno; the reason is in the log. -ERESTART: the state that a member has left when it was moved cannot be used, and is dropped: the program is to be
 * run anew, for an ordinary start. settings and logs must outlive the server. image: of the program before this one, or NULL; what the
 * server takes out of it is not there any more, also if it fails. */
int server_start(const struct cfg_settings *settings, struct logs *logs, struct image_reader *image,
		 struct server **out);
/*
 * Takes no new calls, waits for those under way, for a second at most, and writes the state into w, for hand_over_run(). Nothing goes on after
 * that: if the next program does not run, the server is to be stopped. NULL, or why the state cannot be handed over: w is of no use then.
 */
const char *server_save(struct server *s, struct image_writer *w);
/* Leaves the state to the next run of a cluster's member that is moved, as server_save() does; then server_stop(). Does nothing for others. The log says
 * whether the state goes along. */
void server_leave_state(struct server *s);
/* Counts a restart that was not begun, for those who have asked for it. */
void server_restart_refused(struct server *s);
/* Writes what an ordinary start may have of the program before: the listening sockets, which stay open over server_stop(). */
void server_save_listeners(struct server *s, const char *why, struct image_writer *w);
/* Takes no new calls, answers those in flight, and frees everything. False: a thread is still in a library, for a service that does not
 * answer. The process must end by process_leave(). */
bool server_stop(struct server *s);

/* Reads exports again; 0 or -errno (the old ones stay in force). */
int server_reload(struct server *s);
/* Work for the main thread: readable if there is some. */
int server_tasks_fd(const struct server *s);
/* Does one piece of it. May wait for file systems, and reload the exports. */
void server_run_task(struct server *s);
/* Called about once a second. May wait for a file system. */
void server_tick(struct server *s);
/* Has threads call server_tick, follow mounts, and tell the service manager how the server does, from now on.
 * 0 or -errno. */
int server_tick_by_itself(struct server *s);
/* Moves the clocks of NFSv4's leases and of Kerberos contexts forward by so much; for tests. */
void server_skip_lease_time(struct server *s, unsigned seconds);
void server_log_counters(struct server *s, enum rn_level level);

#endif
