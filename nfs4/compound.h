/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One COMPOUND under way (RFC 7530 section 15.2, RFC 8881 section 16.2): the loop over its
 * operations, and the data that operations pass on. It lies in the request's arena; only the
 * request's worker uses it.
 *
 * An operation is a row of the table (nfs4/op_table.h). The loop decodes its arguments, makes sure
 * that its worst-case result fits the reply, puts the operation's number and a place for the
 * status, and calls run(). run() puts the result's body into c->out and returns a status. If that
 * is not NFS4_OK, the body is removed, unless run() set c->keep_body (results that have a body on
 * failure: LOCK's denied owner, SETATTR's bitmap). run() waits where it has to. Two rules for that (lib/fiber.h): no lock is
 * held meanwhile, an open's busy among them; afterwards files, names and states may have changed, while objects, nodes and
 * referenced states are still there.
 *
 * Arguments live in the arena until their operation has ended: the loop resets the arena before it
 * decodes the next ones. Nothing else may keep pointers into it; data that outlives the operation
 * belongs to the compound.
 */
#ifndef RN_NFS4_COMPOUND_H
#define RN_NFS4_COMPOUND_H

#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_status.h"
#include "nfs4/op_table.h"
#include "nfs4/object.h"
#include "nfs4/stateid.h"
#include "rpc/program.h"
#include "rpc/worker.h"
#include "vfs/io.h"

/* Results of run() besides nfsstat4. */
#define NFS4_REPLAYED (-2) /* SEQUENCE only: c->out holds the slot's whole reply */
/* The result does not fit the client's chunks: see nfs4_reply_too_big. */
#define NFS4_NO_ROOM (-3)

#define NFS4_TAG_MAX 1024u /* longer tags are GARBAGE_ARGS */
#define NFS4_RAN_MAX 32u   /* operations that are noted for traces */
#define NFS4_OPS_MAX 128u  /* operations of one COMPOUND; a session may set a lower limit */

struct nfs4_client;
struct nfs4_counts;
struct nfs4_owner;
struct nfs4_session;
struct nfs4_slot;

struct nfs4_compound {
	struct rpc_request *req;
	struct nfs4_server *server;
	struct xdr_in *in;   /* &req->in */
	struct xdr_out *out; /* &req->out */

	uint32_t minor;
	uint32_t nops;		  /* number of operations in the call */
	uint32_t index;		  /* index of the operation under way */
	uint32_t opnum;		  /* its number in the call */
	const struct nfs4_op *op; /* its row; NULL: illegal */
	void *args;
	bool keep_body;
	bool no_room; /* an operation ended in NFS4_NO_ROOM */

	size_t body_at;	  /* offset of COMPOUND4res in out */
	size_t count_at;  /* offset of the number of results */
	size_t status_at; /* offset of the status of the operation under way */
	size_t arena_at;  /* arena position before its arguments */
	uint32_t done;	  /* results put */
	/* Numbers of the first operations that began, for traces; 0: an illegal one. */
	uint8_t ran[NFS4_RAN_MAX];
	uint64_t clientid;    /* of the calling client, noted when it is put; 0: not known */
	uint64_t op_began_ns; /* CLOCK_MONOTONIC; 0: not measured */
	uint32_t untimed;     /* operations that ended last and were not observed yet */
	struct rpc_seg rest;  /* after nfs4_forget_call: the undecoded part of the call */

	struct nfs4_object current, saved;
	struct nfs4_reply_exports exports;	    /* exports entered so far */
	struct nfs4_stateid current_sid, saved_sid; /* RFC 8881 section 16.2.3.1.2 */
	bool has_current_sid, has_saved_sid;

	/* Minor versions 1 and 2, from SEQUENCE on: references, put at the end. */
	struct nfs4_session *session;
	struct nfs4_slot *slot;
	bool cache_this;
	size_t reply_limit;  /* the session's limit of the RPC reply in bytes; SIZE_MAX: none */
	size_t cached_limit; /* bytes, if cache_this */
	struct nfs4_client *client;  /* calling client, once it is known: a reference */
	struct nfs4_client *of_conn; /* see nfs4_client_of_conn; a reference */
	struct nfs4_counts *counts;  /* its; NULL: not known, or not counted */
	uint32_t moved;		     /* bytes of a file that the operation has read or written */

	/* Minor version 0: the owner whose sequence number the operation has advanced. The result
	 * of the operation is stored with the owner for a retransmission. */
	struct nfs4_owner *seq_owner;
	uint64_t seq_sum; /* hash of the last OPEN or OPEN_CONFIRM: nfs4_seq_sum() */

	/* Attributes of the current filehandle that the operation before has read anyway. Only the
	 * next operation may use them; GETFH in between is allowed. */
	struct vfs_attr last_attr;
	uint32_t last_attr_index; /* index of the operation that may use them; 0: none */

	/* Number of user and group names that the operation has put as numbers, because the name
	 * service has not answered while it waited. */
	uint32_t names_unknown;

	struct vfs_io io; /* for operations on data */
};

/* The part of a COMPOUND call before its operations. */
struct nfs4_compound_args {
	const uint8_t *tag;
	uint32_t tag_len;
	uint32_t minor;
	uint32_t nops;
};
bool nfs4_compound_decode(struct xdr_in *in, void *args);

/* The run function of procedure COMPOUND. */
enum rpc_run nfs4_compound_run(struct rpc_request *req, void *args);

/* Bytes by which the reply may still grow without a Write chunk: the limit of transport and
 * session, less the status of one more operation. */
size_t nfs4_reply_space(const struct nfs4_compound *c);
/* Like nfs4_reply_space(), for the memory that c->out has already. */
size_t nfs4_reply_space_now(const struct nfs4_compound *c);

/*
 * Largest size in bytes of the next bulk item with head bytes before it (including its length
 * word): the size of its Write chunk, or the space in the stream if it has none, within the
 * session's limits.
 */
uint32_t nfs4_bulk_space(const struct nfs4_compound *c, size_t head);

/*
 * Status for a result of at least need bytes that does not fit: NFS4ERR_RESOURCE (minor version 0),
 * or NFS4ERR_REP_TOO_BIG or NFS4ERR_REP_TOO_BIG_TO_CACHE if the session's limits are exceeded.
 * NFS4_NO_ROOM if only the transport's space is, and the transport can report it: the client then
 * gets a transport error (RFC 8267 section 6.2.1), and not one about a limit that it never agreed
 * on.
 */
int nfs4_reply_too_big(const struct nfs4_compound *c, size_t need);

/* Reserves size bytes in c->out. 0, or the status to answer (too big, or NFS4ERR_DELAY: no memory
 * now). The loop has reserved the row's reply_max already. */
int nfs4_reserve_reply(struct nfs4_compound *c, size_t size);

/* As nfs4_reserve_reply, but does not check whether the reply may be that long. For operations that
 * change nothing, whose worst case is much longer than the usual result. */
int nfs4_grow_reply(struct nfs4_compound *c, size_t size);
/* True if the reply is longer than allowed, or leaves no room for the next operation's status. */
bool nfs4_reply_is_too_big(const struct nfs4_compound *c);

/*
 * Frees the call's memory before its request waits for more (rpc_request_forget_call); copies the
 * undecoded part of the call into the arena. False: it does not fit, or the reply holds payload
 * already. The operation must then not wait, and answers NFS4ERR_DELAY if there is no memory now.
 */
bool nfs4_forget_call(struct nfs4_compound *c);

/* nfs_await() for a step of the operation, for as long as a COMPOUND may wait for delegations and names. */
bool nfs4_await(struct nfs4_compound *c, int rc);
/* The status to answer instead of one that the current filehandle's export has caused: NFS4ERR_DELAY if its file system has given this machine
 * up, or seems to have (vfs_doubt); never NFS4_CUT_OFF. */
int nfs4_doubt(struct nfs4_compound *c, int status);

/* True if a step that ended in status is made again: in NFS4_HELD, after such a wait; in NFS4_YIELDED, at once, for as long as clients
 * bear (rpc_has_time). No lock is held. */
bool nfs4_try_again(struct nfs4_compound *c, int status);

/*
 * nfs4/client/client_host.c. Minor version 0: the only client whose ids and states calls of the COMPOUND's connection have named, or NULL. The
 * COMPOUND has the reference. Operations without an id or stateid (REMOVE, RENAME, LINK, SETATTR of a mode) are taken
 * for that client's, as far as its own delegations are not in its way: clients with several ids have a connection
 * for each.
 */
struct nfs4_client *nfs4_client_of_conn(struct nfs4_compound *c);

/* Makes the nodes of sync durable, for an operation that has changed metadata, unless rc is a failure or the export is async. 0, or
 * -errno, or rc. */
int nfs4_settle(struct nfs4_compound *c, struct vfs_sync *sync, int rc);

#endif
