/* SPDX-License-Identifier: BSD-2-Clause */
/* Client ids, sessions and slots: the operations of this folder, for the table (nfs4/op_table.h).
 */
#ifndef RN_NFS4_CLIENT_OPS_H
#define RN_NFS4_CLIENT_OPS_H

#include "nfs4/client/session.h"
#include "nfs4/compound.h"

/* callback_sec_parms4<>: credentials of which the server chooses one for its callbacks. */
struct nfs4_cb_security {
	bool plain; /* AUTH_NONE or AUTH_SYS is among them */
	bool gss;   /* so are RPCSEC_GSS handles, of which this server has none */
};
/* NFS4_OK; NFS4ERR_NOENT: there are only handles that the server has not. */
int nfs4_check_cb_security(const struct nfs4_cb_security *s);
void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out);

struct nfs4_renew_args {
	uint64_t clientid;
};
void nfs4_decode_renew(struct nfs4_compound *c, void *args);
int nfs4_renew(struct nfs4_compound *c, void *args);

struct nfs4_setclientid_args {
	struct nfs4_client_init who;
	struct nfs4_callback callback; /* an address that is none is left empty */
};
void nfs4_decode_setclientid(struct nfs4_compound *c, void *args);
int nfs4_setclientid(struct nfs4_compound *c, void *args);

struct nfs4_setclientid_confirm_args {
	uint64_t clientid;
	uint8_t confirm[NFS4_VERIFIER_SIZE];
};
void nfs4_decode_setclientid_confirm(struct nfs4_compound *c, void *args);
int nfs4_setclientid_confirm(struct nfs4_compound *c, void *args);

struct nfs4_backchannel_ctl_args {
	uint32_t cb_program;
	struct nfs4_cb_security security;
};
void nfs4_decode_backchannel_ctl(struct nfs4_compound *c, void *args);
int nfs4_backchannel_ctl(struct nfs4_compound *c, void *args);

struct nfs4_bind_conn_to_session_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t dir;
	bool rdma;
};
void nfs4_decode_bind_conn_to_session(struct nfs4_compound *c, void *args);
int nfs4_bind_conn_to_session(struct nfs4_compound *c, void *args);

struct nfs4_exchange_id_args {
	struct nfs4_client_init who;
	uint32_t flags;
	uint32_t protect; /* state_protect_how4 */
	bool ssv_invalid; /* SP4_SSV with parameters that section 18.35.3 does not allow */
};
void nfs4_decode_exchange_id(struct nfs4_compound *c, void *args);
int nfs4_exchange_id(struct nfs4_compound *c, void *args);

struct nfs4_create_session_args {
	uint64_t clientid;
	uint32_t seqid, flags;
	struct nfs4_channel fore, back;
	uint32_t cb_program;
	struct nfs4_cb_security security;
};
void nfs4_decode_create_session(struct nfs4_compound *c, void *args);
int nfs4_create_session(struct nfs4_compound *c, void *args);

struct nfs4_destroy_session_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
};
void nfs4_decode_destroy_session(struct nfs4_compound *c, void *args);
int nfs4_destroy_session(struct nfs4_compound *c, void *args);

struct nfs4_sequence_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t seqid, slot, highest;
	bool cache_this;
	uint64_t sum;			  /* nfs4_call_sum() */
	uint32_t highest_now, target_now; /* of the result */
};
void nfs4_decode_sequence(struct nfs4_compound *c, void *args);
int nfs4_sequence(struct nfs4_compound *c, void *args);
#define NFS4_SEQUENCE_RESULT (NFS4_SESSIONID_SIZE + 20u) /* bytes */
/* Its result; alive: the client's state has not expired. */
void nfs4_put_sequence(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		       const struct nfs4_session *s, bool alive);
/* What it says of the session's slots. s->lock is held. */
void nfs4_sequence_slots(struct nfs4_sequence_args *a, const struct nfs4_session *s);

struct nfs4_set_ssv_args {
	uint32_t ssv_len, digest_len;
};
void nfs4_decode_set_ssv(struct nfs4_compound *c, void *args);
int nfs4_set_ssv(struct nfs4_compound *c, void *args);

struct nfs4_destroy_clientid_args {
	uint64_t clientid;
};
void nfs4_decode_destroy_clientid(struct nfs4_compound *c, void *args);
int nfs4_destroy_clientid(struct nfs4_compound *c, void *args);

struct nfs4_reclaim_complete_args {
	bool one_fs;
};
void nfs4_decode_reclaim_complete(struct nfs4_compound *c, void *args);
int nfs4_reclaim_complete(struct nfs4_compound *c, void *args);

#endif
