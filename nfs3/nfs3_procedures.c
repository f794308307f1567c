/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of NFSv3 and the protocols beside it: the programs' versions, and their procedures by number. */
#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"
#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/nlm/nlm_grant.h"
#include "nfs3/quota/rquota.h"

int nfs3_server_new(const struct nfs3_config *cfg, struct nfs3_server **out)
{
	struct nfs3_server *s;

	if (cfg->max_io == 0 || cfg->max_io > NFS3_MAX_IO || cfg->max_io % 4096)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	mnt_list_init(&s->mounts);
	rn_log_hosts_init(&s->told);
	s->nlm = nlm_owners_new(cfg->nsm);
	s->grants = nlm_grants_new(s);
	if (!s->nlm || !s->grants) {
		nfs3_server_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void nfs3_server_free(struct nfs3_server *s)
{
	if (!s)
		return;
	mnt_list_fini(&s->mounts);
	rn_log_hosts_fini(&s->told);
	if (s->grants)
		nlm_grants_stop(s->grants);
	nlm_owners_free(s->nlm);
	nlm_grants_free(s->grants);
	free(s);
}

void nlm_stop_grants(struct nfs3_server *s)
{
	nlm_grants_stop(s->grants);
}

unsigned nlm_grants_under_way(struct nfs3_server *s)
{
	return nlm_grants_told(s->grants);
}

void nlm_retry_grants(struct nfs3_server *s)
{
	nlm_grants_retry(s->grants);
}

const struct rpc_proc rpc_proc_null = { .name = "NULL", .flags = RPC_EVENT_THREAD };

#define POINTER(NAME, name) [NFSPROC3_##NAME] = &nfs3_proc_##name.rpc,
static const struct rpc_proc *const nfs3_procs[NFSPROC3_COUNT] = { [NFSPROC3_NULL] = &rpc_proc_null,
								   NFS3_PROC_LIST(POINTER) };

const char *nfs3_proc_name(uint32_t proc)
{
	return proc < NFSPROC3_COUNT ? nfs3_procs[proc]->name : NULL;
}

/* Procedure 6 of versions 1 and 2 is EXPORTALL, which version 3 does not have; 7 of version 2 is
 * PATHCONF. */
#define MOUNT_PROCS(mnt)                                                                           \
	&rpc_proc_null, mnt, &mnt_proc_dump, &mnt_proc_umnt, &mnt_proc_umntall, &mnt_proc_export

static const struct rpc_proc *const mount_v1_procs[] = {
	MOUNT_PROCS(&mnt_proc_mnt_v1),
	&mnt_proc_exportall,
};

static const struct rpc_proc *const mount_v2_procs[] = {
	MOUNT_PROCS(&mnt_proc_mnt_v1),
	&mnt_proc_exportall,
	&mnt_proc_pathconf,
};

static const struct rpc_proc *const mount_v3_procs[] = {
	MOUNT_PROCS(&mnt_proc_mnt),
};

static const struct rpc_version nfs_versions[] = {
	{ .vers = NFS3_VERSION, .procs = nfs3_procs, .nprocs = NFSPROC3_COUNT },
};

static const struct rpc_version mount_versions[] = {
	{ .vers = 1, .procs = mount_v1_procs, .nprocs = rn_array_size(mount_v1_procs) },
	{ .vers = 2, .procs = mount_v2_procs, .nprocs = rn_array_size(mount_v2_procs) },
	{ .vers = 3, .procs = mount_v3_procs, .nprocs = rn_array_size(mount_v3_procs) },
};

void nfs3_program(struct nfs3_server *s, struct rpc_program *nfs, struct rpc_program *mount)
{
	*nfs = (struct rpc_program){
		.prog = NFS_PROGRAM,
		.name = "nfs",
		.versions = nfs_versions,
		.nversions = rn_array_size(nfs_versions),
		.ctx = s,
	};
	/* Versions 1 and 2 give handles of NFSv2: where that is not served a client is told at once that there is version 3. */
	const unsigned first = s->cfg.packed_handles ? 0 : rn_array_size(mount_versions) - 1;

	*mount = (struct rpc_program){
		.prog = MOUNT_PROGRAM,
		.name = "mount",
		.versions = &mount_versions[first],
		.nversions = rn_array_size(mount_versions) - first,
		.ctx = s,
	};
}

static const struct rpc_proc *const nfsacl_procs[NFSACLPROC3_COUNT] = {
	[NFSACLPROC3_NULL] = &rpc_proc_null,
	[NFSACLPROC3_GETACL] = &nfsacl_proc_getacl.rpc,
	[NFSACLPROC3_SETACL] = &nfsacl_proc_setacl.rpc,
};

static const struct rpc_version nfsacl_versions[] = {
	{ .vers = NFSACL_VERSION, .procs = nfsacl_procs, .nprocs = NFSACLPROC3_COUNT },
};

void nfsacl_program(struct nfs3_server *s, struct rpc_program *acl)
{
	*acl = (struct rpc_program){
		.prog = NFSACL_PROGRAM,
		.name = "nfsacl",
		.versions = nfsacl_versions,
		.nversions = rn_array_size(nfsacl_versions),
		.ctx = s,
	};
}

static const struct rpc_proc *const rquota_v1_procs[RQUOTAPROC_COUNT] = {
	[RQUOTAPROC_NULL] = &rpc_proc_null,
	[RQUOTAPROC_GETQUOTA] = &rquota_proc_get_v1,
	[RQUOTAPROC_GETACTIVEQUOTA] = &rquota_proc_getactive_v1,
	[RQUOTAPROC_SETQUOTA] = &rquota_proc_set_v1,
	[RQUOTAPROC_SETACTIVEQUOTA] = &rquota_proc_setactive_v1,
};

static const struct rpc_proc *const rquota_v2_procs[RQUOTAPROC_COUNT] = {
	[RQUOTAPROC_NULL] = &rpc_proc_null,
	[RQUOTAPROC_GETQUOTA] = &rquota_proc_get_v2,
	[RQUOTAPROC_GETACTIVEQUOTA] = &rquota_proc_getactive_v2,
	[RQUOTAPROC_SETQUOTA] = &rquota_proc_set_v2,
	[RQUOTAPROC_SETACTIVEQUOTA] = &rquota_proc_setactive_v2,
};

static const struct rpc_version rquota_versions[] = {
	{ .vers = RQUOTA_VERSION, .procs = rquota_v1_procs, .nprocs = RQUOTAPROC_COUNT },
	{ .vers = RQUOTA_EXT_VERSION, .procs = rquota_v2_procs, .nprocs = RQUOTAPROC_COUNT },
};

void rquota_program(struct nfs3_server *s, struct rpc_program *quota)
{
	*quota = (struct rpc_program){
		.prog = RQUOTA_PROGRAM,
		.name = "rquota",
		.versions = rquota_versions,
		.nversions = rn_array_size(rquota_versions),
		.ctx = s,
	};
}
