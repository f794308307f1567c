/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that operations on data share (vfs/data/read.c), and how a worker waits for the disk (vfs/data/sync.c). */
#ifndef RN_VFS_OPERATION_H
#define RN_VFS_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "vfs/io.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

/*
 * The granule of direct I/O, in the file and in memory. It is a multiple of what any device that we
 * know asks for (STATX_DIOALIGN: 512 or 4096), and no smaller than a page, so that direct and
 * buffered parts of one request never share a page of the cache. A file system that wants more
 * answers -EINVAL, and the request goes on buffered.
 */
#define VFS_DIRECT_ALIGN 4096u

/* A file's largest offset (off_t). */
#define VFS_OFFSET_MAX ((uint64_t)INT64_MAX)

/* Most restarts of an operation that the kernel broke off (-EINTR, -EAGAIN). */
#define VFS_IO_TRIES 16u

/* Tells the daemon about bytes that were moved: vfs_config.moved. */
void vfs_io_moved(const struct vfs_io *io, uint64_t read, uint64_t written);
/* Translates -EBADF, which means a bad file handle to callers and a bad descriptor here. */
int64_t vfs_io_answer(int64_t result);
/* True if the kernel broke off the operation, and another try may follow. */
bool vfs_io_again(unsigned *tries, int res);

/* True if the worker may itself wait for the disk with the node's file system: it has nothing else
 * under way, and flushes there usually end soon. */
bool vfs_group_may_wait(const struct vfs_worker *w, const struct vfs_node *n);
/* Such a wait took so many nanoseconds. */
void vfs_group_waited(struct vfs_worker *w, const struct vfs_node *n, uint64_t ns);

#endif
