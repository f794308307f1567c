/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/node/hooks.h"

uint32_t vfs_node_type(const struct vfs_node *n)
{
	return n->type;
}

bool vfs_node_is_root(const struct vfs_node *n)
{
	const struct vfs_fh *root = &n->exp->root_fh;

	return n->mnt == n->exp->root_mnt && n->fh.len == root->len &&
	       memcmp(n->fh.data, root->data, root->len) == 0;
}

const struct vfs_fh *vfs_node_fh(const struct vfs_node *n)
{
	return &n->fh;
}

uint64_t vfs_mounted_on(const struct vfs_node *n, uint64_t fileid)
{
	const struct vfs_fh *root = &n->mnt->root_fh;

	if (n->mnt->covered_ino == 0 || n->fh.len != root->len ||
	    memcmp(n->fh.data, root->data, root->len) != 0)
		return fileid;
	return n->mnt->covered_ino;
}

int vfs_node_stat(struct vfs_node *n, struct statx *out)
{
	if (statx(n->path_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, out) != 0)
		return -errno;
	if (out->stx_nlink > 0 || n->vfs->hooks->link_lost(n))
		return 0;
	vfs_node_doom(n);
	return -ESTALE;
}

void vfs_node_changed(struct vfs_node *n)
{
	vfs_change_made(vfs_changes_of(n->mnt, n->type), n->dev, n->ino, 0);
}

int vfs_dir_error(struct vfs_node *dir, int error)
{
	struct statx sx;

	return error == -ENOENT && vfs_node_stat(dir, &sx) == -ESTALE ? -ESTALE : error;
}

void vfs_node_drop_removed(struct vfs_node *n)
{
	struct statx sx;

	if (n)
		vfs_node_stat(n, &sx);
	vfs_node_put(n);
}
