/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_state.h"
#include "vfs/packed.h"

static bool nfs2_log_unserved_one(void *arg, struct vfs_export *exp)
{
	const struct rn_logger *log = arg;

	if (!vfs_export_packs(exp))
		rn_notice(log,
			  "export %s: not served by NFSv2, whose handles of 32 bytes cannot name "
			  "the files of its "
			  "file system; clients can use NFSv3",
			  vfs_export_path(exp));
	return true;
}

void nfs2_log_unserved(const struct nfs3_server *s, const struct rn_logger *log)
{
	const struct vfs_exports *exports = &s->cfg.exports;

	exports->each(exports->ctx, nfs2_log_unserved_one, (void *)log);
}
