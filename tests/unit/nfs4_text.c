/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_text.h"

#include <stdio.h>

#include "lib/util.h"
#include "nfs4/op_table.h"
#include "nfs4/proto.h"

#define ROW(name)                                                                                  \
	{                                                                                          \
		NFS4ERR_##name, "NFS4ERR_" #name                                                   \
	}
/* clang-format off */
static const struct {
	uint32_t status;
	const char *name;
} names[] = {
	{ NFS4_OK, "NFS4_OK" },
	ROW(PERM),
	ROW(NOENT),
	ROW(IO),
	ROW(NXIO),
	ROW(ACCESS),
	ROW(EXIST),
	ROW(XDEV),
	ROW(NOTDIR),
	ROW(ISDIR),
	ROW(INVAL),
	ROW(FBIG),
	ROW(NOSPC),
	ROW(ROFS),
	ROW(MLINK),
	ROW(NAMETOOLONG),
	ROW(NOTEMPTY),
	ROW(DQUOT),
	ROW(STALE),
	ROW(BADHANDLE),
	ROW(BAD_COOKIE),
	ROW(NOTSUPP),
	ROW(TOOSMALL),
	ROW(SERVERFAULT),
	ROW(BADTYPE),
	ROW(DELAY),
	ROW(SAME),
	ROW(DENIED),
	ROW(EXPIRED),
	ROW(LOCKED),
	ROW(GRACE),
	ROW(FHEXPIRED),
	ROW(SHARE_DENIED),
	ROW(WRONGSEC),
	ROW(CLID_INUSE),
	ROW(RESOURCE),
	ROW(MOVED),
	ROW(NOFILEHANDLE),
	ROW(MINOR_VERS_MISMATCH),
	ROW(STALE_CLIENTID),
	ROW(STALE_STATEID),
	ROW(OLD_STATEID),
	ROW(BAD_STATEID),
	ROW(BAD_SEQID),
	ROW(NOT_SAME),
	ROW(LOCK_RANGE),
	ROW(SYMLINK),
	ROW(RESTOREFH),
	ROW(LEASE_MOVED),
	ROW(ATTRNOTSUPP),
	ROW(NO_GRACE),
	ROW(RECLAIM_BAD),
	ROW(RECLAIM_CONFLICT),
	ROW(BADXDR),
	ROW(LOCKS_HELD),
	ROW(OPENMODE),
	ROW(BADOWNER),
	ROW(BADCHAR),
	ROW(BADNAME),
	ROW(BAD_RANGE),
	ROW(LOCK_NOTSUPP),
	ROW(OP_ILLEGAL),
	ROW(DEADLOCK),
	ROW(FILE_OPEN),
	ROW(ADMIN_REVOKED),
	ROW(CB_PATH_DOWN),
	ROW(BADIOMODE),
	ROW(BADLAYOUT),
	ROW(BAD_SESSION_DIGEST),
	ROW(BADSESSION),
	ROW(BADSLOT),
	ROW(COMPLETE_ALREADY),
	ROW(CONN_NOT_BOUND_TO_SESSION),
	ROW(DELEG_ALREADY_WANTED),
	ROW(BACK_CHAN_BUSY),
	ROW(LAYOUTTRYLATER),
	ROW(LAYOUTUNAVAILABLE),
	ROW(NOMATCHING_LAYOUT),
	ROW(RECALLCONFLICT),
	ROW(UNKNOWN_LAYOUTTYPE),
	ROW(SEQ_MISORDERED),
	ROW(SEQUENCE_POS),
	ROW(REQ_TOO_BIG),
	ROW(REP_TOO_BIG),
	ROW(REP_TOO_BIG_TO_CACHE),
	ROW(RETRY_UNCACHED_REP),
	ROW(UNSAFE_COMPOUND),
	ROW(TOO_MANY_OPS),
	ROW(OP_NOT_IN_SESSION),
	ROW(HASH_ALG_UNSUPP),
	ROW(CLIENTID_BUSY),
	ROW(PNFS_IO_HOLE),
	ROW(SEQ_FALSE_RETRY),
	ROW(BAD_HIGH_SLOT),
	ROW(DEADSESSION),
	ROW(ENCR_ALG_UNSUPP),
	ROW(PNFS_NO_LAYOUT),
	ROW(NOT_ONLY_OP),
	ROW(WRONG_CRED),
	ROW(WRONG_TYPE),
	ROW(DIRDELEG_UNAVAIL),
	ROW(REJECT_DELEG),
	ROW(RETURNCONFLICT),
	ROW(DELEG_REVOKED),
	ROW(PARTNER_NOTSUPP),
	ROW(PARTNER_NO_AUTH),
	ROW(UNION_NOTSUPP),
	ROW(OFFLOAD_DENIED),
	ROW(WRONG_LFS),
	ROW(BADLABEL),
	ROW(OFFLOAD_NO_REQS),
	ROW(NOXATTR),
	ROW(XATTR2BIG),
};
/* clang-format on */

/* Decimal text of a number without a name. Four static buffers, enough for one message. */
static const char *number(uint32_t n)
{
	static char text[4][16];
	static unsigned next;
	char *t = text[next++ % 4];

	snprintf(t, sizeof(text[0]), "%u", n);
	return t;
}

const char *nfs4_op_text(uint32_t opnum)
{
	const struct nfs4_op *op = nfs4_op_find(opnum, NFS4_MINOR_MAX);

	if (opnum == OP_ILLEGAL)
		return "ILLEGAL";
	return op ? op->name : number(opnum);
}

const char *nfs4_status_text(uint32_t status)
{
	for (unsigned i = 0; i < rn_array_size(names); i++) {
		if (names[i].status == status)
			return names[i].name;
	}
	return number(status);
}
