/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes' questions to vfs/hold/, a part above them, which defines these functions: who has the file open (vfs/hold/unlinked.h).
 * The two parts need each other: what clients hold of a file keeps its nodes, and a node that is closed asks what they hold.
 */
#ifndef RN_VFS_HOOKS_H
#define RN_VFS_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct vfs;
struct vfs_fh;
struct vfs_node;

/* statx has shown that the last link is gone. False: nobody has the file open. */
bool vfs_unlinked_link_lost(struct vfs_node *n);
/* The node is about to be freed: true if path_fd lives on, as its open file's. */
bool vfs_unlinked_leave_fd(struct vfs_node *n);
/* True if a client holds a share or a delegation of the file with that handle, on that device. Asked under no lock when a
 * reference of a node in state VFS_UNLINKED_OPEN is put, as the next. */
bool vfs_file_keeps_inode(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* True if a client has the file with that handle, on that device, open to write, or a delegation to write it. */
bool vfs_file_is_open_to_write(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);

#endif
