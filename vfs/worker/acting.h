/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches the identity that the next step of an operation runs as: its caller, or root. */
#ifndef RN_VFS_ACTING_H
#define RN_VFS_ACTING_H

#include "vfs/vfs.h"
#include "vfs/worker/identity.h"
#include "vfs/worker/prompt.h"
#include "vfs/worker/worker_state.h"

static inline int vfs_act_as_caller(struct vfs_ctx *ctx)
{
	if (ctx->w->prompt)
		return vfs_prompt_act_as(ctx->w, &ctx->cred);
	return vfs_identity_become(&ctx->w->identity, &ctx->cred);
}

static inline int vfs_act_as_root(struct vfs_ctx *ctx)
{
	return vfs_identity_root(&ctx->w->identity);
}

#endif
