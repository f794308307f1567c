/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a range: where data and holes begin, what is too small to be told of, and files that
 * change while they are searched. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/space.h"

TestSuite(vfs_parts, .timeout = 60);

#define K64 65536u
#define MIB (1u << 20)

/* Called before each search, with its number from 1 on. Returns 0, or an errno to fail with. */
static int (*before_search)(unsigned n);
static unsigned searches;
static int served_fd = -1;

off_t __real_lseek(int fd, off_t offset, int whence);
off_t __wrap_lseek(int fd, off_t offset, int whence);
off_t __wrap_lseek(int fd, off_t offset, int whence)
{
	int error = 0;

	if (whence == SEEK_DATA || whence == SEEK_HOLE)
		error = before_search ? before_search(++searches) : 0;
	if (error) {
		errno = error;
		return -1;
	}
	return __real_lseek(fd, offset, whence);
}

/* Makes a file of size bytes, with data of 64 KiB at each of these 64 KiB blocks. */
static struct vfs_node *sparse(struct fx *f, const char *name, off_t size, const char *blocks)
{
	static uint8_t ones[K64];
	struct vfs_node *n = fx_file(f, name, "", 0);

	memset(ones, 1, sizeof(ones));
	served_fd = open(fx_path(f, name), O_RDWR);
	cr_assert_geq(served_fd, 0);
	cr_assert_eq(ftruncate(served_fd, size), 0);
	for (unsigned i = 0; blocks[i]; i++) {
		if (blocks[i] == 'D')
			cr_assert_eq(pwrite(served_fd, ones, K64, (off_t)i * K64), (ssize_t)K64);
	}
	return n;
}

static void start(struct fx *f)
{
	before_search = NULL;
	searches = 0;
	fx_open(f, FX_PLAIN, VFS_IO_BUFFERED, NULL);
}

static void stop(struct fx *f, struct vfs_node *n)
{
	close(served_fd);
	served_fd = -1;
	vfs_node_put(n);
	fx_close(f);
}

/* Skips the test where the file system keeps no holes of 64 KiB. */
static void need_holes(struct fx *f)
{
	struct vfs_node *n = sparse(f, "probe", 3 * K64, "D D");
	const off_t hole = __real_lseek(served_fd, 0, SEEK_HOLE);

	close(served_fd);
	vfs_node_put(n);
	if (hole != K64)
		cr_skip_test("no holes here");
}

static struct vfs_parts parts(struct fx *f, struct vfs_node *n, uint64_t offset, uint32_t count,
			      unsigned most)
{
	struct vfs_parts p = { .offset = offset, .count = count, .most = most };

	cr_assert_eq(vfs_parts(&f->ctx, n, &p), 0);
	return p;
}

/* Parts as text: letter and length in blocks of 64 KiB, with a point for what is no whole block; and
 * a $ if the file ends there. */
static const char *text(const struct vfs_parts *p)
{
	static char out[200];
	uint64_t at = p->offset;
	size_t len = 0;

	out[0] = 0;
	for (unsigned i = 0; i < p->n; i++) {
		const struct vfs_part *part = &p->part[i];

		cr_assert_eq(part->offset, at, "no gap, and in order");
		at += part->length;
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%c%lu%s",
					part->hole ? 'H' : 'D', part->length / K64,
					part->length % K64 ? "." : "");
	}
	if ((p->n == 0 || p->part[p->n - 1].hole) && p->eof)
		strcat(out, "$");
	return out;
}

#define IS(want, ...)                                                                              \
	do {                                                                                       \
		struct vfs_parts p_ = parts(__VA_ARGS__);                                          \
		cr_expect_str_eq(text(&p_), want, "%s, not %s", text(&p_), want);                  \
	} while (0)

Test(vfs_parts, data_and_holes)
{
	struct vfs_node *n;
	struct fx f;

	start(&f);
	need_holes(&f);
	n = sparse(&f, "file", 16 * K64, "D      DD      ");
	IS("D1H6D2H7$", &f, n, 0, 16 * K64, 8);
	IS("D1H6D2H7$", &f, n, 0, 99 * K64, 8);
	IS("D1H6D2H6", &f, n, 0, 15 * K64, 8);
	IS("H4", &f, n, 2 * K64, 4 * K64, 8);
	IS("D1", &f, n, 7 * K64, K64, 8);
	IS("D1H1", &f, n, 8 * K64, 2 * K64, 8);
	IS("H1$", &f, n, 15 * K64, K64, 8);
	IS("H0.$", &f, n, 15 * K64 + 1, K64, 8);
	IS("$", &f, n, 16 * K64, K64, 8);
	IS("$", &f, n, (uint64_t)INT64_MAX - K64, K64, 8);
	stop(&f, n);
}

/* The last part is data, holes and all, where there are more than are wanted. */
Test(vfs_parts, fewer_are_wanted)
{
	struct vfs_node *n;
	struct fx f;

	start(&f);
	need_holes(&f);
	n = sparse(&f, "file", 16 * K64, "D      DD      ");
	IS("D1H6D9", &f, n, 0, 16 * K64, 3);
	IS("D16", &f, n, 0, 16 * K64, 2);
	IS("D16", &f, n, 0, 16 * K64, 1);
	IS("H4", &f, n, K64, 4 * K64, 1);
	IS("H6D9", &f, n, K64, 15 * K64, 2);
	IS("D2H7$", &f, n, 7 * K64, 9 * K64, 2);
	stop(&f, n);
	start(&f);
	n = sparse(&f, "file", 20 * K64, "D D D D D D D D D D ");
	IS("D1H1D1H1D1H1D14", &f, n, 0, 20 * K64, 8);
	IS("D1H1D1H1D1H1D14", &f, n, 0, 20 * K64, 7);
	IS("D1H1D1H1D16", &f, n, 0, 20 * K64, 6);
	stop(&f, n);
}

Test(vfs_parts, small_holes_are_data)
{
	struct vfs_node *n;
	struct fx f;

	start(&f);
	need_holes(&f);
	n = sparse(&f, "file", 16 * K64, "D   D           ");
	/* A hole of half the least size within the first one */
	cr_assert_eq(pwrite(served_fd, "x", 1, K64 + VFS_HOLE_LEAST / 2), 1);
	struct vfs_parts p = parts(&f, n, 0, 16 * K64, 8);
	cr_expect_eq(p.n, 4);
	cr_expect(!p.part[0].hole && p.part[0].length > K64 + VFS_HOLE_LEAST / 2);
	/* The range's own ends make holes small, too. */
	IS("D0.", &f, n, 2 * K64, VFS_HOLE_LEAST - 1, 8);
	IS("H0.", &f, n, 2 * K64, VFS_HOLE_LEAST, 8);
	IS("D1.", &f, n, 4 * K64, K64 + VFS_HOLE_LEAST - 1, 8);
	IS("D1H0.", &f, n, 4 * K64, K64 + VFS_HOLE_LEAST, 8);
	stop(&f, n);
}

/* Neither a short range nor a file with all its blocks costs a search. */
static int count_search(unsigned n)
{
	(void)n;
	return 0;
}

Test(vfs_parts, no_search_for_nothing)
{
	struct vfs_node *n;
	struct fx f;

	start(&f);
	need_holes(&f);
	n = sparse(&f, "full", 8 * K64, "DDDDDDDD");
	before_search = count_search;
	IS("D8", &f, n, 0, 8 * K64, 8);
	IS("D9", &f, n, 0, 9 * K64, 8); /* READ finds the end */
	cr_expect_eq(searches, 0);
	stop(&f, n);
	start(&f);
	n = sparse(&f, "hole", 8 * K64, "");
	before_search = count_search;
	IS("D0.", &f, n, 0, VFS_HOLE_LEAST - 1, 8);
	IS("D0", &f, n, 0, 0, 8);
	cr_expect_eq(searches, 0);
	IS("H8$", &f, n, 0, 8 * K64, 8);
	cr_expect_eq(searches, 1);
	stop(&f, n);
}

/* Very many small holes: the search ends. */
Test(vfs_parts, the_search_is_bounded)
{
	struct vfs_node *n;
	struct fx f;

	start(&f);
	need_holes(&f);
	n = sparse(&f, "file", MIB, "");
	for (off_t at = 0; at < MIB; at += 8192)
		cr_assert_eq(pwrite(served_fd, "x", 1, at), 1);
	before_search = count_search;
	IS("D16", &f, n, 0, MIB, 8);
	cr_expect_leq(searches, 70, "%u", searches);
	stop(&f, n);
}

static int cut_to;
static unsigned cut_at;

static int cut(unsigned n)
{
	if (n == cut_at)
		cr_assert_eq(ftruncate(served_fd, cut_to), 0);
	return 0;
}

/* The file is cut while it is searched. What is no longer there is no hole. */
Test(vfs_parts, a_file_that_is_cut)
{
	static const struct {
		unsigned at;
		int to;
		const char *want;
	} rows[] = {
		{ 1, 0, "$" },		 /* before anything was found */
		{ 3, 4 * K64, "D1H3$" }, /* within the hole behind the first data */
		{ 3, K64, "D1" },	 /* where that hole began */
		{ 3, 0, "D1" },		 /* READ finds less than that */
		{ 4, 0, "D1H6D9" },	 /* the same */
		{ 5, 12 * K64, "D1H6D2H3$" },
		{ 5, 8 * K64, "D1H6D2" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct vfs_node *n;
		struct fx f;

		start(&f);
		need_holes(&f);
		n = sparse(&f, "file", 16 * K64, "D      DD      ");
		cut_at = rows[i].at;
		cut_to = rows[i].to;
		before_search = cut;
		struct vfs_parts p = parts(&f, n, 0, 16 * K64, 8);
		cr_expect_str_eq(text(&p), rows[i].want, "row %u: %s, not %s", i, text(&p),
				 rows[i].want);
		cr_expect(p.eof, "row %u", i);
		stop(&f, n);
	}
}

static int refuse(unsigned n)
{
	(void)n;
	return EINVAL;
}

Test(vfs_parts, a_file_system_that_does_not_say)
{
	struct vfs_node *n;
	struct fx f;

	start(&f);
	n = sparse(&f, "file", 16 * K64, "D");
	before_search = refuse;
	IS("D16", &f, n, 0, 16 * K64, 8);
	stop(&f, n);
}

Test(vfs_parts, who_may_ask)
{
	struct vfs_parts p = { .count = K64, .most = 8 };
	struct vfs_node *n;
	struct fx f;

	start(&f);
	n = sparse(&f, "file", 16 * K64, "D");
	cr_assert_eq(chmod(fx_path(&f, "file"), 0600), 0);
	cr_expect_eq(vfs_parts(&f.ctx, f.root, &p), -EISDIR);
	fx_user(&f, 1000);
	cr_expect_eq(vfs_parts(&f.ctx, n, &p), -EACCES);
	p.opened = true;
	cr_expect_eq(vfs_parts(&f.ctx, n, &p), 0);
	stop(&f, n);
}

/* Random files and ranges: the parts are what the file is made of. */
static void check_random(struct fx *f, struct vfs_node *n, const uint8_t *image, size_t size)
{
	static const uint8_t zeros[MIB];
	uint64_t offset = (uint64_t)rand() % (size + K64);
	uint32_t count = (uint32_t)rand() % (MIB + 1);
	unsigned most = 1 + (unsigned)rand() % VFS_PARTS_MAX;
	struct vfs_parts p = parts(f, n, offset, count, most);
	uint64_t at = offset, end = offset + count;

	cr_assert_leq(p.n, most);
	for (unsigned i = 0; i < p.n; at += p.part[i++].length) {
		cr_assert_eq(p.part[i].offset, at);
		if (!p.part[i].hole)
			continue;
		cr_assert_geq(p.part[i].length, VFS_HOLE_LEAST);
		cr_assert_leq(at + p.part[i].length, size, "a hole beyond the end");
		cr_assert_eq(memcmp(image + at, zeros, p.part[i].length), 0, "data in a hole");
	}
	cr_assert(at == end || (p.eof && at >= size) || (p.n == 0 && offset >= size));
}

Test(vfs_parts, random_files)
{
	const char *env = getenv("PARTS_SEED");
	const unsigned seed = env ? (unsigned)atoi(env) : (unsigned)getpid();
	static uint8_t image[2 * MIB];

	srand(seed);
	for (unsigned file = 0; file < 20; file++) {
		size_t size = (size_t)rand() % sizeof(image);
		struct vfs_node *n;
		struct fx f;

		start(&f);
		n = sparse(&f, "file", (off_t)size, "");
		memset(image, 0, sizeof(image));
		for (unsigned i = (unsigned)rand() % 12; i > 0 && size > 0; i--) {
			size_t at = (size_t)rand() % size, len = (size_t)rand() % (size - at);

			len %= 100000;
			memset(image + at, 7, len);
			cr_assert_eq(pwrite(served_fd, image + at, len, (off_t)at), (ssize_t)len);
		}
		for (unsigned i = 0; i < 50; i++)
			check_random(&f, n, image, size);
		stop(&f, n);
	}
	cr_log_info("PARTS_SEED=%u", seed);
}
