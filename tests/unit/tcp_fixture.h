/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP server on loopback with an executor that answers from its own thread, and a blocking client.
 * Calls here are: xid, 0 (CALL), the bulk bytes wanted in the reply, then anything. Replies are:
 * xid, 1, and the members of struct answer.
 */
#ifndef RN_TEST_TCP_FIXTURE_H
#define RN_TEST_TCP_FIXTURE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/payload.h"
#include "transport/event_loop.h"
#include "transport/tcp/tcp_server.h"

enum sink_mode {
	EXECUTOR_ANSWERS,
	EXECUTOR_HOLDS, /* holds requests until fixture_release() */
	EXECUTOR_GARBAGE,
	EXECUTOR_IN_PLACE, /* answers on the event thread, before submit() returns; see below */
	EXECUTOR_LATER,	   /* as calls that the event thread keeps; see below */
};

/* Calls that EXECUTOR_IN_PLACE and EXECUTOR_LATER treat in another way: */
#define XID_OTHER_THREAD 0xfffffff0u /* answered by the executor's thread */
#define XID_GATE 0xfffffff1u	     /* waits on the event thread for fixture.gate */

struct fixture {
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct rpc_clients *clients;
	struct ev_loop *loops[2];
	struct tcp_server *srv;
	struct sockaddr_storage addr;

	pthread_t worker;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct rn_inbox_node *first, **last;
	enum sink_mode mode;
	unsigned waiting; /* requests in the executor */
	sem_t gate;
	bool stop;
};

struct answer {
	uint32_t xid, type, len, sum, nseg, head_len, aligned, bulk_len;
	uint32_t bulks; /* bulk items of that length */
};

/* Zero limits in cfg stand for defaults. family: AF_INET or AF_INET6. */
void fixture_start(struct fixture *f, struct tcp_config cfg, size_t budget, int family);
void fixture_stop(struct fixture *f);
void fixture_mode(struct fixture *f, enum sink_mode mode);
/* Waits until the executor has n requests; false after ten seconds. */
bool fixture_wait(struct fixture *f, unsigned n);

/*
 * Has the connection of that number (they count from 0) begin to move from that loop to the other
 * one. True if it is there and may. ANY_CONN: the one with the latest input that may.
 */
#define ANY_CONN UINT64_MAX
bool fixture_wish(struct fixture *f, unsigned loop, uint64_t id);
/* Moves a connection that comes to rest to the other loop, wherever it is. */
void fixture_move(struct fixture *f, uint64_t id);
uint64_t fixture_moved(struct fixture *f); /* moves so far */

/* A thread that has connections move all the time, from either loop. */
struct shaker {
	struct fixture *f;
	pthread_t thread;
	atomic_bool stop;
};
void shaker_start(struct shaker *s, struct fixture *f);
void shaker_stop(struct shaker *s);

int client_connect(struct fixture *f);
void client_send(int fd, const void *p, size_t n);
/* Sends one record in fragments of at most frag bytes (0: one fragment). len >= 12. */
/* Added to the wanted bulk bytes: number of additional items of that length. */
#define BULK_ITEMS(n) ((uint32_t)(n) << 28)
void client_call(int fd, uint32_t xid, uint32_t bulk, size_t len, size_t frag);
/* Checksum in the answer to such a call. */
uint32_t call_sum(uint32_t xid, uint32_t bulk, size_t len);
/* Reads one answer and checks its bulk bytes. Returns 1, or 0 if the connection is closed. Fails
 * the test after ten seconds. */
int client_answer(int fd, struct answer *a);
/* Sends a call and checks the answer. The reply needs no memory of the pool. */
void client_ping(int fd, uint32_t xid);
/* true if the peer closes within ten seconds; data before that are ignored */
bool client_closed(int fd);

#endif
