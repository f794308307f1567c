/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network lock manager, version 4 (RFC 1813 appendix II): byte-range locks for NFSv3 clients,
 * in the one table of vfs/lock.h. Served are the procedures that answer in their reply; clients
 * over TCP use no others. A lock that has to wait is answered BLOCKED. The client is called when it has
 * the lock (nfs3/nlm/grant.h), and asks again by itself (Linux every 30 seconds).
 */
#ifndef RN_NFS3_NLM_NLM_H
#define RN_NFS3_NLM_NLM_H

#include "nfs3/op.h"

#define NLM_OPAQUE_MAX 1024u /* MAXNETOBJ_SZ, MAXNAMELEN */

enum nlm4_proc {
	NLMPROC4_NULL = 0,
	NLMPROC4_TEST = 1,
	NLMPROC4_LOCK = 2,
	NLMPROC4_CANCEL = 3,
	NLMPROC4_UNLOCK = 4,
	NLMPROC4_GRANTED = 5, /* to a client */
	NLMPROC4_NM_LOCK = 22,
	NLMPROC4_FREE_ALL = 23,
	NLMPROC4_COUNT
};

enum nlm4_stat {
	NLM4_GRANTED = 0,
	NLM4_DENIED = 1,
	NLM4_DENIED_NOLOCKS = 2,
	NLM4_BLOCKED = 3,
	NLM4_DENIED_GRACE_PERIOD = 4,
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
	uint32_t state; /* state number of the client, see nsm/nsm.h */
	struct nlm_bytes caller, oh;
	struct vfs_fh fh; /* len 0: not a handle of this server */
	int32_t svid;
	uint64_t offset, length;
};

bool nlm_decode_test(struct xdr_in *x, void *args);
bool nlm_decode_lock(struct xdr_in *x, void *args);
bool nlm_decode_cancel(struct xdr_in *x, void *args);
bool nlm_decode_unlock(struct xdr_in *x, void *args);
bool nlm_decode_free_all(struct xdr_in *x, void *args); /* struct nlm_bytes: the name */

#endif
