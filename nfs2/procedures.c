/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs2/procs.h"

#include "nfs2/nfs2_server.h"
#include "nfs2/proto.h"

static const struct rpc_proc null = { .name = "NULL", .flags = RPC_PROMPT };

#define POINTER(NAME, name) [NFSPROC2_##NAME] = &nfs2_proc_##name,
static const struct rpc_proc *const procs[NFSPROC2_COUNT] = { [NFSPROC2_NULL] = &null,
							      NFS2_PROC_LIST(POINTER) };

void nfs2_version(struct nfs3_server *s, struct rpc_version *out)
{
	*out = (struct rpc_version){
		.vers = NFS2_VERSION,
		.procs = procs,
		.nprocs = NFSPROC2_COUNT,
		.ctx = s,
	};
}
