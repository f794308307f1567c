/* SPDX-License-Identifier: BSD-2-Clause */
/* ALLOCATE and DEALLOCATE (RFC 7862 sections 15.1 and 15.4). What they did is durable when they are
 * answered. */
#include <sys/stat.h>

#include "nfs4/data/ops.h"

static void decode(struct nfs4_compound *c, struct nfs4_space_args *a)
{
	nfs4_get_stateid(c->in, &a->stateid);
	a->space.offset = xdr_get_u64(c->in);
	a->space.length = xdr_get_u64(c->in);
}

void nfs4_decode_allocate(struct nfs4_compound *c, void *args)
{
	decode(c, args);
}

void nfs4_decode_deallocate(struct nfs4_compound *c, void *args)
{
	decode(c, args);
}

static int settled(struct nfs4_compound *c, int rc)
{
	return nfs4_data_status(c, rc);
}

static void space_done(struct vfs_space *s)
{
	struct nfs4_compound *c = s->arg;
	struct nfs4_space_args *a = c->args;
	int status;

	nfs4_io_end(&a->right);
	c->sync = (struct vfs_sync){ .node = { c->current.node } };
	status = nfs4_settle(c, s->result, settled);
	if (status != NFS4_PENDING)
		nfs4_compound_resume(c, status);
}

static int start(struct nfs4_compound *c, struct nfs4_space_args *a, enum vfs_space_what what)
{
	const struct nfs4_place *p = &c->current;
	int status = nfs4_need(c, p, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	/* Here it is this status also of directories and symbolic links. */
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
	a->space.done = space_done;
	a->space.arg = c;
	vfs_space(&a->space);
	return NFS4_PENDING;
}

int nfs4_allocate(struct nfs4_compound *c, void *args)
{
	return start(c, args, VFS_SPACE_RESERVE);
}

int nfs4_deallocate(struct nfs4_compound *c, void *args)
{
	return start(c, args, VFS_SPACE_PUNCH);
}
