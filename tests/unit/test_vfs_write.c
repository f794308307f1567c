/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/error.h"
#include "tests/unit/vfs_io_fixture.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_write, .timeout = 120);

#define MIB (1u << 20)
#define FILE_MAX (2u * MIB)

/*
 * Overwrites part of a file of FILE_MAX bytes of seed 1 with seed 2, and compares the whole file.
 */
static void check_write(struct fx *f, struct vfs_node *n, uint64_t offset, uint32_t count)
{
	static uint8_t want[FILE_MAX], have[FILE_MAX], data[MIB + 1];
	enum vfs_stable stable = (enum vfs_stable)(count % 3);
	int fd = open(fx_path(f, "file"), O_RDWR);

	fx_fill(want, sizeof(want), 0, 1);
	cr_assert_eq(pwrite(fd, want, sizeof(want), 0), sizeof(want));
	fx_fill(data, count, offset, 2);
	memcpy(want + offset, data, count);
	cr_assert_eq(fx_write(f, n, offset, data, count, stable), count);
	cr_assert_eq(pread(fd, have, sizeof(have), 0), sizeof(have));
	cr_assert_eq(memcmp(want, have, sizeof(have)), 0, "offset %lu count %u", offset, count);
	close(fd);
}

static void check_sizes(enum fx_how how, enum vfs_io_mode mode)
{
	static const uint32_t sizes[] = { 0,	 1,	4095,  4096,	4097, 8192,
					  65535, 65536, 65537, MIB - 1, MIB,  MIB + 1 };
	static const uint64_t offsets[] = { 0, 1, 4095, 4096, 12289, 524288 };
	struct vfs_node *n;
	struct fx f;

	fx_open(&f, how, mode, NULL);
	n = fx_file(&f, "file", "", 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned j = 0; j < sizeof(offsets) / sizeof(offsets[0]); j++)
			check_write(&f, n, offsets[j], sizes[i]);
	}
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_write, sizes_fixed)
{
	check_sizes(FX_FIXED, VFS_IO_BUFFERED);
}

Test(vfs_write, sizes_plain)
{
	check_sizes(FX_PLAIN, VFS_IO_BUFFERED);
}

Test(vfs_write, sizes_syscall)
{
	check_sizes(FX_SYSCALL, VFS_IO_BUFFERED);
}

Test(vfs_write, sizes_direct_fixed)
{
	check_sizes(FX_FIXED, VFS_IO_DIRECT);
}

Test(vfs_write, sizes_direct_syscall)
{
	check_sizes(FX_SYSCALL, VFS_IO_DIRECT);
}

Test(vfs_write, appending_and_beyond_4_gib)
{
	const uint64_t far = (6ULL << 30) - 1;
	uint8_t have[10000], data[10000];
	struct stat st;

	fx_fill(data, sizeof(data), 0, 3);
	for (int mode = VFS_IO_BUFFERED; mode <= VFS_IO_DIRECT; mode++) {
		struct vfs_node *n;
		struct fx f;
		int fd;

		fx_open(&f, FX_FIXED, (enum vfs_io_mode)mode, NULL);
		n = fx_file(&f, "file", "", 0);
		cr_assert_eq(fx_write(&f, n, 0, data, 10000, VFS_UNSTABLE), 10000);
		cr_assert_eq(stat(fx_path(&f, "file"), &st), 0);
		cr_assert_eq(st.st_size, 10000);
		cr_assert_eq(fx_write(&f, n, far, data, 10000, VFS_FILE_SYNC), 10000);
		cr_assert_eq(stat(fx_path(&f, "file"), &st), 0);
		cr_assert_eq(st.st_size, (off_t)far + 10000);
		fd = open(fx_path(&f, "file"), O_RDONLY);
		cr_assert_eq(pread(fd, have, 10000, (off_t)far), 10000);
		cr_assert_eq(memcmp(have, data, 10000), 0);
		close(fd);
		vfs_node_put(n);
		fx_close(&f);
	}
}

/* Four pieces of odd lengths, some in payload buffers, some empty. */
static void check_pieces(enum fx_how how, enum vfs_io_mode mode, const size_t len[4])
{
	uint8_t have[20000], want[20000];
	struct vfs_io io = { .offset = 4096, .npieces = 4 };
	struct fx f;
	int fd;

	fx_open(&f, how, mode, NULL);
	io.ctx = &f.ctx;
	io.node = fx_file(&f, "file", "", 0);
	for (unsigned i = 0; i < 4; i++) {
		struct rn_payload *p = rn_payload_get(f.pool, 8192);

		fx_fill(p->data, len[i], io.count, 4);
		io.piece[i] = (struct iovec){ p->data, len[i] };
		io.piece_payload[i] = i % 2 ? p : NULL;
		io.priv.iov[i].iov_base = p; /* must live until the call */
		io.count += (uint32_t)len[i];
	}
	struct rn_payload *kept[4] = { io.priv.iov[0].iov_base, io.priv.iov[1].iov_base,
				       io.priv.iov[2].iov_base, io.priv.iov[3].iov_base };

	cr_assert_eq(vfs_write(&io), io.count);
	fd = open(fx_path(&f, "file"), O_RDONLY);
	cr_assert_eq(pread(fd, have, sizeof(have), 4096), io.count);
	close(fd);
	fx_fill(want, io.count, 0, 4);
	cr_assert_eq(memcmp(have, want, io.count), 0);
	for (unsigned i = 0; i < 4; i++)
		rn_payload_put(kept[i]);
	vfs_node_put(io.node);
	fx_close(&f);
}

Test(vfs_write, pieces)
{
	static const size_t odd[4] = { 1, 0, 4095, 3333 }, aligned[4] = { 4096, 4096, 8192, 100 },
			    one[4] = { 0, 8192, 0, 0 };

	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		check_pieces((enum fx_how)how, VFS_IO_BUFFERED, odd);
		check_pieces((enum fx_how)how, VFS_IO_DIRECT, odd);
		check_pieces((enum fx_how)how, VFS_IO_DIRECT, aligned);
		check_pieces((enum fx_how)how, VFS_IO_DIRECT, one);
	}
}

/* Direct writes leave nothing in the page cache; buffered writes do. */
Test(vfs_write, direct_goes_past_the_page_cache)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		for (int mode = VFS_IO_BUFFERED; mode <= VFS_IO_DIRECT; mode++) {
			static uint8_t data[65536], back[65536];
			struct vfs_node *n;
			struct fx f;
			bool eof;

			fx_open(&f, (enum fx_how)how, (enum vfs_io_mode)mode, NULL);
			n = fx_file(&f, "file", "x", 1);
			fx_drop_cache(&f, "file");
			if (fx_cached_pages(&f, "file"))
				cr_skip_test("a file system that lives in the page cache");
			cr_assert_eq(fx_write(&f, n, 0, data, 65536, VFS_FILE_SYNC), 65536);
			cr_assert_eq(fx_cached_pages(&f, "file"), mode ? 0 : 16);
			fx_drop_cache(&f, "file");
			cr_assert_eq(fx_cached_pages(&f, "file"), 0);
			cr_assert_eq(fx_read(&f, n, 5000, 40000, back, &eof), 40000);
			if (mode)
				cr_assert_eq(fx_cached_pages(&f, "file"), 0);
			else
				cr_assert_geq(fx_cached_pages(&f, "file"), 10);
			vfs_node_put(n);
			fx_close(&f);
		}
	}
}

static mode_t mode_of(struct fx *f, const char *name)
{
	struct stat st;

	cr_assert_eq(stat(fx_path(f, name), &st), 0);
	return st.st_mode & 07777;
}

static void check_setuid(enum fx_how how, enum vfs_io_mode mode)
{
	uint8_t data[4096] = { 1 };
	struct vfs_node *n;
	struct fx f;

	fx_open(&f, how, mode, NULL);
	n = fx_file(&f, "file", "", 0);
	cr_assert_eq(chmod(fx_path(&f, "file"), 06777), 0);
	cr_assert_eq(fx_write(&f, n, 0, data, 4096, VFS_UNSTABLE), 4096);
	cr_assert_eq(mode_of(&f, "file"), 06777, "root's write keeps the bits");
	fx_user(&f, 1000);
	cr_assert_eq(fx_write(&f, n, 0, data, 4096, VFS_UNSTABLE), 4096);
	cr_assert_eq(mode_of(&f, "file"), 0777, "a user's write clears them");
	cr_assert_eq(vfs_identity_root(&f.w->identity), 0);
	cr_assert_eq(chmod(fx_path(&f, "file"), 06777), 0);
	cr_assert_eq(fx_write(&f, n, 100, data, 100, VFS_FILE_SYNC), 100);
	cr_assert_eq(mode_of(&f, "file"), 0777);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_write, setuid_and_setgid_bits)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		check_setuid((enum fx_how)how, VFS_IO_BUFFERED);
		check_setuid((enum fx_how)how, VFS_IO_DIRECT);
	}
}

struct writing {
	struct vfs_io io;
	int64_t result;
	bool finished;
};

static void write_in_fiber(struct vfs_ctx *ctx, void *arg)
{
	struct writing *w = arg;

	w->io.ctx = ctx;
	w->result = vfs_write(&w->io);
	w->finished = true;
}

/* The thread's identity at the time of submission does not matter. */
Test(vfs_write, the_threads_identity_does_not_matter)
{
	const struct vfs_cred user = { .uid = 1000, .gid = 1000 };
	struct vfs_node *n;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "", 0);
	cr_assert_eq(chmod(fx_path(&f, "file"), 06777), 0);
	for (uint32_t uid = 0; uid <= 1000; uid += 1000) {
		struct rn_payload *p = rn_payload_get(f.pool, 4096);
		struct writing w = { .io = { .node = n,
					     .count = 4096,
					     .piece[0] = { p->data, 4096 },
					     .piece_payload[0] = p,
					     .npieces = 1 } };

		fx_user(&f, uid);
		fx_start(&f, write_in_fiber, &w);
		if (uid == 0)
			cr_assert_eq(vfs_identity_become(&f.w->identity, &user), 0);
		else
			cr_assert_eq(vfs_identity_root(&f.w->identity), 0);
		fx_run(&f, &w.finished);
		cr_assert_eq(w.result, 4096);
		cr_assert_eq(mode_of(&f, "file"), uid ? 0777 : 06777);
		rn_payload_put(p);
	}
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_write, permission)
{
	struct vfs_node *n, *fifo;
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "hello", 5);
	cr_assert_eq(mkfifo(fx_path(&f, "fifo"), 0666), 0);
	fifo = fx_lookup(&f, "fifo");
	cr_assert_eq(chown(fx_path(&f, "file"), 1000, 1000), 0);
	cr_assert_eq(chmod(fx_path(&f, "file"), 0444), 0);
	cr_assert_eq(fx_write(&f, f.root, 0, "x", 1, VFS_UNSTABLE), -EISDIR);
	cr_assert_eq(fx_write(&f, fifo, 0, "x", 1, VFS_UNSTABLE), -EINVAL);
	fx_user(&f, 1000);
	cr_assert_eq(fx_write(&f, n, 0, "J", 1, VFS_UNSTABLE), 1, "the owner may");
	fx_user(&f, 1001);
	cr_assert_eq(fx_write(&f, n, 0, "x", 1, VFS_UNSTABLE), -EACCES);
	cr_assert_eq(fx_write(&f, n, 0, "", 0, VFS_UNSTABLE), -EACCES);
	cr_assert_eq(fx_commit(&f, n, 0, 0), -EACCES);
	fx_user(&f, 0);
	f.ctx.access.flags |= VFS_RO;
	cr_assert_eq(fx_write(&f, n, 0, "x", 1, VFS_UNSTABLE), -EROFS);
	vfs_node_put(n);
	vfs_node_put(fifo);
	fx_close(&f);
}

Test(vfs_write, beyond_the_largest_file)
{
	struct rlimit limit = { 100000, RLIM_INFINITY };
	static uint8_t data[8192];
	struct vfs_node *n;
	struct fx f;

	signal(SIGXFSZ, SIG_IGN); /* as the daemon does */
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = fx_file(&f, "file", "", 0);
		cr_assert_eq(fx_write(&f, n, UINT64_MAX, data, 1, VFS_UNSTABLE), -EFBIG);
		cr_assert_eq(fx_write(&f, n, INT64_MAX, data, 1, VFS_UNSTABLE), -EFBIG);
		cr_assert_eq(fx_write(&f, n, INT64_MAX, data, 0, VFS_UNSTABLE), 0);
		limit.rlim_cur = 100000;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		cr_assert_eq(fx_write(&f, n, 99000, data, 8192, VFS_UNSTABLE), 1000);
		cr_assert_eq(fx_write(&f, n, 100000, data, 8192, VFS_FILE_SYNC), -EFBIG);
		cr_assert_eq(vfs_write_verifier(f.exp), 4711, "no data was lost");
		limit.rlim_cur = RLIM_INFINITY;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		vfs_node_put(n);
		fx_close(&f);
	}
}

Test(vfs_write, pieces_that_do_not_add_up)
{
	char byte = 'x';
	struct fx f;
	struct vfs_io io = { .count = 2, .piece[0] = { &byte, 1 }, .npieces = 1 };

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	io.ctx = &f.ctx;
	io.node = fx_file(&f, "file", "", 0);
	cr_assert_eq(vfs_write(&io), -EINVAL);
	io.count = 1;
	io.npieces = VFS_IO_PIECES + 1;
	cr_assert_eq(vfs_write(&io), -EINVAL);
	vfs_node_put(io.node);
	fx_close(&f);
}

static char *tmpfs_dir(const char *options)
{
	static char dir[FX_PATH];

	fx_need_root();
	fx_temp_dir(dir);
	fx_mount_tmpfs(dir, options);
	return dir;
}

static void leave_tmpfs(const char *dir)
{
	fx_command("umount %s; rmdir %s", dir, dir);
}

Test(vfs_write, no_space)
{
	char *dir = tmpfs_dir("size=1m");
	uint8_t *data = calloc(1, 2 * MIB);

	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		for (int mode = VFS_IO_BUFFERED; mode <= VFS_IO_DIRECT; mode++) {
			struct vfs_node *n;
			struct fx f;
			int64_t got;

			fx_open(&f, (enum fx_how)how, (enum vfs_io_mode)mode, dir);
			n = fx_file(&f, "file", "", 0);
			got = fx_write(&f, n, 0, data, 2 * MIB, VFS_UNSTABLE);
			cr_assert(got > 0 && got <= MIB, "short, then: %ld", got);
			cr_assert_eq(fx_write(&f, n, (uint64_t)got, data, MIB, VFS_UNSTABLE),
				     -ENOSPC);
			vfs_node_put(n);
			unlink(fx_path(&f, "file"));
			fx_close(&f);
		}
	}
	free(data);
	leave_tmpfs(dir);
}

/* A worker is root, but a client's user must not use the blocks that a file system reserves for
 * root. */
Test(vfs_write, reserved_blocks_stay_reserved)
{
	static uint8_t data[MIB];
	char *dir = tmpfs_dir("size=100m");
	struct statvfs fs;
	char mnt[80];

	snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	if (fx_command("mkdir %s && truncate -s 64M %s/img && mkfs.ext4 -q -m 40 %s/img && "
		       "mount -o loop %s/img %s",
		       mnt, dir, dir, dir, mnt) != 0) {
		leave_tmpfs(dir);
		cr_skip_test("no loop mount of ext4 here");
	}
	for (int how = FX_FIXED; how < FX_HOWS; how += 2) {
		struct vfs_node *n;
		uint64_t offset = 0;
		int64_t got;
		struct fx f;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, mnt);
		n = fx_file(&f, "file", "", 0);
		cr_assert_eq(chmod(fx_path(&f, "file"), 0666), 0);
		fx_user(&f, 1000);
		while ((got = fx_write(&f, n, offset, data, MIB, VFS_FILE_SYNC)) > 0)
			offset += (uint64_t)got;
		cr_assert_eq(got, -ENOSPC);
		cr_assert_eq(statvfs(mnt, &fs), 0);
		cr_assert_gt(fs.f_bfree * fs.f_bsize, 15 * MIB);
		fx_user(&f, 0);
		cr_assert_eq(fx_write(&f, n, offset, data, MIB, VFS_FILE_SYNC), MIB,
			     "root may: the file system says so itself");
		vfs_node_put(n);
		unlink(fx_path(&f, "file"));
		fx_close(&f);
	}
	fx_command("umount %s", mnt);
	leave_tmpfs(dir);
}

/* Handling of the kernel's errors: another descriptor replaces the cached one. (Devices do not
 * accept the flags of pwritev2.) */
Test(vfs_write, errors_of_the_descriptor)
{
	for (int how = FX_FIXED; how < FX_SYSCALL; how++) {
		struct vfs_node *n;
		uint64_t verifier;
		struct fx f;
		int fd, full;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		n = fx_file(&f, "file", "hello", 5);
		fd = vfs_node_fd(&f.ctx, n, VFS_FD_WRITE);
		cr_assert_geq(fd, 0);
		full = open("/dev/full", O_RDWR);
		cr_assert_eq(dup2(full, fd), fd);
		cr_assert_eq(fx_write(&f, n, 0, "x", 1, VFS_UNSTABLE), -ENOSPC);
		verifier = vfs_write_verifier(f.exp);
		cr_assert_eq(verifier, 4711);
		cr_assert_eq(fx_write(&f, n, 0, "x", 1, VFS_FILE_SYNC), -ENOSPC);
		cr_assert_eq(vfs_write_verifier(f.exp), verifier, "no data was lost");
		close(full);
		full = open("/dev/null", O_RDONLY);
		cr_assert_eq(dup2(full, fd), fd);
		cr_assert_eq(fx_write(&f, n, 0, "x", 1, VFS_UNSTABLE), -EIO);
		close(full);
		vfs_node_put(n);
		fx_close(&f);
	}
}

/* A part of a block and the whole of it never meet in the page cache: the kernel reports EIO for the file then. */
Test(vfs_write, parts_of_blocks_and_direct_writes_keep_apart)
{
	static uint8_t data[65536];
	struct vfs_node *n;
	struct fx f;

	fx_open(&f, FX_PLAIN, VFS_IO_DIRECT, NULL);
	n = fx_file(&f, "file", data, sizeof(data));
	fx_drop_cache(&f, "file");
	if (fx_cached_pages(&f, "file"))
		cr_skip_test("a file system that lives in the page cache");
	cr_assert_eq(fx_write(&f, n, 0, data, sizeof(data), VFS_UNSTABLE), sizeof(data));
	cr_assert_eq(fx_cached_pages(&f, "file"), 0, "direct");
	cr_assert_eq(atomic_load(&n->direct), 0);
	atomic_store(&n->direct, 1); /* a direct write that is under way */
	cr_expect_eq(fx_write(&f, n, 10, data, 100, VFS_UNSTABLE), -RN_ESOON);
	atomic_fetch_sub(&n->direct, 1);
	cr_expect_eq(fx_write(&f, n, 10, data, 100, VFS_UNSTABLE), 100);
	cr_expect_eq(fx_write(&f, n, 0, data, sizeof(data), VFS_UNSTABLE), sizeof(data));
	cr_expect_eq(fx_cached_pages(&f, "file"), 16, "buffered, as the node was before");
	vfs_node_put(n);
	fx_close(&f);
}
