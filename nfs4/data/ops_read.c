/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ (RFC 7530 section 16.23, RFC 8881 section 18.22). The data stays in the payload buffer that
 * the ring read it into. The operation owns the payload from its allocation until xdr_put_bulk,
 * which passes the reference to the reply, or until it is put.
 *
 * If the budget has no memory, the request waits in the pool's queue, unless it holds payload
 * already. Two such requests could wait for each other, so it then answers NFS4ERR_DELAY.
 */
#include "lib/pipe.h"
#include "lib/util.h"
#include "nfs/read_pages.h"
#include "nfs4/data/status.h"
#include "nfs4/server.h"
#include "nfs4/state/io.h"

#define READ_HEAD 8u  /* bytes of the result in addition to the data: eof, length */
#define READ_LEAST 4u /* one byte, and its padding */

struct read_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t count;
	struct nfs4_io_right right;
};

static void decode_read(struct nfs4_compound *c, void *args)
{
	struct read_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->count = xdr_get_u32(c->in);
}

/* Ends a READ that has a buffer; rc is bytes or -errno. */
static int put_result(struct nfs4_compound *c, int64_t rc)
{
	struct vfs_io *io = &c->io;

	if (rc < 0) {
		rn_payload_put(io->payload);
		return nfs4_data_status(c, (int)rc);
	}
	xdr_put_bool(c->out, io->eof);
	/* An empty item is put, too, since it uses up its Write chunk (RFC 8267 section 6.4.1). */
	xdr_put_bulk(c->out, io->payload, io->data_off, (uint32_t)rc);
	return NFS4_OK;
}

static void read_done(struct vfs_io *io)
{
	struct nfs4_compound *c = io->arg;
	struct read_args *a = c->args;

	nfs4_io_end(&a->right);
	nfs4_compound_resume(c, put_result(c, io->result));
}

/* Continues on the request's worker when memory is available. */
static void read_resume(struct rpc_request *req)
{
	struct nfs4_compound *c = req->op;

	nfs4_compound_rehome(c);
	vfs_read(&c->io);
}

static void memory_ready(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct rpc_request *req = rn_container_of(w, struct rpc_request, waiter);
	struct nfs4_compound *c = req->op;

	c->io.payload = p;
	rpc_requeue(req, read_resume);
}

/* True if the READ has ended, without a copy. A reply that the slot keeps is copied. */
static bool read_pages(struct nfs4_compound *c)
{
	struct rn_pipe *pipe = c->cache_this ? NULL : nfs_read_pages(c->req, &c->io);

	if (!pipe)
		return false;
	xdr_put_bool(c->out, c->io.eof);
	xdr_put_pipe(c->out, pipe);
	return true;
}

/* Starts the READ, or waits for a buffer of size bytes. */
static int start_read(struct nfs4_compound *c, size_t size)
{
	struct rpc_request *req = c->req;
	struct rn_payload_pool *pool = req->server->pool;
	struct rn_payload *p = rn_payload_get_for(pool, size, rpc_request_account(req));

	if (!p && !nfs4_forget_call(c))
		return NFS4ERR_DELAY;
	if (!p) {
		req->waiter.ready = memory_ready;
		req->waiter.account = rpc_request_account(req);
		p = rn_payload_get_or_wait(pool, size, &req->waiter);
		/* NULL: the request waits, or has been handed back to its worker already. It must
		 * not be touched here. */
		if (!p)
			return NFS4_PENDING;
	}
	c->io.payload = p;
	vfs_read(&c->io);
	return NFS4_PENDING;
}

/* Prepares c->io for count bytes from a's offset on. */
static void prepare(struct nfs4_compound *c, const struct read_args *a, uint32_t count)
{
	struct vfs_io *io = &c->io;

	*io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		.offset = a->offset,
		.count = count,
		.opened = a->right.opened,
		.done = read_done,
		.arg = c,
	};
	/* A READ beyond the largest offset of a file is a READ at end of file. */
	if (io->offset > INT64_MAX)
		io->offset = INT64_MAX;
	if (io->count > INT64_MAX - io->offset)
		io->count = (uint32_t)(INT64_MAX - io->offset);
}

static int run_read(struct nfs4_compound *c, void *args)
{
	struct read_args *a = args;
	uint32_t count = (uint32_t)rn_min(a->count, c->server->cfg.max_io);
	uint32_t room = nfs4_bulk_room(c, READ_HEAD);
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);

	if (status != NFS4_OK)
		return status;
	/* A client may get less than it asked for, but an endless series of empty results would
	 * hang it. */
	if (room == 0 && count > 0)
		return nfs4_reply_too_big(c, READ_HEAD + READ_LEAST);
	status = nfs4_io_begin(c, &a->stateid, NFS4_IO_READ, &a->right);
	if (status != NFS4_OK)
		return status;
	prepare(c, a, rn_min(count, room));
	if (read_pages(c)) {
		nfs4_io_end(&a->right);
		return NFS4_OK;
	}
	size_t size = vfs_read_buffer_size(c->current.ctx.exp, c->io.offset, c->io.count);
	status = start_read(c, size > 0 ? size : 1);
	if (status != NFS4_PENDING)
		nfs4_io_end(&a->right);
	return status;
}

const struct nfs4_op nfs4_op_read = {
	.name = "READ",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_PROMPT,
	.reply_max = 8,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY),
	.shape = NFS4_SHAPE(NFS4_STATEID_SIZE + 12, 0, 0),
	.args_size = sizeof(struct read_args),
	.decode = decode_read,
	.run = run_read,
};
