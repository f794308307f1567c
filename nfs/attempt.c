/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/attempt.h"

#include <errno.h>

int nfs_attempt(int (*attempt)(void *arg), void *arg, unsigned most)
{
	int rc = NFS_TRY_AGAIN;

	while (rc == NFS_TRY_AGAIN && most-- > 0)
		rc = attempt(arg);
	return rc;
}

int nfs_conflict(struct vfs_conflict *c, int rc)
{
	switch (vfs_conflict_yield(c)) {
	case VFS_YIELDED:
		return NFS_TRY_AGAIN;
	case VFS_HOLDS:
		return rc;
	default:
		return -EAGAIN;
	}
}
