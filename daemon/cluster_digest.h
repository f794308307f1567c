/* SPDX-License-Identifier: BSD-2-Clause */
/* Digests of what members of a cluster must have in common. */
#ifndef RN_DAEMON_CLUSTER_DIGEST_H
#define RN_DAEMON_CLUSTER_DIGEST_H

#include "cluster/cluster_object.h"
#include "conf/settings.h"
#include "daemon/exports/export_set.h"
#include "daemon/state_dir.h"

/* Nobody finds the key by its digest, which all can read who may read the cluster's directory. */
void cluster_digest_key(const uint8_t key[STATE_SECRET_SIZE], uint8_t out[CLUSTER_DIGEST_SIZE]);
/* Of the table in force: paths, clients and options, in their order; not of files, lines and comments. 0 or -ENOMEM. */
int cluster_digest_exports(struct exports *exports, uint8_t out[CLUSTER_DIGEST_SIZE]);
/* Of the settings that CLUSTER_DIGEST_SETTINGS names. */
void cluster_digest_settings(const struct cfg_settings *set, uint8_t out[CLUSTER_DIGEST_SIZE]);

#define CLUSTER_DIGEST_SETTINGS                                                                    \
	"cluster.name, nfs2.enabled, nfs3.enabled, nfs4.minor_min, nfs4.minor_max, "               \
	"nfs4.lease_time, "                                                                        \
	"nfs4.grace_time, nlm.statd, vfs.handle_mac"

#endif
