/* SPDX-License-Identifier: BSD-2-Clause */
/* What the procedures of the two programs share: settings, and the list of mounts. */
#ifndef RN_NFS3_SERVER_PRIVATE_H
#define RN_NFS3_SERVER_PRIVATE_H

#include "lib/log_limit.h"
#include "nfs3/mount_list.h"
#include "nfs3/nfs3_server.h"

struct nfs3_server {
	struct nfs3_config cfg;
	struct mnt_list mounts;
	struct nlm_owners *nlm;
	struct rn_log_limit refusals; /* of MNT */
};

#endif
