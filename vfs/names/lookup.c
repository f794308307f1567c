/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/meta/permission.h"
#include "vfs/names/lookup_prompt.h"
#include "vfs/names/node_open.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

/* "." anywhere, and ".." at the root. */
static int lookup_self(struct vfs_ctx *ctx, struct vfs_node *dir, struct vfs_node **out,
		       struct vfs_attr *attr)
{
	int rc = vfs_access_check(ctx, dir, X_OK);

	if (rc == 0 && attr)
		rc = vfs_getattr(ctx, dir, attr);
	if (rc != 0)
		return rc;
	vfs_node_ref(dir);
	*out = dir;
	return 0;
}

/* A directory that was moved out of the export since it was checked has a parent outside. A private
 * clone of the tree does not let that parent be reached. */
static int lookup_check_parent(struct vfs_ctx *ctx, struct vfs_node *parent)
{
	int rc = ctx->exp->detached ? 0 : vfs_act_as_root(ctx);

	if (rc == 0 && !ctx->exp->detached)
		rc = vfs_export_contains(ctx->exp, parent->path_fd);
	return rc;
}

int vfs_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_node **out, struct vfs_attr *attr)
{
	int rc = vfs_lookup_below(ctx, dir, name, len, out, attr);

	return rc == -ENOENT ? vfs_dir_error(dir, rc) : rc;
}

int vfs_lookup_below(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		     struct vfs_node **out, struct vfs_attr *attr)
{
	struct vfs_name nm;
	bool dotdot;
	int rc = vfs_name_from(&nm, name, len);

	if (rc != 0)
		return rc;
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	if (!vfs_name_is_dots(nm.s) && vfs_node_is_covered(ctx, dir))
		return -EACCES;
	if (vfs_worker_is_prompt(vfs_worker_of(ctx)) &&
	    vfs_lookup_prompt(ctx, dir, &nm, out, attr, &rc))
		return rc;
	rn_fiber_move(ctx->fiber);
	rc = vfs_act_as_caller(ctx);
	if (rc != 0)
		return rc;
	dotdot = vfs_name_is_dotdot(&nm);
	if (vfs_name_is_dot(&nm) || (dotdot && vfs_node_is_root(dir)))
		return lookup_self(ctx, dir, out, attr);
	rc = vfs_node_of_name(ctx, dir, &nm, out, attr);
	if (rc != 0)
		return rc;
	rc = dotdot ? lookup_check_parent(ctx, *out) : 0;
	if (rc != 0)
		vfs_node_put(*out);
	return rc;
}
