/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ (RFC 7530 section 16.23, RFC 8881 section 18.22) and READ_PLUS (RFC 7862 section 15.10). The
 * data stays in the payload buffer that the ring read it into. The operation owns the payload from
 * its allocation until xdr_put_bulk, which passes the reference to the reply, or until it is put.
 *
 * If the budget has no memory, the request waits in the pool's queue, unless it holds payload
 * already. Two such requests could wait for each other, so it then answers NFS4ERR_DELAY.
 *
 * READ_PLUS first asks where the holes of the range are, then puts one element after the other, and
 * reads each one of data as READ does. Whatever fails behind the first element ends the list: the
 * client asks for the rest, and meets the error then.
 */
#include <errno.h>
#include <sys/stat.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "nfs/bulk.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/space.h"

#define READ_HEAD 8u  /* bytes of the result in addition to the data: eof, length */
#define READ_LEAST 4u /* one byte, and its padding */

struct read_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t count;
	struct nfs4_io_right right;
};

static void nfs4_decode_read(struct nfs4_compound *c, void *args)
{
	struct read_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->count = xdr_get_u32(c->in);
}

/* True if the READ has ended, without a copy. A reply that the slot keeps is copied. */
static bool nfs4_read_pages(struct nfs4_compound *c)
{
	struct rn_pipe *pipe = c->cache_this ? NULL : nfs_read_pages(c->req, &c->io);

	if (!pipe)
		return false;
	xdr_put_bool(c->out, c->io.eof);
	c->moved = pipe->bytes;
	xdr_put_pipe(c->out, pipe);
	return true;
}

/* Reads what c->io says into a payload buffer of its own, which is put on failure: bytes or -errno. -ENOMEM: there is
 * no memory, and no waiting for it. */
static int64_t read_to_buffer(struct nfs4_compound *c)
{
	const uint32_t least = vfs_read_buffer_size(c->current.ctx.exp, c->io.offset, c->io.count);
	const size_t size = least > 0 ? least : 1;
	struct rpc_request *req = c->req;
	struct rn_payload_pool *pool = req->server->pool;
	int64_t n;

	c->io.payload = rn_payload_get_for(pool, size, rpc_request_account(req));
	if (!c->io.payload && nfs4_forget_call(c))
		c->io.payload = rn_payload_await(pool, size, rpc_request_account(req));
	if (!c->io.payload)
		return -ENOMEM;
	do
		n = vfs_read(&c->io);
	while (n < 0 && nfs4_await(c, (int)n));
	if (n < 0)
		rn_payload_put(c->io.payload);
	return n;
}

/* Prepares c->io for count bytes from a's offset on. */
static void nfs4_read_prepare(struct nfs4_compound *c, const struct read_args *a, uint32_t count)
{
	struct vfs_io *io = &c->io;

	*io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		.offset = a->offset,
		.count = count,
		.opened = a->right.opened,
	};
	/* A READ beyond the largest offset of a file is a READ at end of file. */
	if (io->offset > INT64_MAX)
		io->offset = INT64_MAX;
	if (io->count > INT64_MAX - io->offset)
		io->count = (uint32_t)(INT64_MAX - io->offset);
}

static int read_and_put(struct nfs4_compound *c)
{
	int64_t n;

	if (nfs4_read_pages(c))
		return NFS4_OK;
	n = read_to_buffer(c);
	if (n < 0)
		return nfs4_data_status(c, (int)n);
	xdr_put_bool(c->out, c->io.eof);
	/* An empty item is put, too, since it uses up its Write chunk (RFC 8267 section 6.4.1). */
	xdr_put_bulk(c->out, c->io.payload, c->io.data_off, (uint32_t)n);
	c->moved = (uint32_t)n;
	return NFS4_OK;
}

static int run_read(struct nfs4_compound *c, void *args)
{
	struct read_args *a = args;
	uint32_t count = (uint32_t)rn_min(a->count, c->server->cfg.max_io);
	uint32_t room = nfs4_bulk_space(c, READ_HEAD);
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
	nfs4_read_prepare(c, a, rn_min(count, room));
	status = read_and_put(c);
	nfs4_io_end(&a->right);
	return status;
}

#define PLUS_HEAD 8u			       /* bytes of the result: eof, number of elements */
#define PLUS_DATA_HEAD (4u + 8u + 4u)	       /* content, offset, length */
#define PLUS_HOLE (4u + 8u + 8u)	       /* content, offset, length */
#define PLUS_HEADS (VFS_PARTS_MAX * PLUS_HOLE) /* of all elements at most */

struct read_plus_args {
	struct read_args read; /* decode_read fills it */
	struct vfs_parts parts;
	unsigned next;	  /* index of the part to go on with */
	uint32_t put;	  /* elements in the reply */
	size_t result_at; /* position of the result in the reply */
	bool eof;
};

/*
 * A client over RDMA has to provide room for the reply before it knows the file. So there are at most
 * two elements there (doc/design/nfs4-choices.md).
 */
static unsigned elements_most(const struct nfs4_compound *c)
{
	return c->req->conn->ops->says_too_long ? 2 : VFS_PARTS_MAX;
}

/*
 * True if data must not become a bulk item: they would take the place of another one's Write chunk,
 * though RFC 8267 does not let READ_PLUS's data use any; or there is no further item.
 */
static bool must_copy(const struct nfs4_compound *c)
{
	return c->req->nbulk_spaces > c->out->nbulks || c->out->nbulks == XDR_BULKS_MAX;
}

static void end_list(struct read_plus_args *a)
{
	a->next = a->parts.n;
}

static void put_content(struct nfs4_compound *c, struct read_plus_args *a, bool hole,
			uint64_t offset)
{
	xdr_put_u32(c->out, hole ? NFS4_CONTENT_HOLE : NFS4_CONTENT_DATA);
	xdr_put_u64(c->out, offset);
	a->put++;
}

static void put_hole(struct nfs4_compound *c, struct read_plus_args *a, const struct vfs_part *part)
{
	a->eof = false;
	if (nfs4_reply_space(c) < PLUS_HOLE) {
		end_list(a);
		return;
	}
	put_content(c, a, true, part->offset);
	xdr_put_u64(c->out, part->length);
	a->eof = a->next == a->parts.n && a->parts.eof;
}

/* Puts the data that were read. NFS4ERR_DELAY: no memory for a copy now. */
static int put_data(struct nfs4_compound *c, struct read_plus_args *a, uint32_t len)
{
	const struct vfs_io *io = &c->io;
	const bool copy = must_copy(c);

	if (copy && nfs4_grow_reply(c, (size_t)len + 3 + PLUS_HEADS) != NFS4_OK) {
		rn_payload_put(io->payload);
		return NFS4ERR_DELAY;
	}
	put_content(c, a, false, io->offset);
	c->moved += len;
	if (!copy) {
		xdr_put_bulk(c->out, io->payload, io->data_off, len);
		return NFS4_OK;
	}
	xdr_put_opaque(c->out, io->payload->data + io->data_off, len);
	rn_payload_put(io->payload);
	return NFS4_OK;
}

static bool end_pages(struct nfs4_compound *c, struct read_plus_args *a)
{
	struct rn_pipe *pipe = c->cache_this ? NULL : nfs_read_pages(c->req, &c->io);

	if (!pipe)
		return false;
	a->eof = c->io.eof;
	if (a->eof || pipe->bytes < c->io.count)
		end_list(a);
	put_content(c, a, false, c->io.offset);
	c->moved += pipe->bytes;
	xdr_put_pipe(c->out, pipe);
	return true;
}

/* Puts a part, or as much of it as the reply has room for. */
static int put_part(struct nfs4_compound *c, struct read_plus_args *a, const struct vfs_part *part)
{
	const size_t room = nfs4_reply_space(c) & ~(size_t)3;
	const struct read_args from = { .offset = part->offset, .right = a->read.right };
	uint64_t len = part->length;
	int64_t n;

	a->eof = false;
	if (room < PLUS_DATA_HEAD + READ_LEAST) {
		end_list(a);
		return NFS4_OK;
	}
	if (len > room - PLUS_DATA_HEAD) {
		len = room - PLUS_DATA_HEAD;
		end_list(a);
	}
	nfs4_read_prepare(c, &from, (uint32_t)len);
	if (end_pages(c, a))
		return NFS4_OK;
	n = read_to_buffer(c);
	if (n < 0)
		return nfs4_data_status(c, (int)n);
	a->eof = c->io.eof;
	/* The file has become shorter since it was searched for holes. */
	if (c->io.eof || n < c->io.count)
		end_list(a);
	if (n > 0)
		return put_data(c, a, (uint32_t)n);
	rn_payload_put(c->io.payload);
	return NFS4_OK;
}

/* Ends READ_PLUS. */
static int end_parts(struct nfs4_compound *c, struct read_plus_args *a, int status)
{
	nfs4_io_end(&a->read.right);
	if (status != NFS4_OK && a->put == 0)
		return status;
	if (status != NFS4_OK)
		a->eof = false;
	xdr_patch_u32(c->out, a->result_at, a->eof);
	xdr_patch_u32(c->out, a->result_at + 4, a->put);
	return NFS4_OK;
}

/* Finds the parts of the range. */
static int find_parts(struct nfs4_compound *c, struct read_plus_args *a, uint32_t count)
{
	int rc;

	nfs4_read_prepare(c, &a->read, count);
	a->parts = (struct vfs_parts){
		.opened = a->read.right.opened,
		.offset = c->io.offset,
		.count = c->io.count,
		.most = elements_most(c),
	};
	do
		rc = vfs_parts(&c->current.ctx, c->current.node, &a->parts);
	while (nfs4_await(c, rc));
	return nfs4_data_status(c, rc);
}

static int run_read_plus(struct nfs4_compound *c, void *args)
{
	struct read_plus_args *a = args;
	uint32_t count = (uint32_t)rn_min(a->read.count, c->server->cfg.max_io);
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);

	if (status != NFS4_OK)
		return status;
	if (count > 0 && nfs4_reply_space(c) < PLUS_HEAD + PLUS_HOLE)
		return nfs4_reply_too_big(c, PLUS_HEAD + PLUS_HOLE);
	status = nfs4_io_begin(c, &a->read.stateid, NFS4_IO_READ, &a->read.right);
	if (status != NFS4_OK)
		return status;
	status = find_parts(c, a, count);
	a->put = 0;
	a->eof = a->parts.eof; /* if there are no parts */
	a->result_at = xdr_out_pos(c->out);
	xdr_put_bool(c->out, false);
	xdr_put_u32(c->out, 0);
	for (a->next = 0; status == NFS4_OK && a->next < a->parts.n;) {
		const struct vfs_part *part = &a->parts.part[a->next++];

		if (part->hole)
			put_hole(c, a, part);
		else
			status = put_part(c, a, part);
	}
	return end_parts(c, a, status);
}

const struct nfs4_op nfs4_op_read = {
	.name = "READ",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.reply_max = 8,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY),
	.shape = NFS4_SHAPE(NFS4_STATEID_SIZE + 12, 0, 0),
	.args_size = sizeof(struct read_args),
	.decode = nfs4_decode_read,
	.run = run_read,
};

const struct nfs4_op nfs4_op_read_plus = {
	.name = "READ_PLUS",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.reply_max = PLUS_HEAD + PLUS_HEADS,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_NOTSUPP),
	.shape = NFS4_SHAPE(NFS4_STATEID_SIZE + 12, 0, 0),
	.args_size = sizeof(struct read_plus_args),
	.decode = nfs4_decode_read,
	.run = run_read_plus,
};

/* READLINK (RFC 8881 section 18.24). The text is a bulk item: it goes by a Write chunk if the
 * client provides one (RFC 8267 section 6.1). */

#define READLINK_HEAD 4u /* bytes of the length word */

/* The object must be a symbolic link. For others, an error of the object itself comes first; then the
 * error by minor version, as RFC 7530 has no NFS4ERR_WRONG_TYPE. */
static int nfs4_readlink_check(const struct nfs4_compound *c)
{
	const struct nfs4_object *p = &c->current;
	int status;

	if (p->kind == NFS4_FILE && p->type == S_IFLNK)
		return nfs4_need(c, p, NFS4_NEED_FILE);
	status = p->kind == NFS4_FILE ? nfs4_need(c, p, NFS4_NEED_FILE) : NFS4_OK;
	if (status != NFS4_OK)
		return status;
	return c->minor == 0 ? NFS4ERR_INVAL : NFS4ERR_WRONG_TYPE;
}

static int run_readlink(struct nfs4_compound *c, void *args)
{
	struct rpc_request *req = c->req;
	struct rn_payload *text;
	int status = nfs4_readlink_check(c);
	int rc;

	(void)args;
	if (status != NFS4_OK)
		return status;
	text = rn_payload_get_for(req->server->pool, VFS_PATH_MAX, rpc_request_account(req));
	if (!text)
		return NFS4ERR_DELAY;
	rc = vfs_readlink(&c->current.ctx, c->current.node, (char *)text->data, VFS_PATH_MAX);
	if (rc < 0)
		status = nfs4_data_status(c, rc);
	else if ((uint32_t)rc > nfs4_bulk_space(c, READLINK_HEAD))
		status = nfs4_reply_too_big(c,
					    READLINK_HEAD + (size_t)rc + rn_xdr_pad((uint32_t)rc));
	if (status != NFS4_OK)
		rn_payload_put(text);
	else
		xdr_put_bulk(c->out, text, 0, (uint32_t)rc);
	return status;
}

const struct nfs4_op nfs4_op_readlink = {
	.name = "READLINK",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = READLINK_HEAD,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL,
				       NFS4_E_ISDIR | NFS4_E_NOTSUPP, 0),
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_readlink,
};
