/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vfs_fixture.h"
#include "vfs/node/node.h"

#define ROUNDS 20u
#define EACH 30u

struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static void make_files(struct fixture *f, unsigned round)
{
	char name[32];

	for (unsigned i = 0; i < EACH; i++) {
		snprintf(name, sizeof(name), "%u.%u", round, i);
		put_file(in_export(f, name), "");
	}
}

/* Reads some entries: their number, and the cookie of the last one. */
static unsigned read_some(int fd, size_t size, uint64_t *cookie)
{
	_Alignas(8) char buf[32768];
	const long n = syscall(SYS_getdents64, fd, buf, size);
	unsigned count = 0;

	cr_assert_geq(n, 0);
	for (long at = 0; at < n; count++) {
		const struct entry *e = (const struct entry *)(buf + at);

		*cookie = (uint64_t)e->off;
		at += e->len;
	}
	return count;
}

static unsigned count_rest(int fd)
{
	unsigned sum = 0, n;
	uint64_t cookie;

	while ((n = read_some(fd, 32768, &cookie)) > 0)
		sum += n;
	return sum;
}

static unsigned count_afresh(struct fixture *f, uint64_t cookie)
{
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(lseek(fd, (off_t)cookie, SEEK_SET), (off_t)cookie);
	const unsigned n = count_rest(fd);
	close(fd);
	return n;
}

/* One listing has stopped at a cookie, and another one, which began after files were made, comes there. */
Test(vfs_dir_stream, an_idle_one_shows_what_has_come_since, .timeout = 60)
{
	struct vfs_dir_stream *stopped, *other;
	struct fixture f;
	uint64_t cookie;

	fixture_open(&f, 0);
	make_files(&f, 0);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		cr_assert_eq(vfs_dir_stream_get(f.root, 0, &stopped), 0);
		cr_assert_eq(vfs_dir_stream_get(f.root, 0, &other), 0);
		cr_assert_gt(read_some(stopped->fd, 300, &cookie), 0);
		stopped->pos = cookie;
		vfs_dir_stream_put(f.root, stopped);
		vfs_dir_stream_put(f.root, other);
		make_files(&f, round);
		cr_assert_eq(vfs_dir_stream_get(f.root, cookie, &other), 0);
		cr_expect_eq(other, stopped, "it stands there");
		cr_expect_eq(count_rest(other->fd), count_afresh(&f, cookie), "round %u", round);
		other->pos = 0;
		vfs_dir_stream_put(f.root, other);
	}
	fixture_close(&f);
}
