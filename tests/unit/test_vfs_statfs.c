/* SPDX-License-Identifier: BSD-2-Clause */
/* Reported properties of a file system, compared with its behaviour. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/fs/file_system.h"

TestSuite(vfs_statfs, .timeout = 120);

struct disk {
	char base[FX_PATH];
	char mnt[80];
	bool fine_before; /* its ctimes, as it comes from mkfs */
	struct fx f;
};

static bool ctimes_are_fine(const struct disk *d)
{
	const int fd = open(d->mnt, O_RDONLY | O_DIRECTORY);

	cr_assert_geq(fd, 0);
	const bool fine = vfs_fs_traits_of(fd).fine_dirs;

	close(fd);
	return fine;
}

/* mkfs: the command's name behind "mkfs.", and its options. */
static void disk_open(struct disk *d, const char *mkfs, const char *type)
{
	fx_need_root();
	fx_temp_dir(d->base);
	fx_mount_tmpfs(d->base, "size=400m");
	snprintf(d->mnt, sizeof(d->mnt), "%s/mnt", d->base);
	if (fx_command("mkdir %s && truncate -s 320M %s/img && mkfs.%s %s/img >/dev/null 2>&1 && "
		       "mount -t %s -o loop %s/img %s 2>/dev/null",
		       d->mnt, d->base, mkfs, d->base, type, d->base, d->mnt) != 0) {
		fx_command("umount %s; rmdir %s", d->base, d->base);
		cr_skip_test("mkfs.%s, or mounting it, does not work here", mkfs);
	}
	d->fine_before = ctimes_are_fine(d);
	fx_open(&d->f, FX_PLAIN, VFS_IO_BUFFERED, d->mnt);
}

static void disk_close(struct disk *d)
{
	fx_close(&d->f);
	cr_assert(fx_unmount_image(d->mnt, d->base));
}

static struct vfs_statfs statfs_of(struct fx *f)
{
	struct vfs_statfs s;

	cr_assert_eq(vfs_statfs(&f->ctx, f->root, &s), 0);
	return s;
}

static bool finds(struct fx *f, const char *name)
{
	return access(fx_path(f, name), F_OK) == 0;
}

static void check_size(struct fx *f)
{
	const struct vfs_statfs s = statfs_of(f);
	int fd = open(fx_path(f, "size"), O_CREAT | O_RDWR, 0600);

	cr_assert_geq(fd, 0);
	cr_expect_eq(ftruncate(fd, (off_t)s.size_max), 0);
	if (s.size_max < INT64_MAX) {
		cr_expect_eq(ftruncate(fd, (off_t)s.size_max + 1), -1);
		cr_expect_eq(errno, EFBIG);
	}
	close(fd);
	unlink(fx_path(f, "size"));
}

static void check_times(struct fx *f)
{
	const struct vfs_statfs s = statfs_of(f);
	const struct timespec t[2] = { { 1000000000, s.time_ns % 1000000000 },
				       { 1000000000, 999999999 } };
	struct stat st;

	vfs_node_put(fx_file(f, "times", "", 0));
	cr_assert_eq(utimensat(AT_FDCWD, fx_path(f, "times"), t, 0), 0);
	cr_assert_eq(stat(fx_path(f, "times"), &st), 0);
	cr_expect_eq(st.st_mtim.tv_nsec > 0, s.time_ns < 1000000000);
	if (s.time_ns < 1000000000)
		cr_expect_eq(st.st_mtim.tv_nsec % s.time_ns, 0);
}

static void check_links(struct fx *f)
{
	const struct vfs_statfs s = statfs_of(f);
	char from[128];

	vfs_node_put(fx_file(f, "linked", "", 0));
	snprintf(from, sizeof(from), "%s", fx_path(f, "linked"));
	cr_expect_eq(link(from, fx_path(f, "link")) == 0, s.links);
	cr_expect_eq(symlink("x", fx_path(f, "symlink")) == 0, s.links);
}

static void check_case(struct fx *f)
{
	vfs_node_put(fx_file(f, "CASE", "", 0));
	cr_expect_eq(vfs_folds_case(&f->ctx, f->root), finds(f, "case"));
}

/* Whether ctimes tell changes apart does not depend on whether there was one. */
static void check_change(struct disk *d)
{
	cr_assert_eq(mkdir(fx_path(&d->f, "change"), 0700), 0);
	cr_expect_eq(ctimes_are_fine(d), d->fine_before);
	cr_expect(!d->fine_before || statfs_of(&d->f).time_ns == 1);
}

static void check(const char *mkfs, const char *type)
{
	struct disk d;

	disk_open(&d, mkfs, type);
	check_change(&d);
	check_size(&d.f);
	check_times(&d.f);
	check_links(&d.f);
	check_case(&d.f);
	disk_close(&d);
}

Test(vfs_statfs, ext4)
{
	check("ext4 -q", "ext4");
}

Test(vfs_statfs, ext4_of_small_blocks)
{
	check("ext4 -q -b 1024", "ext4");
}

Test(vfs_statfs, ext4_of_small_inodes)
{
	check("ext4 -q -I 128", "ext4");
}

Test(vfs_statfs, xfs)
{
	check("xfs -q", "xfs");
}

Test(vfs_statfs, xfs_that_folds_case)
{
	check("xfs -q -n version=ci", "xfs");
}

Test(vfs_statfs, btrfs)
{
	check("btrfs -q", "btrfs");
}

Test(vfs_statfs, fat)
{
	check("vfat", "vfat");
}

/* Case folding is a property of each directory there. */
Test(vfs_statfs, ext4_directories_that_fold_case)
{
	struct vfs_node *plain, *folding;
	struct disk d;

	disk_open(&d, "ext4 -q -O casefold", "ext4");
	cr_assert_eq(fx_command("cd %s && mkdir plain folding && chattr +F folding && "
				"touch plain/A folding/A",
				d.mnt),
		     0);
	plain = fx_lookup(&d.f, "plain");
	folding = fx_lookup(&d.f, "folding");
	cr_expect_not(finds(&d.f, "plain/a"));
	cr_expect_not(vfs_folds_case(&d.f.ctx, plain));
	cr_expect(finds(&d.f, "folding/a"));
	cr_expect(vfs_folds_case(&d.f.ctx, folding));
	vfs_node_put(plain);
	vfs_node_put(folding);
	disk_close(&d);
}
