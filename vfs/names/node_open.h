/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes out of descriptors and names, and what every operation asks of a node. */
#ifndef RN_VFS_NODE_OPEN_H
#define RN_VFS_NODE_OPEN_H

#include <sys/stat.h>

#include "vfs/deleg.h"
#include "vfs/io.h"
#include "vfs/names/name.h"
#include "vfs/node/node.h"

/* The node of an O_PATH descriptor that was opened within the export, which is consumed; attr may
 * be NULL. The thread may be root afterwards. */
int vfs_node_of_fd(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr);
/* The same for an object that the caller has just made: its handle counts even if it has lost its name already. */
int vfs_node_of_made(struct vfs_ctx *ctx, int fd, struct vfs_node **out);

/* The file of a name that is about to be removed, replaced or moved. */
struct vfs_named_file {
	/* If it is in the cache, or if somebody has the file open, which is pinned through its node
	 * when its last link goes; else NULL. */
	struct vfs_node *node;
	struct vfs_file_change change;
};
/* Begins the change, if there is such a name: 0, -RN_EDELEG, or the error for a caller who may not
 * change the directory; -RN_ESHARE: the name is to go (goes), and a share keeps it. The thread acts as the caller before, and may be root
 * afterwards. */
int vfs_named_file_begin(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
			 bool goes, struct vfs_named_file *out);
/* Ends what has begun; does nothing more. removed: the name does not lead to the file any more. */
void vfs_named_file_end(struct vfs_named_file *f, bool removed);

/* Opens a name, which may be ".."; the thread acts as the caller before. */
int vfs_node_of_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		     struct vfs_node **out, struct vfs_attr *attr);

#endif
