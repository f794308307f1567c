/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Group commit: how many waits for the disk the changes of several clients cost, which changes a
 * flush covers, and who learns of its error. Every fsync is counted. The disk's answer to those that
 * go by the ring can be held back.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vfs_disk.h"
#include "vfs/export/mounts.h"
#include "vfs/node/node.h"
#include "vfs/base/instance.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_group, .timeout = 300);

#define N 8u

static unsigned by_ring, by_call; /* fsyncs since count_from_here() */
static bool hold;
static struct vfs_ring_op *held[4];
static unsigned nheld;

void __real_vfs_ring_begin_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd,
				 uint64_t offset, uint32_t len);
void __wrap_vfs_ring_begin_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd,
				 uint64_t offset, uint32_t len);

void __wrap_vfs_ring_begin_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd,
				 uint64_t offset, uint32_t len)
{
	by_ring++;
	if (!hold) {
		__real_vfs_ring_begin_fsync(w, op, fd, offset, len);
		return;
	}
	cr_assert_lt(nheld, sizeof(held) / sizeof(held[0]));
	w->in_flight++;
	held[nheld++] = op;
}

/* Replaces libc's function. */
int fsync(int fd)
{
	by_call++;
	return (int)syscall(SYS_fsync, fd);
}

/* The disk answers the oldest flush that was held back. */
static void answer(struct vfs_worker *w, int res)
{
	struct vfs_ring_op *op = held[0];

	cr_assert_gt(nheld, 0);
	memmove(held, held + 1, --nheld * sizeof(held[0]));
	w->in_flight--;
	vfs_ring_finish(w, op, res);
}

static void count_from_here(void)
{
	by_ring = by_call = 0;
}

/* Makes the worker believe that flushes of the disk take so long. */
static void disk_takes(struct disk *d, uint64_t ns)
{
	d->f.w->group.dev = d->f.root->dev;
	d->f.w->group.usual_ns = ns;
}

#define FAST 1u
#define SLOW (UINT64_MAX / 8)

struct change {
	struct vfs_sync sync;
	struct vfs_node *dir;
	int result;
	bool done;
};

static void sync_in_fiber(struct vfs_ctx *ctx, void *arg)
{
	struct change *c = arg;

	c->sync.ctx = ctx;
	c->result = vfs_sync(&c->sync);
	c->done = true;
}

static void wait_for(struct fx *f, struct change *c)
{
	c->done = false;
	fx_start(f, sync_in_fiber, c);
	cr_assert_not(c->done, "nothing is flushed before the worker looks");
}

static void run_all(struct fx *f, struct change *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fx_run(f, &c[i].done);
}

/* Enough turns for all that can be done while a flush is held back. */
static void some_turns(struct fx *f)
{
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(vfs_worker_poll(f->w), 0);
}

/* A directory with a file to be removed, known to be on the disk. */
static void prepare(struct disk *d, struct change *c, unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "dir%u", i);
	cr_assert_eq(fx_command("mkdir -p %s/%s && touch %s/%s/file", d->mnt, name, d->mnt, name),
		     0);
	c->dir = fx_lookup(&d->f, name);
}

static void remove_and_wait(struct fx *f, struct change *c)
{
	cr_assert_eq(vfs_remove(&f->ctx, c->dir, "file", 4, NULL), 0);
	c->sync = (struct vfs_sync){ .node = { c->dir } };
	wait_for(f, c);
}

static void check_removed(struct disk *d, unsigned i)
{
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), "dir%u/file", i);
	disk_after_power_failure(d, name, &st);
	cr_expect_eq(st.st_mode, 0, "%s: %s is back", d->fs, name);
}

static void several_directories(const char *fs)
{
	struct change c[N];
	struct disk d;

	disk_open(&d, fs, "");
	for (unsigned i = 0; i < N; i++)
		prepare(&d, &c[i], i);
	disk_settle(&d);
	count_from_here();
	for (unsigned i = 0; i < N; i++)
		remove_and_wait(&d.f, &c[i]);
	run_all(&d.f, c, N);
	cr_expect_eq(by_ring + by_call, 1, "%s: %u flushes", fs, by_ring + by_call);
	for (unsigned i = 0; i < N; i++) {
		cr_expect_eq(c[i].result, 0);
		check_removed(&d, i);
		vfs_node_put(c[i].dir);
	}
	disk_close(&d);
}

Test(vfs_group, changes_that_wait_share_a_flush_on_ext4)
{
	several_directories("ext4");
}

Test(vfs_group, changes_that_wait_share_a_flush_on_xfs)
{
	several_directories("xfs");
}

/* Each directory is in the log by itself there. */
Test(vfs_group, each_directory_is_flushed_on_btrfs)
{
	struct change c[2];
	struct disk d;

	disk_open(&d, "btrfs", "");
	for (unsigned i = 0; i < 2; i++)
		prepare(&d, &c[i], i);
	disk_settle(&d);
	count_from_here();
	for (unsigned i = 0; i < 2; i++)
		remove_and_wait(&d.f, &c[i]);
	run_all(&d.f, c, 2);
	cr_expect_eq(by_ring + by_call, 2);
	for (unsigned i = 0; i < 2; i++) {
		check_removed(&d, i);
		vfs_node_put(c[i].dir);
	}
	disk_close(&d);
}

/* A change that is made while a flush is under way is not covered by it, and waits for the next. */
static void later_change(const char *fs)
{
	struct change c[3];
	struct disk d;

	disk_open(&d, fs, "");
	for (unsigned i = 0; i < 3; i++)
		prepare(&d, &c[i], i);
	disk_settle(&d);
	count_from_here();
	disk_takes(&d, FAST);
	hold = true;
	remove_and_wait(&d.f, &c[0]);
	some_turns(&d.f);
	cr_assert_eq(nheld, 1);
	remove_and_wait(&d.f, &c[1]);
	some_turns(&d.f);
	remove_and_wait(&d.f, &c[2]);
	some_turns(&d.f);
	cr_expect_eq(nheld, 1, "two flushes of one file system at a time");
	answer(d.f.w, 0);
	disk_takes(&d, FAST);
	some_turns(&d.f);
	cr_expect(c[0].done);
	cr_expect(!c[1].done && !c[2].done, "an earlier flush counted for a later change");
	cr_assert_eq(nheld, 1);
	answer(d.f.w, 0);
	some_turns(&d.f);
	cr_expect(c[1].done && c[2].done);
	cr_expect_eq(by_ring, 2);
	cr_expect_eq(by_call, 0, "the worker waited although it had more to do");
	cr_expect_eq(nheld, 0);
	hold = false;
	for (unsigned i = 0; i < 3; i++)
		vfs_node_put(c[i].dir);
	disk_close(&d);
}

Test(vfs_group, a_flush_under_way_does_not_cover_a_later_change_on_ext4)
{
	later_change("ext4");
}

Test(vfs_group, a_flush_under_way_does_not_cover_a_later_change_on_xfs)
{
	later_change("xfs");
}

/* A slow disk gets the next flushes while one is under way, but not one for each change. */
Test(vfs_group, a_slow_disk_does_not_stand_still)
{
	struct change c[N];
	struct disk d;
	unsigned n;

	disk_open(&d, "ext4", "");
	for (unsigned i = 0; i < N; i++)
		prepare(&d, &c[i], i);
	disk_settle(&d);
	disk_takes(&d, SLOW);
	hold = true;
	for (unsigned i = 0; i < N; i++) {
		remove_and_wait(&d.f, &c[i]);
		some_turns(&d.f);
	}
	n = nheld;
	cr_expect(n > 1 && n < N, "%u flushes under way", n);
	for (unsigned i = 0; i < n; i++) {
		cr_expect_not(c[i].done);
		answer(d.f.w, 0);
		disk_takes(&d, SLOW);
		some_turns(&d.f);
		cr_expect(c[i].done);
		cr_expect_not(c[N - 1].done, "an earlier flush counted for a later change");
	}
	cr_assert_eq(nheld, 1, "the others do not share a flush");
	hold = false;
	answer(d.f.w, 0);
	run_all(&d.f, c, N);
	for (unsigned i = 0; i < N; i++) {
		cr_expect_eq(c[i].result, 0);
		vfs_node_put(c[i].dir);
	}
	disk_close(&d);
}

Test(vfs_group, an_error_reaches_everybody_who_waited)
{
	struct change c[3];
	struct disk d;

	disk_open(&d, "ext4", "");
	for (unsigned i = 0; i < 3; i++)
		prepare(&d, &c[i], i);
	disk_settle(&d);
	hold = true;
	disk_takes(&d, FAST);
	for (unsigned i = 0; i < 2; i++)
		remove_and_wait(&d.f, &c[i]);
	some_turns(&d.f);
	remove_and_wait(&d.f, &c[2]);
	answer(d.f.w, -EIO);
	some_turns(&d.f);
	cr_expect(c[0].done && c[1].done && !c[2].done);
	cr_expect_eq(c[0].result, -EIO);
	cr_expect_eq(c[1].result, -EIO);
	answer(d.f.w, 0);
	some_turns(&d.f);
	cr_expect(c[2].done);
	cr_expect_eq(c[2].result, 0, "an error of the flush before");
	hold = false;
	for (unsigned i = 0; i < 3; i++)
		vfs_node_put(c[i].dir);
	disk_close(&d);
}

/* A file's error is about its data, which others' changes do not depend on. */
Test(vfs_group, an_error_of_one_file_is_not_told_to_others)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0601 };
	struct change c[2] = { 0 };
	struct disk d;

	disk_open(&d, "ext4", "");
	for (unsigned i = 0; i < 2; i++)
		c[i].dir = fx_file(&d.f, "file", "hello", 5);
	disk_settle(&d);
	hold = true;
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(vfs_setattr(&d.f.ctx, c[i].dir, &sa, NULL), 0);
		c[i].sync =
			(struct vfs_sync){ .node = { c[i].dir }, .data_from = VFS_SYNC_METADATA };
		wait_for(&d.f, &c[i]);
	}
	some_turns(&d.f);
	cr_assert_eq(nheld, 1);
	hold = false;
	answer(d.f.w, -EIO);
	run_all(&d.f, c, 2);
	cr_expect_eq(c[0].result, 0);
	cr_expect_eq(c[1].result, 0);
	for (unsigned i = 0; i < 2; i++)
		vfs_node_put(c[i].dir);
	disk_close(&d);
}

/* Makes a file as an exclusive create does: its times are set after it was made. */
static void create_and_wait(struct fx *f, struct change *c, const char *name)
{
	struct vfs_create how = { .how = VFS_EXCLUSIVE, .verf = (const uint8_t *)"verifier" };
	struct vfs_node *n;

	cr_assert_eq(vfs_create(&f->ctx, f->root, name, (uint32_t)strlen(name), &how, &n), 0);
	cr_assert(how.made);
	c->dir = n;
	c->sync = (struct vfs_sync){ .node = { f->root, n }, .how = VFS_SYNC_MADE };
	wait_for(f, c);
}

static void one_wait_for_a_new_file(const char *fs, const char *mkfs_options, unsigned flushes)
{
	struct stat live, st;
	struct change c;
	struct disk d;

	disk_open(&d, fs, mkfs_options);
	disk_settle(&d);
	count_from_here();
	create_and_wait(&d.f, &c, "new");
	run_all(&d.f, &c, 1);
	cr_expect_eq(by_ring + by_call, flushes, "%s: %u flushes", fs, by_ring + by_call);
	cr_assert_eq(stat(fx_path(&d.f, "new"), &live), 0);
	disk_after_power_failure(&d, "new", &st);
	cr_expect(S_ISREG(st.st_mode), "%s: the new file is lost", fs);
	cr_expect_eq(st.st_mtime, live.st_mtime, "%s: its times are lost", fs);
	cr_assert_eq(stat(d.mnt, &live), 0);
	disk_after_power_failure(&d, ".", &st);
	cr_expect(st.st_ctim.tv_sec > live.st_ctim.tv_sec ||
			  (st.st_ctim.tv_sec == live.st_ctim.tv_sec &&
			   st.st_ctim.tv_nsec >= live.st_ctim.tv_nsec),
		  "%s: the directory's time has gone back", fs);
	vfs_node_put(c.dir);
	disk_close(&d);
}

Test(vfs_group, one_wait_for_a_new_file_on_ext4)
{
	one_wait_for_a_new_file("ext4", "", 1);
}

Test(vfs_group, one_wait_for_a_new_file_on_ext4_with_fast_commits)
{
	one_wait_for_a_new_file("ext4", "-O fast_commit", 1);
}

Test(vfs_group, one_wait_for_a_new_file_on_xfs)
{
	one_wait_for_a_new_file("xfs", "", 1);
}

/* The log tree replays the file with its name, but not the directory's times. */
Test(vfs_group, file_and_directory_are_flushed_on_btrfs)
{
	one_wait_for_a_new_file("btrfs", "", 2);
}

static void new_files(const char *fs)
{
	struct change c[N];
	struct disk d;
	struct stat st;
	char name[N][8];

	disk_open(&d, fs, "");
	disk_settle(&d);
	count_from_here();
	for (unsigned i = 0; i < N; i++) {
		snprintf(name[i], sizeof(name[i]), "new%u", i);
		create_and_wait(&d.f, &c[i], name[i]);
	}
	run_all(&d.f, c, N);
	cr_expect_eq(by_ring + by_call, 1, "%s: %u flushes", fs, by_ring + by_call);
	for (unsigned i = 0; i < N; i++) {
		disk_after_power_failure(&d, name[i], &st);
		cr_expect(S_ISREG(st.st_mode), "%s: %s is lost", fs, name[i]);
		vfs_node_put(c[i].dir);
	}
	disk_close(&d);
}

Test(vfs_group, new_files_share_a_flush_on_ext4)
{
	new_files("ext4");
}

Test(vfs_group, new_files_share_a_flush_on_xfs)
{
	new_files("xfs");
}

/* Data that a client wants on the disk are not left to another's flush. */
Test(vfs_group, data_are_flushed_by_their_file)
{
	struct change c[2];
	struct disk d;
	struct stat st;

	disk_open(&d, "ext4", "");
	prepare(&d, &c[0], 0);
	c[1].dir = fx_file(&d.f, "data", "", 0);
	disk_settle(&d);
	cr_assert_eq(fx_write(&d.f, c[1].dir, 0, "hello", 5, VFS_UNSTABLE), 5);
	count_from_here();
	remove_and_wait(&d.f, &c[0]);
	c[1].sync = (struct vfs_sync){ .node = { c[1].dir } };
	wait_for(&d.f, &c[1]);
	run_all(&d.f, c, 2);
	cr_expect_eq(by_ring + by_call, 2);
	check_removed(&d, 0);
	disk_after_power_failure(&d, "data", &st);
	cr_expect_eq(st.st_size, 5);
	for (unsigned i = 0; i < 2; i++)
		vfs_node_put(c[i].dir);
	disk_close(&d);
}

static void flush_once(struct disk *d, struct change *c)
{
	cr_assert_eq(fx_command("touch %s/dir0/file", d->mnt), 0);
	count_from_here();
	remove_and_wait(&d->f, c);
	run_all(&d->f, c, 1);
	cr_expect_eq(by_ring + by_call, 1);
}

/* A worker that has nothing else to do waits for a fast disk itself; for a very slow one the ring does. */
Test(vfs_group, an_idle_worker_waits_itself_for_a_fast_disk)
{
	struct change c;
	struct disk d;

	disk_open(&d, "ext4", "");
	prepare(&d, &c, 0);
	flush_once(&d, &c);
	cr_expect_eq(by_ring, 1, "nothing was known of the disk");
	disk_takes(&d, FAST);
	flush_once(&d, &c);
	cr_expect_eq(by_call, 1);
	disk_takes(&d, SLOW);
	flush_once(&d, &c);
	cr_expect_eq(by_ring, 1, "the worker waited for a slow disk");
	check_removed(&d, 0);
	vfs_node_put(c.dir);
	disk_close(&d);
}

#define CROWDED_MOST 100

/* A worker itself waits for the fsync of a slow disk if no other change waits for a flush, nor did at the last ones. */
Test(vfs_group, a_worker_waits_itself_for_the_only_change)
{
	const uint64_t ns = 1000000;
	struct change c;
	struct disk d;
	int n = 0;

	disk_open(&d, "ext4", "");
	prepare(&d, &c, 0);
	disk_takes(&d, ns);
	flush_once(&d, &c);
	cr_expect_eq(by_call, 1);
	atomic_fetch_add(&d.f.vfs->syncing, 1);
	disk_takes(&d, ns);
	flush_once(&d, &c);
	cr_expect_eq(by_ring, 1, "another change waits");
	atomic_fetch_sub(&d.f.vfs->syncing, 1);
	do {
		disk_takes(&d, ns);
		flush_once(&d, &c);
	} while (by_ring && n++ < CROWDED_MOST);
	cr_expect_gt(n, 1);
	cr_expect_eq(by_call, 1);
	check_removed(&d, 0);
	vfs_node_put(c.dir);
	disk_close(&d);
}

/* A second file system on the same worker. */
static void open_other(struct disk *d, struct fx *f, const char *dir)
{
	const char *why = "";

	*f = d->f;
	cr_assert_eq(vfs_export_open(f->vfs,
				     &(struct vfs_export_config){ dir, 2, VFS_IO_BUFFERED, false },
				     &f->exp, &why),
		     0, "%s", why);
	f->ctx.exp = f->exp;
	cr_assert_eq(vfs_root(&f->ctx, &f->root), 0);
}

Test(vfs_group, nobody_waits_for_another_file_system)
{
	struct change c[2];
	struct fx other;
	struct disk d;
	char dir[FX_PATH];

	disk_open(&d, "ext4", "");
	fx_temp_dir(dir);
	open_other(&d, &other, dir);
	cr_assert_eq(fx_command("touch %s/file", dir), 0);
	prepare(&d, &c[0], 0);
	c[1].dir = other.root;
	hold = true;
	remove_and_wait(&d.f, &c[0]);
	some_turns(&d.f);
	cr_assert_eq(nheld, 1);
	hold = false;
	remove_and_wait(&other, &c[1]);
	run_all(&other, &c[1], 1);
	cr_expect_not(c[0].done);
	cr_expect_eq(by_call, 0, "the worker waited although it had more to do");
	answer(d.f.w, 0);
	run_all(&d.f, &c[0], 1);
	vfs_node_put(c[0].dir);
	vfs_node_put(other.root);
	vfs_forget_export(d.f.vfs, 2);
	vfs_export_put(other.exp);
	cr_assert_eq(fx_command("rm -rf %s", dir), 0);
	disk_close(&d);
}
