/* SPDX-License-Identifier: BSD-2-Clause */
/* The versions of NLM, and their procedures by number. */
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nfs3_procs.h"

/* old: empty, or _old for the versions with offsets of 32 bits. */
#define COMMON_PROCS(old)                                                                          \
	[NLMPROC4_NULL] = &rpc_proc_null, [NLMPROC4_TEST] = &nlm_proc_test##old,                   \
	[NLMPROC4_LOCK] = &nlm_proc_lock##old, [NLMPROC4_CANCEL] = &nlm_proc_cancel##old,          \
	[NLMPROC4_UNLOCK] = &nlm_proc_unlock##old, [NLMPROC4_GRANTED] = &nlm_proc_granted##old,    \
	[NLMPROC4_TEST_MSG] = &nlm_proc_test_msg##old,                                             \
	[NLMPROC4_LOCK_MSG] = &nlm_proc_lock_msg##old,                                             \
	[NLMPROC4_CANCEL_MSG] = &nlm_proc_cancel_msg##old,                                         \
	[NLMPROC4_UNLOCK_MSG] = &nlm_proc_unlock_msg##old,                                         \
	[NLMPROC4_GRANTED_MSG] = &nlm_proc_granted_msg##old,                                       \
	[NLMPROC4_TEST_RES] = &nlm_proc_test_res, [NLMPROC4_LOCK_RES] = &nlm_proc_lock_res,        \
	[NLMPROC4_CANCEL_RES] = &nlm_proc_cancel_res,                                              \
	[NLMPROC4_UNLOCK_RES] = &nlm_proc_unlock_res,                                              \
	[NLMPROC4_GRANTED_RES] = &nlm_proc_granted_res

#define SHARE_PROCS(old)                                                                           \
	[NLMPROC4_SHARE] = &nlm_proc_share, [NLMPROC4_UNSHARE] = &nlm_proc_unshare,                \
	[NLMPROC4_NM_LOCK] = &nlm_proc_nm_lock##old, [NLMPROC4_FREE_ALL] = &nlm_proc_free_all

static const struct rpc_proc *const v1_procs[NLMPROC_V1_COUNT] = { COMMON_PROCS(_old) };
static const struct rpc_proc *const v3_procs[NLMPROC4_COUNT] = { COMMON_PROCS(_old),
								 SHARE_PROCS(_old) };
static const struct rpc_proc *const v4_procs[NLMPROC4_COUNT] = { COMMON_PROCS(), SHARE_PROCS() };

static const struct rpc_version versions[] = {
	{ .vers = 1, .procs = v1_procs, .nprocs = NLMPROC_V1_COUNT },
	{ .vers = 3, .procs = v3_procs, .nprocs = NLMPROC4_COUNT },
	{ .vers = NLM_VERSION, .procs = v4_procs, .nprocs = NLMPROC4_COUNT },
};

void nlm_program(struct nfs3_server *s, struct rpc_program *nlm)
{
	*nlm = (struct rpc_program){
		.prog = NLM_PROGRAM,
		.name = "nlm",
		.versions = versions,
		.nversions = rn_array_size(versions),
		.ctx = s,
	};
}
