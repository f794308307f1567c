/* SPDX-License-Identifier: BSD-2-Clause */
/* Bulk arguments: they stay where the transport put them, perhaps in pieces. */
#ifndef RN_NFS_BULK_H
#define RN_NFS_BULK_H

#include "rpc/request.h"
#include "rpc/xdr_in.h"
#include "vfs/io.h"

/* Makes io write the first count bytes of data. */
void nfs_bulk_to_write(struct vfs_io *io, const struct xdr_bulk *data, uint32_t count);

/* Copies a symbolic link's text to the arena, NUL-terminated. 0; -ENAMETOOLONG; -EINVAL: it is empty
 * or contains a NUL; -ENOMEM: the arena is full. */
int nfs_bulk_to_path(struct rn_arena *arena, const struct xdr_bulk *text, char **out);

/* READ without a copy. */

/*
 * Runs the READ at once if the transport takes pipes, one is to be had, and the data are cached. The
 * pipe holds io->result bytes, for xdr_put_pipe. NULL: the READ is still to be run, by vfs_read.
 */
struct rn_pipe *nfs_read_pages(const struct rpc_request *req, struct vfs_io *io);

#endif
