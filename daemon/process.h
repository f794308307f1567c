/* SPDX-License-Identifier: BSD-2-Clause */
/* The process: its descriptors and threads, its end within a time, the system calls that it needs. */
#ifndef RN_DAEMON_PROCESS_H
#define RN_DAEMON_PROCESS_H

#include <stdint.h>

#include "lib/log.h"

/* Descriptors and threads, by /proc. 0: /proc does not tell. */
uint64_t process_fds(void);
uint64_t process_threads(void);

/*
 * Ends the process with that status after so many seconds, whatever is not done by then. A thread that
 * waits for a silent file system cannot be ended, and nothing that was acknowledged depends on an
 * orderly end. The logger must live until then.
 */
void deadline_start(const struct rn_logger *log, unsigned seconds, int status);

/* Ends the process with that status, without what libraries do at an exit: their finalizers take away what a thread that is still in one uses. */
void process_leave(int status);

/* System calls without which nothing is served rightly. Newer ones have a slower way, and are missed where they are used. */

/* 0, or -ENOSYS: the log names each that the kernel lacks or a seccomp filter refuses. */
int system_calls_check(const struct rn_logger *log);

#endif
