/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two steps. One table gives the status that says what happened. Then each procedure has the set of
 * statuses that it may answer: those of its ERRORS section in RFC 1813, some for all, and those few
 * that the RFC forgot and clients know what to do with (they are named at the rows). What is
 * outside the set is answered IO.
 *
 * For all: IO, STALE, BADHANDLE, SERVERFAULT; ACCES, as the RFC has no other word for a client that
 * the export does not admit; JUKEBOX, which no procedure lists and section 2.6 means for every one
 * of them.
 */
#include "nfs3/status.h"

#include <errno.h>

#include "vfs/file_state.h"

/* A set of statuses as bits: statuses below 32 have bits 0..31, the others the following. */
#define BIT(status) (1ull << (status))
#define BIT_NAMETOOLONG (1ull << 32)
#define BIT_NOTEMPTY (1ull << 33)
#define BIT_DQUOT (1ull << 34)
#define BIT_NOT_SYNC (1ull << 35)
#define BIT_BAD_COOKIE (1ull << 36)
#define BIT_NOTSUPP (1ull << 37)
#define BIT_TOOSMALL (1ull << 38)
#define BIT_BADTYPE (1ull << 39)
#define BIT_ALL (1ull << 40)

#define PERM BIT(NFS3ERR_PERM)
#define NOENT BIT(NFS3ERR_NOENT)
#define NXIO BIT(NFS3ERR_NXIO)
#define EXIST BIT(NFS3ERR_EXIST)
#define XDEV BIT(NFS3ERR_XDEV)
#define NOTDIR BIT(NFS3ERR_NOTDIR)
#define ISDIR BIT(NFS3ERR_ISDIR)
#define INVAL BIT(NFS3ERR_INVAL)
#define FBIG BIT(NFS3ERR_FBIG)
#define ROFS BIT(NFS3ERR_ROFS)
#define MLINK BIT(NFS3ERR_MLINK)
#define SPACE (BIT(NFS3ERR_NOSPC) | BIT_DQUOT)

/* CREATE, MKDIR, SYMLINK and MKNOD list the same. Extra: PERM (an immutable directory), INVAL
 * (values that no file can have), NOENT (the directory was removed, and still has a handle), MLINK
 * (a directory full of directories). */
#define MAKE                                                                                       \
	(EXIST | NOTDIR | SPACE | ROFS | BIT_NAMETOOLONG | BIT_NOTSUPP | PERM | INVAL | NOENT |    \
	 MLINK)

static const uint64_t allowed[NFSPROC3_COUNT] = {
	[NFSPROC3_GETATTR] = 0,
	[NFSPROC3_SETATTR] = PERM | INVAL | SPACE | ROFS | BIT_NOT_SYNC | FBIG /* extra: size */,
	[NFSPROC3_LOOKUP] = NOENT | NOTDIR | BIT_NAMETOOLONG,
	[NFSPROC3_ACCESS] = 0,
	[NFSPROC3_READLINK] = INVAL | BIT_NOTSUPP,
	[NFSPROC3_READ] = NXIO | INVAL | ISDIR /* extra */,
	/* Extra for WRITE: PERM (append-only and sealed files), NXIO as in READ, ISDIR. */
	[NFSPROC3_WRITE] = FBIG | SPACE | ROFS | INVAL | PERM | NXIO | ISDIR,
	[NFSPROC3_CREATE] = MAKE | ISDIR /* extra: UNCHECKED on a directory */ | FBIG,
	[NFSPROC3_MKDIR] = MAKE,
	[NFSPROC3_SYMLINK] = MAKE,
	[NFSPROC3_MKNOD] = MAKE | BIT_BADTYPE,
	/* Extra: PERM (sticky directories), ISDIR (a directory), INVAL ("."), NOTEMPTY (".."). */
	[NFSPROC3_REMOVE] =
		NOENT | NOTDIR | BIT_NAMETOOLONG | ROFS | PERM | ISDIR | INVAL | BIT_NOTEMPTY,
	/* Extra: PERM (sticky directories). */
	[NFSPROC3_RMDIR] = NOENT | INVAL | EXIST | NOTDIR | BIT_NAMETOOLONG | ROFS | BIT_NOTEMPTY |
			   BIT_NOTSUPP | PERM,
	/* Extra: PERM (sticky directories). */
	[NFSPROC3_RENAME] = NOENT | EXIST | XDEV | NOTDIR | ISDIR | INVAL | SPACE | ROFS | MLINK |
			    BIT_NAMETOOLONG | BIT_NOTEMPTY | BIT_NOTSUPP | PERM,
	/* Extra: PERM (directories, protected links), NOENT (the directory was removed), ISDIR. */
	[NFSPROC3_LINK] = EXIST | XDEV | NOTDIR | INVAL | SPACE | ROFS | MLINK | BIT_NAMETOOLONG |
			  BIT_NOTSUPP | PERM | NOENT | ISDIR,
	[NFSPROC3_READDIR] = NOTDIR | BIT_BAD_COOKIE | BIT_TOOSMALL,
	[NFSPROC3_READDIRPLUS] = NOTDIR | BIT_BAD_COOKIE | BIT_TOOSMALL | BIT_NOTSUPP,
	[NFSPROC3_FSSTAT] = 0,
	[NFSPROC3_FSINFO] = 0,
	[NFSPROC3_PATHCONF] = 0,
	/* Extra: a late write may fail for space only when it is written back; INVAL (no regular
	   file). */
	[NFSPROC3_COMMIT] = SPACE | FBIG | INVAL | ISDIR,
};

static const struct {
	int err;
	enum nfsstat3 status;
	uint64_t bit;
} meaning[] = {
	{ 0, NFS3_OK, BIT_ALL },
	{ EPERM, NFS3ERR_PERM, PERM },
	{ ENOENT, NFS3ERR_NOENT, NOENT },
	{ EIO, NFS3ERR_IO, BIT_ALL },
	{ ENXIO, NFS3ERR_NXIO, NXIO },
	{ ENODEV, NFS3ERR_NXIO, NXIO },
	{ EACCES, NFS3ERR_ACCES, BIT_ALL },
	{ ETXTBSY, NFS3ERR_ACCES, BIT_ALL },
	{ EEXIST, NFS3ERR_EXIST, EXIST },
	{ EXDEV, NFS3ERR_XDEV, XDEV },
	{ ENOTDIR, NFS3ERR_NOTDIR, NOTDIR },
	{ ELOOP, NFS3ERR_NOTDIR, NOTDIR }, /* a symbolic link where a directory is needed */
	{ EISDIR, NFS3ERR_ISDIR, ISDIR },
	{ EINVAL, NFS3ERR_INVAL, INVAL },
	{ EFBIG, NFS3ERR_FBIG, FBIG },
	{ EOVERFLOW, NFS3ERR_FBIG, FBIG },
	{ ENOSPC, NFS3ERR_NOSPC, SPACE },
	{ EROFS, NFS3ERR_ROFS, ROFS },
	{ EMLINK, NFS3ERR_MLINK, MLINK },
	{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG, BIT_NAMETOOLONG },
	{ ENOTEMPTY, NFS3ERR_NOTEMPTY, BIT_NOTEMPTY },
	{ EBUSY, NFS3ERR_ACCES, BIT_ALL }, /* a mount point */
	/* Denied by another client's open. Not JUKEBOX: the denial may last for days, and a client
	 * that waits for it hangs, while one that is refused tells its user. */
	{ VFS_ESHARE, NFS3ERR_ACCES, BIT_ALL },
	{ EDQUOT, NFS3ERR_DQUOT, SPACE },
	{ ESTALE, NFS3ERR_STALE, BIT_ALL },
	{ EBADF, NFS3ERR_BADHANDLE, BIT_ALL },
	{ EDOM, NFS3ERR_NOT_SYNC, BIT_NOT_SYNC },
	{ EOPNOTSUPP, NFS3ERR_NOTSUPP, BIT_NOTSUPP },
	{ ENOSYS, NFS3ERR_NOTSUPP, BIT_NOTSUPP },
	{ EAGAIN, NFS3ERR_JUKEBOX, BIT_ALL },
	{ ENOMEM, NFS3ERR_JUKEBOX, BIT_ALL },
	{ EMFILE, NFS3ERR_JUKEBOX, BIT_ALL },
	{ ENFILE, NFS3ERR_JUKEBOX, BIT_ALL },
	{ EINTR, NFS3ERR_JUKEBOX, BIT_ALL },
	{ ETIMEDOUT, NFS3ERR_JUKEBOX, BIT_ALL },
	{ EFAULT, NFS3ERR_SERVERFAULT, BIT_ALL },
	{ NFS3_EBADCOOKIE, NFS3ERR_BAD_COOKIE, BIT_BAD_COOKIE },
	{ NFS3_ETOOSMALL, NFS3ERR_TOOSMALL, BIT_TOOSMALL },
	{ NFS3_EBADTYPE, NFS3ERR_BADTYPE, BIT_BADTYPE },
};

enum nfsstat3 nfs3_status(uint32_t proc, int err)
{
	for (unsigned i = 0; i < sizeof(meaning) / sizeof(meaning[0]); i++) {
		if (meaning[i].err != -err)
			continue;
		if (meaning[i].bit == BIT_ALL ||
		    (proc < NFSPROC3_COUNT && allowed[proc] & meaning[i].bit))
			return meaning[i].status;
		break;
	}
	return NFS3ERR_IO;
}
