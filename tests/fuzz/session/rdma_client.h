/* SPDX-License-Identifier: BSD-2-Clause */
/* An RDMA connection to the server under test, with the calls of tcp_client.h for messages that are
 * Sends. Each call may offer the server a window of memory; windows are used in turn. */
#ifndef RN_TESTS_FUZZ_SESSION_RDMA_CLIENT_H
#define RN_TESTS_FUZZ_SESSION_RDMA_CLIENT_H

#include "tests/fuzz/session/back.h"
#include "tests/fuzz/session/debts.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/rdma_header.h"

#define SS_WINDOWS 8u
#define SS_WINDOW_SIZE (1216u << 10) /* above the longest segment of ss_sizes */

struct ss_window {
	struct cf_window *memory;   /* NULL until the first use */
	unsigned users;		    /* unanswered calls that offered the window */
	struct ss_rdma_header call; /* header of the last such call */
};

struct ss_rdma {
	struct cf_conn conn;
	bool open;
	bool patient;	/* Receiver Not Ready is retried without limit */
	bool doomed;	/* the client has sent something after which the server may close */
	bool muted;	/* replies are not read */
	bool was_muted; /* muted at any time since the connection was made */
	bool ended;	/* the server has closed, or the connection broke */
	struct ss_debts debts;
	struct ss_back back;
	struct ss_window window[SS_WINDOWS];
	struct ss_values *values; /* updated from replies */
};

/* how: sizes, private message and number of RDMA Reads of the client. 0 or -errno. */
int ss_rdma_open(struct ss_rdma *c, uint16_t port, uint8_t how, struct ss_values *values);
void ss_rdma_close(struct ss_rdma *c, bool reset);

/* Window k for a call. *v gets the values for segments' marks. NULL: out of memory. */
struct ss_window *ss_rdma_window(struct ss_rdma *c, unsigned k, struct ss_values *v);
/* True if another Send may be posted. Sends that wait for the server's Receives fill the queue, and
 * only reading replies makes room. */
bool ss_rdma_has_room(const struct ss_rdma *c);
/* Sends one message; does nothing if there is no room. w: the window that the message may offer. */
void ss_rdma_send(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w);
/* Sends an answer to a call of the server, which the server must not answer. msg NULL: RDMA_ERROR. */
void ss_rdma_answer(struct ss_rdma *c, const uint8_t *msg, size_t len, uint32_t xid,
		    uint32_t credits);
/* Puts a transport header before an RPC message: inline if it fits, with chunks for replies that
 * may be long. out has room for SS_DATA_MAX bytes. Returns the length to send. */
size_t ss_rdma_wrap(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w,
		    uint8_t *out);

/* Handles completions and events, then arms the descriptors. True if there were any. */
bool ss_rdma_poll(struct ss_rdma *c);
bool ss_rdma_settled(const struct ss_rdma *c);

#endif
