/* SPDX-License-Identifier: BSD-2-Clause */
/* A lookup by a worker that must not wait (vfs/vfs_worker.h). */
#ifndef RN_VFS_LOOKUP_PROMPT_H
#define RN_VFS_LOOKUP_PROMPT_H

#include "vfs/names/name.h"
#include "vfs/vfs.h"

/* The same as vfs_lookup_below, for a name that the kernel has in memory and whose node is cached. True: *rc is the result. False: it
 * is another name. */
bool vfs_lookup_prompt(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		       struct vfs_node **out, struct vfs_attr *attr, int *rc);

#endif
