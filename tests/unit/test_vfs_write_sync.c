/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronous writes of one file share fsyncs: which writes one covers, what is on the disk then, and who learns of its error. Every
 * fsync is counted. The disk's answer to those that go by the ring can be held back.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vfs_disk.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_write_sync, .timeout = 120);

#define N 8u
#define FAST 1u
#define SLOW (UINT64_MAX / 8)

static unsigned by_ring, by_call; /* fsyncs so far */
static bool hold;
static struct rn_fiber *held;
static int answer_is;
static struct vfs_ring_sync last;

int __real_vfs_ring_fsync(struct vfs_ctx *ctx, int fd, const struct vfs_ring_sync *s);
int __wrap_vfs_ring_fsync(struct vfs_ctx *ctx, int fd, const struct vfs_ring_sync *s);

static void nothing(void *arg)
{
	(void)arg;
}

int __wrap_vfs_ring_fsync(struct vfs_ctx *ctx, int fd, const struct vfs_ring_sync *s)
{
	int rc;

	by_ring++;
	last = *s;
	if (hold) {
		cr_assert_null(held, "two at a time");
		held = ctx->fiber;
		rn_fiber_wait(ctx->fiber, RN_WAIT_RING, nothing, NULL);
	}
	rc = __real_vfs_ring_fsync(ctx, fd, s);
	return answer_is < 0 ? answer_is : rc;
}

/* Replace libc's functions. */
int fsync(int fd)
{
	by_call++;
	return (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd)
{
	by_call++;
	return (int)syscall(SYS_fdatasync, fd);
}

static void answer(void)
{
	struct rn_fiber *f = held;

	cr_assert_not_null(f);
	held = NULL;
	rn_fiber_resume(f);
}

struct writing {
	struct vfs_io io;
	int64_t result;
	bool done;
};

static void write_in_fiber(struct vfs_ctx *ctx, void *arg)
{
	struct writing *w = arg;

	w->io.ctx = ctx;
	w->result = vfs_write(&w->io);
	w->done = true;
}

static const char block[4096] = "written";

static void start(struct disk *d, struct vfs_node *n, struct writing *w, uint64_t offset)
{
	*w = (struct writing){ .io = { .node = n,
				       .offset = offset,
				       .count = sizeof(block),
				       .piece = { { (void *)(uintptr_t)block, sizeof(block) } },
				       .npieces = 1,
				       .stable = VFS_FILE_SYNC } };
	fx_start(&d->f, write_in_fiber, w);
}

/* Enough turns for all that can be done while an fsync is held back. */
static void some_turns(struct disk *d)
{
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(vfs_worker_poll(d->f.w), 0);
}

static struct vfs_node *begin(struct disk *d, const char *fs, uint64_t disk_takes_ns)
{
	struct vfs_node *n;

	disk_open(d, fs, "");
	n = fx_file(&d->f, "data", "", 0);
	disk_settle(d);
	d->f.w->group.dev = d->f.root->dev;
	d->f.w->group.usual_ns = disk_takes_ns;
	return n;
}

static void end(struct disk *d, struct vfs_node *n)
{
	cr_expect_null(n->uncommitted.syncs);
	vfs_node_put(n);
	disk_close(d);
}

static off_t size_on_disk(struct disk *d)
{
	struct stat st;

	disk_after_power_failure(d, "data", &st);
	return st.st_size;
}

Test(vfs_write_sync, those_that_come_together_share_one)
{
	struct writing w[N];
	struct disk d;
	struct vfs_node *n = begin(&d, "ext4", SLOW);

	for (unsigned i = 0; i < N; i++)
		start(&d, n, &w[i], i * sizeof(block));
	for (unsigned i = 0; i < N; i++) {
		fx_run(&d.f, &w[i].done);
		cr_expect_eq(w[i].result, sizeof(block));
	}
	cr_expect_eq(by_ring, 1);
	cr_expect_eq(by_call, 0);
	cr_expect(last.offset == 0 && last.len == N * sizeof(block) && !last.data_only);
	cr_expect_eq(size_on_disk(&d), N * sizeof(block));
	end(&d, n);
}

/* One that is under way covers nothing that is written later. */
static void later_ones(const char *fs)
{
	struct writing w[4];
	struct disk d;
	struct vfs_node *n = begin(&d, fs, FAST);

	hold = true;
	d.f.w->group.usual_ns = SLOW;
	start(&d, n, &w[0], 0);
	some_turns(&d);
	cr_assert_eq(by_ring, 1);
	for (unsigned i = 1; i < 4; i++) {
		start(&d, n, &w[i], i * sizeof(block));
		some_turns(&d);
	}
	cr_expect_eq(by_ring, 1);
	answer();
	fx_run(&d.f, &w[0].done);
	some_turns(&d);
	cr_expect(!w[1].done && !w[2].done && !w[3].done,
		  "an earlier fsync counted for a later write");
	cr_expect_eq(by_ring, 2);
	cr_expect(last.offset == sizeof(block) && last.len == 3 * sizeof(block));
	answer();
	hold = false;
	for (unsigned i = 0; i < 4; i++) {
		fx_run(&d.f, &w[i].done);
		cr_expect_eq(w[i].result, sizeof(block));
	}
	cr_expect_eq(by_ring, 2);
	cr_expect_eq(size_on_disk(&d), 4 * sizeof(block));
	end(&d, n);
}

Test(vfs_write_sync, later_ones_wait_for_the_next_on_ext4)
{
	later_ones("ext4");
}

Test(vfs_write_sync, later_ones_wait_for_the_next_on_btrfs)
{
	later_ones("btrfs");
}

/* An error is everybody's who waited for that fsync, and of nobody who waits for the next. */
Test(vfs_write_sync, an_error_is_told_to_those_that_shared_it)
{
	struct writing w[3];
	struct disk d;
	struct vfs_node *n = begin(&d, "ext4", SLOW);

	hold = true;
	start(&d, n, &w[0], 0);
	start(&d, n, &w[1], sizeof(block));
	some_turns(&d);
	start(&d, n, &w[2], 2 * sizeof(block));
	answer_is = -EIO;
	answer();
	fx_run(&d.f, &w[0].done);
	some_turns(&d);
	cr_expect_eq(w[0].result, -EIO);
	cr_expect(w[1].done && w[1].result == -EIO);
	cr_expect(!w[2].done);
	answer_is = 0;
	answer();
	fx_run(&d.f, &w[2].done);
	/* The third write ran while that loss was seen, so its data may be among what was lost. */
	cr_expect_eq(w[2].result, -EIO);
	hold = false;
	start(&d, n, &w[0], 0);
	fx_run(&d.f, &w[0].done);
	cr_expect_eq(w[0].result, sizeof(block));
	end(&d, n);
}

static void one(struct disk *d, struct vfs_node *n, enum vfs_stable stable)
{
	struct writing w;

	start(d, n, &w, 0);
	w.io.stable = stable;
	fx_run(&d->f, &w.done);
	cr_expect_eq(w.result, sizeof(block));
}

Test(vfs_write_sync, an_idle_worker_waits_for_a_fast_disk_itself)
{
	static char much[128 << 10];
	struct disk d;
	struct vfs_node *n = begin(&d, "ext4", FAST);

	one(&d, n, VFS_FILE_SYNC);
	cr_expect(by_call == 1 && by_ring == 0);
	cr_expect_neq(d.f.w->group.usual_ns, FAST, "the time is not measured");
	d.f.w->group.usual_ns = SLOW;
	one(&d, n, VFS_FILE_SYNC);
	cr_expect(by_call == 1 && by_ring == 1, "the worker waited for a slow disk");
	d.f.w->group.usual_ns = FAST;
	cr_expect_eq(fx_write(&d.f, n, 0, much, sizeof(much), VFS_FILE_SYNC), sizeof(much));
	cr_expect(by_call == 1 && by_ring == 2, "the worker waited for much");
	/* Data of others are not waited for: fsync(2) knows no range. */
	d.f.w->group.usual_ns = FAST;
	cr_expect_eq(fx_write(&d.f, n, 1 << 20, much, sizeof(much), VFS_UNSTABLE), sizeof(much));
	one(&d, n, VFS_FILE_SYNC);
	cr_expect(by_call == 1 && by_ring == 3);
	cr_expect(last.offset == 0 && last.len == sizeof(block));
	end(&d, n);
}
