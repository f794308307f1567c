/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_NFS4_DATA_DATA_STATUS_H
#define RN_NFS4_DATA_DATA_STATUS_H

#include "nfs4/compound.h"

/* Status of a data operation whose vfs/ call returned rc, 0 or -errno. The loop replaces it if the
 * operation may not return it (nfs4_status_for). */
int nfs4_data_status(const struct nfs4_compound *c, int rc);

#endif
