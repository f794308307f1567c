/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls without which nothing is served rightly. Newer ones have a slower way, and are missed where they are used. */
#ifndef RN_DAEMON_SYSTEM_CALLS_H
#define RN_DAEMON_SYSTEM_CALLS_H

#include "lib/log.h"

/* 0, or -ENOSYS: the log names each that the kernel lacks or a seccomp filter refuses. */
int system_calls_check(const struct rn_logger *log);

#endif
