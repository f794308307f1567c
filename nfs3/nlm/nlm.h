/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network lock manager: byte-range locks and shares for clients of NFSv3 and NFSv2, in the tables of
 * vfs/lock.h and vfs/share.h. Version 4 is that of RFC 1813 appendix II. Versions 1 and 3 are those of the
 * XNFS specification: offsets have 32 bits, and there are fewer statuses.
 *
 * Procedures come in two forms. The first answers in its reply. The second (_MSG) has an empty reply, and the
 * answer is a call of the server (_RES), to the address that the message came from.
 *
 * A lock that has to wait is answered BLOCKED. The client is called when it has the lock
 * (nfs3/nlm/nlm_grant.h), and asks again by itself (Linux every 30 seconds).
 */
#ifndef RN_NFS3_NLM_NLM_H
#define RN_NFS3_NLM_NLM_H

#include "nfs3/op.h"
#include "vfs/lock.h"

#define NLM_OPAQUE_MAX 1024u			    /* MAXNETOBJ_SZ, MAXNAMELEN */
#define NLM_MESSAGE_MAX (4 * NLM_OPAQUE_MAX + 256u) /* bytes of the arguments of any procedure */

enum nlm4_proc {
	NLMPROC4_NULL = 0,
	NLMPROC4_TEST = 1,
	NLMPROC4_LOCK = 2,
	NLMPROC4_CANCEL = 3,
	NLMPROC4_UNLOCK = 4,
	NLMPROC4_GRANTED = 5, /* to a client */
	/* Each of those five again, as a message, and the answer to it. */
	NLMPROC4_TEST_MSG = 6,
	NLMPROC4_LOCK_MSG = 7,
	NLMPROC4_CANCEL_MSG = 8,
	NLMPROC4_UNLOCK_MSG = 9,
	NLMPROC4_GRANTED_MSG = 10,
	NLMPROC4_TEST_RES = 11,
	NLMPROC4_LOCK_RES = 12,
	NLMPROC4_CANCEL_RES = 13,
	NLMPROC4_UNLOCK_RES = 14,
	NLMPROC4_GRANTED_RES = 15,
	NLMPROC_V1_COUNT,
	NLMPROC4_SHARE = 20,
	NLMPROC4_UNSHARE = 21,
	NLMPROC4_NM_LOCK = 22,
	NLMPROC4_FREE_ALL = 23,
	NLMPROC4_COUNT
};

/* Versions 1 and 3 have the first five. */
enum nlm4_stat {
	NLM4_GRANTED = 0,
	NLM4_DENIED = 1,
	NLM4_DENIED_NOLOCKS = 2,
	NLM4_BLOCKED = 3,
	NLM4_DENIED_GRACE_PERIOD = 4,
	NLM4_DEADLCK = 5,
	NLM4_ROFS = 6,
	NLM4_STALE_FH = 7,
	NLM4_FBIG = 8,
	NLM4_FAILED = 9
};

struct nlm_bytes {
	const uint8_t *data;
	uint32_t len;
};

struct nlm_lock_args {
	struct nlm_bytes cookie;
	bool block, exclusive, reclaim;
	bool monitor;	/* true for LOCK, after decoding; false for NM_LOCK */
	bool beyond;	/* the range begins beyond what the version's files can have */
	uint32_t state; /* state number of the client, see nsm/nsm.h */
	struct nlm_bytes caller, oh;
	struct vfs_fh fh; /* len 0: not a handle of this server */
	int32_t svid;
	uint64_t offset, length; /* length 0: to the end */
};

struct nlm_share_args {
	struct nlm_lock_args lock; /* without range and svid */
	uint32_t mode, access;	   /* what others are denied, and what is asked for: VFS_SHARE_* */
};

/* nlm_res, as the answer to GRANTED_MSG. */
struct nlm_res_args {
	struct nlm_bytes cookie;
	uint32_t stat;
};

/* Decoders. Those of version 4 have offsets of 64 bits; those ending in _old, of 32. */
bool nlm_decode_test(struct xdr_in *x, void *args);
bool nlm_decode_lock(struct xdr_in *x, void *args);
bool nlm_decode_cancel(struct xdr_in *x, void *args);
bool nlm_decode_unlock(struct xdr_in *x, void *args);
bool nlm_decode_test_old(struct xdr_in *x, void *args);
bool nlm_decode_lock_old(struct xdr_in *x, void *args);
bool nlm_decode_cancel_old(struct xdr_in *x, void *args);
bool nlm_decode_unlock_old(struct xdr_in *x, void *args);
bool nlm_decode_share(struct xdr_in *x, void *args);
bool nlm_decode_res(struct xdr_in *x, void *args);
bool nlm_decode_free_all(struct xdr_in *x, void *args); /* struct nlm_bytes: the name */

/* Answers of the lock manager's procedures: in the reply, or by a call of the server if the call was a message
 * (_MSG). */

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
