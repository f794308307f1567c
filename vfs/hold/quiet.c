/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/quiet.h"

static bool quiet_is_over(uint32_t since, struct vfs_quiet_time t)
{
	return since == 0 || t.now - since >= t.lasts;
}

static uint32_t since_of(uint64_t file)
{
	return (uint32_t)file;
}

static bool quiet_is_same_file(uint64_t file, uint64_t hash)
{
	return file >> 32 == hash >> 32;
}

void vfs_quiet_begin(struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t)
{
	struct vfs_quiet_bucket *b = &q->bucket[hash % VFS_QUIET_BUCKETS];
	const uint32_t now = t.now ? t.now : 1;
	const uint64_t file = hash >> 32 << 32 | now;

	for (unsigned i = 0; i < VFS_QUIET_WAYS; i++) {
		uint64_t old = atomic_load(&b->file[i]);

		if ((quiet_is_same_file(old, hash) || quiet_is_over(since_of(old), t)) &&
		    atomic_compare_exchange_strong(&b->file[i], &old, file))
			return;
	}
	atomic_store(&b->all_since, now);
}

bool vfs_quiet_is(const struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t)
{
	const struct vfs_quiet_bucket *b = &q->bucket[hash % VFS_QUIET_BUCKETS];

	for (unsigned i = 0; i < VFS_QUIET_WAYS; i++) {
		const uint64_t file = atomic_load(&b->file[i]);

		if (quiet_is_same_file(file, hash) && !quiet_is_over(since_of(file), t))
			return true;
	}
	return !quiet_is_over(atomic_load(&b->all_since), t);
}
