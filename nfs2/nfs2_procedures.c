/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs2/nfs2_args.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_state.h"
#include "vfs/packed.h"

static bool nfs2_log_unserved_one(void *arg, struct vfs_export *exp)
{
	const struct rn_logger *log = arg;

	if (!vfs_export_packs(exp))
		rn_notice(log,
			  "export %s: not served by NFSv2, whose handles of 32 bytes cannot name "
			  "the files of its "
			  "file system; clients can use NFSv3",
			  vfs_export_path(exp));
	return true;
}

void nfs2_log_unserved(const struct nfs3_server *s, const struct rn_logger *log)
{
	const struct vfs_exports *exports = &s->cfg.exports;

	exports->each(exports->ctx, nfs2_log_unserved_one, (void *)log);
}

static const struct rpc_proc null = { .name = "NULL", .flags = RPC_EVENT_THREAD };

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

static const struct rpc_proc *const acl_procs[NFSACLPROC2_COUNT] = {
	[NFSACLPROC2_NULL] = &null,
	[NFSACLPROC2_GETACL] = &nfsacl2_proc_getacl,
	[NFSACLPROC2_SETACL] = &nfsacl2_proc_setacl,
	[NFSACLPROC2_GETATTR] = &nfs2_proc_getattr,
	[NFSACLPROC2_ACCESS] = &nfsacl2_proc_access,
};

void nfsacl2_version(struct nfs3_server *s, struct rpc_version *out)
{
	*out = (struct rpc_version){
		.vers = NFS2_VERSION,
		.procs = acl_procs,
		.nprocs = NFSACLPROC2_COUNT,
		.ctx = s,
	};
}
