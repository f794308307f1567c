/* SPDX-License-Identifier: BSD-2-Clause */
/* From -errno of vfs/ to nfsstat4. */
#ifndef RN_NFS4_STATUS_H
#define RN_NFS4_STATUS_H

#include "nfs4/proto.h"

/* rc is 0 or -errno. Minor version 0 does not know all that 1 and 2 do. */
int nfs4_status(uint32_t minor, int rc);

/*
 * The status that an operation may answer (RFC 7530 section 13.2, RFC 8881 section 15.2, RFC 7862
 * section 11.2): status itself, or the nearest one of those.
 */
int nfs4_status_for(uint32_t opnum, uint32_t minor, int status);

#endif
