/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes: out of what statx shows, permissions that follow from them, and setting them. */
#ifndef RN_VFS_ATTR_H
#define RN_VFS_ATTR_H

#include <stdint.h>

#include "vfs/io.h"
#include "vfs/node/node.h"
#include "vfs/types.h"
#include "vfs/vfs.h"

struct statx;
struct vfs_look;
struct vfs_mount;

/* clock: vfs_change_clock(vfs_changes_of()), from before the statx. */
void vfs_attr_from_statx(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			 const struct statx *sx, int64_t clock, struct vfs_attr *out);
/* Like vfs_attr_from_statx(), with what was known before the statx (vfs/fs/change.h). */
void vfs_attr_from_look(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			const struct statx *sx, const struct vfs_look *look, struct vfs_attr *out);

/*
 * Permission checks of operations, beside vfs_may_read and vfs_may_write (vfs/vfs.h). The thread
 * may be the caller afterwards, or root: switch to what the next step needs.
 */

/* vfs_may_read and vfs_may_write for an operation on data, which may be on a file that was opened
 * before. vfs_io_may_read sets io->attr if it looks at them. */
int vfs_io_may_read(struct vfs_io *io);
int vfs_io_may_write(const struct vfs_io *io);
/* -EPERM if the file is immutable or for appending only (chattr(1)), else 0. The kernel asks that when a file is
 * opened, and not all file systems ask again: descriptors that are kept for later calls must not outlast it.
 * Whoever changes data asks before each change. */
int vfs_check_unsealed(const struct statx *sx);

/* True if gid is the credential's group or one of its supplementary groups. */
bool vfs_cred_has_group(const struct vfs_cred *cred, uint32_t gid);

/* faccessat2 of R_OK, W_OK, X_OK under the caller's identity; 0 or -errno. An event thread's worker decides by
 * the mode and asks as root for what does not depend on the caller: a read-only file system, an
 * immutable file. */
int vfs_access_check(struct vfs_ctx *ctx, struct vfs_node *n, int amode);
/* Checks that the caller may look up names in dir, on an event thread; sets *ctx->searched. */
int vfs_search_check(struct vfs_ctx *ctx, struct vfs_node *dir);

#define VFS_MODE_BITS 07777u

/* Values that no file system takes: -EINVAL, -EFBIG. */
int vfs_setattr_check(const struct vfs_setattr *sa);

/* Applies sa to a file that the caller has just created, the mode excepted, which it was created
 * with. Ids are set for root only, as others would only be told that the file is theirs. Does
 * nothing to what sa does not name. */
int vfs_setattr_created(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa);

/* Sets the size of an existing file that the caller may write. */
int vfs_set_size(struct vfs_ctx *ctx, struct vfs_node *n, uint64_t size);

/* Tells those who have a delegation of the directory n that its attributes have changed (vfs/hold/deleg_table.h): between
 * vfs_dir_attrs_begin and the end of that change. Nothing for what is no directory. */
void vfs_dir_tell_attrs(struct vfs_ctx *ctx, struct vfs_node *n);

#endif
