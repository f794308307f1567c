/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/op_table.h"

#include "lib/checked.h"
#include "nfs4/attr/ops.h"
#include "nfs4/client/ops.h"
#include "nfs4/data/ops.h"
#include "nfs4/names/ops.h"
#include "nfs4/proto.h"
#include "nfs4/state/ops.h"
#include "nfs4/stateid.h"

/* Worst-case bytes of what several results have. */
#define CINFO (4u + 8u + 8u)				    /* change_info4 */
#define BITMAP (4u + 4u * NFS4_ATTR_WORDS)		    /* bitmap4 */
#define DENIED (8u + 8u + 4u + 8u + 4u + NFS4_OPAQUE_LIMIT) /* LOCK4denied */
#define DELEGATION (4u + 8u)		  /* open_delegation4 without a delegation */
#define CLIENTADDR (4u + 8u + 4u + 64u)	  /* clientaddr4 */
#define CHANNEL_ATTRS (6u * 4u + 4u + 4u) /* channel_attrs4 */
/* clientid, sequence, flags, SP4_NONE; owner and scope, of one name; one implementation id. No more than
 * that: a client may not have offered room for what is never sent. */
#define EXCHANGE_ID_RES (8u + 4u + 4u + 4u + 8u + 2u * (4u + 64u) + 4u + 4u + 4u + 64u + 12u)

#define ROW(NAME, name, first, last, gone, how, reply)                                             \
	[OP_##NAME] = { #NAME,	    first,                                                         \
			last,	    gone,                                                          \
			how,	    sizeof(struct nfs4_##name##_args),                             \
			reply,	    nfs4_decode_##name,                                            \
			nfs4_##name }
#define ROW0(NAME, name, first, last, gone, how, reply)                                            \
	[OP_##NAME] = { #NAME, first, last, gone, how, 0, reply, NULL, nfs4_##name }
/* Known and optional; not done here. */
#define NONE(NAME, first, last, how) [OP_##NAME] = { #NAME, first, last, 0, how, 0, 0, NULL, NULL }

/* clang-format off */
static const struct nfs4_op ops[NFS4_OPS] = {
	ROW(ACCESS, access, 0, 2, 0, NFS4_OP_NEEDS_FH, 8),
	ROW(CLOSE, close, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, NFS4_STATEID_SIZE),
	ROW(COMMIT, commit, 0, 2, 0, NFS4_OP_NEEDS_FH, NFS4_VERIFIER_SIZE),
	ROW(CREATE, create, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_SETS_FH, CINFO + BITMAP),
	ROW(DELEGPURGE, delegpurge, 0, 2, 0, NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	ROW(DELEGRETURN, delegreturn, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	ROW(GETATTR, getattr, 0, 2, 0, NFS4_OP_NEEDS_FH, 8),
	ROW0(GETFH, getfh, 0, 2, 0, NFS4_OP_NEEDS_FH, 4 + NFS4_FHSIZE),
	ROW(LINK, link, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_NEEDS_SAVED_FH | NFS4_OP_CHANGES, CINFO),
	/* LOCK4denied is longer, but then nothing has changed. */
	ROW(LOCK, lock, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES, NFS4_STATEID_SIZE),
	ROW(LOCKT, lockt, 0, 2, 0, NFS4_OP_NEEDS_FH, DENIED),
	ROW(LOCKU, locku, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, NFS4_STATEID_SIZE),
	ROW(LOOKUP, lookup, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_SETS_FH, 0),
	ROW0(LOOKUPP, lookupp, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_SETS_FH, 0),
	ROW(NVERIFY, nverify, 0, 2, 0, NFS4_OP_NEEDS_FH, 0),
	ROW(OPEN, open, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_SETS_FH, NFS4_STATEID_SIZE + CINFO + 4 + BITMAP + DELEGATION),
	ROW(OPENATTR, openattr, 0, 2, 0, NFS4_OP_NEEDS_FH, 0),
	ROW(OPEN_CONFIRM, open_confirm, 0, 2, 1, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES, NFS4_STATEID_SIZE),
	ROW(OPEN_DOWNGRADE, open_downgrade, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, NFS4_STATEID_SIZE),
	ROW(PUTFH, putfh, 0, 2, 0, NFS4_OP_SETS_FH | NFS4_OP_FOR_FORMER, 0),
	ROW0(PUTPUBFH, putpubfh, 0, 2, 0, NFS4_OP_SETS_FH, 0),
	ROW0(PUTROOTFH, putrootfh, 0, 2, 0, NFS4_OP_SETS_FH, 0),
	ROW(READ, read, 0, 2, 0, NFS4_OP_NEEDS_FH, 8),
	ROW(READDIR, readdir, 0, 2, 0, NFS4_OP_NEEDS_FH, NFS4_VERIFIER_SIZE + 8),
	ROW0(READLINK, readlink, 0, 2, 0, NFS4_OP_NEEDS_FH, 4),
	ROW(REMOVE, remove, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES, CINFO),
	ROW(RENAME, rename, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_NEEDS_SAVED_FH | NFS4_OP_CHANGES, 2 * CINFO),
	ROW(RENEW, renew, 0, 2, 1, NFS4_OP_FOR_FORMER, 0),
	ROW0(RESTOREFH, restorefh, 0, 2, 0, NFS4_OP_SETS_FH, 0),
	ROW0(SAVEFH, savefh, 0, 2, 0, NFS4_OP_NEEDS_FH, 0),
	ROW(SECINFO, secinfo, 0, 2, 0, NFS4_OP_NEEDS_FH, 64),
	ROW(SETATTR, setattr, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES | NFS4_OP_FAILS_WITH_BITMAP, BITMAP),
	ROW(SETCLIENTID, setclientid, 0, 2, 1, NFS4_OP_CHANGES, 8 + NFS4_VERIFIER_SIZE + CLIENTADDR),
	ROW(SETCLIENTID_CONFIRM, setclientid_confirm, 0, 2, 1, NFS4_OP_CHANGES, 0),
	ROW(VERIFY, verify, 0, 2, 0, NFS4_OP_NEEDS_FH, 0),
	ROW(WRITE, write, 0, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES, 8 + NFS4_VERIFIER_SIZE),
	ROW(RELEASE_LOCKOWNER, release_lockowner, 0, 2, 1, NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	ROW(BACKCHANNEL_CTL, backchannel_ctl, 1, 2, 0, NFS4_OP_CHANGES, 0),
	ROW(BIND_CONN_TO_SESSION, bind_conn_to_session, 1, 2, 0, NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, NFS4_SESSIONID_SIZE + 8),
	ROW(EXCHANGE_ID, exchange_id, 1, 2, 0, NFS4_OP_ALONE | NFS4_OP_CHANGES, EXCHANGE_ID_RES),
	ROW(CREATE_SESSION, create_session, 1, 2, 0, NFS4_OP_ALONE | NFS4_OP_CHANGES, NFS4_SESSIONID_SIZE + 8 + 2 * CHANNEL_ATTRS),
	ROW(DESTROY_SESSION, destroy_session, 1, 2, 0, NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	ROW(FREE_STATEID, free_stateid, 1, 2, 0, NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	NONE(GET_DIR_DELEGATION, 1, 2, NFS4_OP_NEEDS_FH),
	NONE(GETDEVICEINFO, 1, 2, 0),
	NONE(GETDEVICELIST, 1, 2, NFS4_OP_NEEDS_FH),
	NONE(LAYOUTCOMMIT, 1, 2, NFS4_OP_NEEDS_FH),
	NONE(LAYOUTGET, 1, 2, NFS4_OP_NEEDS_FH),
	NONE(LAYOUTRETURN, 1, 2, NFS4_OP_NEEDS_FH),
	ROW(SECINFO_NO_NAME, secinfo_no_name, 1, 2, 0, NFS4_OP_NEEDS_FH, 64),
	ROW(SEQUENCE, sequence, 1, 2, 0, NFS4_OP_FOR_FORMER, NFS4_SESSIONID_SIZE + 20),
	ROW(SET_SSV, set_ssv, 1, 2, 0, 0, 0),
	ROW(TEST_STATEID, test_stateid, 1, 2, 0, NFS4_OP_FOR_FORMER, 4),
	NONE(WANT_DELEGATION, 1, 2, NFS4_OP_NEEDS_FH),
	ROW(DESTROY_CLIENTID, destroy_clientid, 1, 2, 0, NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	ROW(RECLAIM_COMPLETE, reclaim_complete, 1, 2, 0, NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER, 0),
	ROW(ALLOCATE, allocate, 2, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES, 0),
	NONE(COPY, 2, 2, NFS4_OP_NEEDS_FH),
	NONE(COPY_NOTIFY, 2, 2, NFS4_OP_NEEDS_FH),
	ROW(DEALLOCATE, deallocate, 2, 2, 0, NFS4_OP_NEEDS_FH | NFS4_OP_CHANGES, 0),
	ROW(IO_ADVISE, io_advise, 2, 2, 0, NFS4_OP_NEEDS_FH, BITMAP),
	NONE(LAYOUTERROR, 2, 2, NFS4_OP_NEEDS_FH),
	NONE(LAYOUTSTATS, 2, 2, NFS4_OP_NEEDS_FH),
	NONE(OFFLOAD_CANCEL, 2, 2, NFS4_OP_NEEDS_FH),
	NONE(OFFLOAD_STATUS, 2, 2, NFS4_OP_NEEDS_FH),
	NONE(READ_PLUS, 2, 2, NFS4_OP_NEEDS_FH),
	ROW(SEEK, seek, 2, 2, 0, NFS4_OP_NEEDS_FH, 12),
	NONE(WRITE_SAME, 2, 2, NFS4_OP_NEEDS_FH),
	NONE(CLONE, 2, 2, NFS4_OP_NEEDS_FH),
};
/* clang-format on */

const struct nfs4_op *nfs4_op_find(uint32_t opnum, uint32_t minor)
{
	const struct nfs4_op *op;

	if (opnum >= rn_array_size(ops))
		return NULL;
	op = &ops[opnum];
	if (!op->name || minor < op->first_minor || minor > op->last_minor)
		return NULL;
	return op;
}
