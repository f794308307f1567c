/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The space of files: reserving and giving back a range (which waits in its fiber, as a file
 * system may take long over a large one), where data and holes are, copying a range to another file, advice about
 * its use, and quotas.
 */
#ifndef RN_VFS_SPACE_H
#define RN_VFS_SPACE_H

#include "vfs/io.h"
#include "vfs/vfs.h"

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

/* Start of the next data (or hole) at or behind offset; every file has a hole at its end. */
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
	bool hole;		 /* the range reads as zeros, and was not read */
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
* Finds the holes of a range. If it has more parts than are wanted, the last one is data, holes
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

/*
 * A range of one file copied to another file, by the kernel: the two may be in different exports,
 * where the caller may have different identities. vfs_copy waits in its fiber;
 * vfs_clone is one system call.
 */

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
	/* True if a range that ends behind the source's end is cut there; else that is -EINVAL. */
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

/*
 * Advice about the use of a range of a regular file, as posix_fadvise(2) takes it. Whoever may read
 * the file may give it. Exports in direct mode follow none, as they pass the page cache by.
 *
 * A pattern of access belongs to the file's descriptors, which all callers share. So it is kept for
 * reads of the caller that gave it, and ends with another caller's first READ. The page cache is
 * shared, too: pages are dropped only if nobody else has the file open.
 */

enum vfs_advice {
	VFS_ADVICE_SEQUENTIAL = 1, /* reads go from lower to higher offsets: more is read ahead */
	VFS_ADVICE_RANDOM = 2,	   /* nothing is read ahead */
	VFS_ADVICE_WILLNEED = 4,   /* starts to read VFS_PREFETCH_MAX bytes of the range at most */
	VFS_ADVICE_DONTNEED = 8,   /* drops pages of the range that are on disk already */
};

#define VFS_PREFETCH_MAX (4u << 20)

struct vfs_advise {
	struct vfs_ctx *ctx;
	struct vfs_node *node; /* the caller has a reference */
	/* enum vfs_advice. Without a pattern, the pattern that the same caller gave before ends. */
	unsigned advice;
	uint64_t offset, length; /* bytes; length 0: to the end */
	unsigned own_shares;	 /* shares (vfs/share.h) of the file that are the caller's */
};

/* Returns the bits of the advice that are followed. The fiber waits for the disk. Advice that cannot be followed is not
 * followed; nothing else fails. */
unsigned vfs_advise(struct vfs_advise *a);

/* Disk quotas of users and groups. */

/* Quota of a user, as it bounds what a file may grow to. Bytes. What nobody limits is limited by the
 * file system. */
struct vfs_quota {
	uint64_t used;	     /* by all files of that owner on the file system */
	uint64_t avail_hard; /* until an allocation is refused */
	uint64_t avail_soft; /* until the owner is over the soft limit */
};

/* True if the file system of n counts what each user has there. False on kernels before 5.14. */
bool vfs_quota_supported(const struct vfs_node *n);

/* Quota of the files of uid. 0 or -errno; -ESRCH: no quotas there. */
int vfs_quota_get(struct vfs_ctx *ctx, struct vfs_node *n, uint32_t uid, struct vfs_quota *out);

/* Limits as they are set, and what is used. */
struct vfs_quota_limit {
	uint64_t hard, soft; /* 0: none */
	uint64_t used;
	int64_t until; /* seconds since 1970: end of the time above the soft limit; 0: not above it */
};

struct vfs_quota_row {
	struct vfs_quota_limit bytes, files;
};

/* Quota of a user or a group on the file system of n. 0 or -errno; -ESRCH: no quotas there. */
int vfs_quota_row(const struct vfs_node *n, bool group, uint32_t id, struct vfs_quota_row *out);

#endif
