/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors and threads of the process, by /proc. 0: /proc does not tell. */
#ifndef RN_DAEMON_PROCESS_H
#define RN_DAEMON_PROCESS_H

#include <stdint.h>

uint64_t process_fds(void);
uint64_t process_threads(void);

#endif
