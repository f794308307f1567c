/* SPDX-License-Identifier: BSD-2-Clause */
/* CLONE (RFC 7862 section 15.13). The change is durable before the reply, as nothing in the result
 * lets a client know that it was lost. */
#include "nfs4/data/two_files.h"
#include "nfs4/state/stateid_check.h"

static void decode_clone(struct nfs4_compound *c, void *args)
{
	nfs4_get_two_files(c->in, args);
}

static int run_clone(struct nfs4_compound *c, void *args)
{
	struct nfs4_two_files *t = args;
	int status = nfs4_two_files_begin(c, t);
	int rc;

	if (status != NFS4_OK)
		return status;
	do
		rc = vfs_clone(&t->copy);
	while (nfs4_await(c, rc));
	nfs4_two_files_end(t);
	struct vfs_sync sync = { .node = { c->current.node } };
	return nfs4_data_status(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_clone = {
	.name = "CLONE",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH | NFS4_NEEDS_SAVED_FH,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_FILE_ONLY | NFS4_E_FBIG |
			      NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_NOTSUPP | NFS4_E_XDEV),
	.args_size = sizeof(struct nfs4_two_files),
	.decode = decode_clone,
	.run = run_clone,
};
