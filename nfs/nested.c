/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/nested.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/error.h"

/* Replaces *n by its entry with that name. */
static int enter_name(struct vfs_ctx *ctx, struct vfs_node **n, const char *name, size_t len)
{
	struct vfs_node *next;
	int rc = vfs_lookup(ctx, *n, name, (uint32_t)len, &next, NULL);

	if (rc == 0) {
		vfs_node_put(*n);
		*n = next;
	}
	return rc;
}

int nfs_walk_down(const struct vfs_ctx *ctx, const char *rel, size_t len, struct vfs_node **out)
{
	struct vfs_ctx root = *ctx;
	const char *end = rel + len;
	struct vfs_node *n;
	int rc;

	root.cred = (struct vfs_cred){ 0 };
	rc = vfs_root(&root, &n);
	if (rc < 0)
		return rc;
	while (rel < end && rc == 0) {
		size_t left = (size_t)(end - rel);
		const char *slash = memchr(rel, '/', left);
		size_t name = slash ? (size_t)(slash - rel) : left;

		rc = enter_name(&root, &n, rel, name);
		rel += name + (slash ? 1 : 0);
	}
	if (rc < 0)
		vfs_node_put(n);
	else
		*out = n;
	return rc;
}

struct search {
	const struct vfs_ctx *ctx;
	const struct nfs_entry *entry;
	bool (*take)(void *arg, const struct vfs_nested *n);
	void *arg;
	int result;
};

/* Returns 1 if the entry lies on the mount that the export's path leads to, or on the one below it, else 0 or -errno. Asks no file system, so that a dead one which
 * another export lies on holds up nobody here. */
static int shares_mount(const struct search *s, const struct vfs_nested *n)
{
	char at[PATH_MAX];
	int rc = vfs_submount_path(s->ctx->exp, s->entry->found, at, sizeof(at));

	if (rc < 0)
		return rc;
	if (rc == 0)
		return n->dir_mount <= strlen(vfs_export_real_path(s->ctx->exp));
	return (n->mount == strlen(at) || n->dir_mount == strlen(at)) &&
	       strncmp(n->real_path, at, strlen(at)) == 0;
}

/* 1: the export's path leads to the entry; 0: it leads elsewhere, or nowhere in the outer export; or -errno. */
static int nfs_nested_covers(const struct search *s, const struct vfs_nested *n)
{
	const struct vfs_export *outer = s->ctx->exp;
	const char *rel = vfs_path_below(n->real_path, vfs_export_real_path(outer));
	const struct vfs_fh *fh;
	struct vfs_node *node;
	int rc;

	if (!rel || *rel == '\0' || (!n->refused && n->id == vfs_export_id(outer)))
		return 0;
	rc = shares_mount(s, n);
	if (rc <= 0)
		return rc;
	rc = nfs_walk_down(s->ctx, rel, strlen(rel), &node);
	if (rc == -ENOENT || rc == -ENOTDIR || rc == -EACCES || rc == -ESTALE || rc == -ELOOP)
		return 0;
	if (rc < 0)
		return rc;
	fh = vfs_node_fh(node);
	rc = fh->len == s->entry->found->len &&
	     memcmp(fh->data, s->entry->found->data, fh->len) == 0;
	vfs_node_put(node);
	return rc;
}

/* Tells if an export that is not open keeps the peer from the entry. -ESTALE: it does, as it has, or may have, a line for him, or is in
 * error; 0: it does not. */
static int keeps_out(const struct vfs_nested *n)
{
	switch (n->rc) {
	case -EACCES:
		return 0;
	case -RN_EUNNAMED:
	case -RN_ESILENT:
		return n->rc;
	default:
		return -ESTALE;
	}
}

/* False ends the search. */
static bool nfs_nested_consider(void *arg, const struct vfs_nested *n)
{
	struct search *s = arg;

	s->result = nfs_nested_covers(s, n);
	if (s->result > 0 && !n->exp)
		s->result = keeps_out(n);
	else if (s->result > 0 && !s->take(s->arg, n))
		s->result = 0;
	return s->result == 0;
}

int nfs_nested_at(const struct vfs_exports *exports, const struct vfs_ctx *ctx,
		  const struct sockaddr *peer, const struct nfs_entry *e,
		  bool (*take)(void *arg, const struct vfs_nested *n), void *arg)
{
	struct search s = { ctx, e, take, arg, 0 };

	if (exports->nested)
		exports->nested(exports->ctx, e->name, e->len, peer, nfs_nested_consider, &s);
	return s.result;
}

int nfs_governed(const struct vfs_exports *exports, const struct vfs_ctx *ctx,
		 const struct sockaddr *peer, const struct vfs_fh *fh)
{
	char path[PATH_MAX];
	int rc = vfs_submount_path(ctx->exp, fh, path, sizeof(path));

	if (rc <= 0)
		return rc;
	if (!(ctx->access.flags & VFS_CROSSMNT))
		return -ESTALE;
	rc = exports->governs ? exports->governs(exports->ctx, ctx->exp, path, peer) : 0;
	return rc > 0 ? -ESTALE : rc;
}

/* True if the export has, or may have, a line for the peer. */
static bool is_for_peer(void *arg, const struct vfs_nested *n)
{
	(void)arg;
	return n->rc != -EACCES && n->rc != -ESTALE;
}

static bool any_name(void *arg, const struct vfs_nested *n)
{
	(void)n;
	*(bool *)arg = true;
	return false;
}

int nfs_check_boundary(const struct vfs_exports *exports, const struct vfs_ctx *ctx,
		       struct vfs_node *dir, const struct nfs_entry *e, const struct sockaddr *peer)
{
	struct vfs_ctx as_root = *ctx;
	struct nfs_entry entry = *e;
	struct vfs_node *n;
	bool any = false;
	int rc;

	if (exports->nested)
		exports->nested(exports->ctx, e->name, e->len, peer, any_name, &any);
	if (!any)
		return 0;
	as_root.cred = (struct vfs_cred){ 0 };
	rc = vfs_lookup(&as_root, dir, e->name, e->len, &n, NULL);
	if (rc < 0)
		return rc == -RN_ECHANGED || rc == -RN_EFULL ? rc
							     : 0; /* the operation meets it again */
	entry.found = vfs_node_fh(n);
	rc = nfs_nested_at(exports, ctx, peer, &entry, is_for_peer, NULL);
	vfs_node_put(n);
	return rc > 0 || rc == -ESTALE ? -EACCES : rc;
}
