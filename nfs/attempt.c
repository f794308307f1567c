/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/attempt.h"

#include <errno.h>

#include "lib/error.h"

/* Attempts of one call. Each but the last has a holder give way, or begin to; the limit is far above
 * the number of clients, lest new ones in the way keep a call for ever. */
#define ATTEMPTS_MOST 100000u

int nfs_attempt(int (*attempt)(void *arg), void *arg)
{
	unsigned left = ATTEMPTS_MOST;
	int rc = NFS_TRY_AGAIN;

	while (rc == NFS_TRY_AGAIN && left-- > 0)
		rc = attempt(arg);
	return rc;
}

int nfs_conflict(struct vfs_conflict *c, int rc)
{
	switch (vfs_conflict_yield(c)) {
	case VFS_YIELDED:
	case VFS_BEGUN:
		return NFS_TRY_AGAIN;
	case VFS_HOLDS:
		return rc;
	default:
		return -RN_EYIELDS;
	}
}

bool nfs_await(struct rpc_request *req, int rc, uint64_t patience_ns)
{
	switch (-rc) {
	case RN_EUNNAMED:
		return rpc_try_later(req, RN_WAIT_NAME, patience_ns);
	case RN_EDELEG:
	case RN_EYIELDS:
		return rpc_try_later(req, RN_WAIT_STATE, patience_ns);
	default:
		return false;
	}
}
