/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_NFS4_DATA_STATUS_H
#define RN_NFS4_DATA_STATUS_H

#include "nfs4/compound.h"

/* The status of an operation on data whose vfs/ call returned rc, 0 or -errno. The loop replaces
 * it if the operation may not answer it (nfs4_status_for). */
int nfs4_data_status(const struct nfs4_compound *c, int rc);

#endif
