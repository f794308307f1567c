/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of callbacks: calls of the server are collected, taken apart and answered. */
#ifndef RN_TESTS_NFS4_CALLBACKS_H
#define RN_TESTS_NFS4_CALLBACKS_H

#include "nfs4/nfs4_proto.h"
#include "rpc/backchannel.h"
#include "rpc/message.h"
#include "tests/unit/nfs4_fixture.h"

struct cb_call {
	uint32_t xid, prog, vers, proc;
	uint32_t flavor, cred_len;
	uint8_t cred[RPC_AUTH_BYTES_MAX];
	uint32_t minor, ident, nops;
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t seqid, slot, highest;
	bool cache_this;
	/* The call that it refers to; nreferring is 0 or 1. */
	uint32_t nreferring, ref_seqid, ref_slot;
	uint8_t ref_session[NFS4_SESSIONID_SIZE];
	uint32_t op;	/* second operation; 0: none */
	uint32_t wants; /* CB_GETATTR: the bitmap */
	/* CB_NOTIFY_LOCK, CB_RECALL, CB_LAYOUTRECALL, CB_GETATTR */
	struct vfs_fh fh;
	struct nfs4_stateid stateid; /* CB_RECALL, CB_LAYOUTRECALL */
	uint64_t clientid;
	uint32_t owner_len;
	char owner[NFS4_OPAQUE_LIMIT + 1];
	/* CB_NOTIFY, and stateid and fh above: number and bytes of the changes */
	uint32_t nchanges, changes_len;
	uint8_t changes[RPC_CALLBACK_SIZE];
	/* CB_OFFLOAD, and fh above */
	struct nfs4_stateid sid;
	uint32_t status, committed;
	uint64_t count, verifier;
	uint32_t keep, types;		    /* CB_RECALL_ANY */
	uint32_t target;		    /* CB_RECALL_SLOT */
	uint8_t device[NFS4_DEVICEID_SIZE]; /* CB_NOTIFY_DEVICEID */
};

/* From now on sessions ask for a back channel, and the connection takes callbacks. */
void cbs_on(struct fixture *f);
/* Calls that were not taken yet. */
unsigned cbs_count(void);
/* Takes the oldest call, which must be well-formed. False: there is none. */
bool cbs_take(struct cb_call *c);
/* Answers with an RPC success and a CB_COMPOUND of these statuses. */
void cbs_answer(struct fixture *f, const struct cb_call *c, uint32_t sequence, uint32_t status);
/* Answers a CB_GETATTR of change and size. */
void cbs_answer_attrs(struct fixture *f, const struct cb_call *c, uint64_t change, uint64_t size);
/* Answers like cbs_answer(), but with this csr_target_highest_slotid instead of 15. */
void cbs_answer_target(struct fixture *f, const struct cb_call *c, uint32_t target);
/* Answers with these words behind the xid. */
void cbs_answer_words(struct fixture *f, const struct cb_call *c, const uint32_t *words,
		      unsigned n);
/* The time of all calls under way is up. */
void cbs_time_out(struct fixture *f);
/* The connection is lost, and the client has made another. */
void cbs_lose(struct fixture *f);
/* The server cannot send: result of the transport's call operation from now on. */
void cbs_refuse(int rc);
/* The connection takes no longer calls than this, in bytes (-EMSGSIZE). */
void cbs_limit(uint32_t len);
/* Sends SEQUENCE alone; returns the status flags, or UINT32_MAX if it failed. */
uint32_t cbs_sequence(struct fixture *f, struct fix4_session *s);
/* Answers the probe that SEQUENCE has sent: the path is up. */
void cbs_probed(struct fixture *f, struct fix4_session *s);

#endif
