/* SPDX-License-Identifier: BSD-2-Clause */
/* ALLOCATE, DEALLOCATE, SEEK and IO_ADVISE: where a file has data, and what is to be read ahead. */
#include <sys/stat.h>

#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/compound.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/space.h"

/* ALLOCATE and DEALLOCATE (RFC 7862 sections 15.1 and 15.4). Their changes are durable before the
 * reply. */

struct space_args {
	struct nfs4_stateid stateid;
	struct vfs_space space;
	struct nfs4_io_right right;
};

static void decode_space(struct nfs4_compound *c, void *args)
{
	struct space_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->space.offset = xdr_get_u64(c->in);
	a->space.length = xdr_get_u64(c->in);
}

static int change_space(struct nfs4_compound *c, struct space_args *a, enum vfs_space_what what)
{
	const struct nfs4_object *p = &c->current;
	struct vfs_sync sync = { .node = { p->node } };
	int status = nfs4_need(c, p, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);
	int rc;

	/* These operations answer this status for directories and symbolic links, too. */
	if (status == NFS4_OK && p->type != S_IFREG)
		status = NFS4ERR_WRONG_TYPE;
	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &a->stateid, NFS4_IO_WRITE, &a->right);
	if (status != NFS4_OK)
		return status;
	a->space.ctx = &c->current.ctx;
	a->space.node = c->current.node;
	a->space.what = what;
	a->space.opened = a->right.opened;
	do
		rc = vfs_space(&a->space);
	while (nfs4_await(c, rc));
	nfs4_io_end(&a->right);
	return nfs4_data_status(c, nfs4_settle(c, &sync, rc));
}

static int run_allocate(struct nfs4_compound *c, void *args)
{
	return change_space(c, args, VFS_SPACE_RESERVE);
}

static int run_deallocate(struct nfs4_compound *c, void *args)
{
	return change_space(c, args, VFS_SPACE_PUNCH);
}

const struct nfs4_op nfs4_op_allocate = {
	.name = "ALLOCATE",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_FILE_ONLY | NFS4_E_FBIG |
			      NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct space_args),
	.decode = decode_space,
	.run = run_allocate,
};

const struct nfs4_op nfs4_op_deallocate = {
	.name = "DEALLOCATE",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_FILE_ONLY | NFS4_E_FBIG |
			      NFS4_E_ROFS | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct space_args),
	.decode = decode_space,
	.run = run_deallocate,
};

/* SEEK (RFC 7862 section 15.11). */

struct seek_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t what;
};

static void decode_seek(struct nfs4_compound *c, void *args)
{
	struct seek_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->what = xdr_get_u32(c->in);
}

static int run_seek(struct nfs4_compound *c, void *args)
{
	const struct seek_args *a = args;
	struct nfs4_io_right right = { 0 };
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);
	struct vfs_seek s = { .offset = a->offset, .hole = a->what == NFS4_CONTENT_HOLE };
	int rc;

	if (status == NFS4_OK && a->what != NFS4_CONTENT_DATA && a->what != NFS4_CONTENT_HOLE)
		status = NFS4ERR_UNION_NOTSUPP;
	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &a->stateid, NFS4_IO_READ, &right);
	if (status != NFS4_OK)
		return status;
	s.opened = right.opened;
	do
		rc = vfs_seek(&c->current.ctx, c->current.node, &s);
	while (nfs4_await(c, rc));
	nfs4_io_end(&right);
	if (rc < 0)
		return nfs4_data_status(c, rc);
	xdr_put_bool(c->out, s.eof);
	xdr_put_u64(c->out, s.pos);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_seek = {
	.name = "SEEK",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = 4 + 8,
	/* NXIO is in RFC 7862 section 15.11.3, but not in the table of section 11.2. */
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_NXIO | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct seek_args),
	.decode = decode_seek,
	.run = run_seek,
};

/*
 * IO_ADVISE (RFC 7862 section 15.5). The result tells which hints are followed. Those about reading
 * and writing, backwards, once, perhaps, and in the client's cache mean nothing to the kernel.
 */

/* Hints that the kernel can follow. */
enum IO_ADVISE_type4 {
	IO_ADVISE4_NORMAL = 0,
	IO_ADVISE4_SEQUENTIAL = 1,
	IO_ADVISE4_RANDOM = 3,
	IO_ADVISE4_WILLNEED = 4,
	IO_ADVISE4_DONTNEED = 6,
};

static const struct {
	uint32_t hint; /* bit of word 0 */
	unsigned advice;
} hints[] = {
	{ 1u << IO_ADVISE4_SEQUENTIAL, VFS_ADVICE_SEQUENTIAL },
	{ 1u << IO_ADVISE4_RANDOM, VFS_ADVICE_RANDOM },
	{ 1u << IO_ADVISE4_WILLNEED, VFS_ADVICE_WILLNEED },
	{ 1u << IO_ADVISE4_DONTNEED, VFS_ADVICE_DONTNEED },
};
#define HINTS (sizeof(hints) / sizeof(hints[0]))

struct io_advise_args {
	struct nfs4_stateid stateid;
	uint32_t hints; /* word 0 of the bitmap: bits IO_ADVISE4_* */
	struct vfs_advise advise;
	struct nfs4_io_right right;
};

static void decode_io_advise(struct nfs4_compound *c, void *args)
{
	struct io_advise_args *a = args;
	uint32_t words;

	nfs4_get_stateid(c->in, &a->stateid);
	a->advise.offset = xdr_get_u64(c->in);
	a->advise.length = xdr_get_u64(c->in);
	words = xdr_get_u32(c->in);
	for (uint32_t i = 0; i < words && !c->in->err; i++) {
		uint32_t word = xdr_get_u32(c->in);

		if (i == 0)
			a->hints = word;
	}
}

/* Two hints that contradict each other are both left out. */
static unsigned advice_of(uint32_t word)
{
	unsigned advice = 0;

	for (unsigned i = 0; i < HINTS; i += 2) {
		const bool first = word & hints[i].hint, second = word & hints[i + 1].hint;

		if (first != second)
			advice |= first ? hints[i].advice : hints[i + 1].advice;
	}
	return advice;
}

static void put_hints(struct nfs4_compound *c, unsigned followed)
{
	uint32_t word = 0;

	for (unsigned i = 0; i < HINTS; i++)
		word |= followed & hints[i].advice ? hints[i].hint : 0;
	xdr_put_u32(c->out, 1); /* words */
	xdr_put_u32(c->out, word ? word : 1u << IO_ADVISE4_NORMAL);
}

static int run_io_advise(struct nfs4_compound *c, void *args)
{
	struct io_advise_args *a = args;
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);
	unsigned followed;

	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &a->stateid, 0, &a->right);
	if (status != NFS4_OK)
		return status;
	a->advise.ctx = &c->current.ctx;
	a->advise.node = c->current.node;
	a->advise.advice = advice_of(a->hints);
	a->advise.own_shares = a->right.state ? 1 : 0;
	followed = vfs_advise(&a->advise);
	nfs4_io_end(&a->right);
	put_hints(c, followed);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_io_advise = {
	.name = "IO_ADVISE",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = NFS4_BITMAP_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_FILE_ONLY | NFS4_E_FBIG |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct io_advise_args),
	.decode = decode_io_advise,
	.run = run_io_advise,
};
