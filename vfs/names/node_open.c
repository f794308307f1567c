/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/node_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/hold/unlinked.h"
#include "vfs/meta/attr.h"
#include "vfs/node/cache.h"
#include "vfs/share.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

/*
 * From a handle to a node. Opening by handle is root's alone; whatever it leads to is then checked
 * to be alive and within the export.
 */

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
	return vfs_doubt(ctx, rc);
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

/* Times that a name is looked up again: with another program that replaces it all the time, every second try may fail. */
#define REPLACED_MOST 100

/* The mount and the file handle of what name is in dirfd, or of dirfd itself for "". */
static int node_identify(struct vfs_ctx *ctx, int dirfd, const char *name, struct vfs_mount **mnt,
			 struct vfs_fh *fh)
{
	struct vfs_handle h;
	uint64_t mnt_id;
	int rc = vfs_handle_of(dirfd, name, &h, &mnt_id);

	if (rc == -EOPNOTSUPP)
		return -EACCES; /* a mount in the export that has no handles: it is not shown */
	if (rc == 0 && mnt_id != ctx->exp->root_mnt->mnt_id)
		rc = vfs_act_as_root(
			ctx); /* submounts may lie behind directories closed to the caller */
	if (rc != 0)
		return rc;
	if (vfs_mount_by_mnt_id(ctx->exp, mnt_id, mnt) != 0)
		return -EACCES;
	h.export_id = ctx->exp->id;
	h.submount_id = (*mnt)->id;
	rc = vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, *mnt), fh);
	if (rc != 0)
		vfs_mount_put(*mnt);
	return rc;
}

/* made: true if the inode may have lost its names already. */
static int node_of_fd(struct vfs_ctx *ctx, int fd, bool made, struct vfs_node **out,
		      struct vfs_attr *attr)
{
	/* The mount, and whether the clock matters, is known only later. */
	int64_t clock = attr ? vfs_change_clock(ctx->vfs->changes) : 0;
	struct vfs_mount *mnt;
	struct vfs_fh fh;
	struct statx sx;
	int rc;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx) != 0)
		rc = -errno;
	else
		rc = made || sx.stx_nlink > 0 ? node_identify(ctx, fd, "", &mnt, &fh) : -ENOENT;
	if (rc != 0) {
		vfs_fd_close(ctx->vfs, fd);
		return rc;
	}
	rc = vfs_cache_add(ctx->vfs,
			   &(struct vfs_node_parts){ .exp = ctx->exp,
						     .mnt = mnt,
						     .fh = &fh,
						     .type = sx.stx_mode & S_IFMT,
						     .dev = vfs_device_of(&sx),
						     .ino = sx.stx_ino,
						     .path_fd = fd },
			   out);
	vfs_mount_put(mnt);
	if (rc == 0 && attr)
		vfs_attr_from_statx((*out)->mnt, &(*out)->fh, &sx, clock, attr);
	return rc;
}

int vfs_node_of_fd(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr)
{
	return node_of_fd(ctx, fd, false, out, attr);
}

int vfs_node_of_made(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr)
{
	struct statx sx = { .stx_mask = 0 };
	int64_t clock;
	int rc = node_of_fd(ctx, fd, true, out, NULL);

	if (rc != 0)
		return rc;
	clock = vfs_change_clock(vfs_changes_of((*out)->mnt, (*out)->type));
	/* A node without a name leaves the cache. It still has attributes. */
	rc = vfs_node_stat(*out, &sx);
	if (sx.stx_mask != 0) {
		if (attr)
			vfs_attr_from_statx((*out)->mnt, &(*out)->fh, &sx, clock, attr);
		return 0;
	}
	vfs_node_put(*out);
	return rc;
}

/* 0 and NULL: the name is there, as *fh, but not in the cache. */
static int find_cached(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		       struct vfs_fh *fh, struct vfs_node **out)
{
	struct vfs_mount *mnt;
	int rc = node_identify(ctx, dir->path_fd, name->s, &mnt, fh);

	if (rc != 0)
		return rc;
	*out = vfs_cache_find(ctx->vfs, mnt, fh);
	vfs_mount_put(mnt);
	return 0;
}

/* True if what clients hold of the file of a name may matter for its removal. */
static bool any_held(struct vfs *vfs)
{
	return vfs_deleg_any(vfs) || vfs_file_any_kept(vfs);
}

static bool may_be_delegated(uint32_t type)
{
	return type == S_IFREG || type == S_IFDIR;
}

/* Checks what clients hold of the file of a name in dir. The caller may change the directory, so that those who may not cause no
 * recalls. type: of the file f, which may be NULL. Delegations of directories are not reclaimed. The caller's own are not in the way: it
 * gives them back when it likes, as the object stays reachable for it. */
static int check_file(struct vfs_ctx *ctx, struct vfs_node *dir, struct vfs_file *f, uint32_t type,
		      bool goes)
{
	int rc = vfs_deleg_any(ctx->vfs) || vfs_share_any_denying(ctx->vfs)
			 ? vfs_access_check(ctx, dir, W_OK | X_OK)
			 : 0;

	if (rc == 0 && goes)
		rc = vfs_share_check_name(ctx, f);
	if (rc == 0 && type == S_IFREG)
		rc = vfs_deleg_check_unknown(ctx->vfs, f);
	return rc == 0 ? vfs_deleg_check_file(ctx, f, VFS_USE_WRITE) : rc;
}

/* The file of a name that is in no node of the cache. */
static int begin_held(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		      const struct vfs_fh *fh, bool goes, struct vfs_named_file *out)
{
	struct vfs_file *f;
	struct statx sx;
	int rc;

	if (statx(dir->path_fd, name->s, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_INO | STATX_TYPE, &sx) != 0 ||
	    !may_be_delegated(sx.stx_mode & S_IFMT))
		return 0;
	f = vfs_file_find_fh(ctx->vfs, vfs_device_of(&sx), fh);
	rc = check_file(ctx, dir, f, sx.stx_mode & S_IFMT, goes);
	vfs_file_put(f);
	if (rc == 0 && vfs_unlinked_needs_node(ctx->vfs, vfs_device_of(&sx), fh) &&
	    vfs_node_of_name(ctx, dir, name, &out->node, NULL) != 0)
		out->node = NULL;
	return rc;
}

static int check_held(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		      const struct vfs_fh *fh, bool goes, struct vfs_named_file *out)
{
	struct vfs_file *f;
	int rc;

	if (!out->node)
		return begin_held(ctx, dir, name, fh, goes, out);
	if (!may_be_delegated(out->node->type))
		return 0;
	f = vfs_file_find(out->node);
	rc = check_file(ctx, dir, f, out->node->type, goes);
	vfs_file_put(f);
	return rc;
}

int vfs_named_file_begin(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
			 bool goes, struct vfs_named_file *out)
{
	struct vfs_fh fh;
	int rc;

	*out = (struct vfs_named_file){ 0 };
	if (find_cached(ctx, dir, name, &fh, &out->node) != 0)
		return 0;
	rc = vfs_file_change_count(ctx->vfs, &fh, &out->change);
	if (rc == 0 && any_held(ctx->vfs))
		rc = check_held(ctx, dir, name, &fh, goes, out);
	if (rc != 0)
		vfs_named_file_end(out, false);
	return rc;
}

void vfs_named_file_end(struct vfs_named_file *f, bool removed)
{
	vfs_file_change_end(&f->change);
	if (removed)
		vfs_node_drop_removed(f->node);
	else
		vfs_node_put(f->node);
	f->node = NULL;
}

/* A cached node with its attributes; false: it is of no use (any more). */
static bool use_cached(struct vfs_node *n, struct vfs_attr *attr)
{
	int64_t clock;
	struct statx sx;

	if (!attr)
		return true;
	clock = vfs_change_clock(vfs_changes_of(n->mnt, n->type));
	if (vfs_node_stat(n, &sx) != 0) {
		vfs_node_put(n);
		return false;
	}
	vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, attr);
	return true;
}

int vfs_node_of_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		     struct vfs_node **out, struct vfs_attr *attr)
{
	struct vfs_fh fh;
	int fd, rc;

	rc = find_cached(ctx, dir, name, &fh, out);
	if (rc != 0)
		return rc;
	if (*out && use_cached(*out, attr))
		return 0;
	rc = vfs_act_as_caller(ctx);
	if (rc != 0)
		return rc;
	/* A rename may replace the object between open and statx. The name is some object's at every moment, so the next try finds it. */
	for (unsigned i = 0; i < REPLACED_MOST; i++) {
		fd = vfs_fd_openat(ctx->vfs, dir->path_fd, name->s, O_PATH | O_NOFOLLOW, 0);
		rc = fd < 0 ? fd : vfs_node_of_fd(ctx, fd, out, attr);
		if (fd < 0 || (rc != -ENOENT && rc != -ESTALE))
			break;
		rc = vfs_act_as_caller(ctx);
		if (rc != 0)
			return rc;
		rc = -RN_ECHANGED;
	}
	return rc;
}
