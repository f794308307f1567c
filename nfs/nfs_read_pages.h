/* SPDX-License-Identifier: BSD-2-Clause */
/* READ without a copy. */
#ifndef RN_NFS_NFS_READ_PAGES_H
#define RN_NFS_NFS_READ_PAGES_H

#include "rpc/request.h"
#include "vfs/io.h"

/*
 * Runs the READ at once if the transport takes pipes, one is to be had, and the data are cached. The
 * pipe holds io->result bytes, for xdr_put_pipe. NULL: the READ is still to be run, by vfs_read.
 */
struct rn_pipe *nfs_read_pages(const struct rpc_request *req, struct vfs_io *io);

#endif
