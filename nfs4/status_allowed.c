/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces file system errors that the RFCs do not list for an operation. */
#include "lib/util.h"
#include "nfs4/op_table.h"
#include "nfs4/nfs4_status.h"

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

	if (status == NFS4_HELD)
		return NFS4ERR_DELAY;
	if (kind == 0 || !op)
		return status;
	allowed = minor == 0 ? op->errors.minor_0 : op->errors.later;
	return allowed & kind ? status : instead(status, allowed);
}
