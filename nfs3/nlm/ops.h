/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that the lock manager's procedures share (nfs3/nlm/nlm_ops_lock.c). */
#ifndef RN_NFS3_NLM_OPS_H
#define RN_NFS3_NLM_OPS_H

#include "nfs3/nlm/owners.h"

static inline bool nlm_is_message(const struct rpc_request *req)
{
	return req->call.proc >= NLMPROC4_TEST_MSG && req->call.proc <= NLMPROC4_GRANTED_MSG;
}

/* NULL: RPC_RUN_SYSTEM_ERR. */
struct nfs3_op *nlm_begin(struct rpc_request *req);
/* Opens the file, and makes the key of the caller's owner. 0 or -errno. */
int nlm_open(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_owner_key *key);
/* True if a lock or share has to wait, or a reclaim comes at a time when there is nothing to reclaim. */
bool nlm_wrong_time(const struct nfs3_op *op, bool reclaim);
/* Puts the client on record before it gets something. *host is then for the caller to put. 0 or -errno. */
int nlm_monitor(struct nfs3_op *op, const struct nlm_lock_args *a, unsigned flags,
		struct nsm_host **host);

#endif
