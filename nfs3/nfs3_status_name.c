/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nfs3_server.h"

#include <stddef.h>

#include "lib/util.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nfs3_proto.h"

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
