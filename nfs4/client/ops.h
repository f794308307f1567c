/* SPDX-License-Identifier: BSD-2-Clause */
/* Client ids, sessions and slots: the operations of this folder, for the table (nfs4/op_table.h).
 */
#ifndef RN_NFS4_CLIENT_OPS_H
#define RN_NFS4_CLIENT_OPS_H

#include "nfs4/compound.h"

struct nfs4_renew_args {
	uint32_t todo;
};
void nfs4_decode_renew(struct nfs4_compound *c, void *args);
int nfs4_renew(struct nfs4_compound *c, void *args);

struct nfs4_setclientid_args {
	uint32_t todo;
};
void nfs4_decode_setclientid(struct nfs4_compound *c, void *args);
int nfs4_setclientid(struct nfs4_compound *c, void *args);

struct nfs4_setclientid_confirm_args {
	uint32_t todo;
};
void nfs4_decode_setclientid_confirm(struct nfs4_compound *c, void *args);
int nfs4_setclientid_confirm(struct nfs4_compound *c, void *args);

struct nfs4_backchannel_ctl_args {
	uint32_t todo;
};
void nfs4_decode_backchannel_ctl(struct nfs4_compound *c, void *args);
int nfs4_backchannel_ctl(struct nfs4_compound *c, void *args);

struct nfs4_bind_conn_to_session_args {
	uint32_t todo;
};
void nfs4_decode_bind_conn_to_session(struct nfs4_compound *c, void *args);
int nfs4_bind_conn_to_session(struct nfs4_compound *c, void *args);

struct nfs4_exchange_id_args {
	uint32_t todo;
};
void nfs4_decode_exchange_id(struct nfs4_compound *c, void *args);
int nfs4_exchange_id(struct nfs4_compound *c, void *args);

struct nfs4_create_session_args {
	uint32_t todo;
};
void nfs4_decode_create_session(struct nfs4_compound *c, void *args);
int nfs4_create_session(struct nfs4_compound *c, void *args);

struct nfs4_destroy_session_args {
	uint32_t todo;
};
void nfs4_decode_destroy_session(struct nfs4_compound *c, void *args);
int nfs4_destroy_session(struct nfs4_compound *c, void *args);

struct nfs4_sequence_args {
	uint32_t todo;
};
void nfs4_decode_sequence(struct nfs4_compound *c, void *args);
int nfs4_sequence(struct nfs4_compound *c, void *args);

struct nfs4_set_ssv_args {
	uint32_t todo;
};
void nfs4_decode_set_ssv(struct nfs4_compound *c, void *args);
int nfs4_set_ssv(struct nfs4_compound *c, void *args);

struct nfs4_destroy_clientid_args {
	uint32_t todo;
};
void nfs4_decode_destroy_clientid(struct nfs4_compound *c, void *args);
int nfs4_destroy_clientid(struct nfs4_compound *c, void *args);

struct nfs4_reclaim_complete_args {
	uint32_t todo;
};
void nfs4_decode_reclaim_complete(struct nfs4_compound *c, void *args);
int nfs4_reclaim_complete(struct nfs4_compound *c, void *args);

#endif
