/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks and stateids: the operations of this folder, for the table (nfs4/op_table.h). */
#ifndef RN_NFS4_STATE_OPS_H
#define RN_NFS4_STATE_OPS_H

#include "nfs4/compound.h"

struct nfs4_close_args {
	uint32_t todo;
};
void nfs4_decode_close(struct nfs4_compound *c, void *args);
int nfs4_close(struct nfs4_compound *c, void *args);

struct nfs4_delegpurge_args {
	uint32_t todo;
};
void nfs4_decode_delegpurge(struct nfs4_compound *c, void *args);
int nfs4_delegpurge(struct nfs4_compound *c, void *args);

struct nfs4_delegreturn_args {
	uint32_t todo;
};
void nfs4_decode_delegreturn(struct nfs4_compound *c, void *args);
int nfs4_delegreturn(struct nfs4_compound *c, void *args);

struct nfs4_lock_args {
	uint32_t todo;
};
void nfs4_decode_lock(struct nfs4_compound *c, void *args);
int nfs4_lock(struct nfs4_compound *c, void *args);

struct nfs4_lockt_args {
	uint32_t todo;
};
void nfs4_decode_lockt(struct nfs4_compound *c, void *args);
int nfs4_lockt(struct nfs4_compound *c, void *args);

struct nfs4_locku_args {
	uint32_t todo;
};
void nfs4_decode_locku(struct nfs4_compound *c, void *args);
int nfs4_locku(struct nfs4_compound *c, void *args);

struct nfs4_open_args {
	uint32_t todo;
};
void nfs4_decode_open(struct nfs4_compound *c, void *args);
int nfs4_open(struct nfs4_compound *c, void *args);

struct nfs4_open_confirm_args {
	uint32_t todo;
};
void nfs4_decode_open_confirm(struct nfs4_compound *c, void *args);
int nfs4_open_confirm(struct nfs4_compound *c, void *args);

struct nfs4_open_downgrade_args {
	uint32_t todo;
};
void nfs4_decode_open_downgrade(struct nfs4_compound *c, void *args);
int nfs4_open_downgrade(struct nfs4_compound *c, void *args);

struct nfs4_release_lockowner_args {
	uint32_t todo;
};
void nfs4_decode_release_lockowner(struct nfs4_compound *c, void *args);
int nfs4_release_lockowner(struct nfs4_compound *c, void *args);

struct nfs4_free_stateid_args {
	uint32_t todo;
};
void nfs4_decode_free_stateid(struct nfs4_compound *c, void *args);
int nfs4_free_stateid(struct nfs4_compound *c, void *args);

struct nfs4_test_stateid_args {
	uint32_t todo;
};
void nfs4_decode_test_stateid(struct nfs4_compound *c, void *args);
int nfs4_test_stateid(struct nfs4_compound *c, void *args);

#endif
