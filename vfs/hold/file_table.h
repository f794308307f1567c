/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of files that clients have state on; vfs/file_state.h has the other calls. */
#ifndef RN_VFS_FILE_TABLE_H
#define RN_VFS_FILE_TABLE_H

#include "vfs/hold/file.h"

struct vfs_files *vfs_files_new(void);	      /* NULL: no memory */
void vfs_files_free(struct vfs_files *files); /* NULL is allowed */

/* A reference to the node's file if it is in the table, or NULL. */
struct vfs_file *vfs_file_find(const struct vfs_node *n);
/* The same of the file with that handle, on that device. */
struct vfs_file *vfs_file_find_fh(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* vfs_file_is_kept() of the file with that handle, on that device. */
bool vfs_file_keeps_inode(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* True if a client has the file with that handle, on that device, open to write, or a delegation to write it. */
bool vfs_file_is_open_to_write(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* A sweep meets each file that is in the table all the time. */
struct vfs_file_sweep {
	struct vfs *vfs;
	uint64_t number;
	unsigned at; /* bucket of all shards */
};
void vfs_file_sweep_begin(struct vfs_file_sweep *s, struct vfs *vfs);
/* The next file, with a reference; NULL: that was all. */
struct vfs_file *vfs_file_sweep_next(struct vfs_file_sweep *s);
/* True if a client may hold a share or a delegation of any file. */
bool vfs_file_any_kept(struct vfs *vfs);

#endif
