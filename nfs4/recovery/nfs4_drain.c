/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/recovery/nfs4_drain.h"

#include "nfs4/nfs4_proto.h"
#include "nfs4/recovery/grace.h"

int nfs4_drain_check(const struct nfs4_place *p)
{
	return p->kind == NFS4_FILE && vfs_export_is_draining(p->ctx.exp) ? NFS4ERR_DELAY : NFS4_OK;
}

int nfs4_drain_check_client(struct nfs4_server *srv)
{
	return atomic_load_explicit(&srv->drain, memory_order_relaxed) == NFS4_DRAIN_ALL &&
			       !nfs4_in_grace(srv)
		       ? NFS4ERR_DELAY
		       : NFS4_OK;
}
