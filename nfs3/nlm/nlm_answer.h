/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the lock manager's procedures: in the reply, or by a call of the server if the call was a message
 * (_MSG). */
#ifndef RN_NFS3_NLM_NLM_ANSWER_H
#define RN_NFS3_NLM_NLM_ANSWER_H

#include "nfs3/nlm/nlm.h"
#include "vfs/lock.h"

struct nsm_callee;

struct nlm_result {
	const struct nlm_bytes *cookie;
	enum nlm4_stat stat;
	/* TEST: the lock in the way, looked at if the status is DENIED. NULL: another procedure's. */
	const struct vfs_conflict *holder;
	bool sequence; /* of SHARE and UNSHARE: a number follows */
};

/* Status for a result of vfs/: 0 or -errno. */
enum nlm4_stat nlm_status(int rc);
/* Ends the operation and answers, if the call does not run again. rc is that of the operation. */
enum rpc_run nlm_answer(struct nfs3_op *op, const struct nlm_result *r, int rc);

/* Answers a call that needs no operation. A message needs cfg.nsm. */
void nlm_reply(struct rpc_request *req, const struct nlm_result *r);

/* Puts the range as the version has it. length 0: to the end. */
void nlm_put_range(struct xdr_out *x, uint32_t vers, uint64_t offset, uint64_t length);
/* The lock manager at the other end of a connection: its address, and how it is called. */
void nlm_callee(const struct rpc_conn *conn, uint32_t vers, uint32_t proc, struct nsm_callee *out);

#endif
