/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces of an asynchronous copy. Each is run and checked as a COPY of that piece would be:
 * filehandles, exports, the caller's identity there, stateids and shares of others are all looked
 * at anew. So a copy ends soon after what it relies on has gone.
 *
 * A piece is one system call. Pieces take turns with the calls of all clients for a worker
 * (rpc_server.background); they count as calls of the host that sent COPY, by their bytes.
 *
 * The piece's compound never meets the loop: it is what the checks ask for the caller.
 */
#include "nfs4/data/nfs4_copy.h"

#include <errno.h>
#include <stdio.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/state/stateid_check.h"
#include "rpc/client.h"
#include "rpc/principal.h"

static void nfs4_copy_ignore_conn(struct rpc_conn *conn)
{
	(void)conn;
}

int nfs4_copy_work_new(struct nfs4_copy *copy, const struct nfs4_copy_caller *caller)
{
	const struct rpc_conn *from = caller->conn;
	struct rpc_request *req = rpc_request_new(copy->client->srv->cfg.pool);

	if (!req)
		return -ENOMEM;
	snprintf(copy->netid, sizeof(copy->netid), "%s", from->ops->netid);
	copy->conn_ops = (struct rpc_conn_ops){ .netid = copy->netid,
						.reliable = from->ops->reliable,
						.keeps_port = from->ops->keeps_port,
						.destroy = nfs4_copy_ignore_conn };
	copy->conn.ops = &copy->conn_ops;
	copy->conn.peer = from->peer;
	copy->conn.local = from->local;
	copy->conn.id = from->id;
	atomic_init(&copy->conn.refs, 1);
	if (caller->clients) {
		copy->conn.client = rpc_client_get(caller->clients, &from->peer);
		if (!copy->conn.client) {
			rpc_request_free(req);
			return -ENOMEM;
		}
	}
	req->conn = &copy->conn;
	req->server = caller->server;
	req->call.cred = *caller->cred;
	rpc_principal_ref(req->call.cred.principal);
	req->admission = RPC_ADMITTED; /* the exports are asked for each piece */
	req->transport_private = copy;
	copy->req = req;
	return 0;
}

#define PIECE (1u << 20) /* bytes */
#define LEASE_PART 3u	 /* time for an answer of the other server, as a part of a lease */
#define TIMEOUT_LEAST 2u /* seconds */

int nfs4_copy_remote_new(struct nfs4_copy *copy, const struct nfs4_remote_file *file)
{
	const struct nfs4_config *cfg = &copy->client->srv->cfg;
	const unsigned timeout = (unsigned)rn_max(cfg->lease_seconds / LEASE_PART, TIMEOUT_LEAST);

	copy->remote.file = nfs4_remote_new(&cfg->dialer, file, timeout);
	return copy->remote.file ? 0 : -ENOMEM;
}

static void put_payload(struct nfs4_copy *copy)
{
	rn_payload_put(copy->remote.payload);
	copy->remote.payload = NULL;
}

/* idempotent */
static void nfs4_copy_remote_free(struct nfs4_copy *copy)
{
	put_payload(copy);
	nfs4_remote_free(copy->remote.file);
	copy->remote.file = NULL;
}

void nfs4_copy_work_free(struct nfs4_copy *copy)
{
	if (!copy->req)
		return;
	nfs4_copy_remote_free(copy);
	rpc_principal_put(copy->req->call.cred.principal);
	rpc_request_free(copy->req);
	rpc_client_put(copy->conn.client);
	copy->conn.client = NULL;
	copy->req = NULL;
}

/* A piece under way, in the arena of the request. */
struct nfs4_copy_piece {
	struct nfs4_compound c;
	struct nfs4_two_files files;
};

static void nfs4_copy_end_piece(struct nfs4_copy *copy, int status, uint32_t bytes)
{
	struct rpc_request *req = copy->req;
	const struct rpc_server *server = req->server;

	if (req->op) {
		struct nfs4_copy_piece *p = req->op;

		status = nfs4_doubt(&p->c, status);
		nfs4_object_clear(&p->c.current);
		nfs4_object_clear(&p->c.saved);
		status = nfs4_status_for(p->c.op, p->c.minor, status);
	}
	req->op = NULL;
	rn_arena_reset(&req->arena);
	if (server->ended)
		server->ended(server->ended_ctx, req);
	nfs4_copy_piece_ended(copy, status, bytes);
}

/* Some of what the piece has written is not on disk. */
static void note_unstable(struct nfs4_copy *copy, const struct nfs4_copy_piece *p)
{
	copy->offload.committed = VFS_UNSTABLE;
	if (copy->errors < 0)
		copy->errors = vfs_errors_open(p->c.current.node);
}

/* Notes the verifier of the first piece after a restart; p has found the destination. */
static void expect_verifier(struct nfs4_copy *copy, const struct nfs4_copy_piece *p)
{
	if (!copy->expecting)
		copy->expects = vfs_write_verifier(p->c.current.ctx.exp);
	copy->expecting = true;
}

/* Copies the piece. An error of the file systems behind what was copied is not told, as in a synchronous COPY: the
 * client asks for the rest, and meets it again. */
static void copy_piece(struct nfs4_copy *copy, struct nfs4_copy_piece *p)
{
	expect_verifier(copy, p);

	const int64_t n = vfs_copy(&p->files.copy);
	int status = nfs4_data_status(&p->c, n < 0 ? (int)n : 0);

	nfs4_two_files_end(&p->files);
	if (!p->files.copy.stable)
		note_unstable(copy, p);
	if (status != NFS4_OK && !nfs4_is_later(status) && copy->copied > 0)
		status = NFS4_OK;
	nfs4_copy_end_piece(copy, status, n > 0 ? (uint32_t)n : 0);
}

/* True if the status means that a delegation was returned. Its client goes on by its opens: it asks
 * for the rest with their stateids. */
static bool nfs4_copy_is_returned(const struct nfs4_copy *copy, int status)
{
	return status == NFS4ERR_BAD_STATEID && copy->delegated && copy->copied > 0;
}

/* On the worker that has the piece. NULL: the copy does not go on, or there is no memory. Either way
 * nfs4_copy_end_piece() follows. */
static struct nfs4_copy_piece *nfs4_copy_piece_new(struct nfs4_copy *copy)
{
	struct nfs4_copy_piece *p = NULL;
	struct nfs4_compound *c;

	if (nfs4_copy_goes_on(copy))
		p = rn_arena_alloc(&copy->req->arena, sizeof(*p));
	copy->req->op = p;
	if (!p)
		return NULL;
	c = &p->c;
	c->req = copy->req;
	c->server = copy->client->srv;
	c->in = &c->req->in;
	c->out = &c->req->out;
	c->minor = NFS4_MINOR_MAX;
	c->op = &nfs4_op_copy;
	c->opnum = OP_COPY;
	c->client = copy->client; /* the copy has the reference */
	p->files.from_sid = copy->from_sid;
	p->files.to_sid = copy->to_sid;
	return p;
}

static void set_range(struct nfs4_copy *copy, struct vfs_copy *v)
{
	v->from.offset = copy->from_at + copy->copied;
	v->offset = copy->to_at + copy->copied;
	v->count = copy->req->moves;
	v->cut = true;
	v->account = rpc_request_account(copy->req);
}

static void run_piece(struct rpc_request *req)
{
	struct nfs4_copy *copy = req->transport_private;
	struct nfs4_copy_piece *p = nfs4_copy_piece_new(copy);
	int status;

	if (!p) {
		nfs4_copy_end_piece(copy, NFS4ERR_DELAY, 0);
		return;
	}
	set_range(copy, &p->files.copy);
	status = nfs4_object_by_fh(&p->c, &p->c.saved, &copy->from_fh);
	if (status == NFS4_OK)
		status = nfs4_object_by_fh(&p->c, &p->c.current, &copy->to_fh);
	if (status == NFS4_OK)
		status = nfs4_two_files_begin(&p->c, &p->files);
	if (status == NFS4_OK)
		copy_piece(copy, p);
	else
		nfs4_copy_end_piece(copy, nfs4_copy_is_returned(copy, status) ? NFS4_OK : status,
				    0);
}

/*
 * Pieces of a copy from another server. The data of a piece are read first, which nobody waits for,
 * then a worker writes them, checked as a COPY of that piece would be.
 */

/* The client is told what has been copied; or, if that is nothing, to copy by itself, since it learns
 * then what is wrong. */
int nfs4_copy_given_up(const struct nfs4_copy *copy)
{
	return copy->copied > 0 ? NFS4_OK : NFS4ERR_OFFLOAD_DENIED;
}

/* Status of a piece whose data were fetched, or not. A server that has served before may be back
 * soon. */
static int fetch_status(const struct nfs4_copy *copy)
{
	const struct nfs4_copy_remote *r = &copy->remote;

	if (r->rc == 0)
		return NFS4_OK;
	if (r->rc == -RN_ELATER || r->rc == -ENOMEM ||
	    (r->rc == -ENOTCONN && nfs4_remote_file(r->file)->served))
		return NFS4ERR_DELAY;
	return nfs4_copy_given_up(copy);
}

static void nfs4_copy_remote_store(struct nfs4_copy *copy, struct nfs4_copy_piece *p)
{
	const struct nfs4_copy_remote *r = &copy->remote;
	uint32_t bytes;
	int64_t n;
	int status;

	p->c.io = (struct vfs_io){
		.ctx = &p->c.current.ctx,
		.node = p->c.current.node,
		.offset = copy->to_at + copy->copied,
		.count = r->read.got,
		.opened = p->files.to.opened,
		.piece[0] = { r->payload->data, r->read.got },
		.piece_payload[0] = r->payload,
		.npieces = 1,
		.stable = VFS_UNSTABLE,
	};
	expect_verifier(copy, p);
	n = vfs_write(&p->c.io);
	bytes = n > 0 ? (uint32_t)n : 0;
	status = nfs4_data_status(&p->c, n < 0 ? (int)n : 0);
	nfs4_two_files_end(&p->files);
	put_payload(copy);
	if (p->c.io.stable == VFS_UNSTABLE)
		note_unstable(copy, p);
	if (copy->remote.read.eof && bytes == copy->remote.read.got)
		copy->count = copy->copied + bytes;
	if (status != NFS4_OK && !nfs4_is_later(status) && copy->copied > 0)
		status = NFS4_OK;
	nfs4_copy_end_piece(copy, status, bytes);
}

/* Writes them: the piece, on a worker. */
static void nfs4_copy_store(struct rpc_request *req)
{
	struct nfs4_copy *copy = req->transport_private;
	struct nfs4_copy_piece *p = NULL;
	int status = fetch_status(copy);

	copy->remote.fetched = false;
	if (copy->remote.read.got > 0) {
		p = nfs4_copy_piece_new(copy);
		status = p ? nfs4_object_by_fh(&p->c, &p->c.current, &copy->to_fh) : NFS4ERR_DELAY;
	}
	if (p && status == NFS4_OK)
		status = nfs4_destination_begin(&p->c, &p->files);
	if (p && status == NFS4_OK) {
		nfs4_copy_remote_store(copy, p);
		return;
	}
	put_payload(copy);
	nfs4_copy_end_piece(copy, nfs4_copy_is_returned(copy, status) ? NFS4_OK : status, 0);
}

/*
 * The last step of an asynchronous copy: its destination is synced, as by COMMIT of what was copied.
 * CB_OFFLOAD then says FILE_SYNC4, which spares the client that COMMIT. If the sync fails, or data may
 * have been lost since the copy began, CB_OFFLOAD says UNSTABLE4 with the verifier of the beginning. So
 * the client's own COMMIT tells what is wrong. After a restart the sync tells of errors of this run, and the error descriptor of
 * those before.
 * Runs on a worker; nfs4_copy_end_piece() follows, always with NFS4_OK and no bytes.
 */
static void nfs4_copy_sync(struct rpc_request *req)
{
	struct nfs4_copy *copy = req->transport_private;
	struct nfs4_copy_piece *p = nfs4_copy_piece_new(copy);

	if (!p || nfs4_object_by_fh(&p->c, &p->c.current, &copy->to_fh) != NFS4_OK ||
	    nfs4_need(&p->c, &p->c.current, NFS4_NEED_REG | NFS4_NEED_FILE) != NFS4_OK) {
		nfs4_copy_end_piece(copy, NFS4_OK, 0);
		return;
	}
	/* The whole file: the count of a range would be one of 32 bits. */
	p->c.io = (struct vfs_io){
		.ctx = &p->c.current.ctx,
		.node = p->c.current.node,
		.opened = true, /* as for COMMIT */
	};
	expect_verifier(copy, p);
	if (vfs_commit(&p->c.io) == 0 &&
	    vfs_write_verifier(p->c.current.ctx.exp) == copy->expects && !copy->lost &&
	    !vfs_errors_seen(copy->errors_before))
		copy->offload.committed = VFS_FILE_SYNC;
	nfs4_copy_end_piece(copy, NFS4_OK, 0);
}

/* Has a worker run the next piece, whose data are there. */
static void nfs4_copy_queue(struct nfs4_copy *copy)
{
	struct rpc_request *req = copy->req;
	const bool remote = copy->remote.file != NULL;

	if (copy->syncing) {
		req->work = nfs4_copy_sync;
		req->moves = 0;
	} else {
		req->work = remote ? nfs4_copy_store : run_piece;
		req->moves = remote ? copy->remote.read.got
				    : (uint32_t)rn_min(copy->count - copy->copied, VFS_COPY_STEP);
	}
	req->arrived_ns = rn_now_ns();
	req->server->background(req->server->background_ctx, req, copy->export_id);
}

static void fetched(struct nfs4_remote_read *rd, int rc)
{
	struct nfs4_copy *copy = rn_container_of(rd, struct nfs4_copy, remote.read);

	copy->remote.fetched = true;
	copy->remote.rc = rc;
	nfs4_copy_queue(copy);
}

/* Fetches the next piece's data; nfs4_copy_work() follows, on any thread. */
static void nfs4_copy_fetch(struct nfs4_copy *copy)
{
	struct nfs4_copy_remote *r = &copy->remote;
	const size_t size = rn_min(copy->count - copy->copied, PIECE);
	struct rpc_request *req = copy->req;

	r->payload = rn_payload_get_for(req->server->pool, size, rpc_request_account(req));
	r->read = (struct nfs4_remote_read){
		.offset = copy->from_at + copy->copied,
		.count = (uint32_t)size,
		.done = fetched,
	};
	if (!r->payload) {
		fetched(&r->read, -ENOMEM);
		return;
	}
	r->read.to = r->payload->data;
	nfs4_remote_read(r->file, &r->read);
}

void nfs4_copy_work(struct nfs4_copy *copy)
{
	if (copy->remote.file && !copy->remote.fetched && !copy->syncing)
		nfs4_copy_fetch(copy);
	else
		nfs4_copy_queue(copy);
}
