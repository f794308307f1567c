/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an open file that loses its last link: a client may go on reading and writing it, and
 * come back to it by its handle, until the last share of it is closed. Only then is its space free.
 *
 * States of the file's nodes (enum vfs_link_state), and what leads from one to the next:
 *
 *      VFS_LINKED         -> VFS_UNLINKED_OPEN  statx shows no link, somebody has a share:
 *                                               vfs_unlinked_link_lost pins the inode
 *                         -> VFS_GONE           statx shows no link, and nobody has a share
 *      (no node)          -> VFS_UNLINKED_OPEN  a handle leads to an inode without a link that
 *                                               somebody has a share of: vfs_unlinked_found
 *      VFS_UNLINKED_OPEN  -> VFS_GONE           a reference is put, and the last share is closed:
 *                                               vfs_unlinked_still_open
 *
 * A node in VFS_GONE is out of the cache and is freed with its last reference; its handle is
 * -ESTALE, and its uncommitted data needs no flush. A node never returns to an earlier state: a
 * file without a link never gets one again.
 *
 * The inode lives as long as anything holds a descriptor of it:
 *
 *      a node in the cache       its path_fd
 *      no node, a share, a link  the file, which has inherited path_fd from the last node that was
 *                                freed (vfs_unlinked_leave_fd): a precaution, as a local process
 *                                may take the link away unseen. It has a part of the budget of
 *                                descriptors; when that is used up, the link alone keeps the inode
 *      a share, and no link      the file's own descriptor, from the moment that anybody has seen
 *                                it. Not bounded by the budget, only by what the process has
 *
 * The file's descriptor goes with its last share and lock (vfs_file_release).
 *
 * Removal through this server looks the victim up first, while the name still leads to it, and asks
 * statx after it (vfs_named_file_begin, vfs_node_drop_removed): so the pin is there before the reply.
 */
#ifndef RN_VFS_UNLINKED_H
#define RN_VFS_UNLINKED_H

#include <stdbool.h>
#include <stdint.h>

#include "vfs/node/node.h"

/* The hooks of nodes (vfs/node/hooks.h). */
bool vfs_unlinked_link_lost(struct vfs_node *n);
bool vfs_unlinked_still_open(const struct vfs_node *n);
bool vfs_unlinked_leave_fd(struct vfs_node *n);

/*
 * The state for a new node of an inode with that number of links. VFS_GONE: the file is not open.
 */
enum vfs_link_state vfs_unlinked_found(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh,
				       uint32_t nlink);
/* True if anybody has the file of a name that is to be removed open, so that it needs a node. */
bool vfs_unlinked_needs_node(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* Called when a share of the node's file has been made; the last link may have gone before. */
void vfs_unlinked_share_made(struct vfs_node *n);

#endif
