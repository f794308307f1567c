/* SPDX-License-Identifier: BSD-2-Clause */
/* Data acknowledged before they were durable: the handling of their node, and the clients that
 * learn of a loss. The disk that loses them is real (fx_lossy_disk). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/base/instance.h"
#include "vfs/node/node.h"
#include "vfs/node/cache.h"
#include "vfs/node/uncommitted.h"

TestSuite(vfs_uncommitted, .timeout = 120);

#define MIB (1u << 20)
#define LOSSY_MIB 24

static bool openat_fails;

/* Replaces libc's function. */
int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	errno = EIO;
	return openat_fails ? -1 : (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

struct lossy {
	char dir[FX_PATH], mnt[FX_PATH + 16];
	struct fx f;
	struct vfs_node *n; /* node with data that cannot be written back */
};

static void lossy_open(struct lossy *l)
{
	static uint8_t data[MIB];

	fx_lossy_disk(l->dir, l->mnt);
	fx_open(&l->f, FX_FIXED, VFS_IO_BUFFERED, l->mnt);
	l->n = fx_file(&l->f, "file", "", 0);
	memset(data, 1, sizeof(data));
	for (uint64_t i = 0; i < LOSSY_MIB; i++)
		cr_assert_eq(fx_write(&l->f, l->n, i * MIB, data, MIB, VFS_UNSTABLE), MIB);
	cr_assert_eq(vfs_write_verifier(l->f.exp), 4711);
}

static void lossy_close(struct lossy *l)
{
	vfs_node_put(l->n);
	fx_close(&l->f);
	fx_lossy_disk_end(l->dir, l->mnt);
}

/* A local process gets the error first, so that a later open does not report it. */
static void seen_by_others(struct lossy *l)
{
	int fd = open(fx_path(&l->f, "file"), O_RDONLY);

	cr_assert_geq(fd, 0);
	(void)!fsync(fd);
	close(fd);
}

/* The node has been closed. The next commit must fail, although the kernel no longer reports the
 * error. */
static void check_told(struct lossy *l)
{
	seen_by_others(l);
	l->n = fx_lookup(&l->f, "file");
	(void)fx_commit(&l->f, l->n, 0, 0);
	cr_expect_neq(vfs_write_verifier(l->f.exp), 4711);
	lossy_close(l);
}

Test(vfs_uncommitted, idle_closing_finds_the_loss)
{
	struct lossy l;

	lossy_open(&l);
	vfs_node_put(l.n);
	l.f.vfs->cfg.idle_seconds = 0;
	sleep(2);
	vfs_reap(l.f.vfs);
	vfs_node_put(fx_lookup(&l.f, "file"));
	sleep(2);
	vfs_reap(l.f.vfs);
	check_told(&l);
}

Test(vfs_uncommitted, eviction_finds_the_loss)
{
	struct lossy l;

	lossy_open(&l);
	vfs_node_put(l.n);
	while (vfs_cache_evict(l.f.vfs))
		continue;
	while (vfs_cache_evict(l.f.vfs))
		continue;
	check_told(&l);
}

Test(vfs_uncommitted, an_export_that_goes_finds_the_loss)
{
	struct lossy l;

	lossy_open(&l);
	vfs_node_put(l.n);
	vfs_forget_export(l.f.vfs, 1);
	check_told(&l);
}

/* The node is in use when its export is removed: its last user closes it. */
Test(vfs_uncommitted, the_last_reference_finds_the_loss)
{
	struct lossy l;

	lossy_open(&l);
	vfs_forget_export(l.f.vfs, 1);
	cr_assert_eq(vfs_write_verifier(l.f.exp), 4711);
	vfs_node_put(l.n);
	cr_expect_neq(vfs_write_verifier(l.f.exp), 4711);
	check_told(&l);
}

Test(vfs_uncommitted, the_flusher_finds_the_loss)
{
	struct lossy l;

	lossy_open(&l);
	cr_assert_eq(vfs_flusher_start(l.f.vfs), 0);
	vfs_node_put(l.n);
	vfs_cache_flush_idle(l.f.vfs, INT64_MAX);
	for (int i = 0; i < 6000 && atomic_load(&l.f.vfs->uncommitted) > 0; i++)
		usleep(10000);
	cr_expect_neq(vfs_write_verifier(l.f.exp), 4711);
	vfs_flusher_stop(l.f.vfs);
	check_told(&l);
}

Test(vfs_uncommitted, a_removed_file_is_nobodys_loss)
{
	struct lossy l;
	struct vfs_stats st;

	lossy_open(&l);
	cr_assert_eq(vfs_remove(&l.f.ctx, l.f.root, "file", 4, NULL), 0);
	vfs_node_put(l.n);
	l.n = NULL;
	cr_expect_eq(vfs_write_verifier(l.f.exp), 4711);
	cr_expect_eq(atomic_load(&l.f.vfs->uncommitted), 0);
	vfs_stats(l.f.vfs, &st);
	cr_expect_eq(st.nodes, 1, "the root is left");
	lossy_close(&l);
}

/* Two clients commit. The first one's sync consumes the error; the second one is answered before
 * the first one's worker has noted it. */
Test(vfs_uncommitted, a_commit_knows_what_another_was_told)
{
	struct lossy l;
	int fd;

	lossy_open(&l);
	fd = vfs_node_fd(&l.f.ctx, l.n, VFS_FD_WRITE);
	cr_assert_lt(fsync(fd), 0);
	for (int i = 0; i < 100 && fsync(fd) < 0; i++)
		continue; /* consumes the errors without noting them */
	cr_expect_eq(fx_commit(&l.f, l.n, 0, 0), 0);
	cr_expect_neq(vfs_write_verifier(l.f.exp), 4711);
	lossy_close(&l);
}

/* The same for a synchronous write: its data may be among the lost ones. */
Test(vfs_uncommitted, a_synchronous_write_knows_what_another_was_told)
{
	struct vfs_syncing s;
	struct lossy l;

	lossy_open(&l);
	vfs_syncing_begin(&s, l.n, VFS_SYNCING_WRITE);
	cr_assert_lt(fx_commit(&l.f, l.n, 0, 0), 0);
	vfs_syncing_end(&s, l.n, 4096);
	cr_expect(s.lost);
	lossy_close(&l);
}

/* After the error commits succeed again, and no client gets the error twice. */
Test(vfs_uncommitted, one_loss_is_told_once)
{
	struct lossy l;
	uint64_t verifier;

	lossy_open(&l);
	cr_assert_lt(fx_commit(&l.f, l.n, 0, 0), 0);
	verifier = vfs_write_verifier(l.f.exp);
	cr_expect_neq(verifier, 4711);
	(void)fx_commit(&l.f, l.n, 0, 0);
	cr_expect_eq(vfs_write_verifier(l.f.exp), verifier);
	cr_expect_eq(atomic_load(&l.f.vfs->uncommitted), 0);
	lossy_close(&l);
}

/* Makes a file of another export in dir, with uncommitted data. */
static struct vfs_node *uncommitted_file(struct fx *f, struct vfs_export *exp, const char *dir)
{
	struct fx of = *f;
	struct vfs_node *n;

	snprintf(of.dir, sizeof(of.dir), "%s", dir);
	of.exp = of.ctx.exp = exp;
	cr_assert_eq(vfs_root(&of.ctx, &of.root), 0);
	n = fx_file(&of, "safe", "", 0);
	cr_assert_eq(fx_write(&of, n, 0, "data", 4, VFS_UNSTABLE), 4);
	vfs_node_put(of.root);
	return n;
}

/* A client of another export need not send its data again. A client of the same export must, even
 * if a reload has made a new export object. */
Test(vfs_uncommitted, a_loss_is_its_exports)
{
	struct vfs_export *other, *next;
	struct vfs_node *safe;
	char dir[FX_PATH];
	const char *why;
	struct lossy l;

	lossy_open(&l);
	fx_temp_dir(dir);
	cr_assert_eq(vfs_export_open(l.f.vfs,
				     &(struct vfs_export_config){ dir, 2, VFS_IO_BUFFERED, false },
				     &other, &why),
		     0);
	safe = uncommitted_file(&l.f, other, dir);
	cr_assert_eq(
		vfs_export_open(l.f.vfs,
				&(struct vfs_export_config){ l.mnt, 1, VFS_IO_BUFFERED, false },
				&next, &why),
		0);
	cr_assert_lt(fx_commit(&l.f, l.n, 0, 0), 0);
	cr_expect_neq(vfs_write_verifier(l.f.exp), 4711);
	cr_expect_eq(vfs_write_verifier(next), vfs_write_verifier(l.f.exp));
	cr_expect_eq(vfs_write_verifier(other), 4711);
	vfs_node_put(safe);
	vfs_export_put(other);
	vfs_export_put(next);
	fx_command("rm -r %s", dir);
	lossy_close(&l);
}

/* A device that failed once may have lost the cached data of all its files. */
Test(vfs_uncommitted, a_failed_device_is_told_to_all_its_exports)
{
	struct vfs_export *same, *elsewhere;
	struct vfs_node *n, *of_same, *of_elsewhere;
	char dir[FX_PATH], sub[FX_PATH + 4];
	struct vfs_syncing s;
	const char *why;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	snprintf(sub, sizeof(sub), "%s/sub", f.dir);
	cr_assert_eq(mkdir(sub, 0755), 0);
	fx_temp_dir(dir);
	fx_mount_tmpfs(dir, "size=8m");
	cr_assert_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ sub, 2, VFS_IO_BUFFERED, 0 },
				     &same, &why),
		     0);
	cr_assert_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ dir, 3, VFS_IO_BUFFERED, 0 },
				     &elsewhere, &why),
		     0);
	n = fx_file(&f, "file", "", 0);
	cr_assert_eq(fx_write(&f, n, 0, "data", 4, VFS_UNSTABLE), 4);
	of_same = uncommitted_file(&f, same, sub);
	of_elsewhere = uncommitted_file(&f, elsewhere, dir);
	vfs_syncing_begin(&s, n, VFS_SYNCING_ALL);
	vfs_syncing_end(&s, n, -EIO);
	cr_expect_neq(vfs_write_verifier(f.exp), 4711);
	cr_expect_neq(vfs_write_verifier(same), 4711);
	cr_expect_eq(vfs_write_verifier(elsewhere), 4711);
	vfs_node_put(n);
	vfs_node_put(of_same);
	vfs_node_put(of_elsewhere);
	vfs_export_put(same);
	vfs_export_put(elsewhere);
	fx_close(&f);
	fx_command("umount %s && rmdir %s", dir, dir);
}

/* An error of a write that was not acknowledged does not concern other files. */
static void check_full(enum fx_how how, enum vfs_stable stable)
{
	static uint8_t data[MIB];
	struct vfs_node *n, *other;
	char dir[FX_PATH];
	int64_t rc = MIB;
	struct fx f;

	fx_temp_dir(dir);
	fx_mount_tmpfs(dir, "size=8m");
	fx_open(&f, how, VFS_IO_BUFFERED, dir);
	n = fx_file(&f, "file", "", 0);
	other = fx_file(&f, "other", "", 0);
	cr_assert_eq(fx_write(&f, other, 0, data, 4096, VFS_UNSTABLE), 4096);
	cr_assert_eq(fx_write(&f, n, 0, data, 4096, VFS_UNSTABLE), 4096);
	for (uint64_t i = 1; i < 16 && rc > 0; i++)
		rc = fx_write(&f, n, i * MIB, data, MIB, stable);
	cr_expect_eq(rc, -ENOSPC);
	cr_expect_eq(vfs_write_verifier(f.exp), 4711);
	cr_expect_eq(fx_commit(&f, other, 0, 0), 0);
	cr_expect_eq(fx_commit(&f, n, 0, 0), 0);
	cr_expect_eq(vfs_write_verifier(f.exp), 4711);
	vfs_node_put(n);
	vfs_node_put(other);
	fx_close(&f);
	fx_command("umount %s; rmdir %s", dir, dir);
}

Test(vfs_uncommitted, a_full_disk_changes_nothing)
{
	check_full(FX_FIXED, VFS_FILE_SYNC);
}

Test(vfs_uncommitted, a_full_disk_changes_nothing_without_a_ring)
{
	check_full(FX_SYSCALL, VFS_DATA_SYNC);
}

Test(vfs_uncommitted, a_full_disk_changes_nothing_unstable)
{
	check_full(FX_FIXED, VFS_UNSTABLE);
}

/* Nor does an error of opening the file, because no data were written. */
Test(vfs_uncommitted, a_write_that_cannot_open_its_file_changes_nothing)
{
	struct vfs_node *n, *other;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "", 0);
	other = fx_file(&f, "other", "", 0);
	cr_assert_eq(fx_write(&f, other, 0, "data", 4, VFS_UNSTABLE), 4);
	openat_fails = true;
	cr_expect_eq(fx_write(&f, n, 0, "data", 4, VFS_FILE_SYNC), -EIO);
	openat_fails = false;
	cr_expect_eq(vfs_write_verifier(f.exp), 4711, "nothing was lost");
	cr_expect_eq(fx_write(&f, n, 0, "data", 4, VFS_FILE_SYNC), 4);
	cr_expect_eq(fx_commit(&f, other, 0, 0), 0);
	cr_expect_eq(vfs_write_verifier(f.exp), 4711);
	vfs_node_put(n);
	vfs_node_put(other);
	fx_close(&f);
}

/* Nodes that cannot be closed at once must not use up the descriptor budget. */
Test(vfs_uncommitted, there_is_a_budget)
{
	struct vfs_stats st;
	char name[16];
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	f.vfs->cfg.max_fds = 64;
	for (unsigned i = 0; i < 100; i++) {
		struct vfs_node *n;

		snprintf(name, sizeof(name), "f%u", i);
		n = fx_file(&f, name, "", 0);
		cr_assert_eq(fx_write(&f, n, 0, "x", 1, VFS_UNSTABLE), 1);
		cr_assert_eq(vfs_uncommitted_any(n),
			     atomic_load(&f.vfs->uncommitted) <= 8 && i < 8);
		vfs_node_put(n);
		vfs_stats(f.vfs, &st);
		cr_assert_leq(st.fds, 64 + 4);
	}
	fx_close(&f);
}

Test(vfs_uncommitted, a_commit_of_all_makes_a_node_closable)
{
	struct vfs_node *n;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "", 0);
	cr_assert_eq(fx_write(&f, n, 0, "hello", 5, VFS_FILE_SYNC), 5);
	cr_expect_not(vfs_uncommitted_any(n));
	cr_assert_eq(fx_write(&f, n, 0, "hello", 5, VFS_UNSTABLE), 5);
	cr_expect(vfs_uncommitted_any(n));
	cr_assert_eq(fx_commit(&f, n, 0, 3), 0);
	cr_expect(vfs_uncommitted_any(n), "a part");
	cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
	cr_expect_not(vfs_uncommitted_any(n));
	f.ctx.access.flags |= VFS_ASYNC;
	cr_assert_eq(fx_write(&f, n, 0, "hello", 5, VFS_UNSTABLE), 5);
	cr_expect_not(vfs_uncommitted_any(n), "nobody asks for more");
	vfs_node_put(n);
	fx_close(&f);
}
