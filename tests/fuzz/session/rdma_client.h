/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDMA connection to the server under test: as tcp_client.h, for messages that are Sends. Calls
 * may offer the server a window of memory each; windows are used in turn.
 */
#ifndef RN_TESTS_FUZZ_SESSION_RDMA_CLIENT_H
#define RN_TESTS_FUZZ_SESSION_RDMA_CLIENT_H

#include "tests/fuzz/session/debts.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/rdma_header.h"

#define SS_WINDOWS 8u
#define SS_WINDOW_SIZE (1216u << 10) /* the longest segment of ss_sizes and a little */

struct ss_window {
	struct cf_window *memory;   /* NULL: made when it is first used */
	unsigned users;		    /* calls that offered it and are not answered */
	struct ss_rdma_header call; /* of the last one */
};

struct ss_rdma {
	struct cf_conn conn;
	bool open;
	bool patient;	/* lets the server try Sends again for as long as it takes */
	bool doomed;	/* something was sent after which the server may close */
	bool muted;	/* replies stay where they are */
	bool was_muted; /* in its life */
	bool ended;	/* the server has closed, or the connection broke */
	struct ss_debts debts;
	struct ss_window window[SS_WINDOWS];
	struct ss_values *values; /* learns from replies */
};

/* how: the client's manners: sizes, private message, how many RDMA Reads. 0 or -errno. */
int ss_rdma_open(struct ss_rdma *c, uint16_t port, uint8_t how, struct ss_values *values);
void ss_rdma_close(struct ss_rdma *c, bool reset);

/* Window k for a call, and in v what segments' marks stand for. NULL: there is no memory. */
struct ss_window *ss_rdma_window(struct ss_rdma *c, unsigned k, struct ss_values *v);
/* May another Send be posted? Those that wait for the server's Receives fill the queue; only
 * replies that are taken make room. */
bool ss_rdma_has_room(const struct ss_rdma *c);
/* One Send, left out where there is no room. w: the window that it may offer. */
void ss_rdma_send(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w);
/* A header for an RPC message: inline if it fits, with chunks for replies that may be long. Returns
 * the size of what is to be sent, in out (SS_DATA_MAX). */
size_t ss_rdma_wrap(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w,
		    uint8_t *out);

/* Takes what has come. True: something moved. After it the descriptors are armed. */
bool ss_rdma_poll(struct ss_rdma *c);
bool ss_rdma_settled(const struct ss_rdma *c);

#endif
