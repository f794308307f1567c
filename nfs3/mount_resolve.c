/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "nfs/caller.h"
#include "nfs3/mount_ops.h"
#include "rpc/worker.h"

/* Replaces *node by its entry of that name. */
static int step(struct vfs_ctx *ctx, struct vfs_node **node, const char *name, size_t len)
{
	struct vfs_node *next;
	int rc;

	if (len > NFS3_NAME_MAX)
		return -ENAMETOOLONG;
	rc = vfs_lookup(ctx, *node, name, (uint32_t)len, &next, NULL);
	if (rc < 0)
		return rc;
	vfs_node_put(*node);
	*node = next;
	return 0;
}

static int walk(struct vfs_ctx *ctx, struct vfs_node **node, const char *rest)
{
	struct vfs_attr attr;
	bool moved = false;
	int rc;

	while (*rest) {
		size_t len = strcspn(rest, "/");

		if (len > 0) {
			rc = step(ctx, node, rest, len);
			if (rc < 0)
				return rc;
			moved = true;
		}
		rest += len;
		rest += strspn(rest, "/");
	}
	if (!moved)
		return 0;
	rc = vfs_getattr(ctx, *node, &attr);
	if (rc < 0)
		return rc;
	return S_ISDIR(attr.mode) ? 0 : -ENOTDIR;
}

static int check_path(const struct mnt_path *path)
{
	if (path->len > MNT_PATH_MAX)
		return -ENAMETOOLONG;
	if (path->len == 0)
		return -ENOENT;
	if (path->bytes[0] != '/' || memchr(path->bytes, '\0', path->len))
		return -EINVAL;
	return 0;
}

int mnt_resolve(struct rpc_request *req, const struct mnt_path *path, struct vfs_ctx *ctx,
		struct vfs_node **node)
{
	struct nfs3_server *s = req->program_ctx;
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	const char *rest = "";
	int rc = check_path(path);

	*node = NULL;
	memset(ctx, 0, sizeof(*ctx));
	if (rc < 0)
		return rc;
	rc = s->cfg.exports.by_path(s->cfg.exports.ctx, path->bytes, peer, &ctx->exp, &ctx->access,
				    &rest);
	if (rc < 0) {
		ctx->exp = NULL;
		return rc;
	}
	/* The credential stays all zero: root, whom no squash rule touches here. */
	ctx->vfs = s->cfg.vfs;
	ctx->w = req->worker->vfs;
	rc = nfs_check_port(&ctx->access, req->conn);
	if (rc == 0)
		rc = vfs_root(ctx, node);
	if (rc == 0)
		rc = walk(ctx, node, rest);
	if (rc < 0) {
		vfs_node_put(*node);
		vfs_export_put(ctx->exp);
		*node = NULL;
		ctx->exp = NULL;
	}
	return rc;
}
