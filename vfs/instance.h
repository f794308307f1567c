/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vfs: the node cache and its one budget of descriptors. Nodes hang in shards by the hash of
 * export and handle; each shard has its lock and its list of unreferenced nodes, least recently
 * used first.
 *
 * Lock order: vfs_node.open_lock -> vfs_shard.lock; vfs_export.mounts_lock and vfs.exports_lock are
 * never held while another of them, or one of the former, is taken. No lock is held across a system
 * call that may wait for a disk, except vfs_node.open_lock (opens and directory streams of that
 * node).
 */
#ifndef RN_VFS_INSTANCE_H
#define RN_VFS_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/vfs.h"

#define VFS_SHARDS 64u
#define VFS_BUCKETS 1024u /* per shard */

LIST_HEAD(vfs_node_list, vfs_node);
TAILQ_HEAD(vfs_node_lru, vfs_node);

struct vfs_shard {
	pthread_mutex_t lock;
	struct vfs_node_list bucket[VFS_BUCKETS];
	struct vfs_node_lru lru; /* nodes without a reference, oldest first */
};

struct vfs {
	struct vfs_config cfg;
	struct vfs_shard shard[VFS_SHARDS];
	_Atomic unsigned evict_next; /* the shard that is asked next for an eviction */
	_Atomic long fds;	     /* descriptors that nodes hold */
	_Atomic uint64_t write_verifier;
	int mountinfo_fd; /* readable with POLLPRI after the mount table changed; -1: none */
	_Atomic uint64_t nodes, hits, misses, evictions, stale, bad_handles;
};

#endif
