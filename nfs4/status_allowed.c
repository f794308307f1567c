/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of a file system's failures an operation may answer. */
#include "lib/checked.h"
#include "nfs4/status.h"

/* Statuses that come from a file system's failures, but for those that any operation may answer. */
enum {
	PERM = 1 << 0,
	NOENT = 1 << 1,
	IO = 1 << 2,
	NXIO = 1 << 3,
	ACCESS = 1 << 4,
	EXIST = 1 << 5,
	XDEV = 1 << 6,
	NOTDIR = 1 << 7,
	ISDIR = 1 << 8,
	INVAL = 1 << 9,
	FBIG = 1 << 10,
	NOSPC = 1 << 11, /* and DQUOT, which always go together */
	ROFS = 1 << 12,
	MLINK = 1 << 13,
	NAMETOOLONG = 1 << 14,
	NOTEMPTY = 1 << 15,
	STALE = 1 << 16,
	NOTSUPP = 1 << 17,
	SYMLINK = 1 << 18,
	FILE_OPEN = 1 << 19,
	LOCKED = 1 << 21,    /* by a share */
	BADHANDLE = 1 << 20, /* only the one that puts it says so */
};

static const struct {
	int status;
	unsigned kind;
} kinds[] = {
	{ NFS4ERR_PERM, PERM },
	{ NFS4ERR_NOENT, NOENT },
	{ NFS4ERR_IO, IO },
	{ NFS4ERR_NXIO, NXIO },
	{ NFS4ERR_ACCESS, ACCESS },
	{ NFS4ERR_EXIST, EXIST },
	{ NFS4ERR_XDEV, XDEV },
	{ NFS4ERR_NOTDIR, NOTDIR },
	{ NFS4ERR_ISDIR, ISDIR },
	{ NFS4ERR_INVAL, INVAL },
	{ NFS4ERR_FBIG, FBIG },
	{ NFS4ERR_NOSPC, NOSPC },
	{ NFS4ERR_DQUOT, NOSPC },
	{ NFS4ERR_ROFS, ROFS },
	{ NFS4ERR_MLINK, MLINK },
	{ NFS4ERR_NAMETOOLONG, NAMETOOLONG },
	{ NFS4ERR_NOTEMPTY, NOTEMPTY },
	{ NFS4ERR_STALE, STALE },
	{ NFS4ERR_NOTSUPP, NOTSUPP },
	{ NFS4ERR_SYMLINK, SYMLINK },
	{ NFS4ERR_FILE_OPEN, FILE_OPEN },
	{ NFS4ERR_LOCKED, LOCKED },
	{ NFS4ERR_BADHANDLE, BADHANDLE },
};

static unsigned kind_of(int status)
{
	for (unsigned i = 0; i < rn_array_size(kinds); i++) {
		if (kinds[i].status == status)
			return kinds[i].kind;
	}
	return 0;
}

#define ANY (ACCESS | STALE)
#define NAME (NOENT | NOTDIR | INVAL | NAMETOOLONG)
#define FILE_ONLY (ISDIR | SYMLINK | INVAL)

/*
 * What of them an operation may answer (RFC 7530 section 13.2; RFC 8881 section 15.2 and RFC 7862
 * section 11.2): in all minor versions, only in 0, only in later ones.
 */
/* clang-format off */
static const struct {
	uint8_t opnum;
	unsigned both, old, later;
} tables[] = {
	{ OP_ACCESS, ANY | IO | INVAL, 0, 0 },
	{ OP_CLOSE, STALE, ISDIR | INVAL, 0 },
	{ OP_COMMIT, ANY | IO | ISDIR | SYMLINK, INVAL | ROFS, 0 },
	{ OP_CREATE, ANY | IO | (NAME & ~NOENT) | PERM | EXIST | NOSPC | ROFS, 0, MLINK },
	{ OP_GETATTR, ANY | IO | INVAL, 0, 0 },
	{ OP_LINK, ANY | IO | (NAME & ~NOENT) | EXIST | XDEV | ISDIR | NOSPC | ROFS | MLINK | NOTSUPP | FILE_OPEN, NOENT, SYMLINK },
	{ OP_LOCK, ANY | ISDIR | INVAL, 0, ROFS | SYMLINK },
	{ OP_LOCKT, ANY | ISDIR | INVAL, 0, ROFS | SYMLINK },
	{ OP_LOCKU, ANY | INVAL, ISDIR, 0 },
	{ OP_LOOKUP, ANY | IO | NAME | SYMLINK, 0, 0 },
	{ OP_LOOKUPP, ANY | IO | NOENT | NOTDIR | SYMLINK, 0, 0 },
	{ OP_NVERIFY, ANY | IO | INVAL, 0, 0 },
	{ OP_OPEN, ANY | IO | NAME | FILE_ONLY | PERM | EXIST | FBIG | NOSPC | ROFS, NOTSUPP, 0 },
	{ OP_OPEN_DOWNGRADE, STALE | INVAL | ROFS, 0, 0 },
	{ OP_PUTFH, STALE | BADHANDLE, 0, 0 },
	{ OP_PUTPUBFH, 0, 0, 0 },
	{ OP_PUTROOTFH, 0, 0, 0 },
	{ OP_READ, ANY | IO | LOCKED | FILE_ONLY, 0, 0 },
	{ OP_READDIR, ANY | IO | NOTDIR | INVAL, 0, 0 },
	{ OP_READLINK, ANY | IO | INVAL, ISDIR | NOTSUPP, 0 },
	{ OP_REMOVE, ANY | IO | NAME | ROFS | NOTEMPTY | FILE_OPEN, 0, 0 },
	{ OP_RENAME, ANY | IO | NAME | EXIST | XDEV | NOSPC | ROFS | NOTEMPTY | FILE_OPEN, 0, MLINK },
	{ OP_SECINFO, ANY | NAME, 0, 0 },
	{ OP_SETATTR, ANY | IO | LOCKED | PERM | INVAL | FBIG | NOSPC | ROFS, ISDIR, 0 },
	{ OP_VERIFY, ANY | IO | INVAL, 0, 0 },
	{ OP_WRITE, ANY | IO | LOCKED | FILE_ONLY | FBIG | NOSPC | ROFS, NXIO, 0 },
	{ OP_SECINFO_NO_NAME, ANY | NOENT | NOTDIR | INVAL | NOTSUPP, 0, 0 },
	{ OP_ALLOCATE, ANY | IO | FILE_ONLY | FBIG | NOSPC | ROFS | NOTSUPP, 0, 0 },
	{ OP_DEALLOCATE, ANY | IO | FILE_ONLY | FBIG | ROFS | NOTSUPP, 0, 0 },
	{ OP_IO_ADVISE, ANY | IO | FILE_ONLY | FBIG | NOTSUPP, 0, 0 },
	/* NXIO: section 15.11.3, though the table has it not. */
	{ OP_SEEK, ANY | IO | LOCKED | FILE_ONLY | NXIO | NOTSUPP, 0, 0 },
};
/* clang-format on */

/* The one of those it may answer that says most of what has happened. */
static int instead(int status, unsigned may)
{
	if ((may & ACCESS) && (kind_of(status) & (PERM | FILE_OPEN | LOCKED)))
		return NFS4ERR_ACCESS;
	if (status == NFS4ERR_MLINK && (may & NOSPC))
		return NFS4ERR_NOSPC;
	if (status == NFS4ERR_NOENT && (may & STALE)) /* the object itself has gone */
		return NFS4ERR_STALE;
	if (status == NFS4ERR_NOTSUPP && (may & INVAL))
		return NFS4ERR_INVAL;
	return may & IO ? NFS4ERR_IO : NFS4ERR_SERVERFAULT;
}

int nfs4_status_for(uint32_t opnum, uint32_t minor, int status)
{
	const unsigned kind = status == NFS4_OK ? 0 : kind_of(status);
	unsigned may;

	for (unsigned i = 0; kind != 0 && i < rn_array_size(tables); i++) {
		if (tables[i].opnum != opnum)
			continue;
		may = tables[i].both | (minor == 0 ? tables[i].old : tables[i].later);
		return may & kind ? status : instead(status, may);
	}
	return status;
}
