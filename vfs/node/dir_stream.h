/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open directory streams. A stream is a descriptor whose position is its owner's alone while it is
 * in use; between calls it waits at its node with the position it stands at, so that the reader
 * that goes on from there needs no search. Two readers of a directory have two streams.
 */
#ifndef RN_VFS_DIR_STREAM_H
#define RN_VFS_DIR_STREAM_H

#include "vfs/node/node.h"

struct vfs_dir_stream {
	struct vfs_dir_stream *next;
	uint64_t pos; /* the cookie where the next read goes on */
	int fd;
};

/* A stream of the node at cookie. The thread must be root. */
int vfs_dir_stream_get(struct vfs_node *n, uint64_t cookie, struct vfs_dir_stream **out);
/* Gives it back; it stays open if the node has not too many. */
void vfs_dir_stream_put(struct vfs_node *n, struct vfs_dir_stream *s);
/* Closes the idle ones. */
void vfs_dir_streams_close(struct vfs_node *n);

#endif
