/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The change attribute (RFC 8881 section 5.8.1.4). It is the ctime in nanoseconds where the kernel
 * gives a change that follows a look at the times a ctime of its own (Linux 6.13 and later, on
 * ext4, XFS, btrfs, and tmpfs but for its directories: an entry that is removed, replaced or linked
 * gives its own ctime to the directory, whether or not that was looked at). Elsewhere ctime goes by
 * the tick (4 ms, or a second on old file systems), and two states of a file may share one. There
 *
 *      change = ctime + n,  n = 1, 2, ... for as long as the ctime may still be given to a change
 *               (n is one more after each change that is made through us), and
 *      change = ctime + VFS_CHANGE_SETTLED from then on.
 *
 * Changes made through us are told apart at once. Those of local processes, which nobody counts,
 * are told apart from a state that was looked at in the same tick by the second value: who has
 * looked while the ctime was fresh finds another value later, whether or not there was a change in
 * between, and reads once more. So no change is missed, and a file that was looked at right after
 * it changed is read at most once without need.
 *
 * Where all changes are known to be made through us (the export option nfs_only, or the kernel's
 * events of a directory), n tells all states apart, and stays as it is. So a client that keeps the
 * value after its own change finds it again later.
 *
 * A change that is under way may have set the ctime and not the data. Until it has ended, the value is one less than that which stays:
 * ctime - 1 where ctimes are fine, and ctime + VFS_CHANGE_SETTLED - 1 elsewhere, if it lasts so long. (n grows at its end.)
 *
 * Other servers that change the files (vfs_config.shared) have clocks of their own, which agree to some ten milliseconds. A change that one of them makes later
 * may get a ctime that is that much earlier, or, if the file system keeps the later ctime, leave it as it was. So there a ctime may be given to a
 * change for VFS_CLOCKS_APART longer, and as long as it is fresh each look has an n of its own: nobody takes one state for another.
 *
 * A tick is longer than VFS_CHANGE_SETTLED nanoseconds, so change never goes back as long as the
 * clock does not. n is kept in a table of bounded size, by the inode, so that it is the same by all
 * exports, until the ctime has settled.
 */
#ifndef RN_VFS_CHANGE_H
#define RN_VFS_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#define VFS_CHANGE_SETTLED 900000u
#define VFS_CLOCKS_APART                                                                           \
	(100 * 1000 * 1000) /* ten times what members of a cluster may differ by, in nanoseconds */

struct statx;
struct timespec;
struct vfs_changes;

/* shared: other servers change the files, too. NULL: no memory. */
struct vfs_changes *vfs_changes_new(bool shared);
void vfs_changes_free(struct vfs_changes *t);

/*
 * True if no later change can have that ctime, in nanoseconds, however coarse the clock of ctimes is: what is true of the inode at
 * `clock` (rn_wall_coarse_ns) is true whenever it has that ctime. Times in whole seconds may be all that the file system has: then a
 * clock that is set back could give a ctime twice.
 */
static inline bool vfs_ctime_is_over(int64_t ctime, int64_t clock)
{
	return ctime % 1000000000 != 0 &&
	       ctime < clock - 20 * 1000 * 1000; /* ticks have 10 ms at most */
}

/* The time, in nanoseconds, before which no clock is that ctimes are taken from: asked before statx. t NULL: 0. */
int64_t vfs_change_clock(const struct vfs_changes *t);
/* Facts about the changes of an inode, collected before statx but for the last: its change attribute depends on them. */
struct vfs_look {
	int64_t clock;	 /* vfs_change_clock */
	bool counted;	 /* all changes of the inode are made through us */
	uint64_t others; /* changes of a directory by others so far, and 1; 0: nobody counts them */
	bool unfinished; /* the change that has set the ctime may be under way: known after statx only */
};
/* The attribute for the result of a statx. t NULL: the ctime alone. */
uint64_t vfs_change_of(struct vfs_changes *t, const struct statx *sx, const struct vfs_look *look);
/* Records a change of the inode: called after the change, before any client learns of it. by: the
 * caller (vfs_ctx.caller), or 0. t may be NULL. */
void vfs_change_made(struct vfs_changes *t, uint64_t dev, uint64_t ino, uint64_t by);
/*
 * Directories whose changes by others are counted, too. The count at the first look at the present
 * ctime, if the ctime has got too old for further changes and has not settled; else 0. If the count
 * is still the same, n has told all states apart, and vfs_change_stays makes it stay as it is.
 */
uint64_t vfs_change_asks(struct vfs_changes *t, uint64_t dev, uint64_t ino);
void vfs_change_stays(struct vfs_changes *t, uint64_t dev, uint64_t ino, uint64_t others);
/* True if all looks at the inode that had that ctime and the same value have seen the same state;
 * others: vfs_look.others of the last. Asked before a look at a further change. */
bool vfs_change_is_exact(struct vfs_changes *t, uint64_t dev, uint64_t ino,
			 const struct timespec *ctime, uint64_t others);

/* True if who knows all states of the inode that were looked at with that ctime: there was one, or
 * who alone made the changes between them, and no local process as far as others (vfs_look.others
 * of the last look) tells. t NULL: ctimes are fine. */
bool vfs_change_ctime_tells(struct vfs_changes *t, uint64_t dev, uint64_t ino,
			    const struct timespec *ctime, uint64_t who, uint64_t others);

#endif
