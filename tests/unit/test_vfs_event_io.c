/* SPDX-License-Identifier: BSD-2-Clause */
/* READ and WRITE by a worker that must not wait: what is in memory, or nothing. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/mover.h"
#include "tests/unit/vfs_io_fixture.h"
#include "vfs/node/node.h"

#define LEN 8192u

struct event {
	struct fx f;
	struct vfs_worker *w;
	struct mover mover;
	uint8_t data[LEN], got[LEN];
	struct vfs_node *n;
};

static void open_event(struct event *p, enum vfs_io_mode mode)
{
	fx_need_root();
	fx_open(&p->f, FX_FIXED, mode, NULL);
	cr_assert_eq(vfs_worker_new_event(p->f.vfs, &p->w), 0);
	mover_init(&p->mover, p->w, p->f.w);
	fx_fill(p->data, LEN, 0, 1);
	p->n = fx_file(&p->f, "file", p->data, LEN);
}

static void close_event(struct event *p)
{
	vfs_node_put(p->n);
	vfs_worker_free(p->w);
	fx_close(&p->f);
}

struct outcome {
	int64_t result;
	bool moved, eof;
};

static struct outcome read_event(struct event *p, uint64_t offset, uint32_t count)
{
	struct vfs_ctx ctx = p->f.ctx;
	struct vfs_io io = { .ctx = &ctx, .node = p->n, .offset = offset, .count = count };
	struct outcome o;

	ctx.fiber = &p->mover.fiber;
	io.payload = rn_payload_get(p->f.pool, count);
	cr_assert_not_null(io.payload);
	o.result = vfs_read(&io);
	o.eof = io.eof;
	o.moved = mover_has_moved(&p->mover);
	if (o.result > 0)
		memcpy(p->got, io.payload->data + io.data_off, (size_t)o.result);
	rn_payload_put(io.payload);
	return o;
}

static struct outcome write_event(struct event *p, const void *data, uint32_t count,
				  enum vfs_stable stable)
{
	struct vfs_ctx ctx = p->f.ctx;
	struct vfs_io io = { .ctx = &ctx,
			     .node = p->n,
			     .count = count,
			     .piece = { { (void *)data, count } },
			     .npieces = 1,
			     .stable = stable };
	struct outcome o;

	ctx.fiber = &p->mover.fiber;
	o.result = vfs_write(&io);
	o.eof = false;
	o.moved = mover_has_moved(&p->mover);
	return o;
}

/* The file's bytes as they are now. */
static void expect_file(struct event *p, const void *want)
{
	int fd = open(fx_path(&p->f, "file"), O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(pread(fd, p->got, LEN, 0), (ssize_t)LEN);
	cr_expect_arr_eq(p->got, want, LEN);
	close(fd);
}

static _Atomic bool opening;

static void *hold_open_lock(void *arg)
{
	struct vfs_node *n = arg;

	pthread_mutex_lock(&n->open_lock);
	atomic_store(&opening, true);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	pthread_mutex_unlock(&n->open_lock);
	return NULL;
}

Test(vfs_event_io, reads_what_is_in_memory, .timeout = 60)
{
	struct event p;
	pthread_t other;
	struct outcome o;

	open_event(&p, VFS_IO_BUFFERED);
	opening = false;
	cr_assert_eq(pthread_create(&other, NULL, hold_open_lock, p.n), 0);
	while (!atomic_load(&opening))
		sched_yield();
	cr_expect(read_event(&p, 0, LEN).moved, "another thread opens the file");
	pthread_join(other, NULL);
	o = read_event(&p, 0, LEN);
	cr_expect_not(o.moved);
	cr_expect_eq(o.result, (int64_t)LEN);
	cr_expect(o.eof);
	cr_expect_arr_eq(p.got, p.data, LEN);
	o = read_event(&p, LEN - 1, 100);
	cr_expect_eq(o.result, 1);
	cr_expect(o.eof);
	o = read_event(&p, LEN + 1, 100);
	cr_expect_eq(o.result, 0);
	cr_expect(o.eof);
	close_event(&p);
}

/* True if no page of the file is in memory, which mincore(2) tells without starting a read. */
static bool is_absent(struct event *p)
{
	fx_drop_cache(&p->f, "file");
	return fx_cached_pages(&p->f, "file") == 0;
}

static bool kernel_would_wait(int fd)
{
	uint8_t got[LEN];
	struct iovec v = { got, LEN };

	return preadv2(fd, &v, 1, 0, RWF_NOWAIT) < 0 && errno == EAGAIN;
}

/*
 * RWF_NOWAIT starts a read of pages that are absent, and succeeds if the disk is done at once. So
 * one READ proves nothing, and the kernel is asked as often as the server. READs of a worker that waits
 * never move. WAITS: the kernel says this often that it would wait before the server is to blame.
 */
#define ROUNDS 2000
#define WAITS 40

Test(vfs_event_io, does_not_wait_for_the_disk, .timeout = 60)
{
	unsigned absent = 0, by_kernel = 0;
	bool moved = false, eof;
	struct event p;
	int fd;

	open_event(&p, VFS_IO_BUFFERED);
	cr_assert_eq(fx_read(&p.f, p.n, 0, LEN, p.got, &eof), (int64_t)LEN);
	fd = open(fx_path(&p.f, "file"), O_RDONLY);
	cr_assert_geq(fd, 0);
	for (unsigned i = 0; i < ROUNDS && !moved && by_kernel < WAITS; i++) {
		if (is_absent(&p)) {
			absent++;
			moved = read_event(&p, 0, LEN).moved;
		}
		by_kernel += is_absent(&p) && kernel_would_wait(fd);
	}
	close(fd);
	close_event(&p);
	if (!moved && by_kernel < WAITS)
		cr_skip_test("this file system hardly says that a read would wait: %u times of %u",
			     by_kernel, absent);
	cr_expect(moved, "the kernel would have waited %u times, the server never", by_kernel);
}

Test(vfs_event_io, reads_neither_directly_nor_long, .timeout = 60)
{
	static uint8_t all[256 << 10];
	struct event p;
	bool eof;

	open_event(&p, VFS_IO_DIRECT);
	cr_assert_eq(fx_read(&p.f, p.n, 0, LEN, p.got, &eof), (int64_t)LEN);
	cr_expect(read_event(&p, 0, LEN).moved);
	close_event(&p);
	open_event(&p, VFS_IO_BUFFERED);
	cr_assert_eq(fx_read(&p.f, p.n, 0, sizeof(all), all, &eof), (int64_t)LEN);
	cr_expect(read_event(&p, 0, sizeof(all)).moved);
	close_event(&p);
}

Test(vfs_event_io, writes_into_memory_as_root_only, .timeout = 60)
{
	uint8_t other[LEN];
	struct event p;
	struct outcome o;

	open_event(&p, VFS_IO_BUFFERED);
	fx_fill(other, LEN, 0, 2);
	cr_expect(write_event(&p, other, LEN, VFS_UNSTABLE).moved, "no descriptor yet");
	expect_file(&p, other);
	cr_assert_eq(fx_write(&p.f, p.n, 0, p.data, LEN, VFS_FILE_SYNC), (int64_t)LEN);
	cr_expect(write_event(&p, other, LEN, VFS_DATA_SYNC).moved);
	cr_expect(write_event(&p, p.data, LEN, VFS_FILE_SYNC).moved);
	cr_assert_eq(fchownat(AT_FDCWD, fx_path(&p.f, "file"), 1000, 1000, 0), 0);
	fx_user(&p.f, 1000);
	cr_expect(write_event(&p, p.data, LEN, VFS_UNSTABLE).moved);
	fx_user(&p.f, 0);
	expect_file(&p, p.data);
	cr_assert_eq(fx_commit(&p.f, p.n, 0, 0), 0);
	cr_expect_eq(atomic_load(&p.n->uncommitted.state), VFS_COMMITTED);
	o = write_event(&p, other, LEN, VFS_UNSTABLE);
	cr_expect_not(o.moved);
	cr_expect_eq(o.result, (int64_t)LEN);
	cr_expect_eq(atomic_load(&p.n->uncommitted.state), VFS_UNCOMMITTED);
	expect_file(&p, other);
	cr_assert_eq(fx_commit(&p.f, p.n, 0, 0), 0);
	close_event(&p);
}
