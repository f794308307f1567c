/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of regular files and directories under way, counted so that no delegation is given
 * meanwhile. Each change of data, attributes, links, names or entries goes through these steps, and so
 * does vfs_deleg_give:
 *
 *	a change				a delegation
 *	counts itself in its file's slot	counts itself in vfs_files.delegs
 *	looks for others' delegations		looks into the slot
 *	changes the file, or is refused		is given, or refused
 *	counts itself out
 *
 * Both counts are sequentially consistent, so of a change and a delegation at the same time at least
 * one sees the other. Files whose handles share a slot only lose a delegation now and then.
 *
 * A change that has been made conditional on the state of the file is counted alone: it begins only if no other is
 * under way in the slot, and none begins before it has ended. Nobody waits: -RN_ESOON, and the client comes again.
 *
 * A write sets the ctime before it has moved the data, so a look may find the new ctime, and a READ after it the old data. So the change
 * attribute (vfs/fs/change.h) is provisional while a change is under way that may have set the ctime that was found. The time at which a slot's changes
 * have begun tells, so that other files of the slot keep their values.
 *
 * A change of which no delegation must know needs no count: that of a file just made, which nobody
 * else knows.
 */
#ifndef RN_VFS_FILE_CHANGE_H
#define RN_VFS_FILE_CHANGE_H

#include "vfs/deleg.h"
#include "vfs/io.h"

struct vfs_mount;

/* The slot of a file, by the part of its handle that is the same in all exports. */
unsigned vfs_file_slot(const struct vfs_fh *fh);

/* Counts the change of a file that has no node yet. Its delegations are the caller's to check. 0, or -RN_ESOON:
 * nothing is counted. */
int vfs_file_change_count(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_file_change *c);
/* Counts and checks. 0, -RN_EDELEG or -RN_ESOON: then nothing has begun. Nothing is counted for what is neither a
 * regular file nor a directory. vfs/names/entry_change.h is for the entries of a directory. */
int vfs_file_change_begin(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c);
/* Like vfs_file_change_begin(), but only counts the change, for files of every type. */
int vfs_file_change_begin_alone(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c);
/* Begins a change as vfs_file_change_begin does, of which holders of a directory's delegations may be told afterwards (vfs/hold/deleg_table.h):
 * only those that do not take notifications of it are in the way. */
int vfs_dir_attrs_begin(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c);
/* True if a change may be under way that has set that ctime of a regular file, in nanoseconds: asked after the look that found it. */
bool vfs_file_change_unfinished(const struct vfs_mount *mnt, const struct vfs_fh *fh,
				int64_t ctime);
/* Does nothing if c counts nothing. */
void vfs_file_change_end(struct vfs_file_change *c);

#endif
