/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes for file pages: bytes, shares, and that a pipe comes back empty. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/pipe.h"
#include "lib/util.h"

#define MIB (1u << 20)
#define FILE_SIZE (3 * MIB + 12345)

static struct rn_budget budget;
static uint8_t *data;
static _Atomic unsigned held;

static int make_file(void)
{
	char name[] = "/var/tmp/test-pipe-XXXXXX";
	int fd = mkstemp(name);

	cr_assert_geq(fd, 0);
	unlink(name);
	data = malloc(FILE_SIZE);
	for (size_t i = 0; i < FILE_SIZE; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
	cr_assert_eq(write(fd, data, FILE_SIZE), FILE_SIZE);
	return fd;
}

static struct rn_pipe_pool *make_pool(unsigned max)
{
	rn_budget_init(&budget, 64 * MIB);
	atomic_store(&held, 0);
	return rn_pipe_pool_new(&budget, max);
}

static void end_pool(struct rn_pipe_pool *pool)
{
	cr_expect_eq(rn_pipe_pool_in_use(pool), 0);
	cr_expect_eq(atomic_load(&held), 0);
	rn_pipe_pool_free(pool);
	cr_expect_eq(budget.used, 0);
	free(data);
	data = NULL;
}

Test(pipe, any_part_of_a_file)
{
	static const uint64_t offsets[] = { 0, 1, 4095, 4096, 70001, MIB, 3 * MIB - 1, FILE_SIZE };
	static const uint32_t lens[] = { 1, 4095, 4096, 4097, 65536, 1000001, MIB };
	struct rn_pipe_pool *pool = make_pool(2);
	uint8_t *buf = malloc(MIB);
	int fd = make_file();

	for (unsigned i = 0; i < rn_array_size(offsets); i++) {
		for (unsigned j = 0; j < rn_array_size(lens); j++) {
			const uint64_t left = FILE_SIZE - offsets[i];
			struct rn_pipe *p = rn_pipe_get(pool, offsets[i], lens[j], &held);
			if (offsets[i] % 4096 + lens[j] > MIB) {
				cr_expect_null(p, "%u bytes do not fit", lens[j]);
				continue;
			}
			cr_assert_not_null(p);
			int64_t n = rn_pipe_fill(p, fd, offsets[i], lens[j]);
			cr_expect_eq(n, (int64_t)rn_min(left, lens[j]));
			cr_expect_eq(p->bytes, (uint32_t)n);
			cr_expect_eq(rn_pipe_read(p, buf), 0);
			cr_expect_eq(memcmp(buf, data + offsets[i], (size_t)n), 0);
			rn_pipe_put(p);
		}
	}
	free(buf);
	close(fd);
	end_pool(pool);
}

/* A pipe that comes back with bytes of one client must not give them to the next. */
Test(pipe, comes_back_empty)
{
	struct rn_pipe_pool *pool = make_pool(1);
	uint8_t buf[10];
	int fd = make_file();

	for (unsigned i = 0; i < 3; i++) {
		struct rn_pipe *p = rn_pipe_get(pool, 0, MIB, &held);
		cr_assert_not_null(p);
		cr_assert_eq(rn_pipe_fill(p, fd, 0, MIB), MIB);
		rn_pipe_put(p);
		p = rn_pipe_get(pool, 0, 10, &held);
		cr_assert_not_null(p);
		cr_expect_eq(p->bytes, 0);
		cr_expect_lt(read(p->out, buf, 1), 0);
		cr_expect_eq(rn_pipe_fill(p, fd, 100 + i, 10), 10);
		cr_expect_eq(rn_pipe_read(p, buf), 0);
		cr_expect_eq(memcmp(buf, data + 100 + i, 10), 0);
		rn_pipe_put(p);
	}
	close(fd);
	end_pool(pool);
}

Test(pipe, nobody_gets_more_than_is_left)
{
	struct rn_pipe_pool *pool = make_pool(8);
	struct rn_pipe *p[8], *q[8];
	_Atomic unsigned other = 0;
	unsigned n = 0, m = 0;

	cr_assert_eq(rn_pipe_pool_count(pool), 8);
	cr_expect_eq(budget.used, 8 * MIB);
	while (n < 8 && (p[n] = rn_pipe_get(pool, 0, MIB, &held)))
		n++;
	cr_expect_eq(n, 4);
	while (m < 8 && (q[m] = rn_pipe_get(pool, 0, MIB, &other)))
		m++;
	cr_expect_eq(m, 2);
	cr_expect_eq(rn_pipe_pool_in_use(pool), 6);
	while (n > 0)
		rn_pipe_put(p[--n]);
	while (m > 0)
		rn_pipe_put(q[--m]);
	cr_expect_eq(atomic_load(&other), 0);
	end_pool(pool);
}

Test(pipe, a_budget_that_is_short_makes_fewer)
{
	rn_budget_init(&budget, 2 * MIB + 5);
	struct rn_pipe_pool *pool = rn_pipe_pool_new(&budget, 8);

	cr_expect_eq(rn_pipe_pool_count(pool), 2);
	rn_pipe_pool_free(pool);
	cr_expect_eq(budget.used, 0);
	cr_expect_null(rn_pipe_get(NULL, 0, 1, &held), "no pool: no pipe");
}

/* A truncation after the pipe is filled takes no byte out of it. */
Test(pipe, a_file_that_shrinks_afterwards)
{
	struct rn_pipe_pool *pool = make_pool(1);
	uint8_t *buf = malloc(MIB);
	int fd = make_file();
	struct rn_pipe *p = rn_pipe_get(pool, 0, MIB, &held);

	cr_assert_eq(rn_pipe_fill(p, fd, 0, MIB), MIB);
	cr_assert_eq(ftruncate(fd, 4096 + 10), 0);
	cr_expect_eq(p->bytes, MIB);
	cr_expect_eq(rn_pipe_read(p, buf), 0);
	cr_expect_eq(memcmp(buf, data, 4096 + 10), 0);
	rn_pipe_put(p);
	p = rn_pipe_get(pool, 0, MIB, &held);
	cr_expect_eq(rn_pipe_fill(p, fd, 0, MIB), 4096 + 10);
	rn_pipe_put(p);
	free(buf);
	close(fd);
	end_pool(pool);
}

Test(pipe, to_a_socket_piece_by_piece)
{
	struct rn_pipe_pool *pool = make_pool(1);
	uint8_t *buf = malloc(MIB);
	int fd = make_file(), s[2];
	size_t got = 0;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), 0);
	struct rn_pipe *p = rn_pipe_get(pool, 4096, MIB, &held);
	cr_assert_eq(rn_pipe_fill(p, fd, 4096, MIB), MIB);
	while (got < MIB) {
		int64_t n = p->bytes > 0 ? rn_pipe_send(p, s[0], false) : 0;
		cr_assert_geq(n, 0);
		ssize_t r = recv(s[1], buf + got, rn_min(MIB - got, 10007), 0);
		cr_assert_gt(r, 0);
		got += (size_t)r;
	}
	cr_expect_eq(memcmp(buf, data + 4096, MIB), 0);
	cr_expect_eq(p->bytes, 0);
	close(s[1]);
	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(rn_pipe_fill(p, fd, 0, 5000), 5000);
	cr_expect_eq(rn_pipe_send(p, s[0], false), -EPIPE);
	rn_pipe_put(p);
	close(s[0]);
	free(buf);
	close(fd);
	end_pool(pool);
}
