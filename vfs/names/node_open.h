/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, and nodes out of descriptors and names: what every operation on directories needs. */
#ifndef RN_VFS_NODE_OPEN_H
#define RN_VFS_NODE_OPEN_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "vfs/deleg.h"
#include "vfs/io.h"
#include "vfs/mount_table.h"
#include "vfs/node/node.h"

/* Names as they come from the wire, made fit for system calls. */
struct vfs_name {
	char s[VFS_NAME_MAX + 1];
};

/* 0; -EINVAL: empty, or with a NUL or '/' inside; -ENAMETOOLONG. */
int vfs_name_from(struct vfs_name *out, const char *name, uint32_t len);
/* True for "." and "..". */
static inline bool vfs_name_is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}
bool vfs_name_is_dot(const struct vfs_name *name);
bool vfs_name_is_dotdot(const struct vfs_name *name);

/* The result of statx for a name of a directory: which inode it names, and its attributes. */
struct vfs_shown {
	int64_t clock; /* the time before, in nanoseconds: for the change attribute */
	struct statx sx;
};

/* The thread has the caller's identity, as the caller may not search the directory. */
static inline int vfs_statx_name(int dirfd, const char *name, struct statx *sx)
{
	return vfs_statx_mount(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			       STATX_BASIC_STATS | STATX_BTIME, sx);
}

/* The node of an O_PATH descriptor that was opened within the export, which is consumed; attr may
 * be NULL. The thread may be root afterwards. */
int vfs_node_of_fd(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr);
/* Like vfs_node_of_fd(), for an object that the caller has just made: its handle counts even if it has lost its name already. */
int vfs_node_of_made(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr);

/* The file of a name that is about to be removed, replaced or moved. */
struct vfs_named_file {
	/* If it is in the cache, or if somebody has the file open, which is pinned through its node
	 * when its last link goes; else NULL. */
	struct vfs_node *node;
	struct vfs_file_change change;
};
/* Begins the change, if there is such a name: 0, -RN_EDELEG, or the error for a caller who may not
 * change the directory; -RN_ESHARE: the name is to go (goes), and a share keeps it. The thread acts as the caller before, and may be root
 * afterwards. */
int vfs_named_file_begin(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
			 bool goes, struct vfs_named_file *out);
/* Ends what has begun; does nothing more. removed: the name does not lead to the file any more. */
void vfs_named_file_end(struct vfs_named_file *f, bool removed);

/* Opens a name, which may be ".."; the thread acts as the caller before. */
int vfs_node_of_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		     struct vfs_node **out, struct vfs_attr *attr);

/* Modes where the client asks for none: its owner's alone. */
#define VFS_MODE_FILE 0600u
#define VFS_MODE_DIR 0700u

/* Checks that clients may change dir: a directory of a writable export that no mount covers. */
int vfs_dir_check(struct vfs_ctx *ctx, const struct vfs_node *dir);

/* Threads that look ahead in listings (vfs/names/readdir.c). NULL: no helpers, or no memory. The threads start with the first listing that is long enough. */
struct vfs_ahead *vfs_ahead_new(unsigned helpers, struct rn_budget *budget);
/* Waits for the helpers to end; NULL is allowed. */
void vfs_ahead_free(struct vfs_ahead *a);

#endif
