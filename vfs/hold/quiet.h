/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files whose delegations were recalled lately, which are not to be delegated again for a while: a table of fixed
 * size, by the hash of the file. It remembers four files of a bucket by 32 bits of their hash. If more are
 * quiet at a time, all files of the bucket are. So a file that was never recalled is quiet only beside very many
 * that were, or by a chance of one in four thousand million.
 *
 * Times are seconds of rn_now_coarse_seconds(). Any number of threads may use it at the same time.
 */
#ifndef RN_VFS_QUIET_H
#define RN_VFS_QUIET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VFS_QUIET_BUCKETS 1024u
#define VFS_QUIET_WAYS 4u

/* All zero at first. */
struct vfs_quiet {
	struct vfs_quiet_bucket {
		_Atomic uint64_t
			file[VFS_QUIET_WAYS]; /* part of the hash, and since when; 0: none */
		_Atomic uint32_t all_since;   /* 0: not all */
	} bucket[VFS_QUIET_BUCKETS];
};

/* A time that lies so many seconds back ends it; 0: nothing is ever quiet. */
struct vfs_quiet_time {
	uint32_t now, lasts;
};

/* The file is quiet from now on. */
void vfs_quiet_begin(struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t);
bool vfs_quiet_is(const struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t);

#endif
