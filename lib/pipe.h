/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pipes that carry pages of files to sockets without a copy (splice(2)). A pipe is filled at once
 * and emptied piece by piece. All pipes of a pool, the descriptors and the memory that they may pin
 * are taken when the pool is made, so that no call needs any of these later.
 *
 * A client may have as many pipes as are still left. So one that does not read its replies gets
 * half of them at most. Whoever gets none copies.
 */
#ifndef RN_LIB_PIPE_H
#define RN_LIB_PIPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/budget.h"

#define RN_PIPE_SIZE                                                                               \
	(1u << 20) /* bytes that a pipe may pin, which are taken out of the budget for it */

struct rn_pipe_pool;

struct rn_pipe {
	int in, out;	/* to be written to, to be read from */
	uint32_t size;	/* bytes that it takes if they begin at a page's start */
	uint32_t bytes; /* in it at present */
	struct rn_pipe_pool *pool;
	_Atomic unsigned *held; /* the client's count */
	SLIST_ENTRY(rn_pipe) link;
};

/* A pool of at most max pipes, of as many as the budget and the process have room for. NULL: no
 * memory for the pool itself. */
struct rn_pipe_pool *rn_pipe_pool_new(struct rn_budget *budget, unsigned max);
/* Every pipe must be back. NULL is allowed. */
void rn_pipe_pool_free(struct rn_pipe_pool *pool);
unsigned rn_pipe_pool_count(const struct rn_pipe_pool *pool);
unsigned rn_pipe_pool_in_use(struct rn_pipe_pool *pool);

/*
 * An empty pipe for len bytes of a file from offset on; NULL if there is none to be had. held
 * counts the pipes of the client that it is for, and outlives its use. pool may be NULL.
 */
struct rn_pipe *rn_pipe_get(struct rn_pipe_pool *pool, uint64_t offset, uint32_t len,
			    _Atomic unsigned *held);
/* Gives the pipe back, with what is still in it. NULL is allowed. */
void rn_pipe_put(struct rn_pipe *p);

/*
 * Moves up to len bytes from the page cache of fd at offset into the pipe, reading from the disk
 * what is not there. Bytes, fewer only at the end of the file or for want of room; or -errno.
 */
int64_t rn_pipe_fill(struct rn_pipe *p, int fd, uint64_t offset, uint32_t len);
/* Copies all that is in the pipe to buf. 0 or -errno. */
int rn_pipe_read(struct rn_pipe *p, uint8_t *buf);
/* Moves bytes to a socket that does not block. more: others follow at once. Bytes, 0 if the socket is
 * full, or -errno. The pipe must not be empty. */
int64_t rn_pipe_send(struct rn_pipe *p, int sock, bool more);

#endif
