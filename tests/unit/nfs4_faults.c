/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_faults.h"

#include "nfs4/compound.h"
#include "vfs/data/operation.h"
#include "vfs/file_state.h"
#include "vfs/lock.h"
#include "vfs/share.h"
#include "vfs/space.h"
#include "vfs/worker/worker_state.h"
#include "vfs/xattr.h"

enum fault fault_at;
int fault_result;
unsigned fault_hits, fault_spared;

static bool fails(enum fault f)
{
	if (f != fault_at)
		return false;
	if (fault_spared > 0) {
		fault_spared--;
		return false;
	}
	fault_hits++;
	return true;
}

#define WRAP(which, name, params, args)                                                            \
	__typeof__(name) __real_##name, __wrap_##name; /* params must be the function's own */     \
	int __wrap_##name params                                                                   \
	{                                                                                          \
		return fails(which) ? fault_result : __real_##name args;                           \
	}

#define WRAP_IO(which, name, result, type)                                                         \
	result __real_##name(type *x);                                                             \
	result __wrap_##name(type *x);                                                             \
	result __wrap_##name(type *x)                                                              \
	{                                                                                          \
		return fails(which) ? fault_result : __real_##name(x);                             \
	}

WRAP(FAULT_VFS_GETATTR, vfs_getattr,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_attr *out), (ctx, n, out))
WRAP(FAULT_VFS_SETATTR, vfs_setattr,
     (struct vfs_ctx * ctx, struct vfs_node *n, const struct vfs_setattr *sa,
      const struct timespec *check),
     (ctx, n, sa, check))
WRAP(FAULT_VFS_LOOKUP, vfs_lookup,
     (struct vfs_ctx * ctx, struct vfs_node *dir, const char *name, uint32_t len,
      struct vfs_node **out, struct vfs_attr *attr),
     (ctx, dir, name, len, out, attr))
WRAP(FAULT_VFS_PEEK, vfs_peek_entry,
     (struct vfs_ctx * ctx, struct vfs_node *dir, const struct vfs_dirent *de, struct vfs_fh *fh,
      struct vfs_attr *attr),
     (ctx, dir, de, fh, attr))
WRAP(FAULT_VFS_ACCESS, vfs_access,
     (struct vfs_ctx * ctx, struct vfs_node *n, unsigned want, unsigned *granted,
      struct vfs_attr *attr),
     (ctx, n, want, granted, attr))
WRAP(FAULT_VFS_OPEN_CHECK, vfs_open_check,
     (struct vfs_ctx * ctx, struct vfs_node *n, unsigned want), (ctx, n, want))
WRAP(FAULT_VFS_READLINK, vfs_readlink,
     (struct vfs_ctx * ctx, struct vfs_node *n, char *buf, uint32_t size), (ctx, n, buf, size))
WRAP(FAULT_VFS_CREATE, vfs_create,
     (struct vfs_ctx * ctx, struct vfs_node *dir, const char *name, uint32_t len,
      struct vfs_create *how, struct vfs_node **out),
     (ctx, dir, name, len, how, out))
WRAP(FAULT_VFS_MKDIR, vfs_mkdir,
     (struct vfs_ctx * ctx, const struct vfs_make *m, struct vfs_node **out), (ctx, m, out))
WRAP(FAULT_VFS_SYMLINK, vfs_symlink,
     (struct vfs_ctx * ctx, const struct vfs_make *m, const char *target, struct vfs_node **out),
     (ctx, m, target, out))
WRAP(FAULT_VFS_MKNOD, vfs_mknod,
     (struct vfs_ctx * ctx, const struct vfs_make *m, const struct vfs_mknod *what,
      struct vfs_node **out),
     (ctx, m, what, out))
WRAP(FAULT_VFS_REMOVE, vfs_remove,
     (struct vfs_ctx * ctx, struct vfs_node *dir, const char *name, uint32_t len,
      struct vfs_dir_change *change),
     (ctx, dir, name, len, change))
WRAP(FAULT_VFS_RMDIR, vfs_rmdir,
     (struct vfs_ctx * ctx, struct vfs_node *dir, const char *name, uint32_t len,
      struct vfs_dir_change *change),
     (ctx, dir, name, len, change))
WRAP(FAULT_VFS_RENAME, vfs_rename, (struct vfs_ctx * ctx, const struct vfs_rename *r), (ctx, r))
WRAP(FAULT_VFS_LINK, vfs_link,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_node *dir, const char *name,
      uint32_t len, struct vfs_dir_change *change),
     (ctx, n, dir, name, len, change))
WRAP(FAULT_VFS_READDIR, vfs_readdir,
     (struct vfs_ctx * ctx, struct vfs_node *dir, uint64_t cookie, const struct vfs_listing *to,
      bool *eof),
     (ctx, dir, cookie, to, eof))
WRAP(FAULT_VFS_STATFS, vfs_statfs,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_statfs *out), (ctx, n, out))
WRAP(FAULT_VFS_ROOT, vfs_root, (struct vfs_ctx * ctx, struct vfs_node **out), (ctx, out))
WRAP(FAULT_VFS_FH_OPEN, vfs_fh_open,
     (struct vfs_ctx * ctx, const struct vfs_fh *fh, struct vfs_node **out), (ctx, fh, out))
WRAP(FAULT_VFS_SEEK, vfs_seek, (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_seek *s),
     (ctx, n, s))
WRAP(FAULT_VFS_PARTS, vfs_parts, (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_parts *p),
     (ctx, n, p))
WRAP(FAULT_VFS_XATTR_GET, vfs_xattr_get,
     (struct vfs_ctx * ctx, struct vfs_node *n, const struct vfs_xattr_name *name, void *buf,
      uint32_t size),
     (ctx, n, name, buf, size))
WRAP(FAULT_VFS_XATTR_LIST, vfs_xattr_list,
     (struct vfs_ctx * ctx, struct vfs_node *n, char *buf, uint32_t size), (ctx, n, buf, size))
WRAP(FAULT_VFS_XATTR_CHANGE, vfs_xattr_change,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_xattr_change *c), (ctx, n, c))
WRAP(FAULT_VFS_LABEL_GET, vfs_label_get,
     (struct vfs_ctx * ctx, struct vfs_node *n, uint8_t buf[VFS_LABEL_MAX]), (ctx, n, buf))
WRAP(FAULT_VFS_LABEL_SET, vfs_label_set,
     (struct vfs_ctx * ctx, struct vfs_node *n, const struct vfs_label *label), (ctx, n, label))
WRAP(FAULT_VFS_SPACE_FREED, vfs_space_freed,
     (struct vfs_ctx * ctx, struct vfs_node *n, const struct vfs_attr *attr, uint64_t *out),
     (ctx, n, attr, out))
WRAP(FAULT_VFS_CLONE, vfs_clone, (const struct vfs_copy *c), (c))
WRAP(FAULT_VFS_FILE_GET, vfs_file_get,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_file **out), (ctx, n, out))
WRAP(FAULT_VFS_SHARE_OPEN, vfs_share_open,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_share *s,
      const struct vfs_share_request *r, struct vfs_conflict *c),
     (ctx, n, s, r, c))
WRAP(FAULT_VFS_LOCK, vfs_lock,
     (struct vfs_ctx * ctx, struct vfs_node *n, struct vfs_lock_owner *o,
      const struct vfs_lock_request *r, struct vfs_conflict *c),
     (ctx, n, o, r, c))
WRAP(FAULT_VFS_UNLOCK, vfs_unlock,
     (struct vfs_ctx * ctx, struct vfs_lock_owner *o, uint64_t offset, uint64_t length),
     (ctx, o, offset, length))
WRAP(FAULT_VFS_LOCK_TEST, vfs_lock_test,
     (struct vfs_ctx * ctx, struct vfs_node *n, const struct vfs_lock_owner *o,
      const struct vfs_lock_request *r, struct vfs_conflict *c),
     (ctx, n, o, r, c))
WRAP(FAULT_NFS4_GROW_REPLY, nfs4_grow_reply, (struct nfs4_compound * c, size_t size), (c, size))
WRAP(FAULT_NFS4_RESERVE_REPLY, nfs4_reserve_reply, (struct nfs4_compound * c, size_t size),
     (c, size))
WRAP_IO(FAULT_VFS_READ, vfs_read, int64_t, struct vfs_io)
WRAP_IO(FAULT_VFS_WRITE, vfs_write, int64_t, struct vfs_io)
WRAP_IO(FAULT_VFS_COMMIT, vfs_commit, int, struct vfs_io)
WRAP_IO(FAULT_VFS_SPACE, vfs_space, int, struct vfs_space)
WRAP_IO(FAULT_VFS_COPY, vfs_copy, int64_t, struct vfs_copy)
WRAP_IO(FAULT_VFS_SYNC, vfs_sync, int, struct vfs_sync)
