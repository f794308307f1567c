/* SPDX-License-Identifier: BSD-2-Clause */
/* Status codes: names, which operation may return which, and from errno. */
#include "nfs4/nfs4_status.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/op_table.h"
#include "vfs/file_state.h"

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

const char *nfs4_status_name(uint32_t status)
{
	for (size_t i = 0; i < rn_array_size(names); i++) {
		if (names[i].status == status)
			return names[i].name;
	}
	return NULL;
}

/* Replaces file system errors that the RFCs do not list for an operation. */

static const struct {
	int status;
	uint32_t kind;
} kinds[] = {
	{ NFS4ERR_PERM, NFS4_E_PERM },
	{ NFS4ERR_NOENT, NFS4_E_NOENT },
	{ NFS4ERR_IO, NFS4_E_IO },
	{ NFS4ERR_NXIO, NFS4_E_NXIO },
	{ NFS4ERR_ACCESS, NFS4_E_ACCESS },
	{ NFS4ERR_EXIST, NFS4_E_EXIST },
	{ NFS4ERR_XDEV, NFS4_E_XDEV },
	{ NFS4ERR_NOTDIR, NFS4_E_NOTDIR },
	{ NFS4ERR_ISDIR, NFS4_E_ISDIR },
	{ NFS4ERR_INVAL, NFS4_E_INVAL },
	{ NFS4ERR_FBIG, NFS4_E_FBIG },
	{ NFS4ERR_NOSPC, NFS4_E_NOSPC },
	{ NFS4ERR_DQUOT, NFS4_E_NOSPC },
	{ NFS4ERR_ROFS, NFS4_E_ROFS },
	{ NFS4ERR_MLINK, NFS4_E_MLINK },
	{ NFS4ERR_NAMETOOLONG, NFS4_E_NAMETOOLONG },
	{ NFS4ERR_NOTEMPTY, NFS4_E_NOTEMPTY },
	{ NFS4ERR_STALE, NFS4_E_STALE },
	{ NFS4ERR_NOTSUPP, NFS4_E_NOTSUPP },
	{ NFS4ERR_SYMLINK, NFS4_E_SYMLINK | NFS4_E_NOTDIR },
	{ NFS4ERR_FILE_OPEN, NFS4_E_FILE_OPEN },
	{ NFS4ERR_LOCKED, NFS4_E_LOCKED },
	{ NFS4ERR_BADHANDLE, NFS4_E_BADHANDLE },
};

static uint32_t nfs4_status_kind(int status)
{
	for (unsigned i = 0; i < rn_array_size(kinds); i++) {
		if (kinds[i].status == status)
			return kinds[i].kind;
	}
	return 0;
}

/* The allowed error that comes closest. */
static int instead(int status, uint32_t allowed)
{
	if ((allowed & NFS4_E_ACCESS) &&
	    (nfs4_status_kind(status) & (NFS4_E_PERM | NFS4_E_FILE_OPEN | NFS4_E_LOCKED)))
		return NFS4ERR_ACCESS;
	if (status == NFS4ERR_MLINK && (allowed & NFS4_E_NOSPC))
		return NFS4ERR_NOSPC;
	if (status == NFS4ERR_NOENT && (allowed & NFS4_E_STALE)) /* the object itself was removed */
		return NFS4ERR_STALE;
	if (status == NFS4ERR_NOTSUPP && (allowed & NFS4_E_INVAL))
		return NFS4ERR_INVAL;
	return allowed & NFS4_E_IO ? NFS4ERR_IO : NFS4ERR_SERVERFAULT;
}

int nfs4_status_for(const struct nfs4_op *op, uint32_t minor, int status)
{
	const uint32_t kind = status == NFS4_OK ? 0 : nfs4_status_kind(status);
	uint32_t allowed;

	if (status == NFS4_HELD || status == NFS4_YIELDED)
		return NFS4ERR_DELAY;
	if (kind == 0 || !op)
		return status;
	allowed = minor == 0 ? op->errors.minor_0 : op->errors.later;
	return allowed & kind ? status : instead(status, allowed);
}

static const struct {
	int err;
	int status;
} statuses[] = {
	{ 0, NFS4_OK },
	{ EPERM, NFS4ERR_PERM },
	{ ENOENT, NFS4ERR_NOENT },
	{ EIO, NFS4ERR_IO },
	{ ENXIO, NFS4ERR_NXIO },
	{ EACCES, NFS4ERR_ACCESS },
	{ EEXIST, NFS4ERR_EXIST },
	{ EXDEV, NFS4ERR_XDEV },
	{ ENOTDIR, NFS4ERR_NOTDIR },
	{ EISDIR, NFS4ERR_ISDIR },
	{ EINVAL, NFS4ERR_INVAL },
	{ EFBIG, NFS4ERR_FBIG },
	{ EOVERFLOW, NFS4ERR_FBIG },
	{ ENOSPC, NFS4ERR_NOSPC },
	{ EROFS, NFS4ERR_ROFS },
	{ EMLINK, NFS4ERR_MLINK },
	{ ENAMETOOLONG, NFS4ERR_NAMETOOLONG },
	{ ENOTEMPTY, NFS4ERR_NOTEMPTY },
	{ EDQUOT, NFS4ERR_DQUOT },
	{ ESTALE, NFS4ERR_STALE },
	{ EBADF, NFS4ERR_BADHANDLE },
	{ EOPNOTSUPP, NFS4ERR_NOTSUPP },
	{ ENOSYS, NFS4ERR_NOTSUPP },
	{ ELOOP, NFS4ERR_SYMLINK },
	{ ETXTBSY, NFS4ERR_FILE_OPEN },
	{ EBUSY, NFS4ERR_FILE_OPEN },
	{ ENOMEM, NFS4ERR_DELAY },
	{ RN_EUNNAMED, NFS4ERR_DELAY },
	{ RN_EYIELDS, NFS4ERR_DELAY },
	{ RN_ESOON, NFS4ERR_DELAY },
	{ RN_EFULL, NFS4ERR_DELAY },
	{ RN_EGRACE, NFS4ERR_GRACE },
	{ RN_EGONE, NFS4ERR_DELAY },
	{ RN_ECHANGED, NFS4ERR_DELAY },
	{ EAGAIN, NFS4ERR_DELAY },
	{ EINTR, NFS4ERR_DELAY },
	{ EMFILE, NFS4ERR_DELAY },
	{ ENFILE, NFS4ERR_DELAY },
	{ RN_ESILENT, NFS4ERR_DELAY },
	{ ETIMEDOUT, NFS4ERR_DELAY },
	{ RN_ELEASE, NFS4ERR_DELAY },
	{ ESHUTDOWN, NFS4_CUT_OFF },
	{ ENOTCONN, NFS4_CUT_OFF },
	{ ECONNABORTED, NFS4_CUT_OFF },
	{ RN_EDELEG, NFS4_HELD },
	{ RN_ELABEL, NFS4ERR_BADLABEL },
};

int nfs4_status(uint32_t minor, int rc)
{
	(void)minor;
	for (unsigned i = 0; i < rn_array_size(statuses); i++) {
		if (statuses[i].err == -rc)
			return statuses[i].status;
	}
	return NFS4ERR_SERVERFAULT;
}
