/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process, connected to each other without a connection manager, and checks
 * that print their place. Only functions of libibverbs are used, so the tests would run on
 * hardware. No test depends on time. An expected event is waited for, within the limit of the whole
 * program. The absence of an event is shown by a later event.
 */
#ifndef SV_TEST_FIXTURE_H
#define SV_TEST_FIXTURE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_SIZE (1 << 20)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__FILE__, __LINE__, #cond);                                      \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_)                                                                      \
			test_fail_eq(__FILE__, __LINE__, #a " == " #b, a_, b_);                    \
	} while (0)

void test_fail(const char *file, int line, const char *what);
void test_fail_eq(const char *file, int line, const char *what, long long a, long long b);

struct test {
	const char *name;
	void (*fn)(void);
};

/* Runs all tests or those named, prints a line for each and the counts. Returns the exit status. */
int test_main(const struct test *tests, int argc, char **argv);

struct options {
	unsigned send_wr, recv_wr, sge, inline_data;
	int cqe;
	bool sig_all;
	uint8_t rnr_retry, rd_atomic, dest_rd_atomic;
	unsigned access;     /* access flags of the queue pairs */
	struct ibv_srq *srq; /* shared receive queue of the second, or NULL */
	unsigned device;     /* index in the list of devices */
};

#define DEFAULTS                                                                                   \
	{                                                                                          \
		.send_wr = 16, .recv_wr = 16, .sge = 4, .inline_data = 64, .cqe = 64,              \
		.rnr_retry = 7, .rd_atomic = 4, .dest_rd_atomic = 4,                               \
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                       \
			  IBV_ACCESS_REMOTE_ATOMIC,                                                \
	}

struct end {
	struct ibv_cq *cq; /* completion queue of the send and receive queue */
	struct ibv_comp_channel *channel;
	struct ibv_qp *qp;
	uint8_t *buf;	   /* BUF_SIZE bytes */
	struct ibv_mr *mr; /* region of buf, with all rights */
};

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct end a, b;
};

struct ibv_context *open_device(unsigned index);
void end_make(struct end *e, struct ibv_pd *pd, const struct options *o, struct ibv_srq *srq);
void end_free(struct end *e); /* frees all members that a test has not destroyed and set to NULL */
void end_init(struct end *e, const struct options *o);
void end_connect(struct end *e, uint32_t peer, const struct options *o);

void pair_make(struct pair *p, const struct options *o);
void pair_free(struct pair *p);

int post_send(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len);
int post_rdma(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len, uint64_t raddr,
	      uint32_t rkey);
int post_recv(struct end *e, uint64_t id, uint32_t len);
int post_wr(struct end *e, struct ibv_send_wr *wr);

/* Waits for the next completion. */
struct ibv_wc wait_wc(struct end *e);
/* Waits for a completion and checks its number and status. */
struct ibv_wc expect_wc(struct end *e, uint64_t id, enum ibv_wc_status status);
void expect_event(struct ibv_context *ctx, enum ibv_event_type type, void *object);
enum ibv_qp_state state_of(struct ibv_qp *qp);
void fill(uint8_t *p, size_t len, unsigned seed);
bool is_filled(const uint8_t *p, size_t len, unsigned seed);

#endif
