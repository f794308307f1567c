/* SPDX-License-Identifier: BSD-2-Clause */
/* State shared by the procedures of both programs: settings, and the list of mounts. */
#ifndef RN_NFS3_NFS3_STATE_H
#define RN_NFS3_NFS3_STATE_H

#include "lib/log.h"
#include "nfs3/mount_list.h"
#include "nfs3/nfs3_server.h"

struct nfs3_server {
	struct nfs3_config cfg;
	struct mnt_list mounts; /* rows for DUMP, added by MNT */
	struct nlm_owners *nlm;
	struct nlm_grants *grants;
	struct rn_log_hosts mount_log; /* limit of messages about MNT */
};

#endif
