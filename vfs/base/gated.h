/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files behind a gate (vfs/hold/open_gate.h), counted by slots of their handles: to open one of
 * them waits for a thread of this server. For callers that must not wait. Files that share a slot
 * with one look like it.
 */
#ifndef RN_VFS_GATED_H
#define RN_VFS_GATED_H

#include "vfs/base/instance.h"
#include "vfs/fs/handle.h"

/* By the part of the handle that is the same in all exports. */
static inline _Atomic uint32_t *vfs_gated_slot(struct vfs *vfs, const uint8_t *part, uint32_t len)
{
	return &vfs->gated[vfs_handle_part_hash(part, len) % VFS_GATED_SLOTS];
}

static inline bool vfs_is_gated(struct vfs *vfs, const struct vfs_fh *fh)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(fh, &len);

	return atomic_load(vfs_gated_slot(vfs, part, len)) != 0;
}

#endif
