/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes of users, security labels, and ACLs: by paths in /proc, as a node's own descriptor is O_PATH, which
 * fgetxattr() and its like refuse. */
#include <endian.h>
#include <errno.h>
#include <linux/posix_acl_xattr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/file_state.h"
#include "vfs/fs/file_system.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/dir_change.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"
#include "vfs/xattr.h"

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
		rc = vfs_access_check(ctx, n, W_OK); /* else no recall is caused */
	if (rc != 0)
		return rc;
	return n->type == S_IFDIR ? change_dir(ctx, n, full.s, c) : change_other(ctx, n, full.s, c);
}

/* By paths in /proc, as a node's own descriptor is O_PATH, which fgetxattr() and its like refuse. Such
 * a path leads to a symbolic link itself, which has a label of its own. */
#define LABEL_NAME "security.selinux"

/* Asks the root of n's mount, which is open to read. */
bool vfs_label_supported(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	return (ctx->access.flags & VFS_SECURITY_LABEL) && vfs_act_as_root(ctx) == 0 &&
	       (fgetxattr(n->mnt->fd, LABEL_NAME, NULL, 0) >= 0 || errno == ENODATA);
}

int vfs_label_get(struct vfs_ctx *ctx, struct vfs_node *n, uint8_t buf[VFS_LABEL_MAX])
{
	ssize_t len;
	int rc = vfs_act_as_root(ctx);

	if (rc != 0)
		return rc;
	len = getxattr(vfs_proc_path(n->path_fd).s, LABEL_NAME, buf, VFS_LABEL_MAX);
	if (len > 0)
		return (int)len;
	return len == 0 || errno == ERANGE ? -ENODATA : -errno;
}

int vfs_label_set(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_label *label)
{
	int rc;

	if (label->len > VFS_LABEL_MAX)
		return -RN_ELABEL;
	rc = vfs_act_as_root(ctx);
	if (rc != 0)
		return rc;
	if (setxattr(vfs_proc_path(n->path_fd).s, LABEL_NAME, label->bytes, label->len, 0) == 0)
		return 0;
	return errno == EINVAL || errno == E2BIG || errno == ERANGE ? -RN_ELABEL : -errno;
}

#define ACCESS_NAME "system.posix_acl_access"
#define DEFAULT_NAME "system.posix_acl_default"

/* An extended attribute with an ACL, in the kernel's little-endian layout. */
struct raw_acl {
	size_t len; /* bytes of value; 0 if there is no ACL */
	struct {
		uint32_t version;
		struct posix_acl_xattr_entry entry[VFS_ACL_MAX];
	} value;
};
#define RAW_SIZE(count) (sizeof(uint32_t) + (count) * sizeof(struct posix_acl_xattr_entry))

/* Asks the root of n's mount, which is open for reading; n's own descriptor is O_PATH. */
bool vfs_acl_supported(const struct vfs_ctx *ctx, const struct vfs_node *n)
{
	if (ctx->access.flags & VFS_NO_ACL)
		return false;
	return fgetxattr(n->mnt->fd, ACCESS_NAME, NULL, 0) >= 0 || errno == ENODATA;
}

/* By the path in /proc, as path_fd is an O_PATH descriptor, which fgetxattr() refuses. */
static int get_raw(const struct vfs_node *n, const char *name, struct raw_acl *raw)
{
	ssize_t len = getxattr(vfs_proc_path(n->path_fd).s, name, &raw->value, sizeof(raw->value));

	raw->len = 0;
	if (len < 0 && errno == ENODATA)
		return 0;
	if (len < 0)
		return errno == ERANGE ? -E2BIG : -errno;
	raw->len = (size_t)len;
	return 0;
}

static int set_raw(const struct vfs_node *n, const char *name, const struct raw_acl *raw)
{
	const struct vfs_proc_path path = vfs_proc_path(n->path_fd);

	if (raw->len > 0)
		return setxattr(path.s, name, &raw->value, raw->len, 0) == 0 ? 0 : -errno;
	return removexattr(path.s, name) == 0 || errno == ENODATA ? 0 : -errno;
}

/* A length that is too short for the version makes n wrong, so the comparison refuses it. */
static int from_raw(const struct raw_acl *raw, struct vfs_acl_entry *room, struct vfs_acl *out)
{
	const size_t n =
		raw->len > 0 ? (raw->len - sizeof(uint32_t)) / sizeof(raw->value.entry[0]) : 0;

	*out = (struct vfs_acl){ .entry = room };
	if (raw->len == 0)
		return 0;
	if (raw->len != RAW_SIZE(n) || le32toh(raw->value.version) != POSIX_ACL_XATTR_VERSION)
		return -EIO;
	for (size_t i = 0; i < n; i++) {
		room[i] = (struct vfs_acl_entry){
			.tag = le16toh(raw->value.entry[i].e_tag),
			.perm = le16toh(raw->value.entry[i].e_perm) & 7,
			.id = le32toh(raw->value.entry[i].e_id),
		};
	}
	out->count = (uint32_t)n;
	return 0;
}

static int to_raw(const struct vfs_acl *acl, struct raw_acl *raw)
{
	if (acl->count > VFS_ACL_MAX)
		return -E2BIG;
	raw->len = acl->count > 0 ? RAW_SIZE(acl->count) : 0;
	raw->value.version = htole32(POSIX_ACL_XATTR_VERSION);
	for (uint32_t i = 0; i < acl->count; i++) {
		raw->value.entry[i] = (struct posix_acl_xattr_entry){
			.e_tag = htole16(acl->entry[i].tag),
			.e_perm = htole16(acl->entry[i].perm),
			.e_id = htole32(acl->entry[i].id),
		};
	}
	return 0;
}

void vfs_acl_from_mode(uint32_t mode, struct vfs_acl_entry room[VFS_ACL_OF_MODE],
		       struct vfs_acl *out)
{
	room[0] = (struct vfs_acl_entry){ VFS_ACL_USER_OBJ, mode >> 6 & 7, VFS_ACL_NO_ID };
	room[1] = (struct vfs_acl_entry){ VFS_ACL_GROUP_OBJ, mode >> 3 & 7, VFS_ACL_NO_ID };
	room[2] = (struct vfs_acl_entry){ VFS_ACL_OTHER, mode & 7, VFS_ACL_NO_ID };
	*out = (struct vfs_acl){ .count = VFS_ACL_OF_MODE, .entry = room };
}

static int acl_compare_entries(const void *a, const void *b)
{
	const struct vfs_acl_entry *p = a, *q = b;

	if (p->tag != q->tag)
		return p->tag < q->tag ? -1 : 1;
	return p->id < q->id ? -1 : p->id > q->id;
}

void vfs_acl_sort(struct vfs_acl_entry *entry, uint32_t count)
{
	qsort(entry, count, sizeof(*entry), acl_compare_entries);
}

int vfs_acl_get(const struct vfs_node *n, uint32_t mode, struct vfs_acl_buffer *room,
		struct vfs_acls *out)
{
	struct raw_acl raw;
	int rc = get_raw(n, ACCESS_NAME, &raw);

	*out = (struct vfs_acls){ 0 };
	if (rc == 0)
		rc = from_raw(&raw, room->access, &out->access);
	if (rc == 0 && out->access.count == 0)
		vfs_acl_from_mode(mode, room->access, &out->access);
	if (rc != 0 || n->type != S_IFDIR)
		return rc;
	rc = get_raw(n, DEFAULT_NAME, &raw);
	return rc == 0 ? from_raw(&raw, room->inherited, &out->inherited) : rc;
}

static int set_access(struct vfs_node *n, const struct vfs_acls *acls)
{
	struct raw_acl raw;
	int rc;

	if (acls->keep_access)
		return 0;
	rc = to_raw(&acls->access, &raw);
	return rc == 0 ? set_raw(n, ACCESS_NAME, &raw) : rc;
}

/* The default ACL goes first, since it can be put back if the access ACL is refused. */
static int set_both(struct vfs_node *n, const struct vfs_acls *acls)
{
	struct raw_acl before, raw;
	int rc = get_raw(n, DEFAULT_NAME, &before);

	if (rc == 0)
		rc = to_raw(&acls->inherited, &raw);
	if (rc == 0 && (before.len > 0 || raw.len > 0))
		rc = set_raw(n, DEFAULT_NAME, &raw);
	if (rc != 0)
		return rc;
	rc = set_access(n, acls);
	if (rc != 0)
		set_raw(n, DEFAULT_NAME, &before);
	return rc;
}

int vfs_acl_set(struct vfs_node *n, const struct vfs_acls *acls)
{
	if (n->type != S_IFDIR && !acls->keep_inherited && acls->inherited.count > 0)
		return -EACCES;
	return n->type != S_IFDIR || acls->keep_inherited ? set_access(n, acls) : set_both(n, acls);
}
