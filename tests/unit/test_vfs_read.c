/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_read, .timeout = 120);

#define MIB (1u << 20)
static uint8_t out[2 * MIB];

static int64_t want_bytes(uint64_t size, uint64_t offset, uint32_t count)
{
	if (offset >= size)
		return 0;
	return (int64_t)(size - offset < count ? size - offset : count);
}

static void check_read(struct fx *f, struct vfs_node *n, uint64_t size, uint64_t offset,
		       uint32_t count)
{
	int64_t want = want_bytes(size, offset, count);
	bool eof = false;
	int64_t got = fx_read(f, n, offset, count, out, &eof);

	cr_assert_eq(got, want, "size %lu offset %lu count %u: %ld, not %ld", size, offset, count,
		     got, want);
	cr_assert_eq(eof, offset >= size || offset + (uint64_t)want == size,
		     "eof of size %lu offset %lu count %u", size, offset, count);
	for (int64_t i = 0; i < want; i++) {
		if (out[i] != fx_byte(offset + (uint64_t)i, 1))
			cr_assert_fail("size %lu offset %lu count %u: byte %ld", size, offset,
				       count, i);
	}
}

static void check_sizes(enum fx_how how, enum vfs_io_mode mode)
{
	static const size_t sizes[] = { 0,     1,     511,   4095,    4096, 4097,
					65535, 65536, 65537, MIB - 1, MIB,  MIB + 1 };
	uint8_t *data = malloc(MIB + 1);
	struct fx f;

	fx_open(&f, how, mode, NULL);
	fx_fill(data, MIB + 1, 0, 1);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t size = sizes[i];
		struct vfs_node *n = fx_file(&f, "file", data, size);

		check_read(&f, n, size, 0, MIB);
		check_read(&f, n, size, 0, (uint32_t)size);
		check_read(&f, n, size, 0, 0);
		check_read(&f, n, size, 1, 4095);
		check_read(&f, n, size, 4095, 2);
		check_read(&f, n, size, 4096, 8192);
		check_read(&f, n, size, 12345, 54321);
		check_read(&f, n, size, size / 2, MIB);
		check_read(&f, n, size, size, 1);
		check_read(&f, n, size, size, 0);
		check_read(&f, n, size, size + 70001, 4096);
		if (size)
			check_read(&f, n, size, size - 1, 1);
		vfs_node_put(n);
	}
	cr_assert_eq(f.w->slab[0], how == FX_FIXED ? VFS_SLAB_REGISTERED : VFS_SLAB_UNSEEN);
	fx_close(&f);
	free(data);
}

Test(vfs_read, sizes_fixed)
{
	check_sizes(FX_FIXED, VFS_IO_BUFFERED);
}

Test(vfs_read, sizes_plain)
{
	check_sizes(FX_PLAIN, VFS_IO_BUFFERED);
}

Test(vfs_read, sizes_syscall)
{
	check_sizes(FX_SYSCALL, VFS_IO_BUFFERED);
}

Test(vfs_read, sizes_direct_fixed)
{
	check_sizes(FX_FIXED, VFS_IO_DIRECT);
}

Test(vfs_read, sizes_direct_syscall)
{
	check_sizes(FX_SYSCALL, VFS_IO_DIRECT);
}

Test(vfs_read, offsets_that_no_file_has)
{
	for (int mode = VFS_IO_BUFFERED; mode <= VFS_IO_DIRECT; mode++) {
		struct vfs_node *n;
		struct fx f;

		fx_open(&f, FX_FIXED, (enum vfs_io_mode)mode, NULL);
		n = fx_file(&f, "file", "x", 1);
		check_read(&f, n, 1, INT64_MAX, 4096);
		check_read(&f, n, 1, INT64_MAX - 5, 4096);
		check_read(&f, n, 1, INT64_MAX - 4095, 1);
		check_read(&f, n, 1, (uint64_t)INT64_MAX + 1, 1);
		check_read(&f, n, 1, UINT64_MAX, 1);
		check_read(&f, n, 1, UINT64_MAX, 0);
		check_read(&f, n, 1, UINT64_MAX - 10, MIB);
		vfs_node_put(n);
		fx_close(&f);
	}
}

static void check_sparse(enum fx_how how, enum vfs_io_mode mode)
{
	const uint64_t far = (5ULL << 30) + 3;
	uint8_t data[100];
	struct vfs_node *n;
	struct fx f;
	bool eof;
	int fd;

	fx_open(&f, how, mode, NULL);
	n = fx_file(&f, "sparse", "a", 1);
	fx_fill(data, sizeof(data), far, 1);
	fd = open(fx_path(&f, "sparse"), O_WRONLY);
	cr_assert_eq(pwrite(fd, data, sizeof(data), (off_t)far), sizeof(data));
	close(fd);
	check_read(&f, n, far + sizeof(data), far, sizeof(data));
	check_read(&f, n, far + sizeof(data), far + 50, MIB);
	cr_assert_eq(fx_read(&f, n, 4ULL << 30, MIB, out, &eof), MIB);
	cr_assert_not(eof);
	for (unsigned i = 0; i < MIB; i++)
		cr_assert_eq(out[i], 0);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_read, holes_beyond_4_gib)
{
	check_sparse(FX_FIXED, VFS_IO_BUFFERED);
	check_sparse(FX_SYSCALL, VFS_IO_BUFFERED);
	check_sparse(FX_FIXED, VFS_IO_DIRECT);
}

Test(vfs_read, only_regular_files)
{
	struct vfs_node *fifo;
	struct fx f;
	bool eof;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(mkfifo(fx_path(&f, "fifo"), 0666), 0);
	fifo = fx_lookup(&f, "fifo");
	cr_assert_eq(fx_read(&f, f.root, 0, 10, out, &eof), -EISDIR);
	cr_assert_eq(fx_read(&f, fifo, 0, 10, out, &eof), -EINVAL);
	vfs_node_put(fifo);
	fx_close(&f);
}

Test(vfs_read, the_owner_reads_whatever_the_mode)
{
	struct vfs_node *n;
	struct fx f;
	bool eof;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "hello", 5);
	cr_assert_eq(chown(fx_path(&f, "file"), 1000, 1000), 0);
	cr_assert_eq(chmod(fx_path(&f, "file"), 0), 0);
	fx_user(&f, 1000);
	cr_assert_eq(fx_read(&f, n, 0, 10, out, &eof), 5);
	cr_assert(eof);
	fx_user(&f, 1001);
	cr_assert_eq(fx_read(&f, n, 0, 10, out, &eof), -EACCES);
	fx_user(&f, 0);
	cr_assert_eq(fx_read(&f, n, 0, 10, out, &eof), 5);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_read, a_payload_too_small)
{
	struct fx f;
	struct vfs_io io = { .count = 4097 };

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	io.ctx = &f.ctx;
	io.node = fx_file(&f, "file", "hello", 5);
	io.payload = rn_payload_get(f.pool, 4096);
	cr_assert_eq(vfs_read(&io), -EINVAL);
	rn_payload_put(io.payload);
	vfs_node_put(io.node);
	fx_close(&f);
}

/* A direct read without buffer space for the whole granules becomes a buffered one. */
Test(vfs_read, direct_without_room)
{
	struct fx f;
	struct vfs_io io = { .offset = 100, .count = 8192 };
	uint8_t data[20000];

	fx_open(&f, FX_FIXED, VFS_IO_DIRECT, NULL);
	fx_fill(data, sizeof(data), 0, 1);
	io.ctx = &f.ctx;
	io.node = fx_file(&f, "file", data, sizeof(data));
	io.payload = rn_payload_get(f.pool, 8192);
	cr_assert_gt(vfs_read_buffer_size(f.exp, 100, 8192), 8192);
	cr_assert_eq(vfs_read(&io), 8192);
	cr_assert_eq(memcmp(io.payload->data + io.data_off, data + 100, 8192), 0);
	rn_payload_put(io.payload);
	vfs_node_put(io.node);
	fx_close(&f);
}
