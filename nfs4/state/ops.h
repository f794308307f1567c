/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks and stateids: the operations of this folder, for the table (nfs4/op_table.h). */
#ifndef RN_NFS4_STATE_OPS_H
#define RN_NFS4_STATE_OPS_H

#include "nfs4/attr/attr.h"
#include "nfs4/compound.h"
#include "nfs4/names/name.h"

/* open_owner4, lock_owner4 */
struct nfs4_wire_owner {
	uint64_t clientid;
	const uint8_t *name; /* in the message or the arena */
	uint32_t len;
};

struct nfs4_close_args {
	uint32_t seqid;
	struct nfs4_stateid sid;
};
void nfs4_decode_close(struct nfs4_compound *c, void *args);
int nfs4_close(struct nfs4_compound *c, void *args);

struct nfs4_delegpurge_args {
	uint64_t clientid;
};
void nfs4_decode_delegpurge(struct nfs4_compound *c, void *args);
int nfs4_delegpurge(struct nfs4_compound *c, void *args);

struct nfs4_delegreturn_args {
	struct nfs4_stateid sid;
};
void nfs4_decode_delegreturn(struct nfs4_compound *c, void *args);
int nfs4_delegreturn(struct nfs4_compound *c, void *args);

struct nfs4_lock_args {
	uint32_t type; /* enum nfs_lock_type4 */
	bool reclaim;
	uint64_t offset, length;
	bool new_owner;
	uint32_t open_seqid; /* new_owner only */
	uint32_t lock_seqid;
	struct nfs4_stateid sid;      /* of the open if new_owner, else of the lock */
	struct nfs4_wire_owner owner; /* new_owner only */
};
void nfs4_decode_lock(struct nfs4_compound *c, void *args);
int nfs4_lock(struct nfs4_compound *c, void *args);

struct nfs4_lockt_args {
	uint32_t type;
	uint64_t offset, length;
	struct nfs4_wire_owner owner;
};
void nfs4_decode_lockt(struct nfs4_compound *c, void *args);
int nfs4_lockt(struct nfs4_compound *c, void *args);

struct nfs4_locku_args {
	uint32_t type;
	uint32_t seqid;
	struct nfs4_stateid sid;
	uint64_t offset, length;
};
void nfs4_decode_locku(struct nfs4_compound *c, void *args);
int nfs4_locku(struct nfs4_compound *c, void *args);

struct nfs4_open_args {
	uint32_t seqid;
	uint32_t access, deny;
	struct nfs4_wire_owner owner;
	bool create;
	uint32_t how;		 /* enum nfs4_create_how */
	struct nfs4_sattr attrs; /* UNCHECKED4, GUARDED4, EXCLUSIVE4_1 */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	uint32_t claim; /* enum nfs4_claim */
	uint32_t delegate_type;
	struct nfs4_stateid delegate_sid;
	struct nfs4_name name;
	struct nfs4_opening *work; /* from run on, until it ends: nfs4/state/open.h */
};
void nfs4_decode_open(struct nfs4_compound *c, void *args);
int nfs4_open(struct nfs4_compound *c, void *args);

struct nfs4_open_confirm_args {
	struct nfs4_stateid sid;
	uint32_t seqid;
};
void nfs4_decode_open_confirm(struct nfs4_compound *c, void *args);
int nfs4_open_confirm(struct nfs4_compound *c, void *args);

struct nfs4_open_downgrade_args {
	struct nfs4_stateid sid;
	uint32_t seqid;
	uint32_t access, deny;
};
void nfs4_decode_open_downgrade(struct nfs4_compound *c, void *args);
int nfs4_open_downgrade(struct nfs4_compound *c, void *args);

struct nfs4_release_lockowner_args {
	struct nfs4_wire_owner owner;
};
void nfs4_decode_release_lockowner(struct nfs4_compound *c, void *args);
int nfs4_release_lockowner(struct nfs4_compound *c, void *args);

struct nfs4_free_stateid_args {
	struct nfs4_stateid sid;
};
void nfs4_decode_free_stateid(struct nfs4_compound *c, void *args);
int nfs4_free_stateid(struct nfs4_compound *c, void *args);

struct nfs4_test_stateid_args {
	uint32_t count;
	struct nfs4_stateid *sids; /* in the arena */
};
void nfs4_decode_test_stateid(struct nfs4_compound *c, void *args);
int nfs4_test_stateid(struct nfs4_compound *c, void *args);

#endif
