/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/data/two_files.h"

#include <sys/stat.h>

void nfs4_get_two_files(struct xdr_in *in, struct nfs4_two_files *t)
{
	nfs4_get_stateid(in, &t->from_sid);
	nfs4_get_stateid(in, &t->to_sid);
	t->copy.from.offset = xdr_get_u64(in);
	t->copy.offset = xdr_get_u64(in);
	t->copy.count = xdr_get_u64(in);
}

/* Anything but a regular file is NFS4ERR_WRONG_TYPE, directories and symbolic links too (RFC 7862
 * sections 15.2.3 and 15.13.3). */
static int need_file(const struct nfs4_compound *c, const struct nfs4_place *p, unsigned need)
{
	int status = nfs4_need(c, p, need);

	return status == NFS4_OK && (p->kind != NFS4_FILE || p->type != S_IFREG)
		       ? NFS4ERR_WRONG_TYPE
		       : status;
}

int nfs4_two_files_begin(struct nfs4_compound *c, struct nfs4_two_files *t)
{
	int status = need_file(c, &c->saved, 0);

	if (status == NFS4_OK)
		status = need_file(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);
	if (status == NFS4_OK)
		status = nfs4_io_begin_at(c, &c->saved, &t->from_sid, NFS4_IO_READ, &t->from);
	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &t->to_sid, NFS4_IO_WRITE, &t->to);
	if (status != NFS4_OK) {
		nfs4_two_files_end(t);
		return status;
	}
	t->copy.from.ctx = &c->saved.ctx;
	t->copy.from.node = c->saved.node;
	t->copy.from.opened = t->from.opened;
	t->copy.ctx = &c->current.ctx;
	t->copy.node = c->current.node;
	t->copy.opened = t->to.opened;
	return NFS4_OK;
}

int nfs4_destination_begin(struct nfs4_compound *c, struct nfs4_two_files *t)
{
	int status = need_file(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &t->to_sid, NFS4_IO_WRITE, &t->to);
	return status;
}

void nfs4_two_files_end(struct nfs4_two_files *t)
{
	nfs4_io_end(&t->from);
	nfs4_io_end(&t->to);
}
