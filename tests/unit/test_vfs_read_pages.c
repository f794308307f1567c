/* SPDX-License-Identifier: BSD-2-Clause */
/* READ by pages of the page cache: the same bytes as vfs_read, or none and no wait. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/pipe.h"
#include "tests/unit/mover.h"
#include "tests/unit/vfs_io_fixture.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_read_pages, .timeout = 120);

#define MIB (1u << 20)
#define SIZE (2 * MIB + 70001)
#define LEAST VFS_PAGES_LEAST

static uint8_t out[MIB];
static struct rn_pipe_pool *pipes;
static _Atomic unsigned held;

/* Called before the next splice(2) out of a file. */
static void (*meanwhile)(void);
static bool no_cachestat;

ssize_t __real_splice(int in, off_t *in_at, int to, off_t *to_at, size_t len, unsigned flags);
ssize_t __wrap_splice(int in, off_t *in_at, int to, off_t *to_at, size_t len, unsigned flags);
ssize_t __wrap_splice(int in, off_t *in_at, int to, off_t *to_at, size_t len, unsigned flags)
{
	void (*act)(void) = in_at ? meanwhile : NULL;

	if (act) {
		meanwhile = NULL;
		act();
	}
	return __real_splice(in, in_at, to, to_at, len, flags);
}

int64_t __real_vfs_cached_pages(int fd, uint64_t offset, uint64_t len);
int64_t __wrap_vfs_cached_pages(int fd, uint64_t offset, uint64_t len);
int64_t __wrap_vfs_cached_pages(int fd, uint64_t offset, uint64_t len)
{
	return no_cachestat ? -ENOSYS : __real_vfs_cached_pages(fd, offset, len);
}

static struct fx f;
static struct vfs_node *node;

static void start(enum vfs_io_mode mode, size_t size)
{
	uint8_t *data = malloc(size + 1);

	fx_open(&f, FX_FIXED, mode, NULL);
	fx_fill(data, size, 0, 1);
	node = fx_file(&f, "file", data, size);
	free(data);
	pipes = rn_pipe_pool_new(&f.budget, 2);
	atomic_store(&held, 0);
}

static void end(void)
{
	cr_expect_eq(rn_pipe_pool_in_use(pipes), 0);
	rn_pipe_pool_free(pipes);
	vfs_node_put(node);
	fx_close(&f);
}

/* Bytes that were read, or -1. They are in out. */
static int64_t read_pages(struct vfs_node *n, uint64_t offset, uint32_t count, bool *eof)
{
	struct vfs_io io = { .ctx = &f.ctx, .node = n, .offset = offset, .count = count };
	struct rn_pipe *p = rn_pipe_get(pipes, offset, count, &held);

	if (!p || !vfs_read_pages(&io, p)) {
		rn_pipe_put(p);
		return -1;
	}
	const int64_t n_read = p->bytes;

	cr_assert_eq(rn_pipe_read(p, out), 0);
	rn_pipe_put(p);
	*eof = io.eof;
	return n_read;
}

static void expect_bytes(uint64_t offset, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (out[i] != fx_byte(offset + (uint64_t)i, 1))
			cr_assert_fail("byte %ld of those from %lu on", i, offset);
}

static void check(uint64_t offset, uint32_t count)
{
	const int64_t left = offset < SIZE ? (int64_t)(SIZE - offset) : 0;
	const int64_t want = left < count ? left : count;
	bool eof = false;
	const int64_t n = read_pages(node, offset, count, &eof);

	if (want < LEAST || offset % 4096 + count > MIB) {
		cr_expect_eq(n, -1, "offset %lu, count %u", offset, count);
		return;
	}
	cr_assert_eq(n, want, "offset %lu, count %u: %ld", offset, count, n);
	cr_expect_eq(eof, n == left, "offset %lu, count %u", offset, count);
	expect_bytes(offset, n);
}

static void check_all(void)
{
	static const uint32_t counts[] = {
		0,	1,	    LEAST - 1, LEAST, LEAST + 1, LEAST + 4095, LEAST + 4096,
		500001, MIB - 4096, MIB
	};
	static const uint64_t offsets[] = {
		0,	  1,	   4095,       4096,	     4097,
		MIB,	  MIB + 1, SIZE - MIB, SIZE - LEAST, SIZE - LEAST + 1,
		SIZE - 1, SIZE,	   SIZE + 1,   INT64_MAX,    UINT64_MAX
	};

	start(VFS_IO_BUFFERED, SIZE);
	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		for (unsigned j = 0; j < sizeof(counts) / sizeof(counts[0]); j++)
			check(offsets[i], counts[j]);
	end();
}

Test(vfs_read_pages, offsets_and_counts)
{
	check_all();
}

Test(vfs_read_pages, offsets_and_counts_without_cachestat)
{
	no_cachestat = true;
	check_all();
}

/* Drops the file from the page cache. */
static void drop(void)
{
	fx_drop_cache(&f, "file");
	if (fx_cached_pages(&f, "file") > 0)
		cr_skip_test("the file system keeps the pages");
}

/* Brings a part of the file into the page cache, and nothing else. */
static void bring_in(off_t offset, size_t len)
{
	const int fd = open(fx_path(&f, "file"), O_RDONLY);

	cr_assert_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
	cr_assert_eq(pread(fd, out, len, offset), (ssize_t)len);
	close(fd);
}

static void expect_not_cached(void)
{
	bool eof;

	cr_expect_eq(read_pages(node, 0, MIB, &eof), -1);
	cr_expect_eq(fx_read(&f, node, 0, MIB, out, &eof), MIB);
	expect_bytes(0, MIB);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), MIB, "it is in the cache now");
	expect_bytes(0, MIB);
}

Test(vfs_read_pages, nothing_is_cached)
{
	start(VFS_IO_BUFFERED, SIZE);
	drop();
	expect_not_cached();
	end();
}

static void check_gap(void)
{
	start(VFS_IO_BUFFERED, SIZE);
	drop();
	bring_in(0, MIB / 2);
	bring_in(MIB / 4 * 3, MIB / 4);
	cr_assert_lt(fx_cached_pages(&f, "file"), MIB / 4096);
	expect_not_cached();
	end();
}

Test(vfs_read_pages, a_part_is_not_cached)
{
	check_gap();
}

Test(vfs_read_pages, a_part_is_not_cached_without_cachestat)
{
	no_cachestat = true;
	check_gap();
}

/* A thread that must not wait reads what the kernel says is there. moves: the kernel does not say it, and another one tries. */
static void check_event(bool moves)
{
	struct vfs_worker *event;
	struct mover mover;
	bool eof;

	start(VFS_IO_BUFFERED, SIZE);
	cr_assert_eq(vfs_worker_new_event(f.vfs, &event), 0);
	mover_init(&mover, event, f.w);
	cr_assert_eq(read_pages(node, 0, MIB, &eof), MIB);
	f.ctx.fiber = &mover.fiber;
	cr_expect_eq(read_pages(node, 0, MIB, &eof), MIB);
	cr_expect_eq(mover_has_moved(&mover), moves);
	expect_bytes(0, MIB);
	f.ctx.fiber = &f.fiber;
	drop();
	f.ctx.fiber = &mover.fiber;
	cr_expect_eq(read_pages(node, 0, MIB, &eof), -1, "nothing is cached");
	f.ctx.fiber = &f.fiber;
	vfs_worker_free(event);
	end();
}

Test(vfs_read_pages, by_an_event_thread)
{
	check_event(false);
}

Test(vfs_read_pages, by_an_event_thread_without_cachestat)
{
	no_cachestat = true;
	check_event(true);
}

Test(vfs_read_pages, who_may_not_read_gets_nothing)
{
	bool eof;

	start(VFS_IO_BUFFERED, SIZE);
	cr_assert_eq(chown(fx_path(&f, "file"), 1000, 1000), 0);
	cr_assert_eq(chmod(fx_path(&f, "file"), 0600), 0);
	fx_user(&f, 1001);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), -1);
	fx_user(&f, 1000);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), MIB);
	cr_assert_eq(chmod(fx_path(&f, "file"), 0), 0);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), MIB, "the owner");
	fx_user(&f, 0);
	end();
}

/* A worker that acts as a user still finds the pages: cachestat(2) would refuse that user. */
Test(vfs_read_pages, the_threads_identity_does_not_matter)
{
	bool eof;

	start(VFS_IO_BUFFERED, SIZE);
	cr_assert_eq(fchmodat(AT_FDCWD, fx_path(&f, "file"), 0644, 0), 0);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), MIB); /* opens the file, as root */
	fx_user(&f, 1000);
	cr_assert_eq(vfs_act_as_caller(&f.ctx), 0);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), MIB);
	fx_user(&f, 0);
	end();
}

Test(vfs_read_pages, regular_files_only)
{
	struct vfs_node *fifo;
	bool eof;

	start(VFS_IO_BUFFERED, SIZE);
	cr_assert_eq(mkfifo(fx_path(&f, "fifo"), 0666), 0);
	fifo = fx_lookup(&f, "fifo");
	cr_expect_eq(read_pages(f.root, 0, MIB, &eof), -1);
	cr_expect_eq(read_pages(fifo, 0, MIB, &eof), -1);
	vfs_node_put(fifo);
	end();
}

Test(vfs_read_pages, not_in_direct_mode)
{
	bool eof;

	start(VFS_IO_DIRECT, SIZE);
	cr_expect_eq(read_pages(node, 0, MIB, &eof), -1);
	end();
}

static void cut_short(void)
{
	cr_assert_eq(truncate(fx_path(&f, "file"), LEAST + 5), 0);
}

static void cut_to_nothing(void)
{
	cr_assert_eq(truncate(fx_path(&f, "file"), 0), 0);
}

static void lengthen(void)
{
	uint8_t more[5000];
	const int fd = open(fx_path(&f, "file"), O_WRONLY | O_APPEND);

	fx_fill(more, sizeof(more), SIZE, 1);
	cr_assert_eq(write(fd, more, sizeof(more)), sizeof(more));
	close(fd);
}

/* The file shrinks after its size and its pages were looked at. */
Test(vfs_read_pages, a_file_that_shrinks)
{
	bool eof = false;

	start(VFS_IO_BUFFERED, SIZE);
	meanwhile = cut_short;
	cr_expect_eq(read_pages(node, 0, MIB, &eof), LEAST + 5);
	cr_expect(eof);
	expect_bytes(0, LEAST + 5);
	meanwhile = cut_to_nothing;
	cr_expect_eq(read_pages(node, 0, MIB, &eof), -1);
	end();
}

/* Pages that the kernel is writing back at that moment are not read without waiting: then the file is made anew. */
Test(vfs_read_pages, a_file_that_grows)
{
	const uint64_t at = SIZE - LEAST - 4096;
	int64_t n = -1;
	bool eof = false;

	for (unsigned tries = 0; n == -1 && tries < 100; tries++) {
		if (tries > 0)
			end();
		start(VFS_IO_BUFFERED, SIZE);
		meanwhile = lengthen;
		n = read_pages(node, at, LEAST + 4096 + 1000, &eof);
	}
	cr_expect_eq(n, LEAST + 4096 + 1000);
	cr_expect_not(eof, "4000 bytes are left");
	expect_bytes(at, LEAST + 4096 + 1000);
	end();
}
