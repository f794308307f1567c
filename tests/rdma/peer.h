/* SPDX-License-Identifier: BSD-2-Clause */
/* A bare RPC-over-RDMA client for tests: one connection, messages as bytes. Not a model of a good
 * client: it sends whatever the test gives it. */
#ifndef RN_TESTS_RDMA_PEER_H
#define RN_TESTS_RDMA_PEER_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_RECVS 64
#define PEER_RECV_SIZE 4096u
#define PEER_SENDS 512
#define PEER_SEND_SIZE 4096u
#define PEER_DATA_SIZE 65536u

struct peer {
	struct rdma_cm_id *id;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	uint8_t *block; /* receive buffers, send buffers, data */
	size_t block_size;
	uint8_t *data; /* memory that the server may read and write */
	size_t data_size;
	uint32_t recv_size; /* length of posted Receives; the buffers are PEER_RECV_SIZE apart */
	unsigned next_send;
	int sent; /* Sends that have not completed */
	bool closed;
};

struct peer_options {
	bool no_private;   /* no private message: 1024 bytes both ways */
	uint8_t resources; /* RDMA Reads that the server may have outstanding; 0: 8 */
	bool no_resources;
	bool idle;     /* no buffers: nothing can be sent */
	bool no_recvs; /* peer_post_recvs() may post them later */
	/* Length of posted Receives, at most PEER_RECV_SIZE; 0: PEER_RECV_SIZE */
	uint32_t recv_size;
	size_t data_size; /* 0: PEER_DATA_SIZE */
	/* Times that the server repeats a Send that met no Receive; 7: without limit */
	uint8_t rnr_retry;
	bool invalidate; /* the server may invalidate the key of a call's chunks */
};

/* 0 or -errno; p is released on error. */
int peer_connect(struct peer *p, const char *host, const char *port, const struct peer_options *o);
/* disconnect false: destroys the queue pair without a disconnect. */
void peer_close(struct peer *p, bool disconnect);
int peer_post_recvs(struct peer *p); /* posts all Receives */
int peer_send(struct peer *p, const void *msg, size_t len);

/* Writes bytes from the beginning of the data to the server's memory by RDMA. 0: the server
 * accepted them; -EACCES: refused, and the connection has ended; -ENOTCONN. */
int peer_write(struct peer *p, uint32_t key, uint64_t address, uint32_t len);

enum { PEER_CLOSED = -1, PEER_TIMEOUT = -2 };
/*
 * Copies a reply to buf of PEER_RECV_SIZE bytes. Returns its length, PEER_CLOSED or PEER_TIMEOUT.
 */
int peer_wait(struct peer *p, void *buf, int timeout_ms);

#endif
