/* SPDX-License-Identifier: BSD-2-Clause */
/* The status that tells what has happened, or IO where the procedure may not answer that one
 * (enum nfs3_proc_error). */
#include <errno.h>
#include <stddef.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "vfs/file_state.h"

static const struct {
	int err;
	enum nfsstat3 status;
	uint32_t bit; /* enum nfs3_proc_error */
} meaning[] = {
	{ 0, NFS3_OK, NFS3_E_ANY },
	{ EPERM, NFS3ERR_PERM, NFS3_E_PERM },
	{ ENOENT, NFS3ERR_NOENT, NFS3_E_NOENT },
	{ EIO, NFS3ERR_IO, NFS3_E_ANY },
	{ ENXIO, NFS3ERR_NXIO, NFS3_E_NXIO },
	{ ENODEV, NFS3ERR_NXIO, NFS3_E_NXIO },
	{ EACCES, NFS3ERR_ACCES, NFS3_E_ANY },
	{ ETXTBSY, NFS3ERR_ACCES, NFS3_E_ANY },
	{ EEXIST, NFS3ERR_EXIST, NFS3_E_EXIST },
	{ EXDEV, NFS3ERR_XDEV, NFS3_E_XDEV },
	{ ENOTDIR, NFS3ERR_NOTDIR, NFS3_E_NOTDIR },
	{ ELOOP, NFS3ERR_NOTDIR, NFS3_E_NOTDIR }, /* a symbolic link where a directory is needed */
	{ EISDIR, NFS3ERR_ISDIR, NFS3_E_ISDIR },
	{ EINVAL, NFS3ERR_INVAL, NFS3_E_INVAL },
	{ EFBIG, NFS3ERR_FBIG, NFS3_E_FBIG },
	{ EOVERFLOW, NFS3ERR_FBIG, NFS3_E_FBIG },
	{ ENOSPC, NFS3ERR_NOSPC, NFS3_E_SPACE },
	{ EROFS, NFS3ERR_ROFS, NFS3_E_ROFS },
	{ EMLINK, NFS3ERR_MLINK, NFS3_E_MLINK },
	{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG, NFS3_E_NAMETOOLONG },
	{ ENOTEMPTY, NFS3ERR_NOTEMPTY, NFS3_E_NOTEMPTY },
	{ EBUSY, NFS3ERR_ACCES, NFS3_E_ANY }, /* a mount point */
	/* Denied by another client's open. Not JUKEBOX: the denial may last for days, and a client
	 * that waits for it hangs, while one that is refused tells its user. */
	{ RN_ESHARE, NFS3ERR_ACCES, NFS3_E_ANY },
	{ RN_EDELEG, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ EDQUOT, NFS3ERR_DQUOT, NFS3_E_SPACE },
	{ ESTALE, NFS3ERR_STALE, NFS3_E_ANY },
	{ EBADF, NFS3ERR_BADHANDLE, NFS3_E_ANY },
	{ EDOM, NFS3ERR_NOT_SYNC, NFS3_E_NOT_SYNC },
	{ EOPNOTSUPP, NFS3ERR_NOTSUPP, NFS3_E_NOTSUPP },
	{ ENOSYS, NFS3ERR_NOTSUPP, NFS3_E_NOTSUPP },
	{ RN_EUNNAMED, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_EYIELDS, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_EYIELDED, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_ESOON, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_ELEASE, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_EGRACE, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_EFULL, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_ECHANGED, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ EAGAIN, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ ENOMEM, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ EMFILE, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ ENFILE, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ EINTR, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ RN_ESILENT, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ ETIMEDOUT, NFS3ERR_JUKEBOX, NFS3_E_ANY },
	{ EFAULT, NFS3ERR_SERVERFAULT, NFS3_E_ANY },
	{ NFS3_EBADCOOKIE, NFS3ERR_BAD_COOKIE, NFS3_E_BAD_COOKIE },
	{ NFS3_ETOOSMALL, NFS3ERR_TOOSMALL, NFS3_E_TOOSMALL },
	{ NFS3_EBADTYPE, NFS3ERR_BADTYPE, NFS3_E_BADTYPE },
};

enum nfsstat3 nfs3_status(const struct nfs3_proc *proc, int rc)
{
	for (unsigned i = 0; i < rn_array_size(meaning); i++) {
		if (meaning[i].err == -rc)
			return proc->errors & meaning[i].bit ? meaning[i].status : NFS3ERR_IO;
	}
	return NFS3ERR_IO;
}

#define ROW(name)                                                                                  \
	{                                                                                          \
		name, #name                                                                        \
	}
struct status {
	uint32_t status;
	const char *name;
};

/* clang-format off */
static const struct status nfs_names[] = {
	ROW(NFS3_OK),
	ROW(NFS3ERR_PERM),
	ROW(NFS3ERR_NOENT),
	ROW(NFS3ERR_IO),
	ROW(NFS3ERR_NXIO),
	ROW(NFS3ERR_ACCES),
	ROW(NFS3ERR_EXIST),
	ROW(NFS3ERR_XDEV),
	ROW(NFS3ERR_NODEV),
	ROW(NFS3ERR_NOTDIR),
	ROW(NFS3ERR_ISDIR),
	ROW(NFS3ERR_INVAL),
	ROW(NFS3ERR_FBIG),
	ROW(NFS3ERR_NOSPC),
	ROW(NFS3ERR_ROFS),
	ROW(NFS3ERR_MLINK),
	ROW(NFS3ERR_NAMETOOLONG),
	ROW(NFS3ERR_NOTEMPTY),
	ROW(NFS3ERR_DQUOT),
	ROW(NFS3ERR_STALE),
	ROW(NFS3ERR_REMOTE),
	ROW(NFS3ERR_BADHANDLE),
	ROW(NFS3ERR_NOT_SYNC),
	ROW(NFS3ERR_BAD_COOKIE),
	ROW(NFS3ERR_NOTSUPP),
	ROW(NFS3ERR_TOOSMALL),
	ROW(NFS3ERR_SERVERFAULT),
	ROW(NFS3ERR_BADTYPE),
	ROW(NFS3ERR_JUKEBOX),
};

static const struct status nlm_names[] = {
	ROW(NLM4_GRANTED),
	ROW(NLM4_DENIED),
	ROW(NLM4_DENIED_NOLOCKS),
	ROW(NLM4_BLOCKED),
	ROW(NLM4_DENIED_GRACE_PERIOD),
	ROW(NLM4_ROFS),
	ROW(NLM4_STALE_FH),
	ROW(NLM4_FBIG),
	ROW(NLM4_FAILED),
};
/* clang-format on */

static const char *nfs3_find_status_name(const struct status *names, size_t n, uint32_t status)
{
	for (size_t i = 0; i < n; i++) {
		if (names[i].status == status)
			return names[i].name;
	}
	return NULL;
}

const char *nfs3_status_name(uint32_t status)
{
	return nfs3_find_status_name(nfs_names, rn_array_size(nfs_names), status);
}

const char *nlm_status_name(uint32_t status)
{
	return nfs3_find_status_name(nlm_names, rn_array_size(nlm_names), status);
}
