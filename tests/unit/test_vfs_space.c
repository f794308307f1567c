/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges allocated and punched, data and holes found. Cases that the file system does not support
 * are skipped. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/space.h"

TestSuite(vfs_space, .timeout = 60);

#define MIB (1u << 20)
#define K64 65536u

static int space(struct fx *f, struct vfs_node *n, enum vfs_space_what what, uint64_t offset,
		 uint64_t length)
{
	struct vfs_space s = {
		.ctx = &f->ctx,
		.node = n,
		.what = what,
		.offset = offset,
		.length = length,
	};

	return vfs_space(&s);
}

static struct stat stat_of(const struct fx *f, const char *name)
{
	struct stat st;

	cr_assert_eq(stat(fx_path(f, name), &st), 0);
	return st;
}

/* Creates a file of 1 MiB of ones. */
static struct vfs_node *full_file(struct fx *f, const char *name)
{
	static uint8_t ones[MIB];

	for (uint32_t i = 0; i < MIB; i++)
		ones[i] = 1;
	return fx_file(f, name, ones, MIB);
}

Test(vfs_space, reserving_grows_the_file)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *n;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = fx_file(&f, "file", "hello", 5);
		int rc = space(&f, n, VFS_SPACE_RESERVE, MIB, MIB);
		if (rc == -EOPNOTSUPP)
			cr_skip_test("no fallocate here");
		cr_assert_eq(rc, 0);
		cr_expect_eq(stat_of(&f, "file").st_size, 2 * MIB);
		cr_expect_geq(stat_of(&f, "file").st_blocks * 512, MIB);
		cr_expect_eq(space(&f, n, VFS_SPACE_RESERVE, 0, 0), -EINVAL);
		cr_expect_eq(space(&f, n, VFS_SPACE_RESERVE, UINT64_MAX, 1), -EFBIG);
		cr_expect_eq(space(&f, n, VFS_SPACE_RESERVE, 1, INT64_MAX), -EFBIG);
		cr_expect_eq(space(&f, n, VFS_SPACE_RESERVE, 0, UINT64_MAX), -EFBIG);
		cr_expect_eq(space(&f, f.root, VFS_SPACE_RESERVE, 0, 1), -EISDIR);
		f.ctx.access.flags |= VFS_RO;
		cr_expect_eq(space(&f, n, VFS_SPACE_RESERVE, 0, 1), -EROFS);
		vfs_node_put(n);
		fx_close(&f);
	}
}

/* A failed allocation leaves other files their space, and keeps nothing. */
Test(vfs_space, more_than_there_is_takes_nothing)
{
	struct vfs_node *n;
	struct statvfs fs;
	struct fx f;
	uint64_t all;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "hello", 5);
	cr_assert_eq(statvfs(f.dir, &fs), 0);
	all = (uint64_t)fs.f_blocks * fs.f_frsize;
	cr_expect_eq(space(&f, n, VFS_SPACE_RESERVE, 0, all + MIB), -ENOSPC);
	cr_expect_eq(stat_of(&f, "file").st_size, 5);
	cr_expect_leq(stat_of(&f, "file").st_blocks * 512, MIB);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_space, a_punched_range_reads_as_zeros)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		uint8_t got[3];
		struct vfs_node *n;
		struct fx f;
		bool eof;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = full_file(&f, "file");
		int rc = space(&f, n, VFS_SPACE_PUNCH, K64 - 1, K64 + 2);
		if (rc == -EOPNOTSUPP)
			cr_skip_test("no holes here");
		cr_assert_eq(rc, 0);
		cr_expect_eq(stat_of(&f, "file").st_size, MIB, "the size stays");
		cr_expect_lt(stat_of(&f, "file").st_blocks * 512, MIB);
		cr_assert_eq(fx_read(&f, n, K64 - 2, 3, got, &eof), 3);
		cr_expect(got[0] == 1 && got[1] == 0 && got[2] == 0);
		cr_assert_eq(fx_read(&f, n, 2 * K64, 3, got, &eof), 3);
		cr_expect(got[0] == 0 && got[1] == 1 && got[2] == 1);
		/*
		 * A range to the end, which a length of all ones means; and a range behind the end.
		 */
		cr_expect_eq(space(&f, n, VFS_SPACE_PUNCH, 4 * K64, UINT64_MAX), 0);
		cr_assert_eq(fx_read(&f, n, MIB - 1, 3, got, &eof), 1);
		cr_expect_eq(got[0], 0);
		cr_expect_eq(space(&f, n, VFS_SPACE_PUNCH, 2 * MIB, 1), 0);
		cr_expect_eq(stat_of(&f, "file").st_size, MIB);
		cr_expect_eq(space(&f, n, VFS_SPACE_PUNCH, 0, 0), -EINVAL);
		cr_expect_eq(space(&f, n, VFS_SPACE_PUNCH, UINT64_MAX, 1), -EFBIG);
		vfs_node_put(n);
		fx_close(&f);
	}
}

Test(vfs_space, a_users_change_clears_the_set_uid_bit)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *n, *secret;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = full_file(&f, "file");
		secret = full_file(&f, "secret");
		cr_assert_eq(chmod(fx_path(&f, "secret"), 0600), 0);
		cr_assert_eq(chmod(fx_path(&f, "file"), 04777), 0);
		cr_assert_eq(chmod(f.dir, 0755), 0);
		fx_user(&f, 1000);
		int rc = space(&f, n, VFS_SPACE_PUNCH, 0, 4096);
		if (rc == -EOPNOTSUPP)
			cr_skip_test("no holes here");
		cr_assert_eq(rc, 0);
		cr_expect_eq(stat_of(&f, "file").st_mode & 07777, 0777);
		cr_expect_eq(space(&f, secret, VFS_SPACE_PUNCH, 0, 4096), -EACCES);
		vfs_node_put(secret);
		vfs_node_put(n);
		fx_close(&f);
	}
}

static int seek(struct fx *f, struct vfs_node *n, struct vfs_seek *s, uint64_t offset, bool hole)
{
	*s = (struct vfs_seek){ .offset = offset, .hole = hole };
	return vfs_seek(&f->ctx, n, s);
}

Test(vfs_space, seek_finds_data_and_holes)
{
	struct vfs_node *n;
	struct fx f;
	struct vfs_seek s = { 0 };

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = full_file(&f, "file");
	if (space(&f, n, VFS_SPACE_PUNCH, 4 * K64, 2 * K64) != 0)
		cr_skip_test("no holes here");
	cr_assert_eq(seek(&f, n, &s, 0, true), 0);
	cr_expect_eq(s.pos, 4 * K64);
	cr_expect_not(s.eof);
	cr_assert_eq(seek(&f, n, &s, 4 * K64 + 1, false), 0);
	cr_expect_eq(s.pos, 6 * K64);
	cr_expect_not(s.eof);
	cr_assert_eq(seek(&f, n, &s, 7 * K64, false), 0);
	cr_expect_eq(s.pos, 7 * K64);
	cr_assert_eq(seek(&f, n, &s, 7 * K64, true), 0);
	cr_expect(s.eof, "the hole at the end");
	cr_expect_eq(s.pos, MIB);
	cr_assert_eq(truncate(fx_path(&f, "file"), 2 * MIB), 0);
	cr_assert_eq(seek(&f, n, &s, MIB + K64, false), 0);
	cr_expect(s.eof, "no data up to the end");
	cr_expect_eq(s.pos, 2 * MIB);
	cr_expect_eq(seek(&f, n, &s, 2 * MIB, true), -ENXIO);
	cr_expect_eq(seek(&f, n, &s, UINT64_MAX, true), -ENXIO);
	cr_expect_eq(seek(&f, f.root, &s, 0, true), -EISDIR);
	vfs_node_put(n);
	fx_close(&f);
}
