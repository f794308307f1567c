/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The space of files: reserving and giving back a range (which waits in its fiber, as a file
 * system may take long over a large one), and where data and holes are.
 */
#ifndef RN_VFS_SPACE_H
#define RN_VFS_SPACE_H

#include "vfs/io.h"

enum vfs_space_what {
	VFS_SPACE_RESERVE, /* as fallocate(2): zeros where nothing was, the size grows if need be */
	VFS_SPACE_PUNCH,   /* reads as zeros afterwards, the size stays */
};

struct vfs_space {
	struct vfs_ctx *ctx;
	struct vfs_node *node; /* the caller has a reference */
	enum vfs_space_what what;
	uint64_t offset, length; /* bytes */
	bool opened;		 /* as vfs_io.opened */
};

/* 0 or -errno. -EINVAL: a range of no bytes; -EFBIG: beyond what a file can have (of PUNCH
 * only if it begins there); -ENOSPC; -EOPNOTSUPP: not by this file system. Nothing is durable until vfs_sync. */
int vfs_space(struct vfs_space *s);

/* Where the next data (or hole) at or behind offset begins; every file has a hole at its end. */
struct vfs_seek {
	bool opened; /* as in struct vfs_io */
	bool hole;   /* a hole is looked for, not data */
	uint64_t offset;
	/* Results: pos is the file's size where there is none before the end. */
	uint64_t pos;
	bool eof;
};
/* 0; -ENXIO: offset is at the end or beyond; else as vfs_read. */
int vfs_seek(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_seek *s);

/* A part of a file. */
struct vfs_part {
	uint64_t offset, length; /* bytes */
	bool hole;		 /* it reads as zeros, and was not read */
};

/* A shorter hole is part of the data around it: to tell of it costs more than its zeros. A shorter
 * range is not searched for holes at all. */
#define VFS_HOLE_LEAST (32u << 10)
#define VFS_PARTS_MAX 8u

struct vfs_parts {
	bool opened; /* as in struct vfs_io */
	uint64_t offset;
	uint32_t count; /* offset + count is an offset of a file (off_t), too */
	unsigned most;	/* parts that are wanted at most, 1 to VFS_PARTS_MAX */
	/*
	 * Results: n parts in order and without a gap, from offset on. A range that was not searched
	 * is one part of data, which may exceed the end of the file. Else the parts end there at the
	 * latest, and none is empty.
	 */
	unsigned n;
	struct vfs_part part[VFS_PARTS_MAX];
	bool eof; /* if the last part is a hole, or there is none: the file ends there */
};
/*
 * Where the holes of a range are. If it has more parts than are wanted, the last one is data, holes
 * included. A hole is told of as it was at some moment of the call; data are to be read afterwards.
 * 0, or as vfs_read. It moves from a thread that must not block where it has to search.
 */
int vfs_parts(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_parts *p);

/*
 * Bytes that the removal of the object frees, at least: none as long as it has another name, and
 * none of the blocks that it shares with other files (vfs_clone). attr: of n. Of a file with very
 * many extents only the first ones count. 0 or -errno.
 */
int vfs_space_freed(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_attr *attr,
		    uint64_t *out);

#endif
