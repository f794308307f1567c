/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC calls over t->conn, and the checks that every reply must pass whatever the case is about:
 * version, xid, credits, lists that echo the call's, no byte outside of the memory offered, Send
 * with Invalidate only where agreed.
 */
#ifndef RN_CONFORM_CONFORM_CALL_H
#define RN_CONFORM_CONFORM_CALL_H

#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "tools/conform/conform.h"
#include "tools/conform/conform_wire.h"

enum { CF_PROG_NFS = 100003, CF_PROG_MOUNT = 100005 };
enum cf_accept {
	CF_SUCCESS,
	CF_PROG_UNAVAIL,
	CF_PROG_MISMATCH,
	CF_PROC_UNAVAIL,
	CF_GARBAGE_ARGS,
	CF_SYSTEM_ERR
};

/* A call being built. All of it may be changed before it is sent. */
struct cf_call {
	uint32_t xid;	  /* xid of the transport header; the RPC message has the same */
	uint32_t vers;	  /* RPC-over-RDMA version: 1 */
	uint32_t credits; /* credits asked for: 32 */
	uint32_t proc;	  /* CF_MSG */
	struct cf_lists lists;
	struct xdr_out rpc; /* the payload stream without reduced items */
	uint32_t reduced;   /* bytes of reduced items so far, with their pad */
	uint32_t head;	    /* bytes of the RPC header: offset of the arguments */
	/* set by cf_gss_protect (gss.h): sequence number, service, offset of the verifier's MIC */
	uint32_t gss_seq, gss_service, mic_at;
	uint32_t nops_at; /* COMPOUND: offset of the number of operations */
	uint32_t nops;
};

/* With AUTH_SYS of the run's uid and gid. rpc has room for 64 KiB; more: cf_call_room. */
struct cf_call *cf_call_new(struct cf_test *t, uint32_t prog, uint32_t vers, uint32_t proc);
/* As cf_call_new, with AUTH_NONE. */
struct cf_call *cf_call_new_none(struct cf_test *t, uint32_t prog, uint32_t vers, uint32_t proc);

void cf_call_room(struct cf_test *t, struct cf_call *c, uint32_t more);

/* Position of the next byte in the unreduced stream: the position of a Read chunk for the item that
 * is put next. */
uint32_t cf_position(const struct cf_call *c);
/* Offers len bytes of data as the chunk of the next item, in nsegs segments of about equal length
 * (each a window of its own), and leaves the item and its pad out of the stream. */
bool cf_reduce(struct cf_test *t, struct cf_call *c, const void *data, uint32_t len,
	       unsigned nsegs);
/* Turns the call into a Long Call: the stream, as it is now, goes into a position-zero Read chunk
 * of nsegs segments, before all other Read chunks. */
bool cf_make_long(struct cf_test *t, struct cf_call *c, unsigned nsegs);
/* Offers a Write chunk, a Reply chunk, of one window of len bytes in nsegs segments. */
struct cf_window *cf_offer_write(struct cf_test *t, struct cf_call *c, uint32_t len,
				 unsigned nsegs);
struct cf_window *cf_offer_reply(struct cf_test *t, struct cf_call *c, uint32_t len,
				 unsigned nsegs);

/* The message as it will be sent; its length. out has room for CF_INLINE_MAX bytes. */
size_t cf_call_encode(const struct cf_call *c, uint8_t *out);

struct cf_reply {
	const uint8_t *msg; /* the message as received */
	size_t len;
	struct cf_header h;
	const uint8_t
		*stream; /* payload stream: behind the header, or gathered from the Reply chunk */
	size_t stream_len;
	bool invalidated;
	uint32_t handle;
	bool accepted; /* RPC: MSG_ACCEPTED */
	enum cf_accept accept;
	uint32_t stat; /* not accepted: auth_stat of AUTH_ERROR; else 0 */
	uint32_t verf_flavor, verf_len;
	const uint8_t *verf;
	struct rpc_seg seg; /* status word of the results */
	struct rn_arena arena;
	struct xdr_in x; /* the results of an accepted call with SUCCESS */
};

bool cf_send(struct cf_test *t, struct cf_call *c);
bool cf_send_bytes(struct cf_test *t, const void *msg, size_t len);

/* The next message, decoded and checked by itself. NULL with a verdict: none came, or it is bad.
 * Calls from the server go to t->take_call. */
struct cf_reply *cf_next(struct cf_test *t);
/* The next message of any kind. NULL without a verdict: none came until then. */
struct cf_reply *cf_next_until(struct cf_test *t, int64_t until);
/* True if the message is an RPC call (RFC 8167 section 4.1): a header, and an RPC message with the
 * direction CALL behind it. */
bool cf_is_call(const struct cf_reply *r);
/* Checks that r answers c: see above. An RDMA_ERROR passes here, too. */
bool cf_answers(struct cf_test *t, const struct cf_call *c, struct cf_reply *r);
/* cf_next and cf_answers, for one call in flight. */
struct cf_reply *cf_wait(struct cf_test *t, const struct cf_call *c);

/* Sends and waits; the reply must be an accepted one with SUCCESS. */
struct cf_reply *cf_ask(struct cf_test *t, struct cf_call *c);
/* Sends and waits; any reply that passes the checks. */
struct cf_reply *cf_ask_any(struct cf_test *t, struct cf_call *c);
/* For a reply already received. */
bool cf_expect_success(struct cf_test *t, struct cf_reply *r);
bool cf_expect_accept(struct cf_test *t, struct cf_reply *r, enum cf_accept status);
bool cf_expect_err_chunk(struct cf_test *t, const struct cf_reply *r);

/* Sends a bad call, which must be answered by RDMA_ERROR with ERR_CHUNK. */
bool cf_refused(struct cf_test *t, struct cf_call *c);
/* A DDP-eligibility violation, or chunks that do not fit the arguments: RFC 8166 sections 4.5.2
 * and 6.1 allow ERR_CHUNK and GARBAGE_ARGS, and NFSv4 says NFS4ERR_BADXDR by itself. */
bool cf_expect_violation(struct cf_test *t, struct cf_reply *r);
/* Sends bytes that the server must answer by ERR_CHUNK with this xid. */
bool cf_refused_bytes(struct cf_test *t, const void *msg, size_t len, uint32_t xid);
/* Passes if no message comes for ms and the connection stays open. */
bool cf_silence(struct cf_test *t, int ms);
/* Passes if the server closes this connection, or has closed it. */
bool cf_expect_closed(struct cf_test *t);
/* After a message with this xid that cannot be a call: the server may answer it, close the
 * connection or keep silent, but must not carry it out, and must go on. */
bool cf_not_carried_out(struct cf_test *t, uint32_t xid);
/* A NULL call on t->conn works: the connection has survived. */
bool cf_alive(struct cf_test *t);
/* As cf_alive, on a new connection if t->conn is closed: the server has survived. */
bool cf_server_alive(struct cf_test *t);

const char *cf_accept_name(enum cf_accept a);

#endif
