/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches the identity that the next step of an operation runs as: its caller, or root. */
#ifndef RN_VFS_ACTING_H
#define RN_VFS_ACTING_H

#include "vfs/vfs.h"
#include "vfs/worker/identity.h"
#include "vfs/worker/worker_state.h"

/* 0 or -errno. On a thread whose identity cannot change the fiber moves, unless the caller is root. Holds until the next wait. */
int vfs_act_as_caller(struct vfs_ctx *ctx);

static inline int vfs_act_as_root(struct vfs_ctx *ctx)
{
	return vfs_identity_root(&vfs_worker_of(ctx)->identity);
}

#endif
