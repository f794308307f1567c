/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nfs4/data/ops.h"

/* What the tables of RFC 7530 section 13.2, RFC 8881 section 15.2 and RFC 7862 section 11.2 leave
 * of the errors that a file system may have. */
static bool may_answer(const struct nfs4_compound *c, int status)
{
	const uint32_t op = c->opnum;
	const bool takes_space = op == OP_WRITE || op == OP_ALLOCATE;

	switch (status) {
	case NFS4_OK:
	case NFS4ERR_ACCESS:
	case NFS4ERR_DELAY:
	case NFS4ERR_IO:
	case NFS4ERR_SERVERFAULT:
	case NFS4ERR_STALE:
		return true;
	case NFS4ERR_ISDIR:
		return op != OP_READLINK || c->minor == 0;
	case NFS4ERR_SYMLINK:
		return op != OP_READLINK;
	case NFS4ERR_INVAL:
		return op != OP_COMMIT || c->minor == 0;
	case NFS4ERR_NOSPC:
	case NFS4ERR_DQUOT:
		return takes_space;
	case NFS4ERR_FBIG:
		return takes_space || op == OP_DEALLOCATE;
	case NFS4ERR_ROFS:
		return takes_space || op == OP_DEALLOCATE || (op == OP_COMMIT && c->minor == 0);
	case NFS4ERR_NXIO:
		return op == OP_SEEK || (c->minor == 0 && op == OP_WRITE);
	case NFS4ERR_NOTSUPP:
		return op >= OP_ALLOCATE;
	default:
		return false;
	}
}

int nfs4_data_status(const struct nfs4_compound *c, int rc)
{
	/* A program that runs is not written, by whoever it is. */
	int status = rc == -ETXTBSY || rc == -EPERM ? NFS4ERR_ACCESS : nfs4_status(c->minor, rc);

	return may_answer(c, status) ? status : NFS4ERR_IO;
}
