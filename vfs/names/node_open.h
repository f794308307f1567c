/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes out of descriptors and names, and what every operation asks of a node. */
#ifndef RN_VFS_NODE_OPEN_H
#define RN_VFS_NODE_OPEN_H

#include <sys/stat.h>

#include "vfs/names/name.h"
#include "vfs/node/node.h"

/* The node of an O_PATH descriptor that was opened within the export, which is consumed; attr may
 * be NULL. The thread may be root afterwards. */
int vfs_node_of_fd(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr);

/* The node of a name, for vfs_node_drop_removed: if it is in the cache, or if somebody has the file
 * open, which is pinned through its node when its last link goes; else NULL. The thread acts as the
 * caller before, and may be root afterwards. */
struct vfs_node *vfs_node_known(struct vfs_ctx *ctx, struct vfs_node *dir,
				const struct vfs_name *name);

/* Opens a name, which may be ".."; the thread acts as the caller before. */
int vfs_node_of_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		     struct vfs_node **out, struct vfs_attr *attr);

#endif
