/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/conflict.h"

#include "lib/error.h"

int nfs_conflict(struct vfs_conflict *c, int rc)
{
	switch (vfs_conflict_yield(c)) {
	case VFS_YIELDED:
	case VFS_BEGUN:
		return -RN_EYIELDED;
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
	case RN_EYIELDED:
		return rpc_has_time(req);
	default:
		return false;
	}
}
