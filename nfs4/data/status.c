/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nfs4/data/status.h"

int nfs4_data_status(const struct nfs4_compound *c, int rc)
{
	/* A program that runs is not written, by whoever it is. */
	return rc == -ETXTBSY || rc == -EPERM ? NFS4ERR_ACCESS : nfs4_status(c->minor, rc);
}
