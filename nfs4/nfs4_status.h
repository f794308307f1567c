/* SPDX-License-Identifier: BSD-2-Clause */
/* Translates -errno of vfs/ into nfsstat4. */
#ifndef RN_NFS4_NFS4_STATUS_H
#define RN_NFS4_NFS4_STATUS_H

#include <stdbool.h>

#include "nfs4/nfs4_proto.h"

/* Statuses of steps that have done nothing, and are made again while nfs4_try_again() says so. NFS4ERR_DELAY to the client
 * (nfs4_status_for). */
#define NFS4_HELD (-4) /* another client's delegation is in the way (-RN_EDELEG) */
#define NFS4_YIELDED                                                                               \
	(-5) /* a client in the way has given way, or the state that was found has gone meanwhile */

/* An errno by which a file system may say that it has given this machine up: nfs4_doubt() makes it NFS4ERR_DELAY or NFS4ERR_SERVERFAULT. */
#define NFS4_CUT_OFF (-7)

/* True if the same may succeed later, though the caller does nothing. */
static inline bool nfs4_is_later(int status)
{
	return status == NFS4ERR_DELAY || status == NFS4_HELD || status == NFS4_YIELDED;
}

/* rc is 0 or -errno. Minor version 0 has fewer status codes than 1 and 2. */
int nfs4_status(uint32_t minor, int rc);

struct nfs4_op;
/* Returns status if op may return it (op->errors), else the nearest that it may. op NULL: an
 * illegal operation number. */
int nfs4_status_for(const struct nfs4_op *op, uint32_t minor, int status);

#endif
