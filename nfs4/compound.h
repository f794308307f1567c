/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One COMPOUND under way (RFC 7530 section 15.2, RFC 8881 section 16.2): the loop over its
 * operations, and what operations hand on to each other. It lies in the request's arena and is used
 * by the request's worker only.
 *
 * An operation is a row of the table (nfs4/op_table.h). The loop decodes its arguments, makes sure
 * that its worst-case result fits the reply, puts the operation's number and a place for the
 * status, and calls run(). run() puts what follows the status into c->out and returns a status. If
 * that is not NFS4_OK, what it has put is taken back, unless it set c->keep_body (results that have
 * a body on failure: LOCK's denied owner, SETATTR's bitmap). One that waits for the ring or for
 * memory returns NFS4_PENDING and ends later, on the same worker, by nfs4_compound_resume().
 *
 * Arguments live in the arena until their operation has ended: the loop takes the arena back to
 * where it was before it decodes the next one. Nothing else may keep pointers into it; what
 * outlives the operation belongs to the compound.
 */
#ifndef RN_NFS4_COMPOUND_H
#define RN_NFS4_COMPOUND_H

#include "nfs4/audience.h"
#include "nfs4/hooks.h"
#include "nfs4/op_table.h"
#include "nfs4/place.h"
#include "nfs4/proto.h"
#include "nfs4/stateid.h"
#include "nfs4/status.h"
#include "rpc/program.h"
#include "rpc/worker.h"
#include "vfs/io.h"

/* Results of run() besides nfsstat4. */
#define NFS4_PENDING (-1)  /* nfs4_compound_resume() will be called */
#define NFS4_REPLAYED (-2) /* SEQUENCE only: the reply of the slot is in c->out, whole */
#define NFS4_NO_ROOM                                                                               \
	(-3) /* the result is longer than the client's chunks: see nfs4_reply_too_big */

#define NFS4_TAG_MAX 1024u /* a longer tag is no client's: GARBAGE_ARGS */
#define NFS4_OPS_MAX 128u  /* operations of one COMPOUND, sessions may agree on fewer */

struct nfs4_client;
struct nfs4_owner;
struct nfs4_session;
struct nfs4_slot;

struct nfs4_compound {
	struct rpc_request *req;
	struct nfs4_server *server;
	struct xdr_in *in;   /* &req->in */
	struct xdr_out *out; /* &req->out */

	uint32_t minor;
	uint32_t nops;		  /* as the call says */
	uint32_t index;		  /* of the operation under way */
	uint32_t opnum;		  /* its number, as the call says */
	const struct nfs4_op *op; /* its row; NULL: illegal */
	void *args;
	bool keep_body;
	bool no_room; /* an operation ended in NFS4_NO_ROOM */

	size_t body_at;	      /* offset in out of COMPOUND4res */
	size_t count_at;      /* of the number of results */
	size_t status_at;     /* of the status of the operation under way */
	size_t arena_at;      /* arena position before its arguments */
	uint32_t done;	      /* results put */
	uint64_t op_began_ns; /* CLOCK_MONOTONIC; 0: nobody wants to know */
	struct rpc_seg rest;  /* after nfs4_forget_call: what is left of the call */

	struct nfs4_place current, saved;
	struct nfs4_audience audience;		    /* so far */
	struct nfs4_stateid current_sid, saved_sid; /* RFC 8881 section 16.2.3.1.2 */
	bool has_current_sid, has_saved_sid;

	/* Minor versions 1 and 2, from SEQUENCE on: references, given back at the end. */
	struct nfs4_session *session;
	struct nfs4_slot *slot;
	bool cache_this;
	size_t reply_limit;  /* of the session: bytes of the whole RPC reply; SIZE_MAX: none */
	size_t cached_limit; /* bytes, if cache_this */
	struct nfs4_client *client; /* who calls, once it is known: a reference */

	/* NFS4ERR_DELAY because of this, which will be gone soon: a reference. The operation is
	 * repeated then (nfs4_repeat_after). */
	void *obstacle;
	const struct nfs4_obstacle_hooks *obstacle_hooks;
	uint32_t repeats;
	size_t run_at; /* arena position before run() */

	/* Minor version 0: the owner whose sequence number the operation has advanced. When the
	 * operation ends, its result is kept with the owner as the answer to a replay. */
	struct nfs4_owner *seq_owner;
	const struct nfs4_seq_hooks *seq_hooks;

	/* Attributes that the operation before has looked at anyway, of the current filehandle as
	 * it left it: of use to the next operation only, but for GETFH. */
	struct vfs_attr seen;
	uint32_t seen_index; /* of the operation that may use them; 0: none */

	/* Names of users and groups that the operation has put as numbers, since the name service
	 * has not answered yet. */
	uint32_t names_awaited;

	/* For operations that wait. */
	union {
		struct vfs_io io;
		struct vfs_sync sync;
	};
	int (*after_sync)(struct nfs4_compound *c, int rc); /* see nfs4_settle */
	void *wait;					    /* the operation's own */
};

/* What of a COMPOUND call comes before its operations. */
struct nfs4_compound_args {
	const uint8_t *tag;
	uint32_t tag_len;
	uint32_t minor;
	uint32_t nops;
};
bool nfs4_compound_decode(struct xdr_in *in, void *args);

/* The run function of procedure COMPOUND. */
enum rpc_run nfs4_compound_run(struct rpc_request *req, void *args);

/* Goes on after NFS4_PENDING: the operation's result is in c->out. On the request's worker; c may
 * be gone afterwards. */
void nfs4_compound_resume(struct nfs4_compound *c, int status);

/* Bytes by which the reply may still grow without a Write chunk's help: what transport and session
 * allow, less what the status of a further operation needs. */
size_t nfs4_reply_room(const struct nfs4_compound *c);
/* The same of the memory that c->out has already. */
size_t nfs4_reply_room_now(const struct nfs4_compound *c);

/* The most bytes that the next bulk item may have with head bytes before it (its length word is one
 * of them): what its Write chunk holds, or the stream where it has none, and the session allows. */
uint32_t nfs4_bulk_room(const struct nfs4_compound *c, size_t head);

/*
 * What a result of at least need bytes, which does not fit, is answered: NFS4ERR_RESOURCE (minor
 * version 0), NFS4ERR_REP_TOO_BIG or NFS4ERR_REP_TOO_BIG_TO_CACHE where the session's limits are in
 * the way. NFS4_NO_ROOM where only the room that the transport was offered is, and the transport
 * can say so: the client hears of a transport error (RFC 8267 section 6.2.1) and not of a limit
 * that it never agreed on.
 */
int nfs4_reply_too_big(const struct nfs4_compound *c, size_t need);

/*
 * Makes room in c->out for size bytes. 0, or the status to answer (too big, or NFS4ERR_DELAY: no
 * memory now). The loop has done so already for the row's reply_max.
 */
int nfs4_reserve_reply(struct nfs4_compound *c, size_t size);

/* As nfs4_reserve_reply, but whether that much may be sent is seen when it is there. For what
 * changes nothing: its worst case is long, and what it puts mostly is not. */
int nfs4_grow_reply(struct nfs4_compound *c, size_t size);
/* What has been put is more than may be sent, or leaves no room for the next operation's status. */
bool nfs4_reply_is_too_big(const struct nfs4_compound *c);

/*
 * Lets go of the call's memory before its request waits for more (rpc_request_forget_call): what is
 * left of the call is copied into the arena. False: it does not fit, or the reply holds payload
 * already; then the operation must not wait, and answers NFS4ERR_DELAY if there is no memory now.
 */
bool nfs4_forget_call(struct nfs4_compound *c);

/*
 * For an operation that has changed nothing yet and is about to return NFS4ERR_DELAY: the obstacle
 * in its way will be gone in a moment. The loop lets the operation wait for that, and calls run()
 * again with the same arguments; the caller would come again only after seconds. Takes over a
 * reference.
 */
void nfs4_repeat_after(struct nfs4_compound *c, const struct nfs4_obstacle_hooks *hooks,
		       void *obstacle);
/* The operation has changed something after all: it must not be run again. */
void nfs4_repeat_no_more(struct nfs4_compound *c);
/* True if run() will be called again when it returns that status. */
bool nfs4_is_repeated(const struct nfs4_compound *c, int status);

/*
 * nfs4/settle.c. The end of an operation that changed metadata: makes c->sync.node[] durable unless the export is
 * async or rc is a failure, then calls after(c, rc), which puts the result and returns the status.
 * What run() returns.
 */
int nfs4_settle(struct nfs4_compound *c, int rc, int (*after)(struct nfs4_compound *c, int rc));

#endif
