/* SPDX-License-Identifier: BSD-2-Clause */
/* By paths in /proc, as a node's own descriptor is O_PATH, which fgetxattr() and its like refuse. */
#include "vfs/xattr.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/dir_change.h"
#include "vfs/meta/dir_news.h"
#include "vfs/meta/permission.h"
#include "vfs/node/covered.h"
#include "vfs/worker/worker_state.h"

#define PREFIX "user."
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* With the prefix, NUL-terminated. */
struct full_name {
	char s[PREFIX_LEN + VFS_XATTR_NAME_MAX + 1];
};

static int make_full(const struct vfs_xattr_name *name, struct full_name *out)
{
	if (name->len > VFS_XATTR_NAME_MAX)
		return -ENAMETOOLONG;
	if (name->len == 0 || memchr(name->bytes, '\0', name->len))
		return -EINVAL;
	memcpy(out->s, PREFIX, PREFIX_LEN);
	memcpy(out->s + PREFIX_LEN, name->bytes, name->len);
	out->s[PREFIX_LEN + name->len] = '\0';
	return 0;
}

/* Asks the root of n's mount, which is open to read, as root: the kernel looks at permissions
 * before it knows whether there are such attributes. */
bool vfs_xattr_supported(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	return vfs_act_as_root(ctx) == 0 &&
	       (fgetxattr(n->mnt->fd, PREFIX "ringnfs", NULL, 0) >= 0 || errno == ENODATA);
}

/* -ESTALE: the object is gone. The thread is the caller afterwards. */
static int xattr_begin(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct statx sx;
	int rc = vfs_node_stat(n, &sx);

	return rc == 0 ? vfs_act_as_caller(ctx) : rc;
}

int vfs_xattr_get(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_xattr_name *name,
		  void *buf, uint32_t size)
{
	struct full_name full;
	ssize_t len;
	int rc = make_full(name, &full);

	if (rc == 0)
		rc = xattr_begin(ctx, n);
	if (rc != 0)
		return rc;
	len = getxattr(vfs_proc_path(n->path_fd).s, full.s, buf, size);
	return len < 0 ? -errno : (int)len;
}

/* Leaves the names of this namespace in buf, without the prefix. */
static int keep_ours(char *buf, size_t len)
{
	size_t kept = 0;

	for (size_t at = 0, next; at < len; at = next) {
		const size_t left = strnlen(buf + at, len - at);

		next = at + left + 1;
		if (next > len || left <= PREFIX_LEN || memcmp(buf + at, PREFIX, PREFIX_LEN) != 0)
			continue;
		memmove(buf + kept, buf + at + PREFIX_LEN, left - PREFIX_LEN + 1);
		kept += left - PREFIX_LEN + 1;
	}
	return (int)kept;
}

int vfs_xattr_list(struct vfs_ctx *ctx, struct vfs_node *n, char *buf, uint32_t size)
{
	ssize_t len;
	int rc = xattr_begin(ctx, n);

	if (rc == 0)
		rc = vfs_access_check(ctx, n, R_OK);
	if (rc != 0)
		return rc;
	len = listxattr(vfs_proc_path(n->path_fd).s, buf, size);
	return len < 0 ? -errno : keep_ours(buf, (size_t)len);
}

static int xattr_apply(const struct vfs_node *n, const char *name, const struct vfs_xattr_change *c)
{
	const struct vfs_proc_path path = vfs_proc_path(n->path_fd);
	const int flags = c->how == VFS_XATTR_CREATE	? XATTR_CREATE
			  : c->how == VFS_XATTR_REPLACE ? XATTR_REPLACE
							: 0;

	if (c->how == VFS_XATTR_REMOVE)
		return removexattr(path.s, name) == 0 ? 0 : -errno;
	return setxattr(path.s, name, c->value, c->size, flags) == 0 ? 0 : -errno;
}

/* dir_change.h compares with what others do; the name is only looked for. */
static int change_dir(struct vfs_ctx *ctx, struct vfs_node *n, const char *name,
		      struct vfs_xattr_change *c)
{
	struct vfs_dir_changing changing;
	struct vfs_file_change change;
	int rc = vfs_dir_attrs_begin(ctx, n, &change);

	if (rc != 0)
		return rc;
	vfs_dir_change_begin(&changing, ctx, n, "xattr", &c->states);
	rc = xattr_apply(n, name, c);
	vfs_dir_change_end(&changing, rc == 0);
	if (rc == 0)
		vfs_dir_tell_attrs(ctx, n);
	vfs_file_change_end(&change);
	return rc;
}

static int change_other(struct vfs_ctx *ctx, struct vfs_node *n, const char *name,
			struct vfs_xattr_change *c)
{
	struct vfs_dir_change *states = &c->states;
	struct vfs_file_change change;
	int rc = vfs_file_change_begin(ctx, n, &change);

	if (rc != 0)
		return rc;
	rc = vfs_getattr(ctx, n, &states->before);
	if (rc == 0)
		rc = xattr_apply(n, name, c);
	if (rc == 0)
		vfs_node_changed(n);
	vfs_file_change_end(&change);
	if (rc != 0)
		return rc;
	states->known = vfs_getattr(ctx, n, &states->after) == 0;
	return 0;
}

int vfs_xattr_change(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_xattr_change *c)
{
	struct full_name full;
	int rc = make_full(&c->name, &full);

	c->states.known = c->states.atomic = false;
	if (rc == 0)
		rc = vfs_check_writable(ctx, n);
	if (rc == 0)
		rc = xattr_begin(ctx, n);
	if (rc == 0)
		rc = vfs_access_check(ctx, n, W_OK); /* who may not recalls no delegation */
	if (rc != 0)
		return rc;
	return n->type == S_IFDIR ? change_dir(ctx, n, full.s, c) : change_other(ctx, n, full.s, c);
}
