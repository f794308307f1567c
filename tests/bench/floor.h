/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare verbs for the floors: one connection at a time, served by one thread that waits for completions.
 * Whatever fails ends the program with a message.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <rdma/rdma_cma.h>
#include "xdr.h"

#define FLOOR_SLOTS 64u
#define FLOOR_MESSAGE 4096u /* octets of a Receive or Send */
#define FLOOR_DATA (1u << 20)

struct floor {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *block; /* receive buffers, send buffers, data */
	unsigned sends; /* alone, without data before them */
	void *server;	/* as given to floor_run */
};

/* A segment of the client's memory; without one, the key is 0. */
struct chunk {
	uint32_t key, len;
	uint64_t address;
};

/* The slot's call, its reply, and its data, of which FLOOR_DATA octets fit. */
uint8_t *floor_call(struct floor *f, unsigned slot);
uint8_t *floor_reply(struct floor *f, unsigned slot);
uint8_t *floor_data(struct floor *f, unsigned slot);

/* Lets the slot take another call. The one in it must not be read any more. */
void floor_receive(struct floor *f, unsigned slot);

/* Sends so many octets of the slot's reply, behind chunk->len octets of its data if there is a chunk for them. */
void floor_send(struct floor *f, unsigned slot, size_t len, const struct chunk *chunk);

/* Reads the transport header (RFC 8166 section 4) up to the RPC message, and gives the xid and the first segment of the write list. */
uint32_t floor_get_header(struct xdr *call, struct chunk *chunk);

/* The transport header of a reply and the RPC header of one that succeeds. */
void floor_put_header(struct xdr *x, uint32_t xid, const struct chunk *chunk);

/* Answers the call of so many octets in the slot: has to call floor_receive and floor_send, once each. */
typedef void floor_serve_fn(struct floor *f, unsigned slot, uint32_t len);

/* Serves one connection after the other on that port, for ever. */
void floor_run(const char *address, const char *port, floor_serve_fn *serve, void *server);

#endif
