/* SPDX-License-Identifier: BSD-2-Clause */
/* ALLOCATE and DEALLOCATE (RFC 7862 sections 15.1 and 15.4). Their changes are durable before the
 * reply. */
#include <sys/stat.h>

#include "nfs4/data/data_status.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/space.h"

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
	const struct nfs4_place *p = &c->current;
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
