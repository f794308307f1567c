/* SPDX-License-Identifier: BSD-2-Clause */
/* What the machine allows: descriptors, locked memory, memory, processors. */
#ifndef RN_DAEMON_LIMITS_H
#define RN_DAEMON_LIMITS_H

#include <stddef.h>

#include "conf/settings.h"
#include "lib/log.h"

struct limits {
	size_t memory_max;    /* bytes: payload, connections, reply cache */
	unsigned cache_fds;   /* descriptors for the node cache */
	unsigned connections; /* descriptors for TCP connections */
	unsigned threads;     /* workers */
	unsigned loops;	      /* event threads */
};

/* Raises RLIMIT_NOFILE and RLIMIT_MEMLOCK as far as allowed and works the settings' zeroes out.
 * Logs what falls short. */
void limits_apply(const struct cfg_settings *s, const struct rn_logger *log, struct limits *out);

/* Says so if locked memory stays limited: for whoever serves RDMA. */
void limits_warn_memlock(const struct rn_logger *log);

#endif
