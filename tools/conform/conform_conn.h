/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One RDMA connection of the tool, and the memory that it offers to the server. It sends any bytes
 * it is given: nothing here keeps a case from being a bad client.
 *
 * Every wait ends at a deadline (cf_now_ms() plus something). Functions return 0 or -errno. A
 * connection owns its windows: they are freed with it.
 */
#ifndef RN_CONFORM_CONFORM_CONN_H
#define RN_CONFORM_CONFORM_CONN_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CF_PRIVATE_SIZE 8u
/* bytes that an InfiniBand accept can carry; iWARP's longer ones are cut */
#define CF_PRIVATE_MAX 196u
#define CF_INLINE_MIN 1024u
#define CF_INLINE_MAX 262144u

/* RFC 8797 section 4, decoded; sizes in bytes. */
struct cf_private {
	bool found;
	bool invalidate; /* the R bit */
	uint8_t version;
	uint8_t flags;
	uint32_t send_size;
	uint32_t recv_size;
};

struct cf_conn_options {
	/* Private data as sent. NULL: the usual message, made of the next three. */
	const void *private_data;
	uint8_t private_len;
	bool no_private;      /* send none: 1024 bytes both ways */
	bool invalidate;      /* sets the R bit of the usual message */
	uint32_t inline_size; /* both sizes of the usual message, and of each Receive buffer */
	/* bytes of each Receive buffer, if different from the message; 0: as in the message */
	uint32_t recv_size;
	unsigned recvs;	    /* Receives posted; 0: 64 */
	unsigned sends;	    /* depth of the send queue; 0: 32 */
	uint8_t read_depth; /* RDMA Reads that the server may have outstanding; 0: 16 */
	bool no_read_depth; /* zero RDMA Reads */
	uint8_t rnr_retry;  /* 7: for ever */
};

struct cf_window;

struct cf_conn {
	struct cf_conn_options o;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *recv_mr, *send_mr;
	uint8_t *recv_mem, *send_mem;
	size_t recv_size;
	unsigned next_send, sends_busy;
	int last_slot; /* Receive buffer that the caller uses, or -1 */
	bool established;
	bool heard; /* a message has come */
	bool is_siw;
	bool closed;  /* closed by either side, or broken */
	char why[96]; /* reason why it is closed */
	uint8_t server_data[CF_PRIVATE_MAX];
	size_t server_data_len;
	struct cf_private server; /* found false: 1024 bytes and no invalidation are assumed */
	uint32_t call_inline;	  /* longest message that may be sent */
	uint32_t reply_inline;	  /* longest message that may be received */
	bool may_invalidate;	  /* both have set the R bit */
	struct cf_window *windows;
};

int64_t cf_now_ms(void);

/* host: a name or a numeric address. On error everything is released, and why[] of c says more. */
int cf_conn_open(struct cf_conn *c, const char *host, const char *port,
		 const struct cf_conn_options *o, int64_t deadline);
/* The steps of cf_conn_open, for cases that do something in between: the queue pair is made and
 * Receives are posted after the first; the second sends the connection request; the third waits for
 * the answer. -ECONNREFUSED: rejected. */
int cf_conn_prepare(struct cf_conn *c, const char *host, const char *port,
		    const struct cf_conn_options *o, int64_t deadline);
int cf_conn_request(struct cf_conn *c);
int cf_conn_established(struct cf_conn *c, int64_t deadline);

/* Idempotent. polite: disconnects first; else the queue pair just goes away. */
void cf_conn_close(struct cf_conn *c, bool polite);

/* Posts one Send of len bytes. Waits for room in the send queue until the deadline. */
int cf_conn_send(struct cf_conn *c, const void *msg, size_t len, int64_t deadline);

enum cf_got { CF_GOT_MESSAGE, CF_GOT_CLOSED, CF_GOT_TIMEOUT };
struct cf_received {
	const uint8_t *data; /* until the next cf_conn_receive */
	size_t len;
	bool invalidated; /* handle invalidated by a Send with Invalidate */
	uint32_t handle;
};
/* The next message. The Receive buffer of the one before is posted again first. */
enum cf_got cf_conn_receive(struct cf_conn *c, struct cf_received *r, int64_t deadline);

/* Looks for the private message at any offset (RFC 8797 section 5.2). */
bool cf_private_find(const void *data, size_t len, struct cf_private *p);
/* sizes in bytes, multiples of 1024 */
void cf_private_encode(uint8_t out[CF_PRIVATE_SIZE], bool invalidate, uint32_t send_size,
		       uint32_t recv_size);

/* ---- memory offered to the server -------------------------------------------------------------
 */

#define CF_GUARD 256u
#define CF_GUARD_BYTE 0xa5
#define CF_FILL_BYTE 0x5a /* fill byte of a new window */

/*
 * len bytes between two guards of CF_GUARD bytes. The guards are registered too, so that a server
 * that writes outside the offered memory is detected, where it would otherwise break the
 * connection.
 */
struct cf_window {
	struct cf_window *next;
	struct ibv_mr *mr;
	/* handle in segments: the region's, or the handle of the memory window on it */
	uint32_t handle;
	struct ibv_mr *bindable; /* region below mw; both NULL: see memory_window.h */
	struct ibv_mw *mw;
	uint8_t *block;
	uint8_t *data;
	size_t len;
};

struct cf_seg {
	uint32_t handle;
	uint32_t length;
	uint64_t offset;
};

/* Readable and writable by the server; NULL: no memory, or no more regions. */
struct cf_window *cf_window_new(struct cf_conn *c, size_t len);
struct cf_seg cf_window_seg(const struct cf_window *w, uint32_t off, uint32_t len);
bool cf_window_guards_intact(const struct cf_window *w);
bool cf_conn_guards_intact(const struct cf_conn *c); /* checks all windows */
/* True if the bytes still are the fill byte of a new window. */
bool cf_window_untouched(const struct cf_window *w, size_t off, size_t len);
/* Address of a segment's bytes; NULL if it is not wholly in a window of this connection. */
uint8_t *cf_conn_segment_data(const struct cf_conn *c, const struct cf_seg *s);

#endif
