/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the machine: descriptors, locked memory, memory, processors. */
#ifndef RN_DAEMON_LIMITS_H
#define RN_DAEMON_LIMITS_H

#include <stddef.h>

#include "conf/settings.h"
#include "lib/log.h"

struct limits {
	size_t memory_max; /* bytes: payload, connections, reply cache */
	unsigned files;	   /* descriptors that the process may have */
	unsigned threads;  /* workers */
	unsigned loops;	   /* event threads */
	unsigned helpers;  /* threads that look ahead in listings */
	unsigned ram_mib;  /* of the machine */

	/* set by limits_divide */
	unsigned more_workers;	 /* workers that may be started on demand */
	unsigned spare;		 /* for exports that reloads, mounts and submounts open */
	unsigned connections;	 /* descriptors for TCP connections */
	unsigned leases;	 /* descriptors for the kernel's leases of delegated files */
	unsigned cache_fds;	 /* descriptors that the node cache may keep */
	unsigned cache_fds_most; /* and have, with what requests hold */
};

size_t limits_ram(void);     /* bytes of the machine's memory */
unsigned limits_loops(void); /* event threads */

/* Raises RLIMIT_NOFILE and RLIMIT_MEMLOCK as far as allowed and computes settings that are 0. Logs
 * limits that are too low; -EMFILE: too few descriptors to serve anything. */
int limits_apply(const struct cfg_settings *s, const struct rn_logger *log, struct limits *out);

/* Shares the descriptors out that are left when all but the transports has started, so that neither
 * files nor connections can take the others'. -EMFILE as above. */
int limits_divide(const struct cfg_settings *s, const struct rn_logger *log, struct limits *l);

/* Pipes for READs over TCP (lib/pipe.h): no more than a small part of the memory and of the
 * descriptors. */
unsigned limits_pipes(const struct limits *l);

/* Warns if locked memory stays limited; called where RDMA is served. */
void limits_warn_memlock(const struct rn_logger *log);

/*
 * Memory that the settings ask for. Most of it is taken out of the budget at the start, so a budget that
 * is too small is known before. The same is asked at the start and by --check-config.
 */

/* The smallest server.memory_max that does for the settings, in bytes: a whole number of MiB. */
size_t memory_need_least(const struct cfg_settings *s);
/* The budget in force: as set; else a quarter of ram, or as much as is needed up to a half of it. */
size_t memory_need_budget(const struct cfg_settings *s, size_t ram);
/* 0, or -EINVAL with a message that says what would be right. */
int memory_need_check(const struct cfg_settings *s, size_t ram, struct cfg_diags *diags);

#endif
