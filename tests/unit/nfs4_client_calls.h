/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on clients and sessions, with control of all arguments. Each function sends a
 * COMPOUND, with SEQUENCE first if there is a session, and returns the operation's status. */
#ifndef RN_TESTS_NFS4_CLIENT_CALLS_H
#define RN_TESTS_NFS4_CLIENT_CALLS_H

#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/session/registry.h"
#include "nfs4/session/session_private.h"
#include "tests/unit/nfs4_fixture.h"

struct eid_args {
	const char *owner, *verifier; /* verifier: 8 characters */
	uint32_t flags, protect;
	uint32_t nalgs, window; /* for SP4_SSV */
	bool impl_id;
	uint32_t minor; /* 0 stands for 1 */
};
struct eid_result {
	uint64_t clientid, minor_id;
	uint32_t seqid, flags, protect;
	char major[64], scope[64], impl[64];
};
uint32_t call_exchange_id(struct fixture *f, struct fix4_session *in, const struct eid_args *a,
			  struct eid_result *r);

struct cs_args {
	uint64_t clientid;
	uint32_t seqid, flags;
	struct nfs4_channel fore, back;
	bool gss, gss_only; /* RPCSEC_GSS among the callback security parameters; as the only one */
};
struct cs_result {
	uint8_t id[NFS4_SESSIONID_SIZE];
	uint32_t seqid, flags;
	struct nfs4_channel fore, back;
};
extern const struct nfs4_channel usual_channel;
uint32_t call_create_session(struct fixture *f, struct fix4_session *in, const struct cs_args *a,
			     struct cs_result *r);
/* Prepares s for fix4_begin() from a result of CREATE_SESSION. */
void use_session(struct fix4_session *s, uint64_t clientid, const struct cs_result *r);
/* Confirms a new client by EXCHANGE_ID and CREATE_SESSION. */
uint64_t confirmed_client(struct fixture *f, const char *owner, const char *verifier,
			  struct fix4_session *s);

uint32_t call_destroy_session(struct fixture *f, struct fix4_session *in,
			      const uint8_t id[NFS4_SESSIONID_SIZE]);
uint32_t call_destroy_clientid(struct fixture *f, struct fix4_session *in, uint64_t clientid);
uint32_t call_reclaim_complete(struct fixture *f, struct fix4_session *in, bool one_fs);

struct scid_args {
	const char *owner, *verifier;
	uint32_t program, ident;
	const char *netid, *addr; /* NULL: tcp, and port 1000 of the fixture's own address */
};
struct scid_result {
	uint64_t clientid;
	uint8_t confirm[NFS4_VERIFIER_SIZE];
	char netid[16], addr[64]; /* from NFS4ERR_CLID_INUSE */
};
uint32_t call_setclientid(struct fixture *f, const struct scid_args *a, struct scid_result *r);
uint32_t call_setclientid_confirm(struct fixture *f, const struct scid_result *r);
uint32_t call_renew(struct fixture *f, uint64_t clientid);

/*
 * Sends SEQUENCE alone on the session's slot. Returns its status; s->status_flags gets the flags.
 */
uint32_t call_sequence(struct fixture *f, struct fix4_session *s);

#endif
