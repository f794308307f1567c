/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a handle to a node. Opening by handle is root's alone; whatever it leads to is then checked
 * to be alive and within the export.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/unlinked.h"
#include "vfs/node/cache.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

static int fh_parse(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_handle *out)
{
	int rc = vfs_handle_parse(fh, vfs->cfg.handle_mac, out);

	if (rc != 0)
		atomic_fetch_add_explicit(&vfs->bad_handles, 1, memory_order_relaxed);
	return rc;
}

int vfs_fh_export_id(struct vfs *vfs, const struct vfs_fh *fh, uint32_t *id)
{
	struct vfs_handle h;
	int rc = fh_parse(vfs, fh, &h);

	if (rc == 0)
		*id = h.export_id;
	return rc;
}

/* One file has one handle: without a MAC a peer may make up others that the kernel takes too (ext4
 * accepts generation 0 for any). */
static int check_canonical(struct vfs_ctx *ctx, int fd, const struct vfs_handle *given)
{
	struct vfs_handle h;
	uint64_t mnt_id;
	int rc;

	if (ctx->vfs->cfg.handle_mac)
		return 0;
	rc = vfs_handle_of(fd, "", &h, &mnt_id);
	if (rc != 0)
		return rc;
	return h.type == given->type && h.len == given->len &&
			       memcmp(h.bytes, given->bytes, h.len) == 0
		       ? 0
		       : -ESTALE;
}

static int check_place(struct vfs_ctx *ctx, int fd, const struct vfs_fh *fh, uint32_t type)
{
	const struct vfs_export *exp = ctx->exp;

	if (type == S_IFDIR)
		return vfs_export_contains(exp, fd);
	if (exp->root_type != S_IFREG)
		return 0;
	return fh->len == exp->root_fh.len && memcmp(fh->data, exp->root_fh.data, fh->len) == 0
		       ? 0
		       : -ESTALE;
}

static int check_opened(struct vfs_ctx *ctx, struct vfs_node_parts *p, const struct vfs_handle *h)
{
	struct statx sx;
	int rc;

	if (statx(p->path_fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_NLINK | STATX_INO, &sx) != 0)
		return -errno;
	p->type = sx.stx_mode & S_IFMT;
	p->dev = vfs_device_of(&sx);
	p->ino = sx.stx_ino;
	p->link = vfs_unlinked_found(ctx->vfs, p->dev, p->fh, sx.stx_nlink);
	if (p->link == VFS_GONE)
		return -ESTALE;
	rc = check_canonical(ctx, p->path_fd, h);
	return rc == 0 ? check_place(ctx, p->path_fd, p->fh, p->type) : rc;
}

/* The kernel's error for a handle that it cannot resolve depends on the file system. */
static int open_error(int error)
{
	return error == -EINVAL || error == -ENOENT || error == -EOVERFLOW ? -ESTALE : error;
}

static int open_in_mount(struct vfs_ctx *ctx, struct vfs_mount *mnt, const struct vfs_fh *fh,
			 const struct vfs_handle *h, struct vfs_node **out)
{
	struct vfs_node_parts parts = { .exp = ctx->exp, .mnt = mnt, .fh = fh };
	int rc;

	/* A node's handle was made or checked under the key of its mount, which never changes: the
	 * same handle needs no second check of its MAC. */
	*out = vfs_cache_find(ctx->vfs, mnt, fh);
	if (*out)
		return 0;
	rn_fiber_move(ctx->fiber);
	rc = vfs_handle_check(fh, vfs_mount_mac(ctx->vfs, mnt));
	if (rc == 0)
		rc = vfs_act_as_root(ctx);
	if (rc != 0)
		return rc;
	parts.path_fd = vfs_fd_open_handle(ctx->vfs, mnt->fd, h);
	if (parts.path_fd < 0)
		return open_error(parts.path_fd);
	rc = check_opened(ctx, &parts, h);
	if (rc != 0) {
		vfs_fd_close(ctx->vfs, parts.path_fd);
		return rc;
	}
	return vfs_cache_add(ctx->vfs, &parts, out);
}

static int fh_find_mount(struct vfs_ctx *ctx, uint32_t id, struct vfs_mount **out)
{
	int rc = 0;

	/* A submount may have to be looked for. */
	if (id != 0) {
		rn_fiber_move(ctx->fiber);
		rc = vfs_act_as_root(ctx);
	}
	return rc == 0 ? vfs_mount_by_id(ctx->exp, id, out) : rc;
}

/* The packed handle's other form, with a MAC of its own once the MAC of the packed one has been
 * checked. */
static int unpack(struct vfs_ctx *ctx, const struct vfs_mount *mnt,
		  const struct vfs_packed_fh *packed, const struct vfs_handle *h,
		  struct vfs_fh *out)
{
	vfs_handle_key key = vfs_mount_mac(ctx->vfs, mnt);
	int rc = vfs_packed_check(packed, key);

	return rc == 0 ? vfs_handle_encode(h, key, out) : rc;
}

static int open_parsed(struct vfs_ctx *ctx, const struct vfs_handle *h, const struct vfs_fh *fh,
		       const struct vfs_packed_fh *packed, struct vfs_node **out)
{
	struct vfs_fh unpacked;
	struct vfs_mount *mnt;
	int rc = h->export_id == ctx->exp->id ? fh_find_mount(ctx, h->submount_id, &mnt) : -ESTALE;

	if (rc == 0) {
		if (packed)
			rc = unpack(ctx, mnt, packed, h, &unpacked);
		if (rc == 0)
			rc = open_in_mount(ctx, mnt, packed ? &unpacked : fh, h, out);
		vfs_mount_put(mnt);
	}
	if (rc == -ESTALE)
		atomic_fetch_add_explicit(&ctx->vfs->stale, 1, memory_order_relaxed);
	return rc;
}

int vfs_fh_open(struct vfs_ctx *ctx, const struct vfs_fh *fh, struct vfs_node **out)
{
	struct vfs_handle h;
	int rc = fh_parse(ctx->vfs, fh, &h);

	return rc == 0 ? open_parsed(ctx, &h, fh, NULL, out) : rc;
}

static int parse_packed(struct vfs *vfs, const struct vfs_packed_fh *fh, struct vfs_handle *out)
{
	int rc = vfs_packed_parse(fh, vfs->cfg.handle_mac, out);

	if (rc != 0)
		atomic_fetch_add_explicit(&vfs->bad_handles, 1, memory_order_relaxed);
	return rc;
}

int vfs_packed_export_id(struct vfs *vfs, const struct vfs_packed_fh *fh, uint32_t *id)
{
	struct vfs_handle h;
	int rc = parse_packed(vfs, fh, &h);

	if (rc == 0)
		*id = h.export_id;
	return rc;
}

int vfs_packed_open(struct vfs_ctx *ctx, const struct vfs_packed_fh *fh, struct vfs_node **out)
{
	struct vfs_handle h;
	int rc = parse_packed(ctx->vfs, fh, &h);

	return rc == 0 ? open_parsed(ctx, &h, NULL, fh, out) : rc;
}

static int fh_pack(const struct vfs *vfs, const struct vfs_mount *mnt, const struct vfs_fh *fh,
		   struct vfs_packed_fh *out)
{
	struct vfs_handle h;
	int rc = vfs_handle_parse(fh, vfs->cfg.handle_mac, &h);

	return rc == 0 ? vfs_packed_encode(&h, vfs_mount_mac(vfs, mnt), out) : rc;
}

int vfs_packed_of(const struct vfs_node *n, struct vfs_packed_fh *out)
{
	return fh_pack(n->exp->vfs, n->mnt, &n->fh, out);
}

bool vfs_export_packs(const struct vfs_export *exp)
{
	struct vfs_packed_fh packed;

	return fh_pack(exp->vfs, exp->root_mnt, &exp->root_fh, &packed) == 0;
}

int vfs_root(struct vfs_ctx *ctx, struct vfs_node **out)
{
	return vfs_fh_open(ctx, &ctx->exp->root_fh, out);
}
