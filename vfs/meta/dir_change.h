/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A change of a directory, between two looks at it. The caller may tell a client that the looks are
 * atomic with the change (RFC 8881 section 3.3.5 change_info4, RFC 1813 section 2.6 wcc_data) if
 * nobody else changed the directory in between:
 *
 *	through us	Every change of a directory is counted from before its system call to after it,
 *			in a slot by inode. The looks are atomic if the slot counts one change from the
 *			first look to the second. Nobody waits for another: of two changes at a time
 *			neither is atomic. Inodes that share a slot keep each other from being so.
 *	by others	The export option nfs_only promises that there are none. Otherwise the kernel's
 *			events tell (vfs/fs/dir_watch.h): ours must be among them, and none of others
 *			since before the first look. A change that the second look may have seen has its
 *			event in the queue once its maker has let go of the directory's lock, so that is
 *			waited for before the events are read.
 */
#ifndef RN_VFS_DIR_CHANGE_H
#define RN_VFS_DIR_CHANGE_H

#include "vfs/fs/dir_watch.h"
#include "vfs/node/node.h"

struct vfs_dir_changes;

struct vfs_dir_changes *vfs_dir_changes_new(void); /* NULL: no memory */
void vfs_dir_changes_free(struct vfs_dir_changes *t);

/* One change under way. */
struct vfs_dir_changing {
	struct vfs_ctx *ctx;
	struct vfs_node *dir;
	const char *name;	    /* any name in the directory */
	struct vfs_dir_change *out; /* NULL: nobody wants to know */
	_Atomic uint64_t *slot;
	uint64_t number;	      /* of this change in its slot */
	bool exact;		      /* no earlier state had the value of the first look */
	bool alone;		      /* no other was under way when it began */
	bool looked;		      /* out->before is there */
	bool promised;		      /* nobody but us changes it */
	bool watched;		      /* events tell of others */
	struct vfs_dir_events events; /* before the first look */
};

/* Before the system call; looks at the directory if out is not NULL. The identity of the thread
 * stays as it is. */
void vfs_dir_change_begin(struct vfs_dir_changing *c, struct vfs_ctx *ctx, struct vfs_node *dir,
			  const char *name, struct vfs_dir_change *out);
/* After it. made: the directory has changed; else out stays unknown. */
void vfs_dir_change_end(struct vfs_dir_changing *c, bool made);

/*
 * Before a look that a client asks for, between changes of its own: lets the directory's change
 * attribute (vfs/fs/change.h) stay what the client was told after its last change, if nobody else
 * has changed the directory. Nodes of other types are left alone. Moves from a thread that must not block where the
 * directory's lock is needed.
 */
void vfs_dir_keep_change(struct vfs_ctx *ctx, struct vfs_node *n);

/* Counts a change of a directory that has no node. */
_Atomic uint64_t *vfs_dir_count_begin(struct vfs *vfs, uint64_t dev, uint64_t ino);
void vfs_dir_count_end(_Atomic uint64_t *slot);

#endif
