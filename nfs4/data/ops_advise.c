/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IO_ADVISE (RFC 7862 section 15.5). The result tells which hints are followed. Those about reading
 * and writing, backwards, once, perhaps, and in the client's cache mean nothing to the kernel.
 */
#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/compound.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/advise.h"

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
