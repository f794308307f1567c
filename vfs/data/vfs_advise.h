/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a pattern of access that another caller has advised (vfs/advise.h). */
#ifndef RN_VFS_DATA_VFS_ADVISE_H
#define RN_VFS_DATA_VFS_ADVISE_H

#include "vfs/node/node.h"

/* Gives the node's descriptors the usual pattern of access. Does not wait. */
void vfs_advise_no_more(struct vfs_node *n);

/* Before ctx's caller reads. */
static inline void vfs_advise_reads(const struct vfs_ctx *ctx, struct vfs_node *n)
{
	const uint64_t by = atomic_load_explicit(&n->advised_by, memory_order_relaxed);

	if (by != 0 && by != ctx->caller)
		vfs_advise_no_more(n);
}

#endif
