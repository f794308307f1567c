/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A range of one file copied to another file, by the kernel: the two may be in different exports,
 * where the caller may have different identities. vfs_copy waits in its fiber;
 * vfs_clone is one system call.
 */
#ifndef RN_VFS_COPY_H
#define RN_VFS_COPY_H

#include "vfs/io.h"

/* Most bytes that one vfs_copy moves, so that it ends soon. */
#define VFS_COPY_MAX (16u << 20)

/* Bytes of one system call, in which the worker serves nobody else. */
#define VFS_COPY_STEP (4u << 20)

struct vfs_copy_source {
	struct vfs_ctx *ctx;
	struct vfs_node *node;
	uint64_t offset;
	bool opened; /* as vfs_io.opened */
};

struct vfs_copy {
	struct vfs_copy_source from;
	/* The destination. The caller has references of both nodes. */
	struct vfs_ctx *ctx;
	struct vfs_node *node;
	uint64_t offset;
	bool opened;	/* as vfs_io.opened */
	uint64_t count; /* bytes; 0: up to the end of the source */

	/* vfs_copy only */
	/* True: a range that ends behind the source's end ends there. False: it is -EINVAL. */
	bool cut;
	struct rn_payload_account *account; /* pays for a buffer, where one is needed; or NULL */
	/* Result: true: they are on disk. False: they are like those of an unstable WRITE. */
	bool stable;

	struct { /* vfs/'s own */
		int from_fd, to_fd;
		uint32_t left, copied; /* bytes */
		unsigned tries;
		struct rn_payload *buffer; /* NULL: the kernel copies */
		struct vfs_syncing syncing;
		struct vfs_file_change change;
	} priv;
};

/*
 * Copies the range, or the first VFS_COPY_MAX bytes of it, or less if the file system fills up: bytes copied, in order, or -errno.
 * Writes as a user clear setuid and setgid bits. -EINVAL: the range ends behind the source's end,
 * or both files are the same; -EFBIG: beyond the largest offset of a file; else as vfs_read of the
 * source and vfs_write of the destination.
 */
int64_t vfs_copy(struct vfs_copy *c);
/* Checks the range and the permissions as vfs_copy does, and finds the number of bytes; 0 or -errno. */
int vfs_copy_measure(const struct vfs_copy *c, uint64_t *count);

/*
 * Lets the destination share the source's blocks. All or nothing, and nothing is durable until
 * vfs_sync of the destination. Besides the errors of vfs_copy, -EINVAL: ranges of one file overlap,
 * or do not lie on the blocks of the file system (vfs_statfs.block); -EXDEV; -EOPNOTSUPP: this file
 * system cannot.
 */
int vfs_clone(const struct vfs_copy *c);

#endif
