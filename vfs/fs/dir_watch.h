/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Tells who changes directories, by the kernel's events (fanotify(7)) of one file system. A
 * change and its event are made under the directory's lock (i_rwsem), so whoever gets that lock
 * after a change finds the event in the queue. vfs/meta/dir_change.h draws the conclusions.
 *
 * Events of this process and those of others are counted by directory, in slots by its handle:
 * directories that share one are only more often thought to be changed. An event that was lost (the
 * queue has 16384 by default) counts for all of them.
 *
 * Only directories that are marked have events, so local processes pay for changes of those alone.
 */
#ifndef RN_VFS_DIR_WATCH_H
#define RN_VFS_DIR_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "vfs/fs/handle.h"
#include "vfs/types.h"

/* Events of fanotify(7) groups that report file handles. */

#define VFS_WATCH_EVENT_MAX 512u /* bytes of the longest event */

struct vfs_watch_event {
	bool lost; /* events were lost, or this one cannot be understood: it may be about any file */
	pid_t pid; /* process that has caused it */
	/* The file's handle as vfs_handle_file_part has it. */
	uint32_t len;
	uint8_t part[4 + VFS_KERNEL_FH_MAX];
};

/* Parses the first of len bytes of events, which need not be aligned. info_type: the kind of handle
 * that tells the file (FAN_EVENT_INFO_TYPE_*). Returns the event's size; 0: there is none, or what
 * follows cannot be found (out->lost). */
size_t vfs_watch_event_parse(const char *at, size_t len, uint8_t info_type,
			     struct vfs_watch_event *out);

struct vfs_dir_watch;

/*
 * The watches of a server, one for each file system: a user has few groups of fanotify(7), 128 by default, for all that his
 * processes watch, and each export and each mount below it has a struct vfs_mount.
 */
struct vfs_dir_watches {
	pthread_mutex_t lock;
	LIST_HEAD(, vfs_dir_watch) all;
};

void vfs_dir_watches_init(struct vfs_dir_watches *all);
void vfs_dir_watches_fini(struct vfs_dir_watches *all); /* all have been put */

/* A reference of the watch of a mount's file system, to be put. NULL: not possible here (errno EMFILE: the user has no further
 * group), or the file system is not local (struct vfs_fs_traits): errno 0. */
struct vfs_dir_watch *vfs_dir_watch_get(struct vfs_dir_watches *all, int mount_fd, bool local);
void vfs_dir_watch_put(struct vfs_dir_watch *w); /* NULL is allowed */

/* Marks a directory, for as long as its inode is in memory. Changes by others before that are taken
 * for one. False: it cannot be marked. */
bool vfs_dir_watch_mark(struct vfs_dir_watch *w, int dir_fd, const struct vfs_fh *dir);
/* Removes the mark, unless a node of another mount may have made the same. It then stays until the inode leaves memory. */
void vfs_dir_watch_unmark(struct vfs_dir_watch *w, int dir_fd);

/* Events of a directory so far, as far as they have been read; never less than before. */
struct vfs_dir_events {
	uint64_t ours, others;
};
struct vfs_dir_events vfs_dir_events(struct vfs_dir_watch *w, const struct vfs_fh *dir);
/* Reads what has come. Waits for no disk. */
void vfs_dir_watch_read(struct vfs_dir_watch *w);
/* The same for all, so that events of directories that nobody asks about are not lost. */
void vfs_dir_watches_read(struct vfs_dir_watches *all);

/* Waits until nobody has the directory's lock who had it before: a renaming of a name to itself,
 * which the kernel refuses under that lock whether or not the name is there. False: it was refused
 * earlier. */
bool vfs_dir_lock_passed(int dir_fd, const char *name);

#endif
