/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE (RFC 7530 section 16.36, RFC 8881 section 18.32) and COMMIT (section 18.3). The data stays
 * in the buffers of the transport; the request's segments hold them until the reply. */
#include <arpa/inet.h>
#include <string.h>

#include "lib/util.h"
#include "nfs/bulk.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"

/* The verifier is opaque to the client; it has the bytes of the number. */
static void nfs4_put_write_verifier(struct nfs4_compound *c, uint64_t verifier)
{
	xdr_put_u64(c->out, verifier);
}

struct write_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t stable; /* enum vfs_stable has the same values */
	struct xdr_bulk data;
	struct nfs4_io_right right;
	uint64_t verifier; /* read before the data is written */
};

static void nfs4_decode_write(struct nfs4_compound *c, void *args)
{
	struct write_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->stable = xdr_get_u32(c->in);
	if (a->stable > VFS_FILE_SYNC)
		c->in->err = true;
	xdr_get_bulk(c->in, UINT32_MAX, &a->data); /* bounded by the length of the message */
}

/* result: bytes, or -errno. */
static int put_written(struct nfs4_compound *c, const struct write_args *a, int64_t result)
{
	if (result < 0)
		return nfs4_data_status(c, (int)result);
	xdr_put_u32(c->out, (uint32_t)result);
	xdr_put_u32(c->out, a->stable);
	nfs4_put_write_verifier(c, a->verifier);
	c->moved = (uint32_t)result;
	return NFS4_OK;
}

static int begin_write(struct nfs4_compound *c, struct write_args *a, uint32_t count)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK && (a->offset > INT64_MAX || count > INT64_MAX - a->offset))
		status = NFS4ERR_FBIG;
	return status == NFS4_OK ? nfs4_io_begin(c, &a->stateid, NFS4_IO_WRITE, &a->right) : status;
}

static int run_write(struct nfs4_compound *c, void *args)
{
	struct write_args *a = args;
	uint32_t count = (uint32_t)rn_min(a->data.len, c->server->cfg.max_io);
	int status = begin_write(c, a, count);
	int64_t n;

	if (status != NFS4_OK)
		return status;
	c->io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		.offset = a->offset,
		.opened = a->right.opened,
		.stable = (enum vfs_stable)a->stable,
	};
	nfs_bulk_to_write(&c->io, &a->data, count);
	a->verifier = vfs_write_verifier(c->current.ctx.exp);
	do
		n = vfs_write(&c->io);
	while (n < 0 && nfs4_await(c, (int)n));
	nfs4_io_end(&a->right);
	return put_written(c, a, n);
}

struct commit_args {
	uint64_t offset;
	uint32_t count; /* 0: to the end */
};

static void nfs4_decode_commit(struct nfs4_compound *c, void *args)
{
	struct commit_args *a = args;

	a->offset = xdr_get_u64(c->in);
	a->count = xdr_get_u32(c->in);
}

static int run_commit(struct nfs4_compound *c, void *args)
{
	const struct commit_args *a = args;
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);

	if (status != NFS4_OK)
		return status;
	c->io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		/* COMMIT has no stateid that would show that the file was opened. A client that
		 * wrote must be able to commit, even after a chmod. */
		.opened = true,
	};
	/* For a range beyond the largest offset, the whole file is synced. */
	if (a->offset <= INT64_MAX && a->count <= INT64_MAX - a->offset) {
		c->io.offset = a->offset;
		c->io.count = a->count;
	}
	status = nfs4_data_status(c, vfs_commit(&c->io));
	if (status == NFS4_OK)
		nfs4_put_write_verifier(c, vfs_write_verifier(c->current.ctx.exp));
	return status;
}

const struct nfs4_op nfs4_op_commit = {
	.name = "COMMIT",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = NFS4_VERIFIER_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_ISDIR | NFS4_E_SYMLINK,
				       NFS4_E_INVAL | NFS4_E_ROFS, 0),
	.shape = NFS4_SHAPE(12, 0, 0),
	.args_size = sizeof(struct commit_args),
	.decode = nfs4_decode_commit,
	.run = run_commit,
};

const struct nfs4_op nfs4_op_write = {
	.name = "WRITE",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_EVENT_THREAD,
	.reply_max = 8 + NFS4_VERIFIER_SIZE,
	.errors =
		NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
					     NFS4_E_FBIG | NFS4_E_NOSPC | NFS4_E_ROFS,
				     NFS4_E_NXIO, 0),
	.bulk_at = NFS4_STATEID_SIZE + 8 + 4 + 4, /* stateid, offset, stable, length */
	.args_size = sizeof(struct write_args),
	.decode = nfs4_decode_write,
	.run = run_write,
};

/*
 * WRITE_SAME (RFC 7862 sections 8.1 and 15.12): application data blocks, which are zeros but for a
 * pattern and the number of the block. A buffer is filled with blocks once and written again and
 * again, each time with new numbers, by the same call as WRITE's data. So what was written of a
 * longer call is what a client's own WRITEs would have left.
 *
 * It is synchronous. A long one ends after WRITE_SAME_MAX bytes, or before the block that did not
 * fit; the client asks for the rest, as after a short WRITE.
 */

#define WRITE_SAME_MAX (16u << 20) /* bytes of one call, as of COPY */
#define BUFFER_MAX (1u << 20)	   /* bytes written at a time; no block may be longer */
#define NUMBER_SIZE 4u		   /* bytes of a block number, count4 */

/* app_data_block4 */
struct adb {
	uint64_t offset, block_size, block_count;
	uint64_t number_at; /* offset in the block; NFS4_UINT64_MAX: it has no number */
	uint32_t number;    /* of the first block */
	uint64_t pattern_at;
	uint32_t pattern_len;
	struct xdr_in pattern; /* at its bytes; well-formed */
};

struct write_same_args {
	struct nfs4_stateid stateid;
	uint32_t stable; /* enum vfs_stable has the same values */
	struct adb adb;
	struct nfs4_io_right right;
	uint64_t verifier; /* read before anything is written */
	struct rn_payload *buffer;
	uint32_t filled;	/* bytes of the buffer that are blocks */
	uint32_t left, written; /* bytes */
};

static void decode_write_same(struct nfs4_compound *c, void *args)
{
	struct write_same_args *a = args;
	struct adb *b = &a->adb;

	nfs4_get_stateid(c->in, &a->stateid);
	a->stable = xdr_get_u32(c->in);
	if (a->stable > VFS_FILE_SYNC)
		c->in->err = true;
	b->offset = xdr_get_u64(c->in);
	b->block_size = xdr_get_u64(c->in);
	b->block_count = xdr_get_u64(c->in);
	b->number_at = xdr_get_u64(c->in);
	b->number = xdr_get_u32(c->in);
	b->pattern_at = xdr_get_u64(c->in);
	b->pattern_len = xdr_get_u32(c->in);
	b->pattern = *c->in;
	xdr_skip(c->in, (size_t)b->pattern_len + rn_xdr_pad(b->pattern_len));
	if (b->pattern_at == NFS4_UINT64_MAX)
		b->pattern_len = 0;
}

static bool has_number(const struct adb *b)
{
	return b->number_at != NFS4_UINT64_MAX;
}

static bool is_within(uint64_t at, uint32_t len, uint64_t size)
{
	return at <= size && len <= size - at;
}

/* A number or a pattern that does not fit its block, or one that would hide the other, means nothing
 * that could be read back. */
static bool is_valid(const struct adb *b)
{
	if (b->block_size == 0 || b->block_size > BUFFER_MAX)
		return false;
	if (b->pattern_len > 0 && !is_within(b->pattern_at, b->pattern_len, b->block_size))
		return false;
	if (!has_number(b))
		return true;
	if (!is_within(b->number_at, NUMBER_SIZE, b->block_size))
		return false;
	if (b->block_count > 0 && b->block_count - 1 > UINT32_MAX - b->number)
		return false;
	return b->pattern_len == 0 || b->number_at + NUMBER_SIZE <= b->pattern_at ||
	       b->pattern_at + b->pattern_len <= b->number_at;
}

/* True if the blocks end where no file can. */
static bool is_too_far(const struct adb *b)
{
	return b->offset > INT64_MAX || b->block_count > (INT64_MAX - b->offset) / b->block_size;
}

static uint32_t whole_blocks(const struct adb *b, uint64_t bytes)
{
	return (uint32_t)(bytes / b->block_size * b->block_size);
}

/* Fills len bytes of the buffer, which are whole blocks, but for their numbers. */
static void write_same_fill(const struct adb *b, uint8_t *buf, uint32_t len)
{
	struct xdr_in pattern = b->pattern;

	memset(buf, 0, len);
	if (b->pattern_len == 0 || len == 0)
		return;
	xdr_get_fixed(&pattern, buf + b->pattern_at, b->pattern_len);
	for (uint32_t at = (uint32_t)b->block_size; at < len; at += (uint32_t)b->block_size)
		memcpy(buf + at + b->pattern_at, buf + b->pattern_at, b->pattern_len);
}

/* Numbers the blocks of the buffer, from the one that `written` bytes precede. Big-endian, as in the
 * example of RFC 7862 section 8.3. */
static void put_numbers(const struct adb *b, uint8_t *buf, uint32_t len, uint32_t written)
{
	uint32_t number = b->number + (uint32_t)(written / b->block_size);

	for (uint32_t at = 0; has_number(b) && at < len; at += (uint32_t)b->block_size) {
		const uint32_t be = htonl(number++);

		memcpy(buf + at + b->number_at, &be, sizeof(be));
	}
}

/* Writes the next blocks: bytes or -errno. */
static int64_t write_same_next(struct nfs4_compound *c, struct write_same_args *a, uint32_t len)
{
	const struct adb *b = &a->adb;
	int64_t n;

	put_numbers(b, a->buffer->data, len, a->written);
	c->io.offset = b->offset + a->written;
	c->io.count = len;
	c->io.piece[0] = (struct iovec){ a->buffer->data, len };
	do
		n = vfs_write(&c->io);
	while (n < 0 && nfs4_await(c, (int)n));
	return n;
}

/* Writes what fits: 0 or -errno. */
static int write_same_all(struct nfs4_compound *c, struct write_same_args *a)
{
	uint32_t len;
	int64_t n;

	do {
		len = rn_min(a->left, a->filled);
		n = write_same_next(c, a, len);
		if (n > 0) {
			a->written += (uint32_t)n;
			a->left -= (uint32_t)n;
		}
	} while (n == len && a->left > 0);
	return n < 0 ? (int)n : 0;
}

static void put_response(struct nfs4_compound *c, const struct write_same_args *a)
{
	xdr_put_u32(c->out, 0); /* no wr_callback_id */
	xdr_put_u64(c->out, a->written);
	xdr_put_u32(c->out, a->stable);
	xdr_put_u64(c->out, a->verifier); /* as WRITE puts it */
}

/* Checks the arguments and the right to write. */
static int begin_write_same(struct nfs4_compound *c, struct write_same_args *a)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK && !is_valid(&a->adb))
		status = NFS4ERR_INVAL;
	if (status == NFS4_OK && is_too_far(&a->adb))
		status = NFS4ERR_FBIG;
	return status == NFS4_OK ? nfs4_io_begin(c, &a->stateid, NFS4_IO_WRITE, &a->right) : status;
}

static int run_write_same(struct nfs4_compound *c, void *args)
{
	struct write_same_args *a = args;
	const struct adb *b = &a->adb;
	int status = begin_write_same(c, a);
	int rc;

	if (status != NFS4_OK)
		return status;
	a->left = whole_blocks(b, rn_min(b->block_size * b->block_count, WRITE_SAME_MAX));
	a->written = 0;
	a->filled = rn_min(a->left, whole_blocks(b, BUFFER_MAX));
	a->buffer = rn_payload_get_for(c->req->server->pool, rn_max(a->filled, 1),
				       rpc_request_account(c->req));
	if (!a->buffer) {
		nfs4_io_end(&a->right);
		return NFS4ERR_DELAY;
	}
	write_same_fill(b, a->buffer->data, a->filled);
	c->io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		.opened = a->right.opened,
		.piece_payload = { a->buffer },
		.npieces = 1,
		.stable = (enum vfs_stable)a->stable,
	};
	a->verifier = vfs_write_verifier(c->current.ctx.exp);
	rc = write_same_all(c, a);
	nfs4_io_end(&a->right);
	rn_payload_put(a->buffer);
	c->moved = a->written;
	/* An error behind what was written is not told: the client meets it again. */
	if (rc < 0 && a->written == 0)
		return nfs4_data_status(c, rc);
	put_response(c, a);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_write_same = {
	.name = "WRITE_SAME",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 4 + 8 + 4 + NFS4_VERIFIER_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_FBIG | NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct write_same_args),
	.decode = decode_write_same,
	.run = run_write_same,
};
