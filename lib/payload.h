/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Payload buffers: the memory that file data passes through. Buffers are cut from slabs of
 * RN_SLAB_SIZE bytes that are never unmapped before the pool ends. So a transport registers a slab
 * with an RDMA device, and a worker with its io_uring, once: both keep tables indexed by
 * rn_payload.slab and call rn_payload_slab_base() when they first see an index.
 *
 * A buffer is page-aligned, its size one of the classes 4 KiB, 8 KiB, 16 KiB, 64 KiB, 256 KiB, 1
 * MiB and 2 MiB. It is reference-counted: get returns one reference, the last put returns the
 * buffer. All functions are thread-safe.
 *
 * Shares. Memory is taken on an account, and an account may hold no more than is still left (and
 * always one buffer). So one greedy account gets half of the memory, two get two thirds, and some
 * is left for the next. Requests for memory wait in a fair queue by account.
 */
#ifndef RN_LIB_PAYLOAD_H
#define RN_LIB_PAYLOAD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/budget.h"
#include "lib/fair_queue.h"

#define RN_SLAB_SIZE (2u << 20)
#define RN_SLABS_MAX 8192u /* 16 GiB of payload: the size of the tables indexed by slab */
#define RN_PAYLOAD_MAX RN_SLAB_SIZE

struct rn_payload_pool;

/* The account that memory is taken on, such as a client's. Must outlive the memory. */
struct rn_payload_account {
	_Atomic size_t bytes;	   /* held: buffers, and bytes that the owner adds */
	_Atomic unsigned waiting;  /* requests for buffers that are queued */
	_Atomic unsigned taken;	   /* buffers that it has got so far, modulo 2^32 */
	struct rn_fq_flow waiters; /* in the pool's queue */
};

struct rn_payload {
	uint8_t *data;
	uint32_t size;	 /* bytes usable at data: the class size */
	uint32_t slab;	 /* index of the slab that holds it */
	uint32_t offset; /* offset of data within the slab, bytes */
	uint32_t class_index;
	_Atomic uint32_t refs;
	struct rn_payload_pool *pool;
	struct rn_payload_account *account; /* NULL: no account */
	TAILQ_ENTRY(rn_payload) free_link;
};

/*
 * A request for memory that waits: accounts take turns, first come first served within one. ready()
 * is called once, from the thread that gave memory back, with a buffer that the waiter now owns; it
 * must only hand over (to an inbox, say).
 */
struct rn_payload_waiter {
	struct rn_payload_account *account; /* NULL: no account, and no limit */
	size_t size;			    /* set by rn_payload_get_or_wait */
	void (*ready)(struct rn_payload_waiter *w, struct rn_payload *p);
	struct rn_fq_item turn;
};

/* Takes memory from budget slab by slab as it is needed. NULL: no memory for the pool itself. */
struct rn_payload_pool *rn_payload_pool_new(struct rn_budget *budget);
/* Every buffer must be back. */
void rn_payload_pool_free(struct rn_payload_pool *pool);

/* Takes two slabs out of the budget at once: with them each request for memory that is given back soon is
 * served some time, however little is left. To be called before anything else uses the budget. 0 or -ENOMEM. */
int rn_payload_set_aside(struct rn_payload_pool *pool);
#define RN_PAYLOAD_ASIDE (2 * (size_t)RN_SLAB_SIZE) /* bytes that it takes */

void rn_payload_account_init(struct rn_payload_account *a);
/* True if the account may hold size bytes more now. */
bool rn_payload_may_hold(struct rn_payload_pool *pool, const struct rn_payload_account *a,
			 size_t size);

/* A buffer of at least size bytes; it may be of a larger class. NULL: size is over RN_PAYLOAD_MAX, the account's quota or the
 * budget is used up, or others wait already. account may be NULL. */
struct rn_payload *rn_payload_get_for(struct rn_payload_pool *pool, size_t size,
				      struct rn_payload_account *account);
/* A buffer that its owner keeps while calls come and go; not of the slabs that are set aside. NULL as above. */
struct rn_payload *rn_payload_get_to_keep(struct rn_payload_pool *pool, size_t size);
/* A buffer of at least size bytes on no account, or NULL. */
struct rn_payload *rn_payload_get(struct rn_payload_pool *pool, size_t size);

/* As rn_payload_get_for. If there is no memory, queues w (w->ready and w->account set by the
 * caller) and returns NULL. size must be within RN_PAYLOAD_MAX. */
struct rn_payload *rn_payload_get_or_wait(struct rn_payload_pool *pool, size_t size,
					  struct rn_payload_waiter *w);

/* In a fiber: as rn_payload_get_for, but waits while there is no memory. size must be within RN_PAYLOAD_MAX. NULL: in no fiber, and
 * there is no memory now. */
struct rn_payload *rn_payload_await(struct rn_payload_pool *pool, size_t size,
				    struct rn_payload_account *account);

/* Takes w out of the queue. 0, or -ENOENT: it is not queued (ready() was or is being called). */
int rn_payload_wait_cancel(struct rn_payload_pool *pool, struct rn_payload_waiter *w);

void rn_payload_ref(struct rn_payload *p);
void rn_payload_put(struct rn_payload *p); /* NULL is allowed */

uint32_t rn_payload_slab_count(struct rn_payload_pool *pool);
/* Start of slab index (RN_SLAB_SIZE bytes), or NULL if there is none yet. */
void *rn_payload_slab_base(struct rn_payload_pool *pool, uint32_t index);

/* True if a request waits because there is no memory, not only because of a quota. */
bool rn_payload_short(struct rn_payload_pool *pool);

/* Requests for buffers that are queued, of all accounts. */
unsigned rn_payload_waiting(const struct rn_payload_pool *pool);

/* True if more than half of all memory is left. */
bool rn_payload_is_ample(struct rn_payload_pool *pool);

struct rn_payload_stats {
	uint64_t slabs, buffers_in_use, bytes_in_use, waits;
};
void rn_payload_stats(struct rn_payload_pool *pool, struct rn_payload_stats *out);

#endif
