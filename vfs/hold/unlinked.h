/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an object that a client holds something of, a share or a delegation, and that loses its last link: the client may go on
 * using it, and come back to it by its handle, until it has given up the last of that. A delegation is returned by COMPOUNDs that
 * begin with the handle; the client could never give it up otherwise. Only then is the space free.
 *
 * States of the file's nodes (enum vfs_link_state), and what leads from one to the next:
 *
 *      VFS_LINKED         -> VFS_UNLINKED_OPEN  statx shows no link, somebody holds something:
 *                                               vfs_unlinked_link_lost pins the inode
 *                         -> VFS_GONE           statx shows no link, and nobody does
 *      (no node)          -> VFS_UNLINKED_OPEN  a handle leads to an inode without a link that
 *                                               somebody holds something of: vfs_unlinked_found
 *      VFS_UNLINKED_OPEN  -> VFS_GONE           a reference is put, and the last of it is given up:
 *                                               vfs_file_keeps_inode
 *
 * A node in VFS_GONE is out of the cache and is freed with its last reference; its handle is
 * -ESTALE, and its uncommitted data needs no flush. A node never returns to an earlier state: a
 * file without a link never gets one again.
 *
 * The inode lives as long as anything holds a descriptor of it:
 *
 *      a node in the cache       its path_fd
 *      no node, held, a link     the file, which has inherited path_fd from the last node that was
 *                                freed (vfs_unlinked_leave_fd): a precaution, as a local process
 *                                may take the link away unseen. It has a part of the budget of
 *                                descriptors; when that is used up, the link alone keeps the inode
 *      held, and no link         the file's own descriptor, from the moment that anybody has seen
 *                                it. Not bounded by the budget, only by what the process has
 *
 * The file's descriptor goes with its last share, delegation and lock (vfs_file_release).
 *
 * Removal through this server looks the victim up first, while the name still leads to it, and asks
 * statx after it (vfs_named_file_begin, vfs_node_drop_removed): so the pin is there before the reply.
 */
#ifndef RN_VFS_UNLINKED_H
#define RN_VFS_UNLINKED_H

#include <stdbool.h>
#include <stdint.h>

#include "vfs/node/hooks.h"
#include "vfs/node/node.h"

/*
 * The state for a new node of an inode with that number of links. VFS_GONE: nobody holds anything of it.
 */
enum vfs_link_state vfs_unlinked_found(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh,
				       uint32_t nlink);
/* True if anybody holds something of the file of a name that is to be removed, so that it needs a node. */
bool vfs_unlinked_needs_node(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* Called when a share of the node's file has been made; the last link may have gone before. */
void vfs_unlinked_share_made(struct vfs_node *n);

#endif
