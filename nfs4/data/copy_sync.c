/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last step of an asynchronous copy: its destination is synced, as by COMMIT of what was copied.
 * CB_OFFLOAD then says FILE_SYNC4, which spares the client that COMMIT. If the sync fails, or data may
 * have been lost since the copy began, CB_OFFLOAD says UNSTABLE4 with the verifier of the beginning. So
 * the client's own COMMIT tells what is wrong.
 */
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"

void nfs4_copy_sync(struct rpc_request *req)
{
	struct nfs4_copy *copy = req->transport_private;
	struct nfs4_copy_piece *p = nfs4_copy_piece_new(copy);

	if (!p || nfs4_place_by_fh(&p->c, &p->c.current, &copy->to_fh) != NFS4_OK ||
	    nfs4_need(&p->c, &p->c.current, NFS4_NEED_REG | NFS4_NEED_FILE) != NFS4_OK) {
		nfs4_copy_end_piece(copy, NFS4_OK, 0);
		return;
	}
	/* The whole file: the count of a range would be one of 32 bits. */
	p->c.io = (struct vfs_io){
		.ctx = &p->c.current.ctx,
		.node = p->c.current.node,
		.opened = true, /* as for COMMIT */
	};
	if (vfs_commit(&p->c.io) == 0 &&
	    vfs_write_verifier(p->c.current.ctx.exp) == copy->offload.verifier)
		copy->offload.committed = VFS_FILE_SYNC;
	nfs4_copy_end_piece(copy, NFS4_OK, 0);
}
