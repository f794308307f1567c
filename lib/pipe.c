/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/util.h"

/* Bytes that a pipe is to take: what an unprivileged process may have (fs.pipe-max-size). */

SLIST_HEAD(pipe_list, rn_pipe);

struct rn_pipe_pool {
	struct rn_budget *budget;
	uint32_t page;
	unsigned count; /* pipes in all */
	int null;	/* takes what is left in a pipe */
	pthread_mutex_t lock;
	struct pipe_list idle; /* last used first: its memory is in the processor's cache */
	unsigned nidle;
};

/* Opens the pipe's descriptors. */
static int open_pipe(struct rn_pipe *p)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(fd[0], F_SETPIPE_SZ, RN_PIPE_SIZE);
	const int size = fcntl(fd[0], F_GETPIPE_SZ);
	p->out = fd[0];
	p->in = fd[1];
	p->size = size > 0 ? (uint32_t)rn_min(size, RN_PIPE_SIZE) : 0;
	p->bytes = 0;
	return 0;
}

static void close_pipe(struct rn_pipe *p)
{
	close(p->in);
	close(p->out);
	p->in = p->out = -1;
}

static bool pipe_pool_add(struct rn_pipe_pool *pool)
{
	struct rn_pipe *p;

	if (!rn_budget_take(pool->budget, RN_PIPE_SIZE))
		return false;
	p = calloc(1, sizeof(*p));
	if (!p || open_pipe(p) < 0) {
		free(p);
		rn_budget_give(pool->budget, RN_PIPE_SIZE);
		return false;
	}
	p->pool = pool;
	SLIST_INSERT_HEAD(&pool->idle, p, link);
	pool->nidle++;
	pool->count++;
	return true;
}

struct rn_pipe_pool *rn_pipe_pool_new(struct rn_budget *budget, unsigned max)
{
	struct rn_pipe_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->budget = budget;
	pool->page = (uint32_t)sysconf(_SC_PAGESIZE);
	pool->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pthread_mutex_init(&pool->lock, NULL);
	SLIST_INIT(&pool->idle);
	while (pool->null >= 0 && pool->count < max && pipe_pool_add(pool))
		;
	return pool;
}

void rn_pipe_pool_free(struct rn_pipe_pool *pool)
{
	struct rn_pipe *p;

	if (!pool)
		return;
	while ((p = SLIST_FIRST(&pool->idle))) {
		SLIST_REMOVE_HEAD(&pool->idle, link);
		if (p->in >= 0)
			close_pipe(p);
		free(p);
		rn_budget_give(pool->budget, RN_PIPE_SIZE);
	}
	if (pool->null >= 0)
		close(pool->null);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

unsigned rn_pipe_pool_count(const struct rn_pipe_pool *pool)
{
	return pool->count;
}

unsigned rn_pipe_pool_in_use(struct rn_pipe_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	const unsigned n = pool->count - pool->nidle;
	pthread_mutex_unlock(&pool->lock);
	return n;
}

static struct rn_pipe *pipe_take_idle(struct rn_pipe_pool *pool, _Atomic unsigned *held)
{
	struct rn_pipe *p = NULL;

	pthread_mutex_lock(&pool->lock);
	if (atomic_load_explicit(held, memory_order_relaxed) < pool->nidle) {
		p = SLIST_FIRST(&pool->idle);
		SLIST_REMOVE_HEAD(&pool->idle, link);
		pool->nidle--;
		p->held = held;
		atomic_fetch_add_explicit(held, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&pool->lock);
	return p;
}

struct rn_pipe *rn_pipe_get(struct rn_pipe_pool *pool, uint64_t offset, uint32_t len,
			    _Atomic unsigned *held)
{
	struct rn_pipe *p = pool ? pipe_take_idle(pool, held) : NULL;

	if (!p)
		return NULL;
	/* Each page that the bytes touch takes a place in the pipe. */
	if ((p->in < 0 && open_pipe(p) < 0) || offset % pool->page + len > p->size) {
		rn_pipe_put(p);
		return NULL;
	}
	return p;
}

/* Empties the pipe without a copy, or closes it. */
static void pipe_empty(struct rn_pipe *p)
{
	while (p->bytes > 0) {
		const ssize_t n = splice(p->out, NULL, p->pool->null, NULL, p->bytes, 0);

		if (n <= 0 && !(n < 0 && errno == EINTR)) {
			close_pipe(p);
			p->bytes = 0;
			return;
		}
		p->bytes -= n > 0 ? (uint32_t)n : 0;
	}
}

void rn_pipe_put(struct rn_pipe *p)
{
	if (!p)
		return;
	struct rn_pipe_pool *pool = p->pool;

	pipe_empty(p);
	pthread_mutex_lock(&pool->lock);
	atomic_fetch_sub_explicit(p->held, 1, memory_order_relaxed);
	SLIST_INSERT_HEAD(&pool->idle, p, link);
	pool->nidle++;
	pthread_mutex_unlock(&pool->lock);
}

int64_t rn_pipe_fill(struct rn_pipe *p, int fd, uint64_t offset, uint32_t len)
{
	off_t at = (off_t)offset;
	uint32_t got = 0;

	while (got < len) {
		const ssize_t n =
			splice(fd, &at, p->in, NULL, len - got, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && got == 0)
			return -errno;
		if (n <= 0)
			break;
		got += (uint32_t)n;
		p->bytes += (uint32_t)n;
	}
	return got;
}

int rn_pipe_read(struct rn_pipe *p, uint8_t *buf)
{
	while (p->bytes > 0) {
		const ssize_t n = read(p->out, buf, p->bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		buf += n;
		p->bytes -= (uint32_t)n;
	}
	return 0;
}

int64_t rn_pipe_send(struct rn_pipe *p, int sock, bool more)
{
	const unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0);
	ssize_t n;

	do
		n = splice(p->out, NULL, sock, NULL, p->bytes, flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	if (n == 0)
		return -EPIPE; /* never: it is not empty */
	p->bytes -= (uint32_t)n;
	return n;
}
