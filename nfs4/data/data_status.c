/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nfs4/data/data_status.h"

int nfs4_data_status(const struct nfs4_compound *c, int rc)
{
	/* ETXTBSY: a running program cannot be written by any user. */
	return rc == -ETXTBSY || rc == -EPERM ? NFS4ERR_ACCESS : nfs4_status(c->minor, rc);
}
