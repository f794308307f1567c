/* SPDX-License-Identifier: BSD-2-Clause */
/* SEEK (RFC 7862 section 15.11). */
#include "nfs4/data/data_status.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/space.h"

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
