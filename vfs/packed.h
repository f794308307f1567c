/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File handles in the 32 bytes of NFSv2 (RFC 1094 section 2.3.3): the packed form. A node has one
 * such handle beside the other form's, and neither is accepted in the place of the other.
 */
#ifndef RN_VFS_PACKED_H
#define RN_VFS_PACKED_H

#include "vfs/vfs.h"

#define VFS_PACKED_FH 32u

struct vfs_packed_fh {
	uint8_t data[VFS_PACKED_FH];
};

/* Like vfs_fh_export_id: nothing is trusted before vfs_packed_open. 0 or -EBADF. */
int vfs_packed_export_id(struct vfs *vfs, const struct vfs_packed_fh *fh, uint32_t *id);
/* Like vfs_fh_open: 0, -EBADF, -ESTALE or another -errno. */
int vfs_packed_open(struct vfs_ctx *ctx, const struct vfs_packed_fh *fh, struct vfs_node **out);
/* The packed handle of a node. -EOPNOTSUPP: the kernel's handles of its file system are too long. */
int vfs_packed_of(const struct vfs_node *n, struct vfs_packed_fh *out);
/* True if the files of the export's own file system have packed handles. */
bool vfs_export_packs(const struct vfs_export *exp);

#endif
