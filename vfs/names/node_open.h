/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes out of descriptors and names, and what every operation asks of a node. */
#ifndef RN_VFS_NODE_OPEN_H
#define RN_VFS_NODE_OPEN_H

#include <sys/stat.h>
#include <sys/sysmacros.h>

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

/* One number for the device that a file is on. */
static inline uint64_t vfs_device_of(const struct statx *sx)
{
	return (uint64_t)sx->stx_dev_major << 32 | sx->stx_dev_minor;
}

static inline uint64_t vfs_device_number(dev_t dev)
{
	return (uint64_t)major(dev) << 32 | minor(dev);
}

/* statx of the node: 0, or -ESTALE when its last link is gone and nobody has it open (the node is
 * doomed then). */
int vfs_node_stat(struct vfs_node *n, struct statx *out);

/* What -ENOENT from an operation within dir means: -ESTALE if the directory itself was removed. */
int vfs_dir_error(struct vfs_node *dir, int error);

/* Dooms the node if its last link is gone, and puts it; NULL is allowed. For the victims of remove
 * and rename. */
void vfs_node_drop_removed(struct vfs_node *n);

/* clock: vfs_change_clock(mnt->changes), from before the statx. */
void vfs_attr_from_statx(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			 const struct statx *sx, int64_t clock, struct vfs_attr *out);

#endif
