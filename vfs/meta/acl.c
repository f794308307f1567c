/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/acl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl_xattr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/node/node.h"

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

int vfs_acl_get(const struct vfs_node *n, uint32_t mode, struct vfs_acl_room *room,
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
