/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles known by inode number and ctime: the same bytes as the kernel's, only while neither
 * changes, and never for a ctime that a later change may repeat. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/fs/handle_cache.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)
#define CTIME (1000 * SECOND + 123456789)
#define LATER (CTIME + SECOND)

static struct vfs_inode_key key_of(uint64_t ino)
{
	return (struct vfs_inode_key){ .ino = ino, .ctime = CTIME, .mount = 1 };
}

static struct vfs_handle handle_of(uint64_t ino, int32_t type, uint32_t volume, uint32_t generation)
{
	const struct vfs_inode_handle parts = { ino, volume, generation, type };
	struct vfs_handle h = { 0 };

	vfs_handle_join(&parts, &h);
	return h;
}

static struct vfs_handle ext4_handle(uint64_t ino, uint32_t generation)
{
	return handle_of(ino, FILEID_INO32_GEN, 0, generation);
}

static bool knows(struct vfs_handle_cache *c, struct vfs_inode_key key)
{
	struct vfs_handle h;

	return vfs_handle_cache_find(c, &key, &h);
}

static bool same(const struct vfs_handle *a, const struct vfs_handle *b)
{
	return a->type == b->type && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

Test(vfs_handle_cache, layouts)
{
	const uint8_t ext4[8] = { 0x34, 0x12, 0, 0, 9, 8, 7, 6 };
	const uint8_t xfs[12] = { 0x34, 0x12, 0, 0, 1, 0, 0, 0, 9, 8, 7, 6 };
	const uint8_t btrfs[20] = {
		0x34, 0x12, 0, 0, 1, 0, 0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6
	};
	struct vfs_handle h = ext4_handle(0x1234, 0x06070809);
	struct vfs_inode_handle parts;

	cr_expect_eq(h.len, sizeof(ext4));
	cr_expect_arr_eq(h.bytes, ext4, sizeof(ext4));
	h = handle_of(0x100001234, FILEID_XFS_INO64_GEN, 0, 0x06070809);
	cr_expect_eq(h.len, sizeof(xfs));
	cr_expect_arr_eq(h.bytes, xfs, sizeof(xfs));
	h = handle_of(0x100001234, FILEID_BTRFS, 261, 0x06070809);
	cr_expect_eq(h.len, sizeof(btrfs));
	cr_expect_arr_eq(h.bytes, btrfs, sizeof(btrfs));
	cr_assert(vfs_handle_split(&h, &parts));
	cr_expect_eq(parts.ino, 0x100001234);
	cr_expect_eq(parts.volume, 261);
	cr_expect_eq(parts.generation, 0x06070809);
	h.bytes[12] = 1; /* subvolume 2^32 + 261 */
	cr_expect(!vfs_handle_split(&h, &parts), "a subvolume that does not fit");
	h.bytes[12] = 0;
	h.len--;
	cr_expect(!vfs_handle_split(&h, &parts), "a shorter one");
	h = ext4_handle(5, 6);
	h.type = 0x82;
	cr_expect(!vfs_handle_split(&h, &parts), "an unknown type");
}

/* The kernel's handles on the file system of the tests are split and joined without loss. */
Test(vfs_handle_cache, kernel_handles)
{
	char path[] = "/tmp/ringnfs-handle-XXXXXX";
	int fd = mkstemp(path);
	struct vfs_inode_handle parts;
	struct vfs_handle h, again;
	struct stat st;
	uint64_t mnt_id;
	bool by_inode;

	cr_assert_geq(fd, 0);
	unlink(path);
	by_inode = vfs_fs_traits_of(fd).handles_by_inode;
	if (!by_inode || vfs_handle_of(fd, "", &h, &mnt_id) != 0) {
		close(fd);
		cr_skip_test("/tmp is no file system whose handles are known");
	}
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	cr_assert(vfs_handle_split(&h, &parts));
	cr_expect_eq(parts.ino, st.st_ino);
	vfs_handle_join(&parts, &again);
	cr_expect(same(&h, &again));
}

Test(vfs_handle_cache, known_while_number_and_ctime_stay)
{
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	const struct vfs_handle h = ext4_handle(77, 4711);
	struct vfs_inode_key key = key_of(77), other;
	struct vfs_handle got;
	uint64_t found, missed;

	cr_assert_not_null(c);
	cr_expect(!knows(c, key));
	vfs_handle_cache_add(c, &key, &h, LATER);
	cr_assert(vfs_handle_cache_find(c, &key, &got));
	cr_expect(same(&got, &h));
	other = key, other.ino++;
	cr_expect(!knows(c, other), "another inode");
	other = key, other.ctime++;
	cr_expect(!knows(c, other), "a change of the inode, or its number is used again");
	other = key, other.mount++;
	cr_expect(!knows(c, other), "another mount");
	other = key, other.volume++;
	cr_expect(!knows(c, other), "another subvolume");
	vfs_handle_cache_stats(c, &found, &missed);
	cr_expect_eq(found, 1);
	cr_expect_eq(missed, 5);
	vfs_handle_cache_free(c);
}

Test(vfs_handle_cache, a_new_file_replaces_the_old)
{
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	struct vfs_handle h = ext4_handle(77, 1), got;
	struct vfs_inode_key old = key_of(77), new = key_of(77);

	new.ctime += 30 * MS;
	vfs_handle_cache_add(c, &old, &h, LATER);
	h = ext4_handle(77, 2);
	vfs_handle_cache_add(c, &new, &h, LATER);
	cr_expect(!knows(c, old));
	cr_assert(vfs_handle_cache_find(c, &new, &got));
	cr_expect(same(&got, &h));
	vfs_handle_cache_free(c);
}

Test(vfs_handle_cache, a_ctime_that_may_come_again_is_not_kept)
{
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	const struct vfs_handle h = ext4_handle(77, 4711);
	struct vfs_inode_key key = key_of(77);

	vfs_handle_cache_add(c, &key, &h, CTIME);
	cr_expect(!knows(c, key), "of this moment");
	vfs_handle_cache_add(c, &key, &h, CTIME + 10 * MS);
	cr_expect(!knows(c, key), "of this tick of the clock");
	vfs_handle_cache_add(c, &key, &h, CTIME - SECOND);
	cr_expect(!knows(c, key), "of the future");
	key.ctime = 1000 * SECOND;
	vfs_handle_cache_add(c, &key, &h, LATER);
	cr_expect(!knows(c, key), "in whole seconds");
	vfs_handle_cache_free(c);
}

Test(vfs_handle_cache, only_handles_of_that_inode)
{
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	struct vfs_inode_key key = key_of(77);
	struct vfs_handle h = ext4_handle(78, 4711);

	vfs_handle_cache_add(c, &key, &h, LATER);
	cr_expect(!knows(c, key), "another inode's");
	h = handle_of(77, FILEID_BTRFS, 5, 1);
	vfs_handle_cache_add(c, &key, &h, LATER);
	cr_expect(!knows(c, key), "another subvolume's");
	h = ext4_handle(77, 4711);
	h.type = 0x82;
	vfs_handle_cache_add(c, &key, &h, LATER);
	cr_expect(!knows(c, key), "an unknown layout");
	vfs_handle_cache_free(c);
}

/* Every answer is right while far more inodes than the table holds come and go, also where the
 * numbers are far apart, as XFS's are. */
Test(vfs_handle_cache, more_inodes_than_room)
{
	const uint64_t strides[] = { 1, 64, (uint64_t)1 << 20, (uint64_t)1 << 33 };
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	unsigned known = 0;

	for (unsigned s = 0; s < 4; s++) {
		for (uint64_t i = 1; i <= 100000; i++) {
			const uint64_t ino = i * strides[s];
			struct vfs_handle h = handle_of(ino, FILEID_XFS_INO64_GEN, 0, (uint32_t)i);
			struct vfs_inode_key key = key_of(ino);

			vfs_handle_cache_add(c, &key, &h, LATER);
		}
		for (uint64_t i = 1; i <= 100000; i++) {
			struct vfs_inode_key key = key_of(i * strides[s]);
			struct vfs_handle got;

			if (!vfs_handle_cache_find(c, &key, &got))
				continue;
			struct vfs_handle h =
				handle_of(key.ino, FILEID_XFS_INO64_GEN, 0, (uint32_t)i);
			cr_assert(same(&got, &h), "inode %lu", (unsigned long)key.ino);
			known++;
		}
	}
	cr_expect_gt(known, 4 * 10000, "%u known", known);
	vfs_handle_cache_free(c);
}

static unsigned list_again(struct vfs_handle_cache *c, unsigned n)
{
	unsigned known = 0;

	for (unsigned i = 0; i < n; i++) {
		/* Inodes are asked for in a random order, as ext4 lists a directory by hashes of names. */
		struct vfs_inode_key key = key_of(12 + (uint64_t)i * 7919 % n);
		struct vfs_handle got, h = ext4_handle(key.ino, i);

		if (vfs_handle_cache_find(c, &key, &got))
			known++;
		else
			vfs_handle_cache_add(c, &key, &h, LATER);
	}
	return known;
}

/* A folder that has as many files as the table has entries, or twice as many, does not drive its own names out. */
Test(vfs_handle_cache, listings_of_too_many)
{
	const unsigned entries = 32768; /* of 32 bytes in 1 MiB */
	struct vfs_handle_cache *c;
	unsigned known = 0;

	for (unsigned n = entries / 2; n <= 2 * entries; n *= 2) {
		c = vfs_handle_cache_new(NULL);
		for (unsigned pass = 0; pass < 6; pass++)
			known = list_again(c, n);
		cr_expect_gt(known, n < entries ? n * 95 / 100 : entries * 75 / 100,
			     "%u of %u known", known, n);
		vfs_handle_cache_free(c);
	}
}

/* Nearly all handles are found when a quarter of the table is in use. ext4 puts them into groups of
 * 8192 inodes whose distances are powers of two. */
Test(vfs_handle_cache, groups_of_inodes)
{
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	const unsigned entries = 32768; /* of 32 bytes in 1 MiB */
	unsigned known = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < entries / 4; i++) {
			struct vfs_inode_key key =
				key_of(4014081 + i % 1024 + ((uint64_t)8192 << (i / 1024)));
			struct vfs_handle h = ext4_handle(key.ino, i);

			if (pass == 0)
				vfs_handle_cache_add(c, &key, &h, LATER);
			else
				known += knows(c, key);
		}
	}
	cr_expect_gt(known, entries / 4 * 95 / 100, "%u known", known);
	vfs_handle_cache_free(c);
}

Test(vfs_handle_cache, memory_is_of_the_budget)
{
	struct vfs_handle_cache *c;
	struct rn_budget b;

	rn_budget_init(&b, (size_t)256 << 20);
	c = vfs_handle_cache_new(&b);
	cr_assert_not_null(c);
	cr_expect_gt(b.used, 0);
	cr_expect_leq(b.used, b.max / 64);
	vfs_handle_cache_free(c);
	cr_expect_eq(b.used, 0);
	rn_budget_init(&b, (size_t)1 << 40);
	c = vfs_handle_cache_new(&b);
	cr_assert_not_null(c);
	cr_expect_leq(b.used, (size_t)64 << 20, "however much there is");
	vfs_handle_cache_free(c);
	rn_budget_init(&b, 4096);
	cr_expect_null(vfs_handle_cache_new(&b), "no room");
	cr_expect_eq(b.used, 0);
}

struct racer {
	struct vfs_handle_cache *c;
	unsigned seed;
	unsigned wrong;
};

/* The generation follows from the ctime here, so each answer can be told right from wrong. */
static void *race(void *arg)
{
	struct racer *r = arg;

	for (unsigned i = 0; i < 100000; i++) {
		struct vfs_inode_key key = key_of((unsigned)rand_r(&r->seed) % 512 + 1);
		struct vfs_handle h, got;

		key.ctime += rand_r(&r->seed) % 3;
		h = ext4_handle(key.ino, (uint32_t)(key.ctime - CTIME) + (uint32_t)key.ino * 3);
		if (vfs_handle_cache_find(r->c, &key, &got))
			r->wrong += !same(&got, &h);
		else
			vfs_handle_cache_add(r->c, &key, &h, LATER);
	}
	return NULL;
}

Test(vfs_handle_cache, threads)
{
	struct vfs_handle_cache *c = vfs_handle_cache_new(NULL);
	struct racer r[4];
	pthread_t t[4];
	uint64_t found, missed;

	for (unsigned i = 0; i < 4; i++) {
		r[i] = (struct racer){ .c = c, .seed = i };
		cr_assert_eq(pthread_create(&t[i], NULL, race, &r[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		cr_expect_eq(r[i].wrong, 0);
	}
	vfs_handle_cache_stats(c, &found, &missed);
	cr_expect_eq(found + missed, 400000);
	cr_expect_gt(found, 0);
	vfs_handle_cache_free(c);
}
