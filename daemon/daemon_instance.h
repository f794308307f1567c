/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One daemon for each state directory, and how another process asks it to reload.
 *
 * The daemon holds a lock (flock(2)) on the file `instance` of its state directory as long as it
 * lives. The file has its process id, the number of reloads begun and ended, and the last verdict,
 * so that `ringnfsd --reload` can send SIGHUP and wait for the answer.
 */
#ifndef RN_DAEMON_DAEMON_INSTANCE_H
#define RN_DAEMON_DAEMON_INSTANCE_H

#include <stdbool.h>

#include "lib/log.h"

struct instance;

/* Takes the state directory, which exists, for this process; waits so long for another one to give it back. 0, -EBUSY (logged with the other's
 * process id) or -errno, logged. */
int instance_take(const char *state_dir, unsigned wait_ms, const struct rn_logger *log,
		  struct instance **out);
/* The same, by the lock that the program before this one had, whose descriptor this takes, on errors too. */
int instance_adopt(int fd, const struct rn_logger *log, struct instance **out);
/* Descriptor of the lock. */
int instance_fd(const struct instance *inst);
void instance_release(struct instance *inst); /* NULL is allowed */

/* Records that a reload begins, and its verdict: 0 or the -errno for which it was refused. */
void instance_reload_begins(struct instance *inst);
void instance_reload_ended(struct instance *inst, int verdict);

/*
 * In another process: sends SIGHUP to the daemon of this state directory and waits up to `seconds`
 * until a reload that began afterwards has ended. 0, or -errno with a message on standard error:
 * -ESRCH there is no daemon, -EINVAL the reload was refused, -ETIME no answer.
 */
int instance_ask_reload(const char *state_dir, unsigned seconds);

#endif
