/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/nfs4_status.h"

#include <errno.h>
#include <stdbool.h>

#include "lib/error.h"
#include "lib/util.h"
#include "vfs/file_state.h"

static const struct {
	int err;
	enum nfsstat4 status;
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
	{ RN_EGONE, NFS4ERR_DELAY },
	{ RN_ECHANGED, NFS4ERR_DELAY },
	{ EAGAIN, NFS4ERR_DELAY },
	{ EINTR, NFS4ERR_DELAY },
	{ EMFILE, NFS4ERR_DELAY },
	{ ENFILE, NFS4ERR_DELAY },
	{ ETIMEDOUT, NFS4ERR_DELAY },
	{ RN_ELEASE, NFS4ERR_DELAY },
	{ RN_EDELEG, NFS4_HELD },
	{ RN_ELABEL, NFS4ERR_BADLABEL },
};

int nfs4_status(uint32_t minor, int rc)
{
	(void)minor;
	for (unsigned i = 0; i < rn_array_size(statuses); i++) {
		if (statuses[i].err == -rc)
			return (int)statuses[i].status;
	}
	return NFS4ERR_SERVERFAULT;
}
