/* SPDX-License-Identifier: BSD-2-Clause */
/* Durability of metadata, on real file systems after a power failure. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/vfs_disk.h"
#include "vfs/fs/file_system.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_sync, .timeout = 300);

#define MIB (1u << 20)

static int set_and_sync(struct fx *f, struct vfs_node *n, const struct vfs_setattr *sa)
{
	int rc = vfs_setattr(&f->ctx, n, sa, NULL);

	return rc == 0 ? fx_sync_metadata(f, n) : rc;
}

static void make_each(struct fx *f)
{
	cr_assert_eq(symlink("target", fx_path(f, "symlink")), 0);
	cr_assert_eq(mkfifo(fx_path(f, "fifo"), 0600), 0);
	cr_assert_eq(mknod(fx_path(f, "socket"), S_IFSOCK | 0600, 0), 0);
	mknod(fx_path(f, "device"), S_IFCHR | 0600, 0x103);
	cr_assert_eq(mkdir(fx_path(f, "directory"), 0700), 0);
	vfs_node_put(fx_file(f, "file", "hello", 5));
}

static void every_type(const char *fs, const char *mkfs_options)
{
	static const char *const names[] = { "symlink", "fifo",	     "socket",
					     "device",	"directory", "file" };
	const struct vfs_setattr sa = {
		.set_uid = true, .uid = 4242, .set_mtime = VFS_TIME_CLIENT, .mtime = { 4711, 0 }
	};
	struct disk d;
	struct stat st;

	disk_open(&d, fs, mkfs_options);
	make_each(&d.f);
	disk_settle(&d);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct vfs_node *n;

		if (lstat(fx_path(&d.f, names[i]), &st) != 0)
			continue; /* the container has no loop devices */
		n = fx_lookup(&d.f, names[i]);
		cr_assert_eq(set_and_sync(&d.f, n, &sa), 0);
		vfs_node_put(n);
		disk_after_power_failure(&d, names[i], &st);
		cr_expect_eq(st.st_uid, 4242, "%s: the owner of the %s is lost", fs, names[i]);
		cr_expect_eq(st.st_mtime, 4711, "%s: the time of the %s is lost", fs, names[i]);
	}
	disk_close(&d);
}

Test(vfs_sync, every_type_on_ext4)
{
	every_type("ext4", "");
}

Test(vfs_sync, every_type_on_ext4_with_fast_commits)
{
	every_type("ext4", "-O fast_commit");
}

Test(vfs_sync, every_type_on_ext4_without_a_journal)
{
	every_type("ext4", "-O ^has_journal");
}

Test(vfs_sync, every_type_on_xfs)
{
	every_type("xfs", "");
}

Test(vfs_sync, every_type_on_btrfs)
{
	every_type("btrfs", "");
}

/* With or without the links of udev below /dev. */
static void keeps_linked(const char *mkfs_options, bool want)
{
	struct disk d;
	int fd;

	disk_open(&d, "ext4", mkfs_options);
	fd = open(d.mnt, O_RDONLY | O_DIRECTORY);
	cr_assert_geq(fd, 0);
	cr_expect_eq(vfs_fs_traits_of(fd).keeps_linked, want);
	close(fd);
	disk_close(&d);
}

Test(vfs_sync, ext4_keeps_files_that_were_linked)
{
	keeps_linked("", true);
}

Test(vfs_sync, ext4_with_fast_commits_does_not_keep_files_that_were_linked)
{
	keeps_linked("-O fast_commit", false);
}

static void dirty(struct disk *d, struct vfs_node *n)
{
	static uint8_t data[MIB];

	memset(data, 1, sizeof(data));
	for (uint64_t i = 0; i < 8; i++)
		cr_assert_eq(fx_write(&d->f, n, i * MIB, data, MIB, VFS_UNSTABLE), MIB);
}

/* The mode is on the disk. The file's data are not, because the client did not ask for that. */
static void data_stay_in_memory(const char *fs)
{
	const struct vfs_setattr mode = { .set_mode = true, .mode = 0601 };
	struct vfs_node *n;
	struct disk d;
	struct stat st;

	disk_open(&d, fs, "");
	n = fx_file(&d.f, "file", "", 0);
	disk_settle(&d);
	dirty(&d, n);
	cr_assert_eq(set_and_sync(&d.f, n, &mode), 0);
	disk_after_power_failure(&d, "file", &st);
	cr_expect_eq(st.st_mode & 07777, 0601);
	cr_expect_lt(st.st_size, 8 * MIB, "%s: data were flushed for a change of mode", fs);
	cr_assert_eq(fx_sync(&d.f, n, NULL, NULL), 0);
	disk_after_power_failure(&d, "file", &st);
	cr_expect_eq(st.st_size, 8 * MIB);
	vfs_node_put(n);
	disk_close(&d);
}

Test(vfs_sync, data_stay_in_memory_on_ext4)
{
	data_stay_in_memory("ext4");
}

Test(vfs_sync, data_stay_in_memory_on_xfs)
{
	data_stay_in_memory("xfs");
}

/* Uses up all descriptors that the process may have. */
static void use_up_descriptors(struct rlimit *was)
{
	struct rlimit none;
	int next = dup(0);

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, was), 0);
	none = *was;
	none.rlim_cur = (rlim_t)next;
	close(next);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
}

/* Changes are made durable, and reported as such, without a free descriptor. */
static void without_descriptors(const char *fs)
{
	const struct vfs_setattr mode = { .set_mode = true, .mode = 0601 };
	struct rlimit was;
	struct vfs_node *n;
	struct disk d;
	struct stat st;

	disk_open(&d, fs, "");
	n = fx_file(&d.f, "file", "hello", 5);
	disk_settle(&d);
	use_up_descriptors(&was);
	cr_expect_eq(set_and_sync(&d.f, n, &mode), 0);
	cr_expect_eq(vfs_remove(&d.f.ctx, d.f.root, "file", 4, NULL), 0);
	cr_expect_eq(fx_sync(&d.f, d.f.root, NULL, NULL), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	disk_after_power_failure(&d, "file", &st);
	cr_expect_eq(st.st_mode, 0, "%s: the file is back", fs);
	vfs_node_put(n);
	disk_close(&d);
}

Test(vfs_sync, without_descriptors_on_ext4)
{
	without_descriptors("ext4");
}

Test(vfs_sync, without_descriptors_on_xfs)
{
	without_descriptors("xfs");
}

Test(vfs_sync, without_descriptors_on_btrfs)
{
	without_descriptors("btrfs");
}
