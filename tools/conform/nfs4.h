/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSv4 COMPOUND (RFC 7530, 8881, 7862), as far as the cases need it. A case starts with
 * cf4_begin(), takes a compound by cf4_new(), appends operations, sends it as any call, and walks
 * the results with cf4_results() and cf4_op_done(). READ and WRITE use the anonymous stateid, so
 * that no state need be made.
 */
#ifndef RN_CONFORM_NFS4_H
#define RN_CONFORM_NFS4_H

#include "tools/conform/conform_call.h"

enum {
	CF4_CLOSE = 4,
	CF4_CREATE = 6,
	CF4_GETATTR = 9,
	CF4_GETFH = 10,
	CF4_LOCK = 12,
	CF4_LOCKU = 14,
	CF4_LOOKUP = 15,
	CF4_OPEN = 18,
	CF4_PUTFH = 22,
	CF4_PUTROOTFH = 24,
	CF4_READ = 25,
	CF4_READDIR = 26,
	CF4_READLINK = 27,
	CF4_REMOVE = 28,
	CF4_SAVEFH = 32,
	CF4_WRITE = 38,
	CF4_BIND_CONN_TO_SESSION = 41,
	CF4_EXCHANGE_ID = 42,
	CF4_CREATE_SESSION = 43,
	CF4_DESTROY_SESSION = 44,
	CF4_SEQUENCE = 53,
	CF4_DESTROY_CLIENTID = 57,
	CF4_RECLAIM_COMPLETE = 58,
	CF4_READ_PLUS = 68
};
enum {
	CF4_OK = 0,
	CF4ERR_NOENT = 2,
	CF4ERR_ISDIR = 21,
	CF4ERR_INVAL = 22,
	CF4ERR_NOTSUPP = 10004,
	CF4ERR_TOOSMALL = 10005,
	CF4ERR_DELAY = 10008,
	CF4ERR_DENIED = 10010,
	CF4ERR_GRACE = 10013,
	CF4ERR_BADXDR = 10036,
	CF4ERR_REP_TOO_BIG = 10066,
	CF4ERR_SEQ_MISORDERED = 10063,
	CF4ERR_MINOR_VERS_MISMATCH = 10021
};

struct cf4_session {
	uint32_t minor;
	uint64_t client;
	uint8_t id[16];	   /* minor 1 and up */
	uint32_t sequence; /* sequence id of the next SEQUENCE in slot 0 */
	uint32_t slots;	   /* slots granted by the server */
	uint32_t flags;	   /* SEQ4_STATUS_ flags of the last SEQUENCE */
	bool has_back;	   /* the server will call back over the connection */
};

/* Back channel of a session: CREATE_SESSION's csa_back_chan_attrs and csa_cb_program. */
struct cf4_back_channel {
	uint32_t slots;
	uint32_t size; /* bytes of a callback, and of its reply */
	uint32_t program;
};

/* Minor version 0 costs nothing; others make a client and a session on t->conn, which go with the
 * case. NULL: verdict (a skip where the server does not know the minor version). */
struct cf4_session *cf4_begin(struct cf_test *t, uint32_t minor);
/* Begins as cf4_begin does, minor 1 and up, and asks for that many slots instead of one. */
struct cf4_session *cf4_begin_slots(struct cf_test *t, uint32_t minor, uint32_t slots);
/* Begins as cf4_begin does, minor 1 and up, and asks for a back channel over t->conn: the cases
 * need callbacks. A skip where the server gives none. */
struct cf4_session *cf4_begin_back(struct cf_test *t, uint32_t minor,
				   const struct cf4_back_channel *back);
/* A compound that begins with SEQUENCE on this slot. */
struct cf_call *cf4_new_on(struct cf_test *t, struct cf4_session *s, uint32_t slot,
			   uint32_t sequence);
void cf4_end(struct cf_test *t); /* called by the frame after each case */

/* A compound with no operation, or with SEQUENCE. tag NULL: none. */
struct cf_call *cf4_new(struct cf_test *t, struct cf4_session *s, const char *tag);
/* Appends an operation's number and counts it; the caller puts its arguments. */
void cf4_op(struct cf_call *c, uint32_t op);
void cf4_putrootfh(struct cf_call *c);
void cf4_putfh(struct cf_call *c, const struct cf_fh *fh);
void cf4_lookup(struct cf_call *c, const char *name);
void cf4_getfh(struct cf_call *c);
/* type, size and fileid: a reply of fixed size */
void cf4_getattr(struct cf_call *c);
void cf4_read(struct cf_call *c, uint64_t off, uint32_t count);
void cf4_read_plus(struct cf_call *c, uint64_t off, uint32_t count);
/* FILE_SYNC. data NULL: left to the caller, who puts them or calls cf_reduce next. */
void cf4_write(struct cf_call *c, uint64_t off, uint32_t len, const void *data);
void cf4_readlink(struct cf_call *c);
void cf4_readdir(struct cf_call *c, uint32_t maxcount);
void cf4_remove(struct cf_call *c, const char *name);
/* CREATE of a symbolic link, in two parts: between them the text is put or reduced. */
void cf4_create_link(struct cf_call *c, uint32_t text_len);
void cf4_create_link_end(struct cf_call *c, const char *name);
/* The scratch directory by PUTROOTFH and LOOKUPs. */
void cf4_put_scratch(struct cf_test *t, struct cf_call *c);

/* Status, tag and count of a reply, and SEQUENCE's result. The status must be want. */
bool cf4_results(struct cf_test *t, struct cf4_session *s, struct cf_reply *r, uint32_t want);
/* Number and status of the next result; they must be these. */
bool cf4_op_done(struct cf_test *t, struct cf_reply *r, uint32_t op, uint32_t want);
/* Skips as many results without contents as cf4_put_scratch has put operations. */
bool cf4_scratch_done(struct cf_test *t, struct cf_reply *r);
void cf4_skip_getattr(struct xdr_in *x); /* after its cf4_op_done */
struct cf4_read_result {
	bool eof;
	uint32_t len;
	const uint8_t *data; /* NULL if reduced */
};
/* After the cf4_op_done of READ. reduced: the data are in a Write chunk. */
bool cf4_read_result(struct cf_test *t, struct cf_reply *r, bool reduced,
		     struct cf4_read_result *out);

/* The NFSv4 handle of the scratch directory's entry of this name; name NULL: of the directory
 * itself. */
bool cf4_handle(struct cf_test *t, struct cf4_session *s, const char *name, struct cf_fh *fh);
/* Sends; the reply must be accepted, the compound's status CF4_OK; walked up to the first operation
 * after SEQUENCE. */
struct cf_reply *cf4_ask(struct cf_test *t, struct cf4_session *s, struct cf_call *c);

#endif
