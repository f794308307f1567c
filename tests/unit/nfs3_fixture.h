/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole NFS server, versions 3 and 4, in one thread and without a transport: real vfs/ on a
 * fresh directory, exports that the test sets, and a connection that keeps the reply. A test builds
 * a call, sends it, and decodes the reply (for version 4: tests/unit/nfs4_fixture.h).
 *
 *	struct xdr_out *c = fix_call(f, NFS_PROGRAM, 3, NFSPROC3_GETATTR);
 *	fix_put_fh(c, &f->root);
 *	struct xdr_in *r = fix_send(f);	(the cursor is behind the accepted header)
 */
#ifndef RN_TESTS_NFS3_FIXTURE_H
#define RN_TESTS_NFS3_FIXTURE_H

#include "lib/arena.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_proto.h"
#include "nfs4/nfs4_server.h"
#include "rpc/program.h"
#include "rpc/worker.h"
#include "vfs/io.h"
#include "vfs/vfs_worker.h"

#define FIX_CALL_SIZE (1200u << 10)
#define FIX_REPLY_SIZE (2200u << 10)
#define FIX_EXPORTS 2

enum fix_outcome { FIX_NOTHING, FIX_REPLY, FIX_DROP, FIX_TOO_LONG, FIX_GARBAGE_CALL };

struct fixture {
	char dir[2][64]; /* the exported directories, ids 1 and 2 */
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct vfs *vfs;
	struct vfs_export *exp[FIX_EXPORTS];
	struct vfs_worker *vw;
	struct rn_fiber fiber; /* this thread, for calls of vfs/ by the test itself */
	struct rpc_worker worker;
	struct vfs_worker *event_vw;
	struct rpc_worker event_worker;
	struct nfs3_server *server;
	struct nfs4_server *server4;
	struct rpc_version versions[2]; /* versions of the NFS program */
	char state_dir[64];
	struct rpc_server rpc;
	struct rpc_conn conn;
	struct rpc_request *req;

	/* Set by the test before a call. */
	bool on_event_thread; /* the call begins on an event thread's worker, as on an event thread; see moved */
	struct vfs_access access;
	bool deny;	     /* every export refuses the client */
	bool undecided;	     /* no export knows yet whether it admits the client */
	unsigned deny_after; /* number of the lookup of an export that sets deny; 0: none */
	uint32_t flavor;     /* RPC_AUTH_* of the next call */
	uint32_t uid, gid;
	size_t reply_max;
	unsigned nbulk_spaces;
	uint32_t bulk_space[XDR_BULKS_MAX]; /* lengths of the offered Write chunks */
	/*
	 * Items of the next call, by their offset in it, that come by Read chunks, without padding.
	 */
	unsigned nreduced;
	struct {
		size_t at;
		uint32_t len;
	} reduced[3];
	void (*on_wait)(struct fixture *f); /* called while a call has not been answered, or NULL */
	bool back_channel; /* sessions ask for callbacks: tests/unit/nfs4_callbacks.h */
	unsigned split;	   /* number of segments to cut the call into (1 to 8) */

	struct vfs_fh root; /* root handle of export 1 */
	uint8_t *call;
	struct xdr_out out;
	uint32_t xid;

	/* Result of the last call. */
	_Atomic unsigned
		moved; /* times that it has moved from the event thread's worker to the other */
	enum fix_outcome outcome;
	unsigned answers; /* must be 1 */
	uint8_t *reply;
	size_t reply_len;
	bool had_bulk;
	unsigned nbulks;
	uint32_t bulk_len[XDR_BULKS_MAX];
	uint32_t reply_stat, accept_stat, auth_stat;
	struct rpc_seg seg;
	struct rn_arena arena;
	char arena_mem[16384];
	struct xdr_in in;
};

/* Returns NULL and *out, or the reason why the server cannot run here (no root, a file system
 * without handles). */
const char *fix_start(struct fixture **out);
void fix_stop(struct fixture *f);

/* Makes the NFSv4 server; fix_start() does so already. After nfs4_server_free() the call acts as a
 * restart, which keeps the contents of the state directory. If callbacks may be under way,
 * fix_close_back() comes before both. */
const char *fix_start_nfs4(struct fixture *f);

struct xdr_out *fix_call(struct fixture *f, uint32_t prog, uint32_t vers, uint32_t proc);
struct xdr_in *fix_send(struct fixture *f);
/* Lets later calls come from another host: the low byte of its address. Initially 1. */
void fix_from(struct fixture *f, uint8_t machine);
/* Ends the connection's reverse direction; it may begin anew, as that of another connection. */
void fix_close_back(struct fixture *f);
/* Sends a finished message, valid or not. */
/* Begins that request on its worker, or goes on with it. */
void fix_begin(struct fixture *f, struct rpc_request *req);
void fix_run(struct rpc_request *req);
void fix_send_raw(struct fixture *f, const uint8_t *msg, size_t len);

void fix_put_fh(struct xdr_out *c, const struct vfs_fh *fh);
void fix_put_name(struct xdr_out *c, const char *name);
/* encodes a sattr3 that sets only the mode */
void fix_put_sattr_mode(struct xdr_out *c, uint32_t mode);

/* Path of a name in export 1's directory; one static buffer. */
const char *fix_path(struct fixture *f, const char *name);
/* Gets the handle of a name in a directory; returns the status of LOOKUP. */
uint32_t fix_lookup(struct fixture *f, const struct vfs_fh *dir, const char *name,
		    struct vfs_fh *out);

/* Decoders of parts of results. Each returns false for an optional part that is absent. */
struct fix_attr {
	uint32_t type, mode, nlink, uid, gid;
	uint64_t size, used, fsid, fileid;
	uint32_t major, minor, atime[2], mtime[2], ctime[2];
};
void fix_get_attr(struct xdr_in *r, struct fix_attr *a);
bool fix_get_post_attr(struct xdr_in *r, struct fix_attr *a);
bool fix_get_post_fh(struct xdr_in *r, struct vfs_fh *fh);
/* wcc_data. True if the attributes after the operation are present. Those before depend on whether
 * the kernel tells of changes by others: tests/net/dir_changes.py. */
bool fix_get_wcc(struct xdr_in *r, struct fix_attr *after);
void fix_get_fh(struct xdr_in *r, struct vfs_fh *fh);

/* Flavours that the export accepts from now on: one, and any others by vfs_access_accept(). */
void fix_accept(struct vfs_access *a, enum vfs_sec sec);
/* Has the VFS_FLAVOR_FLAGS of a->flags apply under every flavour, as exports without a second sec= do. */
void fix_spread(struct vfs_access *a);

#endif
