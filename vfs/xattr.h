/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended attributes (xattr(7)) of the namespace "user". Names are without that prefix here, so
 * that those of other namespaces can neither be named nor are they listed. The kernel decides under
 * the caller's identity: regular files and directories have such attributes, who may read or write
 * the object may do so with them, and in a sticky directory only its owner may change them.
 */
#ifndef RN_VFS_XATTR_H
#define RN_VFS_XATTR_H

#include "vfs/vfs.h"

/* The kernel's limits in bytes: of a name without the prefix, a value, a list of names with it. */
#define VFS_XATTR_NAME_MAX 250u
#define VFS_XATTR_SIZE_MAX 65536u
#define VFS_XATTR_LIST_MAX 65536u

/* Bytes without NUL inside; not NUL-terminated. */
struct vfs_xattr_name {
	const char *bytes;
	uint32_t len;
};

/* True if the file system of n has such attributes. The thread is root afterwards. */
bool vfs_xattr_supported(struct vfs_ctx *ctx, const struct vfs_node *n);

/* Reads a value into buf and returns its length; size 0: the length alone. -ENODATA: there is none
 * of that name; -ERANGE: it is longer than size; -EOPNOTSUPP; -ENAMETOOLONG, -EINVAL: no name. */
int vfs_xattr_get(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_xattr_name *name,
		  void *buf, uint32_t size);

/* Puts the names into buf, each with a NUL behind it, and returns their bytes. The caller must be
 * able to read the object: the kernel would list for anybody. -ERANGE: there are more; -E2BIG: the
 * kernel cannot list them, as they exceed VFS_XATTR_LIST_MAX. */
int vfs_xattr_list(struct vfs_ctx *ctx, struct vfs_node *n, char *buf, uint32_t size);

enum vfs_xattr_how {
	VFS_XATTR_EITHER,
	VFS_XATTR_CREATE,  /* -EEXIST if there is one */
	VFS_XATTR_REPLACE, /* -ENODATA if there is none */
	VFS_XATTR_REMOVE,  /* likewise; without a value */
};

struct vfs_xattr_change {
	enum vfs_xattr_how how;
	struct vfs_xattr_name name;
	const void *value;
	uint32_t size;
	/* Result: the object before and after. Atomic for directories only: writes to a file are
	 * not counted. */
	struct vfs_dir_change states;
};
/* -E2BIG: the value is too long; -ENOSPC and -EDQUOT, also if the object cannot hold it. */
int vfs_xattr_change(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_xattr_change *c);

#endif
