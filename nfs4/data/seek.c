/* SPDX-License-Identifier: BSD-2-Clause */
/* SEEK (RFC 7862 section 15.11) and IO_ADVISE (section 15.5). */
#include "nfs4/data/ops.h"

enum data_content4 { NFS4_CONTENT_DATA = 0, NFS4_CONTENT_HOLE = 1 };
enum IO_ADVISE_type4 { IO_ADVISE4_NORMAL = 0, IO_ADVISE4_WILLNEED = 4 }; /* of many */

void nfs4_decode_seek(struct nfs4_compound *c, void *args)
{
	struct nfs4_seek_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->what = xdr_get_u32(c->in);
}

int nfs4_seek(struct nfs4_compound *c, void *args)
{
	const struct nfs4_seek_args *a = args;
	struct nfs4_io_right right = { 0 };
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);
	uint64_t pos;
	bool eof;
	int rc;

	if (status == NFS4_OK && a->what != NFS4_CONTENT_DATA && a->what != NFS4_CONTENT_HOLE)
		status = NFS4ERR_UNION_NOTSUPP;
	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &a->stateid, NFS4_IO_READ, &right);
	if (status != NFS4_OK)
		return status;
	rc = vfs_seek(&c->current.ctx, c->current.node, right.opened, a->offset,
		      a->what == NFS4_CONTENT_HOLE, &pos, &eof);
	nfs4_io_end(&right);
	if (rc < 0)
		return nfs4_data_status(c, rc);
	xdr_put_bool(c->out, eof);
	xdr_put_u64(c->out, pos);
	return NFS4_OK;
}

void nfs4_decode_io_advise(struct nfs4_compound *c, void *args)
{
	struct nfs4_io_advise_args *a = args;
	uint32_t words;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->count = xdr_get_u64(c->in);
	words = xdr_get_u32(c->in);
	for (uint32_t i = 0; i < words && !c->in->err; i++) {
		uint32_t word = xdr_get_u32(c->in);

		if (i == 0)
			a->hints = word;
	}
}

/* What of the hints is followed. How a file is going to be read is not: the descriptor is shared by
 * all clients, and so is the page cache that some of them have no more use for. */
static uint32_t follow(struct nfs4_compound *c, const struct nfs4_io_advise_args *a)
{
	const uint32_t willneed = 1u << IO_ADVISE4_WILLNEED;

	if (!(a->hints & willneed))
		return 1u << IO_ADVISE4_NORMAL;
	vfs_prefetch(&c->current.ctx, c->current.node, a->offset, a->count);
	return willneed;
}

int nfs4_io_advise(struct nfs4_compound *c, void *args)
{
	const struct nfs4_io_advise_args *a = args;
	struct nfs4_io_right right = { 0 };
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);

	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &a->stateid, 0, &right);
	if (status != NFS4_OK)
		return status;
	/* One word. */
	xdr_put_u32(c->out, 1);
	xdr_put_u32(c->out, follow(c, a));
	nfs4_io_end(&right);
	return NFS4_OK;
}
