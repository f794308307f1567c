/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mounts through which a cluster's member has its files: their clients of CephFS, which are evicted when its machine dies, and whether a
 * file system has given this machine up. Functions wait for the file system.
 */
#ifndef RN_DAEMON_CLUSTER_MOUNTS_H
#define RN_DAEMON_CLUSTER_MOUNTS_H

#include <stdint.h>

#include "conf/settings.h"
#include "daemon/exports/export_set.h"
#include "lib/log.h"

#define CLUSTER_MOUNTS_MAX 64u

struct cluster_mounts {
	unsigned n;
	struct {
		uint64_t client; /* number of the CephFS client; 0: another file system */
		uint64_t dev;
		char *path; /* a directory in the mount */
	} mount[CLUSTER_MOUNTS_MAX];
};

/*
 * Lists the mounts of the state directory, the directory of the cluster, and the exports. -ESHUTDOWN: the client of one was evicted; -ENOSPC:
 * there are too many; -EINVAL: one would come back after its eviction as if nothing had happened; or -errno. Logged.
 */
int cluster_mounts_list(const struct cfg_settings *settings, struct exports *exports,
			struct cluster_mounts *out, const struct rn_logger *log);
void cluster_mounts_free(struct cluster_mounts *m);

/* Fills in the CephFS clients of the mounts, and returns their number. */
unsigned cluster_mounts_clients(const struct cluster_mounts *m,
				uint64_t clients[CLUSTER_MOUNTS_MAX]);
/* Path of a mount whose file system has evicted this machine's client; NULL: there is none. */
const char *cluster_mounts_lost(const struct cluster_mounts *m);

#endif
