/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/node/node.h"

TestSuite(vfs_commit, .timeout = 120);

#define MIB (1u << 20)

Test(vfs_commit, ranges)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *n;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = fx_file(&f, "file", "hello", 5);
		cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
		cr_assert_eq(fx_commit(&f, n, 3, 1), 0);
		cr_assert_eq(fx_commit(&f, n, 3, 0), 0);
		cr_assert_eq(fx_commit(&f, n, 1000, UINT32_MAX), 0);
		cr_assert_eq(fx_commit(&f, n, INT64_MAX, 4096), 0);
		cr_assert_eq(fx_commit(&f, n, UINT64_MAX, UINT32_MAX), 0);
		cr_assert_eq(fx_commit(&f, f.root, 0, 0), -EISDIR);
		cr_assert_eq(vfs_write_verifier(f.exp), 4711);
		vfs_node_put(n);
		fx_close(&f);
	}
}

/* Replaces the descriptor by one that cannot be synced, so that a sync of it fails. */
static void unsyncable(struct fx *f, struct vfs_node *n, enum vfs_fd_kind kind)
{
	int fd = vfs_node_fd(&f->ctx, n, kind), null = open("/dev/null", O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(dup2(null, fd), fd);
	close(null);
}

Test(vfs_commit, async_exports_do_not_wait)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *n;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = fx_file(&f, "file", "hello", 5);
		unsyncable(&f, n, VFS_FD_WRITE);
		cr_assert_eq(fx_commit(&f, n, 0, 0), -EINVAL);
		f.ctx.access.flags |= VFS_ASYNC;
		cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
		vfs_node_put(n);
		fx_close(&f);
	}
}

Test(vfs_commit, nodes_are_synced)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *a, *b, *fifo;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		a = fx_file(&f, "a", "hello", 5);
		b = fx_file(&f, "b", "hello", 5);
		cr_assert_eq(mkfifo(fx_path(&f, "fifo"), 0600), 0);
		fifo = fx_lookup(&f, "fifo");
		cr_assert_eq(fx_sync(&f, NULL, NULL, NULL), 0);
		cr_assert_eq(fx_sync(&f, f.root, a, b), 0);
		cr_assert_eq(fx_sync(&f, f.root, NULL, f.root), 0);
		cr_assert_eq(fx_sync(&f, fifo, fifo, f.root), 0);
		cr_assert_eq(fx_sync(&f, NULL, NULL, fifo), 0);
		vfs_node_put(a);
		vfs_node_put(b);
		vfs_node_put(fifo);
		fx_close(&f);
	}
}

static void check_lost_data(enum fx_how how, bool by_commit)
{
	static uint8_t data[MIB];
	char dir[FX_PATH], mnt[FX_PATH + 16];
	struct vfs_node *n;
	int64_t rc = 0;
	struct fx f;

	fx_lossy_disk(dir, mnt);
	fx_open(&f, how, VFS_IO_BUFFERED, mnt);
	n = fx_file(&f, "file", "", 0);
	memset(data, 1, sizeof(data));
	for (uint64_t i = 0; i < 24; i++) {
		rc = fx_write(&f, n, i * MIB, data, MIB, VFS_UNSTABLE);
		cr_assert_eq(rc, MIB, "unstable write: %ld", rc);
	}
	cr_assert_eq(vfs_write_verifier(f.exp), 4711);
	if (by_commit) {
		rc = fx_commit(&f, n, 0, 0);
	} else {
		/* The stable write of one block reports the loss of the others. */
		fx_command("sync -f %s 2>/dev/null", mnt);
		rc = fx_write(&f, n, 0, data, 4096, VFS_FILE_SYNC);
	}
	cr_assert(rc == -EIO || rc == -ENOSPC || rc == -EROFS, "%ld", rc);
	cr_assert_neq(vfs_write_verifier(f.exp), 4711);
	vfs_node_put(n);
	fx_close(&f);
	fx_lossy_disk_end(dir, mnt);
}

Test(vfs_commit, lost_data_changes_the_verifier)
{
	check_lost_data(FX_FIXED, true);
}

Test(vfs_commit, lost_data_found_by_a_stable_write)
{
	check_lost_data(FX_SYSCALL, false);
}
