/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vfs: the node cache and its one budget of descriptors. Nodes hang in shards by the hash of
 * mount and handle; each shard has its lock and its list of unreferenced nodes, least recently used
 * first.
 *
 * Lock order: vfs_node.open_lock -> vfs_shard.lock; vfs_node.open_lock -> vfs.exports_lock ->
 * vfs_export.mounts_lock. Only open_lock (opens of that node) and mounts_lock (the search for a
 * submount) are held across system calls that may wait for a disk.
 */
#ifndef RN_VFS_INSTANCE_H
#define RN_VFS_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/node/flush.h"
#include "vfs/export/verifier.h"
#include "vfs/vfs.h"

#define VFS_SHARDS 64u
#define VFS_BUCKETS 1024u /* per shard */
#define VFS_IDLE_SECONDS 10u

LIST_HEAD(vfs_node_list, vfs_node);
TAILQ_HEAD(vfs_node_lru, vfs_node);
LIST_HEAD(vfs_export_list, vfs_export);
struct vfs_changes;
struct vfs_files;

struct vfs_shard {
	pthread_mutex_t lock;
	struct vfs_node_list bucket[VFS_BUCKETS];
	/* Nodes without a reference, oldest first: those that can be closed, and those that have
	 * uncommitted data. */
	struct vfs_node_lru lru, unsynced;
};

struct vfs {
	struct vfs_config cfg;
	uint8_t hash_key[16];
	uint8_t create_key[16]; /* of the marks of EXCLUSIVE creates: the same after a restart */
	struct vfs_shard shard[VFS_SHARDS];
	_Atomic unsigned evict_next; /* the shard that is asked next for an eviction */
	_Atomic long fds;	     /* descriptors that nodes hold */
	_Atomic long uncommitted;    /* nodes with uncommitted data */
	struct vfs_flusher flusher;
	_Atomic bool stopping; /* nobody is answered any more; the next run has other verifiers */
	pthread_mutex_t exports_lock;
	struct vfs_export_list exports; /* not counted as references */
	pthread_mutex_t verifiers_lock;
	struct vfs_verifier_list verifiers;
	uint64_t losses;	     /* changes of a verifier so far */
	pthread_mutex_t table_lock;  /* a leaf: guards the two below */
	int table_watch;	     /* vfs/mount_table.h; negative: there is none */
	uint64_t table_generation;   /* goes up when the mount table has changed */
	struct vfs_changes *changes; /* vfs/fs/change.h */
	struct vfs_files *files;     /* what clients hold of files: vfs/hold/file.h */
	_Atomic uint64_t nodes, hits, misses, evictions, stale, bad_handles;
};

/* Seconds of a clock that never goes back, and its milliseconds. */
int64_t vfs_now(void);
int64_t vfs_now_ms(void);

#endif
