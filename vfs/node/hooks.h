/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes' questions to those who stand above them: who has the file open (vfs/hold/unlinked.h), and
 * who brings uncommitted data to disk (vfs/node/uncommitted.h). One table for each vfs, from vfs_new on.
 */
#ifndef RN_VFS_HOOKS_H
#define RN_VFS_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct vfs;
struct vfs_fh;
struct vfs_node;

struct vfs_node_hooks {
	/* statx has shown that the last link is gone. False: nobody has the file open. */
	bool (*link_lost)(struct vfs_node *n);
	/* A reference of a node in state VFS_UNLINKED_OPEN is put: has anybody the file open? Asked under no lock, as the next. */
	bool (*still_open)(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
	/* The node is about to be freed: true if path_fd lives on, as its open file's. */
	bool (*leave_fd)(struct vfs_node *n);
	/* Has a client the file open to write, or a delegation to do so? */
	bool (*open_to_write)(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
	/* Flushes the node. False: a thread does so, and puts the caller's reference afterwards;
	 * true: it is done, and the reference is still the caller's. No lock is held. */
	bool (*flush)(struct vfs_node *n);
};

#endif
