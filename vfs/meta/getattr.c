/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/stat.h>

#include "vfs/deleg.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/dir_change.h"

/* Attributes need no permission: whoever has the handle may see them. */
int vfs_getattr(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *out)
{
	int64_t clock;
	struct statx sx;
	int rc;

	vfs_dir_keep_change(ctx, n);
	clock = vfs_change_clock(vfs_changes_of(n->mnt, n->type));
	rc = vfs_node_stat(n, &sx);
	if (rc != 0)
		return rc;
	vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, out);
	/* A holder takes what it is told with the return of its delegation for its own doing. So the value is another afterwards. */
	if (vfs_deleg_is_late(ctx, n))
		out->change--;
	return 0;
}
