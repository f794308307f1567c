/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path. An operation waits in its fiber for the worker's ring, while the worker serves others. It goes on on the
 * same worker; from a thread that must not block it moves where it would have to.
 */
#ifndef RN_VFS_IO_H
#define RN_VFS_IO_H

#include <sys/queue.h>
#include <sys/uio.h>

#include "vfs/vfs.h"

struct vfs_wait;

#define VFS_IO_PIECES 4u
#define VFS_SYNC_NODES 3u

/* One operation of the ring (vfs/worker/worker_state.h). */
struct vfs_ring_op {
	void (*complete)(struct vfs_ring_op *op, int res);
	void *owner; /* the vfs_sync that contains it */
	int res;
	STAILQ_ENTRY(vfs_ring_op) link;
};

enum vfs_stable {
	VFS_UNSTABLE = 0,
	VFS_DATA_SYNC = 1,
	VFS_FILE_SYNC = 2
}; /* RFC 1813 stable_how */

/* Ways in which an operation makes a regular file's data durable (vfs/node/uncommitted.h). */
enum vfs_syncing_kind {
	VFS_SYNCING_ALL,   /* fsync of the whole file */
	VFS_SYNCING_PART,  /* fsync of a range */
	VFS_SYNCING_WRITE, /* a synchronous write */
};
struct vfs_syncing {
	enum vfs_syncing_kind kind;
	unsigned failed;
	uint64_t covers;
	bool lost; /* at the end: data written by this operation or others may be lost */
};

/* A change of a file under way (vfs/hold/file_change.h); vfs/'s own. */
struct vfs_file_change {
	_Atomic uint32_t *count; /* NULL: it is not counted */
	uint32_t by;		 /* its part of the count */
};

struct vfs_io {
	struct vfs_ctx *ctx;
	struct vfs_node *node; /* the caller has a reference */
	uint64_t offset;
	uint32_t count;
	/*
	 * The permission was checked when the file was opened (an NFSv4 stateid), and is not
	 * checked again. A read-only export still refuses writes. Writes clear setuid and setgid
	 * bits as writes by users do.
	 */
	bool opened;

	/* READ: destination; payload->size >= count (in direct mode with room for alignment:
	 * vfs_read_buffer_size). The data starts at payload->data + data_off. */
	struct rn_payload *payload;
	uint32_t data_off;
	bool eof;
	/* READ: true if attr are the file's attributes as they were just before its data were read.
	 * What a client keeps under them is never older than they are. */
	bool has_attr;
	struct vfs_attr attr;

	/* WRITE: source, count bytes altogether; piece_payload[i] holds piece[i] or is NULL. */
	struct iovec piece[VFS_IO_PIECES];
	struct rn_payload *piece_payload[VFS_IO_PIECES];
	unsigned npieces;
	enum vfs_stable stable; /* stability asked for; the result is at least that */

	struct {				 /* vfs/'s own */
		struct iovec iov[VFS_IO_PIECES]; /* bytes that the operation under way moves */
		uint32_t moved;
		uint32_t window; /* READ: bytes to read from the file, from offset - data_off */
		uint32_t tries;
		bool direct;
		bool synced;   /* WRITE: on disk before it is answered */
		bool buffered; /* WRITE: some is in the page cache */
		struct vfs_syncing syncing;
		struct vfs_file_change change; /* WRITE */
	} priv;
};

/* Payload size that a READ of count bytes at offset needs on this export. */
uint32_t vfs_read_buffer_size(const struct vfs_export *exp, uint64_t offset, uint32_t count);

/*
 * READ or WRITE: bytes moved, or -errno. The owner of a file may read and write it whatever its mode says (NFSv3
 * has no open; RFC 1813 section 4.4). Regular files only: -EISDIR, -EINVAL for others. A read of an
 * executable file is allowed with execute permission.
 */
int64_t vfs_read(struct vfs_io *io);

/* A READ of fewer bytes costs no more when they are copied (on an event thread, up to 64 KiB). */
#define VFS_PAGES_LEAST (68u << 10)
struct rn_pipe;
/*
 * Reads into an empty pipe if all of the data is in the page cache, at once and without a copy.
 * True: it holds at least one byte, and io->eof is set. False: nothing is known, not even whether the caller may
 * read; vfs_read tells.
 */
bool vfs_read_pages(struct vfs_io *io, struct rn_pipe *pipe);

int64_t vfs_write(struct vfs_io *io);
/* Makes offset..offset+count (count 0: to the end) durable. 0 or -errno. */
int vfs_commit(struct vfs_io *io);

#define VFS_SYNC_METADATA UINT64_MAX

STAILQ_HEAD(vfs_sync_list, vfs_sync);

/* Kind of change that a vfs_sync makes durable. */
enum vfs_sync_how {
	VFS_SYNC_EACH,	   /* nothing is known */
	VFS_SYNC_ONE_STEP, /* one system call has changed all of them, and none was changed since */
	VFS_SYNC_MADE,	   /* node[1] was made in the directory node[0], and may have been changed
			      since; it has no data */
};

/*
 * Makes metadata changes durable: every node of the list (directories whose entries changed, new or
 * changed inodes). Does nothing on an async export. Never fails for want of descriptors, since the
 * change has been made.
 */
struct vfs_sync {
	struct vfs_ctx *ctx;
	struct vfs_node *node[VFS_SYNC_NODES]; /* NULL entries are skipped */
	/* Data of regular files from this page on are made durable, too; VFS_SYNC_METADATA: none
	 * is, as far as the file system can tell the two apart (btrfs cannot). */
	uint64_t data_from;
	enum vfs_sync_how how;
	/* Something that is neither file nor directory has just been made, in one step with its
	 * entry in the directory of the list. */
	bool with_entry;
	struct { /* vfs/'s own */
		int result;
		struct vfs_wait *wait;
		struct vfs_ring_op op[VFS_SYNC_NODES];
		struct vfs_syncing syncing[VFS_SYNC_NODES];
		unsigned started; /* bits by node: syncing has begun */
		unsigned pending;
		unsigned again;	 /* bits by node: synced for the second time */
		unsigned by_log; /* the node that log_fd stands for */
		STAILQ_ENTRY(vfs_sync) link;
		/* Used in the first change of a flush only (vfs/data/sync.c): */
		struct vfs_sync_list others;
		struct vfs_node *by; /* node that is flushed; NULL: all of the log, by log_fd */
		uint64_t began;
		int log_fd; /* vfs/data/sync.c; -1: none */
	} priv;
};
int vfs_sync(struct vfs_sync *s); /* 0 or -errno */

/* The verifier of WRITE and COMMIT (vfs/export/mounts.h): it changes with each start, and when
 * unstable data below the export may have been lost. */
uint64_t vfs_write_verifier(const struct vfs_export *exp);

/*
 * What has to outlive this run of the server: a descriptor that tells whether any write-back of n has failed and not changed the verifier,
 * since before the first byte that n has not on disk. The next program asks it. n is in use and was written. -1: there is none.
 */
int vfs_errors_open(struct vfs_node *n);
void vfs_errors_load(struct vfs *vfs, int fd); /* in the next program; -1: nothing */
/* True if one has failed since the last question. The run that has opened it does not ask. -1: false. */
bool vfs_errors_seen(int fd);
void vfs_errors_close(struct vfs *vfs, int fd); /* -1: nothing */

#endif
