/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges copied and cloned from file to file: data, limits, permissions, what is durable, and blocks
 * that are shared. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vfs_disk.h"
#include "vfs/base/instance.h"
#include "vfs/node/uncommitted.h"
#include "vfs/space.h"

TestSuite(vfs_copy, .timeout = 120);

#define MIB (1u << 20)
#define K64 65536u

/* Errors of the next calls of copy_file_range, the last one for all that follow; 0: the real one. */
static int fail_with[4];
static unsigned calls;

/* Replaces libc's function. */
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t len,
			unsigned flags)
{
	unsigned at = calls < 3 ? calls : 3;

	calls++;
	if (fail_with[at] > 0) {
		errno = fail_with[at];
		return -1;
	}
	return syscall(SYS_copy_file_range, in, in_at, out, out_at, len, flags);
}

static void fail_calls(int a, int b, int c, int d)
{
	const int each[] = { a, b, c, d };

	memcpy(fail_with, each, sizeof(each));
	calls = 0;
}

/* A copy that was made. */
struct copied {
	int64_t result;
	bool stable;
};

static struct copied copy(struct fx *f, struct vfs_node *from, uint64_t from_at,
			  struct vfs_node *to, uint64_t to_at, uint64_t count)
{
	struct vfs_copy c = { .from = { .ctx = &f->ctx, .node = from, .offset = from_at },
			      .ctx = &f->ctx,
			      .node = to,
			      .offset = to_at,
			      .count = count };
	const int64_t result = vfs_copy(&c);

	return (struct copied){ result, c.stable };
}

static int clone_it(struct fx *f, struct vfs_node *from, uint64_t from_at, struct vfs_node *to,
		    uint64_t to_at, uint64_t count)
{
	const struct vfs_copy c = { .from = { .ctx = &f->ctx, .node = from, .offset = from_at },
				    .ctx = &f->ctx,
				    .node = to,
				    .offset = to_at,
				    .count = count };

	return vfs_clone(&c);
}

static struct stat stat_of(const struct fx *f, const char *name)
{
	struct stat st;

	cr_assert_eq(stat(fx_path(f, name), &st), 0);
	return st;
}

static struct vfs_node *full_file(struct fx *f, const char *name, size_t len)
{
	uint8_t *data = malloc(len);
	struct vfs_node *n;

	cr_assert_not_null(data);
	fx_fill(data, len, 0, 1);
	n = fx_file(f, name, data, len);
	free(data);
	return n;
}

/* Asserts that the file has len bytes of full_file() from from_at on, at that offset. */
static void has(struct fx *f, const char *name, uint64_t at, uint64_t from_at, size_t len)
{
	uint8_t *want = malloc(len), *got = malloc(len);
	int fd = open(fx_path(f, name), O_RDONLY);

	cr_assert(want && got && fd >= 0);
	fx_fill(want, len, from_at, 1);
	cr_assert_eq(pread(fd, got, len, (off_t)at), (ssize_t)len);
	cr_expect_eq(memcmp(got, want, len), 0, "%s at %lu", name, (unsigned long)at);
	close(fd);
	free(want);
	free(got);
}

Test(vfs_copy, copies_a_range)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *a, *b;
		struct copied c;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		a = full_file(&f, "a", 3 * K64 + 100);
		b = fx_file(&f, "b", "hello", 5);
		c = copy(&f, a, 7, b, 2, 1000);
		cr_assert_eq(c.result, 1000);
		cr_expect_not(c.stable);
		cr_expect_eq(stat_of(&f, "b").st_size, 1002);
		has(&f, "b", 2, 7, 1000);
		/* Up to the end, behind the destination's end. */
		c = copy(&f, a, 100, b, K64, 0);
		cr_assert_eq(c.result, 3 * K64);
		cr_expect_eq(stat_of(&f, "b").st_size, 4 * K64);
		has(&f, "b", K64, 100, 3 * K64);
		/* Nothing is left behind the source's end. */
		cr_expect_eq(copy(&f, a, 3 * K64 + 100, b, 9 * K64, 0).result, 0);
		cr_expect_eq(stat_of(&f, "b").st_size, 4 * K64);
		vfs_node_put(a);
		vfs_node_put(b);
		fx_close(&f);
	}
}

Test(vfs_copy, ranges_that_cannot_be)
{
	struct vfs_node *a, *b, *again;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	a = full_file(&f, "a", 1000);
	b = fx_file(&f, "b", "hello", 5);
	again = fx_lookup(&f, "a");
	cr_expect_eq(copy(&f, a, 0, b, 0, 1001).result, -EINVAL);
	cr_expect_eq(copy(&f, a, 1001, b, 0, 0).result, -EINVAL);
	cr_expect_eq(copy(&f, a, UINT64_MAX, b, 0, 2).result, -EINVAL);
	cr_expect_eq(copy(&f, a, 1, b, 0, UINT64_MAX).result, -EINVAL);
	cr_expect_eq(copy(&f, a, 0, b, INT64_MAX, 1).result, -EFBIG);
	cr_expect_eq(copy(&f, a, 0, b, UINT64_MAX, 1).result, -EFBIG);
	cr_expect_eq(copy(&f, a, 0, b, INT64_MAX - 999, 0).result, -EFBIG);
	cr_expect_eq(copy(&f, a, 0, again, 2000, 10).result, -EINVAL, "within one file");
	cr_expect_eq(copy(&f, f.root, 0, b, 0, 0).result, -EISDIR);
	cr_expect_eq(copy(&f, a, 0, f.root, 0, 0).result, -EISDIR);
	cr_expect_eq(clone_it(&f, a, 0, b, 0, 1001), -EINVAL);
	cr_expect_eq(clone_it(&f, a, 0, b, INT64_MAX, 1), -EFBIG);
	cr_expect_eq(clone_it(&f, a, 0, again, 999, 0), -EINVAL, "ranges overlap");
	cr_expect_eq(clone_it(&f, f.root, 0, b, 0, 0), -EISDIR);
	cr_expect_eq(stat_of(&f, "b").st_size, 5);
	vfs_node_put(again);
	vfs_node_put(a);
	vfs_node_put(b);
	fx_close(&f);
}

Test(vfs_copy, permissions_of_both_files)
{
	struct vfs_node *secret, *mine, *theirs;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	secret = full_file(&f, "secret", 1000);
	mine = fx_file(&f, "mine", "", 0);
	theirs = fx_file(&f, "theirs", "hello", 5);
	cr_assert_eq(chmod(fx_path(&f, "secret"), 0600), 0);
	cr_assert_eq(chown(fx_path(&f, "mine"), 1000, 1000), 0);
	cr_assert_eq(chmod(f.dir, 0755), 0);
	fx_user(&f, 1000);
	cr_expect_eq(copy(&f, secret, 0, mine, 0, 0).result, -EACCES);
	cr_expect_eq(clone_it(&f, secret, 0, mine, 0, 0), -EACCES);
	cr_expect_eq(copy(&f, theirs, 0, mine, 0, 0).result, 5);
	cr_expect_eq(copy(&f, mine, 0, theirs, 0, 0).result, -EACCES);
	cr_expect_eq(clone_it(&f, mine, 0, theirs, 0, 0), -EACCES);
	fx_user(&f, 0);
	f.ctx.access.flags |= VFS_RO;
	cr_expect_eq(copy(&f, mine, 0, theirs, 0, 0).result, -EROFS);
	cr_expect_eq(clone_it(&f, mine, 0, theirs, 0, 0), -EROFS);
	vfs_node_put(secret);
	vfs_node_put(mine);
	vfs_node_put(theirs);
	fx_close(&f);
}

/* The kernel copies, or it refuses and the data go through a buffer. */
Test(vfs_copy, a_users_copy_clears_the_set_uid_bit)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		for (int refuse = 0; refuse < 2; refuse++) {
			struct vfs_node *a, *b;
			struct fx f;

			fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
			a = full_file(&f, "a", 1000);
			b = fx_file(&f, "b", "hello", 5);
			cr_assert_eq(chmod(fx_path(&f, "b"), 06777), 0);
			cr_assert_eq(chmod(f.dir, 0755), 0);
			fail_calls(refuse ? EXDEV : 0, 0, 0, 0);
			cr_assert_eq(copy(&f, a, 0, b, 0, 0).result, 1000);
			cr_expect_eq(stat_of(&f, "b").st_mode & 07777, 06777, "root keeps them");
			fx_user(&f, 1000);
			fail_calls(refuse ? EXDEV : 0, 0, 0, 0);
			cr_assert_eq(copy(&f, a, 0, b, 0, 0).result, 1000);
			cr_expect_eq(stat_of(&f, "b").st_mode & 07777, 0777);
			vfs_node_put(a);
			vfs_node_put(b);
			fx_close(&f);
		}
	}
}

Test(vfs_copy, a_buffer_where_the_kernel_refuses)
{
	static const int refusals[] = { EXDEV, EOPNOTSUPP, ENOSYS };

	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *a, *b;
		struct copied c;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		a = full_file(&f, "a", 5 * MIB + 123);
		b = fx_file(&f, "b", "hello", 5);
		fail_calls(refusals[how % 3], EIO, EIO, EIO);
		c = copy(&f, a, 100, b, 3, 0);
		cr_assert_eq(c.result, 5 * MIB + 23);
		cr_expect_eq(calls, 1, "the kernel is asked once");
		has(&f, "b", 3, 100, 5 * MIB + 23);
		cr_expect(vfs_uncommitted_any(b));
		cr_assert_eq(fx_commit(&f, b, 0, 0), 0);
		vfs_node_put(a);
		vfs_node_put(b);
		fx_close(&f);
	}
}

Test(vfs_copy, one_copy_is_bounded)
{
	struct vfs_node *a, *b;
	struct copied c;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	a = full_file(&f, "a", VFS_COPY_MAX + 2 * MIB);
	b = fx_file(&f, "b", "", 0);
	c = copy(&f, a, 0, b, 0, 0);
	cr_assert_eq(c.result, VFS_COPY_MAX);
	cr_expect_gt(calls, 1, "other operations have their turn between the steps");
	c = copy(&f, a, VFS_COPY_MAX, b, VFS_COPY_MAX, 2 * MIB);
	cr_assert_eq(c.result, 2 * MIB);
	has(&f, "b", 0, 0, VFS_COPY_MAX + 2 * MIB);
	vfs_node_put(a);
	vfs_node_put(b);
	fx_close(&f);
}

/* Bytes copied before an error are told, the error is not. An interrupted call is repeated. */
Test(vfs_copy, errors_of_the_file_system)
{
	struct vfs_node *a, *b;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	a = full_file(&f, "a", 10 * MIB);
	b = fx_file(&f, "b", "", 0);
	fail_calls(0, ENOSPC, ENOSPC, ENOSPC);
	cr_expect_eq(copy(&f, a, 0, b, 0, 0).result, 4 * MIB);
	cr_expect(vfs_uncommitted_any(b));
	cr_assert_eq(fx_commit(&f, b, 0, 0), 0);
	cr_expect_not(vfs_uncommitted_any(b));
	fail_calls(EDQUOT, 0, 0, 0);
	cr_expect_eq(copy(&f, a, 0, b, 0, 0).result, -EDQUOT);
	cr_expect_not(vfs_uncommitted_any(b), "nothing was written");
	fail_calls(EINTR, EAGAIN, EINTR, 0);
	cr_expect_eq(copy(&f, a, 0, b, 0, 0).result, 10 * MIB);
	fail_calls(EAGAIN, EAGAIN, EAGAIN, EAGAIN);
	cr_expect_eq(copy(&f, a, 0, b, 0, 0).result, -EAGAIN);
	vfs_node_put(a);
	vfs_node_put(b);
	fx_close(&f);
}

Test(vfs_copy, copies_are_uncommitted_unless_synced)
{
	struct vfs_node *a, *b, *d;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	a = full_file(&f, "a", K64);
	b = fx_file(&f, "b", "", 0);
	d = fx_file(&f, "d", "", 0);
	cr_expect_not(copy(&f, a, 0, b, 0, 0).stable);
	cr_expect(vfs_uncommitted_any(b));
	cr_expect_not(vfs_uncommitted_any(a));
	/* The server believes that very many other files have uncommitted data. */
	atomic_fetch_add(&f.vfs->uncommitted, 1 << 20);
	cr_expect(copy(&f, a, 0, d, 0, 0).stable);
	cr_expect_not(vfs_uncommitted_any(d));
	fail_calls(ENOSPC, ENOSPC, ENOSPC, ENOSPC);
	cr_expect_eq(copy(&f, a, 0, d, 0, 0).result, -ENOSPC);
	fail_calls(0, 0, 0, 0);
	cr_assert_eq(fx_commit(&f, b, 0, 0), 0);
	cr_expect_not(vfs_uncommitted_any(b));
	/* Nothing is remembered on an async export. */
	atomic_fetch_sub(&f.vfs->uncommitted, 1 << 20);
	f.ctx.access.flags |= VFS_ASYNC;
	cr_expect_not(copy(&f, a, 0, b, 0, 0).stable);
	cr_expect_not(vfs_uncommitted_any(b));
	cr_expect_eq(vfs_write_verifier(f.exp), 4711, "nothing was lost");
	vfs_node_put(a);
	vfs_node_put(b);
	vfs_node_put(d);
	fx_close(&f);
}

/* A disk that cannot take what was copied to it: the client that commits learns of the loss. */
Test(vfs_copy, a_loss_of_copied_data_is_told)
{
	char dir[FX_PATH], mnt[FX_PATH + 16];
	struct vfs_node *a, *b;
	struct fx f;

	fx_lossy_disk(dir, mnt);
	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, mnt);
	a = full_file(&f, "a", MIB);
	b = fx_file(&f, "b", "", 0);
	for (uint64_t i = 0; i < 24; i++)
		cr_assert_eq(copy(&f, a, 0, b, i * MIB, MIB).result, MIB);
	cr_assert_eq(vfs_write_verifier(f.exp), 4711);
	(void)fx_commit(&f, b, 0, 0);
	cr_expect_neq(vfs_write_verifier(f.exp), 4711);
	vfs_node_put(a);
	vfs_node_put(b);
	fx_close(&f);
	fx_lossy_disk_end(dir, mnt);
}

#define EXTENTS 64u

/* Extents of a file, and of them those that it shares. */
static unsigned extents(struct fx *f, const char *name, unsigned *shared)
{
	struct fiemap *map = calloc(1, sizeof(*map) + EXTENTS * sizeof(map->fm_extents[0]));
	int fd = open(fx_path(f, name), O_RDONLY);
	unsigned n;

	cr_assert(map && fd >= 0);
	map->fm_length = FIEMAP_MAX_OFFSET;
	map->fm_flags = FIEMAP_FLAG_SYNC;
	map->fm_extent_count = EXTENTS;
	cr_assert_eq(ioctl(fd, FS_IOC_FIEMAP, map), 0);
	close(fd);
	n = map->fm_mapped_extents;
	*shared = 0;
	for (unsigned i = 0; i < n; i++)
		*shared += (map->fm_extents[i].fe_flags & FIEMAP_EXTENT_SHARED) != 0;
	free(map);
	return n;
}

static void all_shared(struct fx *f, const char *name)
{
	unsigned shared, n = extents(f, name, &shared);

	cr_expect_gt(n, 0, "%s", name);
	cr_expect_eq(shared, n, "%s: %u of %u extents are shared", name, shared, n);
}

/* A file system that shares blocks. */
static void shares_blocks(const char *fs)
{
	struct vfs_node *a, *b, *d;
	struct vfs_statfs st;
	struct disk disk;
	struct fx *f = &disk.f;

	disk_open(&disk, fs, "");
	a = full_file(f, "a", 4 * K64 + 100);
	b = fx_file(f, "b", "hello", 5);
	d = fx_file(f, "d", "", 0);
	cr_assert_eq(vfs_statfs(&f->ctx, a, &st), 0);
	cr_assert_eq(chmod(fx_path(f, "b"), 04666), 0);
	fx_user(f, 1000);
	cr_assert_eq(clone_it(f, a, 0, b, 0, 0), 0);
	cr_expect_eq(stat_of(f, "b").st_mode & 07777, 0666, "the set-uid bit goes");
	fx_user(f, 0);
	cr_expect_eq(stat_of(f, "b").st_size, 4 * K64 + 100);
	has(f, "b", 0, 0, 4 * K64 + 100);
	all_shared(f, "b");
	/* Within one file, and off the blocks. */
	cr_assert_eq(clone_it(f, a, 0, a, 8 * K64, 2 * K64), 0);
	has(f, "a", 8 * K64, 0, 2 * K64);
	cr_expect_eq(clone_it(f, a, 0, a, K64, 2 * K64), -EINVAL);
	cr_expect_eq(clone_it(f, a, 0, b, 512, K64), -EINVAL);
	cr_expect_eq(clone_it(f, a, 512, b, 0, K64), -EINVAL);
	cr_expect_eq(clone_it(f, a, 0, b, 0, K64 + 512), -EINVAL);
	cr_expect_eq(clone_it(f, a, st.block, b, 2 * (uint64_t)st.block, st.block), 0);
	/* A copy shares blocks, too. */
	cr_assert_eq(copy(f, b, 0, d, 0, 0).result, 4 * K64 + 100);
	has(f, "d", 0, 0, st.block);
	all_shared(f, "d");
	vfs_node_put(a);
	vfs_node_put(b);
	vfs_node_put(d);
	disk_close(&disk);
}

/* Space that the removal of a file frees, as the attribute space_freed tells. */
static uint64_t freed(struct fx *f, struct vfs_node *n)
{
	struct vfs_attr attr;
	uint64_t out;

	cr_assert_eq(vfs_getattr(&f->ctx, n, &attr), 0);
	cr_assert_eq(vfs_space_freed(&f->ctx, n, &attr, &out), 0);
	cr_assert_leq(out, attr.used);
	return out;
}

Test(vfs_copy, shared_blocks_are_not_freed_on_xfs)
{
	static uint8_t data[256 << 10];
	struct vfs_node *a, *b;
	struct disk disk;
	struct fx *f = &disk.f;

	disk_open(&disk, "xfs", "");
	fx_fill(data, sizeof(data), 0, 1);
	a = fx_file(f, "a", data, sizeof(data));
	b = fx_file(f, "b", data, sizeof(data));
	cr_assert_eq(fx_sync(f, a, b, NULL), 0);
	cr_expect_geq(freed(f, a), sizeof(data));
	if (fx_command("cp --reflink=always %s/a %s/c 2>/dev/null", f->dir, f->dir) != 0)
		cr_skip_test("blocks are not shared here");
	cr_expect_lt(freed(f, a), sizeof(data));
	cr_expect_geq(freed(f, b), sizeof(data), "another file");
	cr_assert_eq(pwrite(vfs_node_fd(&f->ctx, a, VFS_FD_WRITE), data, sizeof(data) / 2, 0),
		     sizeof(data) / 2);
	cr_assert_eq(fx_sync(f, a, NULL, NULL), 0);
	cr_expect_geq(freed(f, a), sizeof(data) / 2, "what was written since is its own");
	cr_expect_lt(freed(f, a), sizeof(data));
	cr_assert_eq(unlink(fx_path(f, "c")), 0);
	for (int i = 0; i < 5000 && freed(f, a) < sizeof(data); i++) /* XFS frees later */
		usleep(2000);
	cr_expect_geq(freed(f, a), sizeof(data), "nobody else's any more");
	cr_assert_eq(fx_command("ln %s/b %s/d", f->dir, f->dir), 0);
	cr_expect_eq(freed(f, b), 0, "another name");
	vfs_node_put(a);
	vfs_node_put(b);
	disk_close(&disk);
}

Test(vfs_copy, clones_on_xfs)
{
	shares_blocks("xfs");
}

Test(vfs_copy, clones_on_btrfs)
{
	shares_blocks("btrfs");
}

Test(vfs_copy, copies_on_xfs_share_blocks)
{
	struct vfs_node *a, *b;
	struct disk disk;

	disk_open(&disk, "xfs", "");
	a = full_file(&disk.f, "a", 8 * K64);
	b = fx_file(&disk.f, "b", "", 0);
	cr_assert_eq(copy(&disk.f, a, 0, b, 0, 0).result, 8 * K64);
	all_shared(&disk.f, "b");
	vfs_node_put(a);
	vfs_node_put(b);
	disk_close(&disk);
}

/* CLONE is answered after this sync. */
Test(vfs_copy, a_clone_survives_a_power_failure_after_its_sync)
{
	struct vfs_node *a, *b;
	struct disk disk;
	struct stat st;

	disk_open(&disk, "xfs", "");
	a = full_file(&disk.f, "a", 4 * K64 + 5);
	b = fx_file(&disk.f, "b", "", 0);
	disk_settle(&disk);
	cr_assert_eq(clone_it(&disk.f, a, 0, b, 0, 0), 0);
	cr_assert_eq(fx_sync(&disk.f, b, NULL, NULL), 0);
	disk_after_power_failure(&disk, "b", &st);
	cr_expect_eq(st.st_size, 4 * K64 + 5);
	vfs_node_put(a);
	vfs_node_put(b);
	disk_close(&disk);
}

Test(vfs_copy, ext4_has_copies_only)
{
	struct vfs_node *a, *b;
	struct disk disk;

	disk_open(&disk, "ext4", "");
	a = full_file(&disk.f, "a", 8 * K64);
	b = fx_file(&disk.f, "b", "", 0);
	cr_expect_eq(clone_it(&disk.f, a, 0, b, 0, 0), -EOPNOTSUPP);
	cr_assert_eq(copy(&disk.f, a, 0, b, 0, 0).result, 8 * K64);
	has(&disk.f, "b", 0, 0, 8 * K64);
	vfs_node_put(a);
	vfs_node_put(b);
	disk_close(&disk);
}
