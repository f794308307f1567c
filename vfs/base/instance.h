/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vfs: what every part of vfs/ shares. Each part's own object is opaque here. Below it stand the budget of
 * descriptors, and the files behind open guards.
 *
 * Lock order: vfs_node.open_lock -> the lock of a shard of the cache; vfs_node.open_lock ->
 * vfs.exports_lock -> vfs_export.mounts_lock. Only open_lock (opens of that node), mounts_lock
 * (the search for a submount) and the orders of vfs/names/entry_change.h (changes of that name, and of a directory whose
 * holders are told) are held across system calls that may wait for a disk.
 */
#ifndef RN_VFS_INSTANCE_H
#define RN_VFS_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "vfs/fs/dir_watch.h"
#include "vfs/fs/handle.h"
#include "vfs/vfs.h"

LIST_HEAD(vfs_export_list, vfs_export);
LIST_HEAD(vfs_verifier_list, vfs_verifier);
struct vfs_ahead;
struct vfs_cache;
struct vfs_changes;
struct vfs_dir_changes;
struct vfs_entry_orders;
struct vfs_files;
struct vfs_flusher;
struct vfs_guards;
struct vfs_handle_cache;
struct vfs_leases;
struct vfs_loaded;

#define VFS_GUARDED_SLOTS 4096u
#define VFS_VERIFIER_LISTS 256u

struct vfs {
	struct vfs_config cfg;
	uint8_t hash_key[16];
	/* Key of the marks of EXCLUSIVE creates: the same after a restart */
	uint8_t create_key[16];
	_Atomic long fds; /* descriptors that nodes hold */
	/* Closes an unused node, before a descriptor is opened beyond the budget. False: all nodes
	 * are in use. */
	bool (*evict)(struct vfs *vfs);
	struct vfs_cache *cache;     /* vfs/node/cache.h */
	struct vfs_flusher *flusher; /* vfs/node/uncommitted.h */
	_Atomic long uncommitted;    /* nodes with uncommitted data */
	_Atomic unsigned syncing;    /* calls that wait in vfs_sync() */
	struct vfs_loaded *
		loaded; /* files of the program before, while the server starts; vfs/hold/hold_image.c */
	/* Stopping: no request is answered any more; the next run has other verifiers */
	_Atomic bool stopping;
	pthread_mutex_t exports_lock;
	struct vfs_export_list exports; /* the list does not hold references */
	pthread_mutex_t verifiers_lock;
	struct vfs_verifier_list verifiers[VFS_VERIFIER_LISTS]; /* by id */
	uint64_t losses;					/* changes of a verifier so far */
	pthread_mutex_t table_lock; /* a leaf: guards looks at table_watch */
	int table_watch;	    /* vfs/mount_table.h; negative: there is none */
	/* Raised, from 1 on, when somebody sees that the mount table has changed */
	_Atomic uint64_t table_generation;
	struct vfs_dir_watches dir_watches;    /* vfs/fs/dir_watch.h */
	struct vfs_changes *changes;	       /* vfs/fs/change.h */
	struct vfs_dir_changes *dir_changes;   /* vfs/meta/dir_change.h */
	struct vfs_entry_orders *entry_orders; /* vfs/names/entry_change.h */
	struct vfs_files *files;	       /* state of clients on files: vfs/hold/file.h */
	struct vfs_leases *leases;	       /* vfs/hold/lease.h */
	struct vfs_guards *guards;	       /* vfs/hold/open_guard.h */
	_Atomic uint32_t guarded[VFS_GUARDED_SLOTS]; /* files behind an open guard: below */
	_Atomic uint64_t stale, bad_handles;

	/* vfs/fs/handle_cache.h; NULL: there was no memory for it */
	struct vfs_handle_cache *handles;
	struct vfs_ahead *ahead; /* vfs/names/readdir.c; NULL: nobody looks ahead */
	_Atomic uint32_t mounts_opened;
};

/*
 * Files behind an open guard (vfs/hold/open_guard.h), counted by slots of their handles: to open one of
 * them waits for a thread of this server. For callers that must not wait. Files that share a slot
 * with one look like it.
 */

/* By the part of the handle that is the same in all exports. */
static inline _Atomic uint32_t *vfs_guarded_slot(struct vfs *vfs, const uint8_t *part, uint32_t len)
{
	return &vfs->guarded[vfs_handle_part_hash(part, len) % VFS_GUARDED_SLOTS];
}

static inline bool vfs_is_guarded(struct vfs *vfs, const struct vfs_fh *fh)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(fh, &len);

	return atomic_load(vfs_guarded_slot(vfs, part, len)) != 0;
}

/*
 * Opening and closing on the budget of descriptors (vfs_config.max_fds). The budget is kept by
 * evicting an unreferenced node (vfs.evict) before a descriptor is opened; it is exceeded only by
 * what requests in flight hold at this moment, up to max_fds_most.
 */

/*
 * openat(2) on the budget. Evicts first when the budget is used up, and again as long as the
 * process or the system is out of descriptors; -RN_EFULL if even that does not help. The descriptor
 * or -errno.
 */
int vfs_fd_openat(struct vfs *vfs, int dirfd, const char *path, int flags, mode_t mode);
/* Opens fd's file again with other flags; its name does not matter. */
int vfs_fd_reopen(struct vfs *vfs, int fd, int flags);
/*
 * As above, to read or write a regular file, or to read a directory. Never waits for a local
 * process that has a lease (fcntl(2), F_SETLEASE): the kernel asks for it back, and the result is
 * -RN_ELEASE until it is given up or lease-break-time is over.
 */
int vfs_fd_reopen_data(struct vfs *vfs, int fd, int flags);
/* True if the budget has room for a descriptor without an eviction. */
bool vfs_fd_has_room(const struct vfs *vfs);
/* Counts a descriptor that was opened by other means. False: there is no room without an eviction. */
bool vfs_fd_count_opened(struct vfs *vfs);
/* A second descriptor of fd's open file; -RN_EFULL at once if there are none left. */
int vfs_fd_dup(struct vfs *vfs, int fd);
int vfs_fd_open_handle(struct vfs *vfs, int mount_fd, const struct vfs_handle *h);
/* Takes open descriptors out of the budget, which has others for their use; a negative number gives them back. */
void vfs_fd_set_aside(struct vfs *vfs, int n);
void vfs_fd_close(struct vfs *vfs, int fd); /* negative: nothing */

#endif
