/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of a back channel: calls of the server over a connection that this tool has
 * made (RFC 8167), and replies to them, right ones and others.
 *
 * A case begins with cf_back_begin(), which makes a session whose back channel is t->conn. From then
 * on calls of the server may come among replies. Each is checked: its header, its length, the
 * credits and the slot that it uses. CB_NOTIFY_LOCKs are provoked by cf_back_block() and
 * cf_back_release(); they, and what else a case asks to see, are kept in got[]. Other callbacks are
 * answered at once.
 */
#ifndef RN_CONFORM_BACK_H
#define RN_CONFORM_BACK_H

#include "tools/conform/nfs4_lock.h"

#define CF_BACK_PROGRAM 0x40000717u
#define CF_BACK_KEPT 256u

/* flags of SEQUENCE (RFC 8881 section 18.46.3) */
enum {
	CF_CB_PATH_DOWN = 0x1,
	CF_CB_PATH_DOWN_SESSION = 0x200,
	CF_BACKCHANNEL_FAULT = 0x400,
	CF_CB_FLAGS = 0x601
};
enum { CF_CB_SEQUENCE = 11, CF_CB_NOTIFY_LOCK = 13 };

struct cf_callback {
	const struct cf_conn *conn; /* NULL: closed since */
	uint32_t xid;
	uint32_t proc; /* 0: CB_NULL, 1: CB_COMPOUND */
	uint32_t nops;
	uint32_t op; /* behind CB_SEQUENCE; 0: none */
	uint8_t session[16];
	uint32_t seqid, slot;
	char owner[32]; /* of CB_NOTIFY_LOCK: a waiter's name */
	bool answered;
};

struct cf_back_options {
	uint32_t slots; /* of the back channel */
	uint32_t size;	/* bytes of a callback; 0: the inline size, so that none has chunks */
	uint32_t grant; /* credits granted by the replies */
	bool hold;	/* leaves CB_NOTIFY_LOCKs to the case */
	bool mute;	/* leaves every callback to the case */
	bool unasked;	/* asks for no back channel */
};

struct cf_back {
	struct cf_back_options o;
	struct cf4_session *s;
	struct cf_callback got[CF_BACK_KEPT];
	unsigned ngot;
	unsigned others; /* callbacks answered at once that are not in got */
	unsigned most;	 /* calls that the server may have under way: the largest grant so far */
	/* what provokes them */
	struct cf4_open file;
	bool is_open;
	struct cf4_lock held;
	char holder[32];
	uint8_t stateid[CF4_STATEID];
	unsigned round;
};

/* A session of NFSv4.1 with a back channel over t->conn, and an open file. NULL: verdict; a skip
 * where the server would not tell waiters of a lock. */
struct cf_back *cf_back_begin(struct cf_test *t, const struct cf_back_options *o);
/* Closes the file; called by the frame after each case. */
void cf_back_end(struct cf_test *t);
/* The connection is about to be closed, and t->conn will be another: credits begin anew. NULL: it
 * stays open. */
void cf_back_moved(struct cf_back *b, const struct cf_conn *gone);
/* BIND_CONN_TO_SESSION of t->conn, to both channels. */
bool cf_back_bind(struct cf_test *t, struct cf_back *b);
/* SEQUENCE alone: b->s->flags are fresh. */
bool cf_back_ask_flags(struct cf_test *t, struct cf_back *b);
/* Asks until one of CF_CB_FLAGS is there, at most until the case's deadline. */
bool cf_back_await_flags(struct cf_test *t, struct cf_back *b);

/* Locks a range for one lock-owner, and has n others ask for parts of it, which they do not get. */
bool cf_back_block(struct cf_test *t, struct cf_back *b, unsigned n);
/* Unlocks it: the server may now call. */
bool cf_back_release(struct cf_test *t, struct cf_back *b);

/* Takes callbacks until got[] has n. False with a verdict, or without one if no more came until
 * then. */
bool cf_back_wait(struct cf_test *t, struct cf_back *b, unsigned n, int64_t until);
/* Provokes n CB_NOTIFY_LOCKs and waits for one of them, the next of got[]. NULL: verdict; a skip if
 * the server has never sent one. */
struct cf_callback *cf_back_provoke(struct cf_test *t, struct cf_back *b, unsigned n);
/* No callback comes for ms. */
bool cf_back_quiet(struct cf_test *t, struct cf_back *b, int ms, const char *expected);
/* Callbacks over t->conn without an answer. */
unsigned cf_back_under_way(const struct cf_test *t, const struct cf_back *b);
struct cf_callback *cf_back_unanswered(const struct cf_test *t, struct cf_back *b);
/* Callbacks go on over t->conn, perhaps after the flags of SEQUENCE have asked for another binding or
 * another session: a further one comes. */
bool cf_back_goes_on(struct cf_test *t, struct cf_back *b);

/* The right reply, for the case to change. */
struct cf_call *cf_back_answer(struct cf_test *t, const struct cf_back *b,
			       const struct cf_callback *cb);
/* Sends the right reply. */
bool cf_back_reply(struct cf_test *t, struct cf_back *b, struct cf_callback *cb);
/* Sends RDMA_ERROR for this xid; err: CF_ERR_CHUNK or CF_ERR_VERS. */
bool cf_back_error(struct cf_test *t, const struct cf_back *b, uint32_t xid, uint32_t err);
/* Notes that c, which was sent, answers cb. */
void cf_back_answered(struct cf_back *b, struct cf_callback *cb, const struct cf_call *c);

#endif
