/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From MNT's path to a node, as rpc.mountd's realpath() and its match with the exports would, but
 * below exports only and as the caller: each name is looked up under his squashed identity, so that
 * neither a handle nor a status tells him more than LOOKUP would.
 *
 * A symbolic link is read, not followed by the kernel: the path that it leads to begins anew, from
 * the exports on. Names outside of exports are compared with the exports' paths and never looked
 * up, whoever made the link that has them.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "nfs/caller.h"
#include "nfs/nested.h"
#include "nfs3/nfs3_state.h"
#include "rpc/worker.h"

#define LINKS_MAX 40u	/* as many as Linux follows in one path */
#define STEPS_MAX 2048u /* names looked up for one call: a bound for links that lead to links */

/* Result of a walk besides 0 and -errno: a link has replaced the path, which is resolved anew. */
#define ELSEWHERE 1

struct walk {
	struct vfs_ctx *ctx;
	const struct vfs_exports *exports;
	const struct sockaddr *peer;
	struct vfs_node *node; /* node that has been reached */
	/* its path on the server, without links below the export's root */
	char at[MNT_PATH_MAX + 1];
	char path[MNT_PATH_MAX + 1]; /* rest of the path, to be resolved */
	size_t root;		     /* length of the export root's path, in at */
	unsigned depth;		     /* depth of the node below the root */
	unsigned links, steps;
};

/* Sets path to dir, a slash and rest, which may lie in path. */
static int lead_to(struct walk *w, const char *dir, const char *name, const char *rest)
{
	char old[MNT_PATH_MAX + 1];
	const size_t a = strlen(dir), b = strlen(name), c = strlen(rest);

	if (a + b + c + 2 > MNT_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(old, rest, c + 1);
	memcpy(w->path, dir, a);
	w->path[a] = '/';
	memcpy(w->path + a + 1, name, b);
	w->path[a + 1 + b] = '/';
	memcpy(w->path + a + b + 2, old, c + 1);
	return ELSEWHERE;
}

/* Cuts the last name off. */
static void cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

static bool mnt_is_dots(const char *name, size_t len, size_t dots)
{
	return len == dots && memcmp(name, "..", dots) == 0;
}

/*
 * Makes the path single slashes, without "." and without a slash at the end, as exports' paths are.
 */
static void tidy(char *path)
{
	const char *in = path;
	char *out = path;

	while (*in) {
		size_t len;

		in += strspn(in, "/");
		len = strcspn(in, "/");
		if (len > 0 && !mnt_is_dots(in, len, 1)) {
			*out++ = '/';
			memmove(out, in, len);
			out += len;
		}
		in += len;
	}
	if (out == path)
		*out++ = '/';
	*out = '\0';
}

/* Removes the first ".." and the name before it. False: there is none. */
static bool cut_dots(char *path)
{
	char *last = path, *slash = path;

	for (;;) {
		char *end = slash + 1 + strcspn(slash + 1, "/");

		if (mnt_is_dots(slash + 1, (size_t)(end - slash - 1), 2)) {
			memmove(last, end, strlen(end) + 1);
			if (*path == '\0')
				strcpy(path, "/");
			return true;
		}
		if (*end == '\0')
			return false;
		last = slash;
		slash = end;
	}
}

/* The part of path behind dir, if path is dir or below it; else NULL. */
static const char *below(const char *path, const char *dir)
{
	const size_t len = strlen(dir);

	if (strncmp(path, dir, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

static int mnt_walk_follow(struct walk *w, struct vfs_node *link, const char *rest)
{
	char target[MNT_PATH_MAX + 1];
	const char *behind;
	int len = vfs_readlink(w->ctx, link, target, sizeof(target));

	if (len < 0)
		return len;
	if ((size_t)len == sizeof(target))
		return -ENAMETOOLONG;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	target[len] = '\0';
	if (target[0] != '/')
		return lead_to(w, w->at, target, rest);
	/* The export's path may contain links itself, which exports(5) does not show. */
	behind = below(target, vfs_export_real_path(w->ctx->exp));
	w->at[behind ? w->root : 0] = '\0';
	return lead_to(w, w->at, behind ? behind : target, rest);
}

static int go_up(struct walk *w, const char *rest)
{
	struct vfs_node *up;
	int rc;

	if (w->depth == 0) {
		cut_last(w->at);
		return lead_to(w, w->at, "", rest);
	}
	rc = vfs_lookup(w->ctx, w->node, "..", 2, &up, NULL);
	if (rc < 0)
		return rc;
	vfs_node_put(w->node);
	w->node = up;
	cut_last(w->at);
	w->depth--;
	return 0;
}

/* A name that leads to the root of another export of the peer, behind a ".." or a link: the export is found by the whole path. */
static int mnt_walk_enter_nested(struct walk *w, const char *name, size_t len, const char *rest)
{
	const size_t at = strlen(w->at);

	if (++w->links > LINKS_MAX)
		return -EACCES;
	w->at[at] = '/';
	memcpy(w->at + at + 1, name, len);
	w->at[at + 1 + len] = '\0';
	return lead_to(w, w->at, "", rest);
}

static int go_down(struct walk *w, const char *name, size_t len, const char *rest)
{
	const struct nfs_entry e = { .name = name, .len = (uint32_t)len };
	const size_t at = strlen(w->at);
	struct vfs_node *next;
	int rc;

	if (len > NFS3_NAME_MAX || at + 1 + len > MNT_PATH_MAX)
		return -ENAMETOOLONG;
	rc = nfs_check_boundary(w->exports, w->ctx, w->node, &e, w->peer);
	if (rc < 0)
		return rc == -EACCES ? mnt_walk_enter_nested(w, name, len, rest) : rc;
	rc = vfs_lookup(w->ctx, w->node, name, (uint32_t)len, &next, NULL);
	if (rc < 0)
		return rc;
	if (vfs_node_type(next) == S_IFLNK) {
		rc = mnt_walk_follow(w, next, rest);
		vfs_node_put(next);
		return rc;
	}
	vfs_node_put(w->node);
	w->node = next;
	w->at[at] = '/';
	memcpy(w->at + at + 1, name, len);
	w->at[at + 1 + len] = '\0';
	w->depth++;
	return 0;
}

static int mnt_walk_step(struct walk *w, const char *name, size_t len, const char *rest)
{
	if (++w->steps > STEPS_MAX)
		return -ELOOP;
	return mnt_is_dots(name, len, 2) ? go_up(w, rest) : go_down(w, name, len, rest);
}

/* Checks what the path leads to: a directory or, for machines that boot from the net, a file. What a mount covers, and what lies on a
 * mount that the export does not show this host, is refused as rpc.mountd does. */
static int check_end(const struct walk *w)
{
	const uint32_t type = vfs_node_type(w->node);
	int rc;

	if (type != S_IFDIR && type != S_IFREG)
		return -ENOTDIR;
	if (vfs_node_is_covered(w->ctx, w->node))
		return -EACCES;
	rc = nfs_governed(w->exports, w->ctx, w->peer, vfs_node_fh(w->node));
	return rc == -ESTALE ? -EACCES : rc;
}

/* Walks from the export's root. */
static int walk(struct walk *w, const char *rest)
{
	int rc = vfs_root(w->ctx, &w->node);

	if (rc < 0) {
		w->node = NULL;
		return rc;
	}
	if (*rest == '\0')
		return 0;
	w->depth = 0;
	while (rc == 0 && *rest) {
		const char *name = rest;
		const size_t len = strcspn(name, "/");

		rest += len;
		rest += strspn(rest, "/");
		rc = mnt_walk_step(w, name, len, rest);
	}
	return rc == 0 ? check_end(w) : rc;
}

/* The export that the path leads to. If there is none, ".." is resolved textually, since nothing
 * outside of exports is looked up. */
static int find_export(const struct nfs3_config *cfg, const struct sockaddr *peer, struct walk *w,
		       const char **rest)
{
	const struct vfs_exports *exports = &cfg->exports;
	struct vfs_ctx *ctx = w->ctx;
	int rc;

	tidy(w->path);
	do
		rc = exports->by_path(exports->ctx, w->path, peer, &ctx->exp, &ctx->access, rest);
	while (rc == -ENOENT && cut_dots(w->path));
	if (rc < 0) {
		ctx->exp = NULL;
		return rc;
	}
	rc = vfs_exports_enter(exports, vfs_export_id(ctx->exp));
	if (rc < 0)
		return rc;
	w->root = (size_t)(*rest - w->path);
	while (w->root > 0 && w->path[w->root - 1] == '/')
		w->root--;
	memcpy(w->at, w->path, w->root);
	w->at[w->root] = '\0';
	return 0;
}

/*
 * Finds the export of the path, and the caller's identity on it. Everybody who may mount gets the handle, before he has credentials
 * (RFC 2623 section 2.3.2), and without TLS: Linux sends MNT by AUTH_SYS and in plain text, whatever it mounts with. A caller whose
 * flavour or connection the export does not take looks below the root as nobody, so that he learns no names from closed directories.
 */
static int mnt_walk_enter(struct rpc_request *req, struct walk *w, const char **rest)
{
	const struct nfs3_server *s = req->program_ctx;
	const struct nfs3_config *cfg = &s->cfg;
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	const struct nfs_groups groups = { cfg->lookup_groups, cfg->lookup_ctx, peer,
					   !cfg->manage_gids };
	struct vfs_ctx *ctx = w->ctx;
	int rc;

	rc = find_export(cfg, peer, w, rest);
	if (rc == 0)
		rc = nfs_check_port(&ctx->access, req->conn);
	if (rc == 0)
		nfs_access_use(&req->call.cred, &ctx->access);
	if (rc == 0)
		rc = nfs_caller(&groups, &req->call.cred, &ctx->access, &ctx->cred);
	/* The identity does not matter: nothing is looked up below the root. */
	if (rc == -RN_EUNNAMED && ctx->exp && !**rest)
		rc = 0;
	return rc;
}

/* Gives back all references. */
static void mnt_walk_leave(struct walk *w)
{
	vfs_node_put(w->node);
	w->node = NULL;
	if (w->ctx->exp)
		vfs_export_put(w->ctx->exp);
	w->ctx->exp = NULL;
}

static int mnt_check_path(const struct mnt_path *path)
{
	if (path->len > MNT_PATH_MAX)
		return -ENAMETOOLONG;
	if (path->len == 0)
		return -ENOENT;
	if (path->bytes[0] != '/' || memchr(path->bytes, '\0', path->len))
		return -EINVAL;
	return 0;
}

static int mnt_walk_resolve(struct rpc_request *req, struct walk *w)
{
	const char *rest;
	int rc;

	w->steps = 0;
	do {
		mnt_walk_leave(w);
		rc = mnt_walk_enter(req, w, &rest);
		if (rc == 0)
			rc = walk(w, rest);
	} while (rc == ELSEWHERE && ++w->steps <= STEPS_MAX);
	if (rc != 0)
		mnt_walk_leave(w);
	return rc == ELSEWHERE ? -ELOOP : rc;
}

int mnt_resolve(struct rpc_request *req, const struct mnt_path *path, struct vfs_ctx *ctx,
		struct vfs_node **node)
{
	const struct nfs3_server *s = req->program_ctx;
	struct walk w = { .ctx = ctx,
			  .exports = &s->cfg.exports,
			  .peer = (const struct sockaddr *)&req->conn->peer };
	int rc = mnt_check_path(path);

	*node = NULL;
	memset(ctx, 0, sizeof(*ctx));
	if (rc < 0)
		return rc;
	ctx->vfs = s->cfg.vfs;
	ctx->fiber = req->fiber;
	do {
		memcpy(w.path, path->bytes, path->len + 1);
		rc = mnt_walk_resolve(req, &w);
	} while (rc == -RN_EUNNAMED && rpc_try_later(req, RN_WAIT_NAME, 0));
	*node = w.node;
	return rc;
}
