/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of RQUOTA, which tells the quota(1) of a client what users may store. It has no RFC:
 * version 1 is rpcsvc/rquota.x of the C libraries, version 2 adds groups.
 */
#ifndef RN_NFS3_RQUOTA_H
#define RN_NFS3_RQUOTA_H

#include "nfs3/nfs3_server.h"
#include "rpc/xdr_out.h"
#include "vfs/space.h"

#define RQUOTA_VERSION 1u
#define RQUOTA_EXT_VERSION 2u

/* Procedures of versions 1 and 2. */
enum rquota_procedure {
	RQUOTAPROC_NULL = 0,
	RQUOTAPROC_GETQUOTA = 1,
	RQUOTAPROC_GETACTIVEQUOTA = 2,
	RQUOTAPROC_SETQUOTA = 3,
	RQUOTAPROC_SETACTIVEQUOTA = 4,
	RQUOTAPROC_COUNT = 5,
};

#define RQUOTA_USER 0u
#define RQUOTA_GROUP 1u

enum gqr_status {
	RQUOTA_OK = 1,
	RQUOTA_NOQUOTA = 2, /* no quotas there, or no such path */
	RQUOTA_EPERM = 3,
};

#define RQUOTA_PATH_MAX 1024u /* RQ_PATHLEN */
#define RQUOTA_SIZE 40u	      /* bytes of an rquota */

/* Encodes struct rquota. now: seconds since 1970. Limits and use have 32 bits each, so that the unit of blocks grows with
 * the largest of them. */
void rquota_put(struct xdr_out *x, const struct vfs_quota_row *row, int64_t now);

#endif
