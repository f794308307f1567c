/* SPDX-License-Identifier: BSD-2-Clause */
/* Bulk arguments, which lie where the transport put them, perhaps in pieces. */
#ifndef RN_NFS_BULK_H
#define RN_NFS_BULK_H

#include "rpc/xdr_in.h"
#include "vfs/io.h"

/* io writes the first count bytes of data. */
void nfs_bulk_to_write(struct vfs_io *io, const struct xdr_bulk *data, uint32_t count);

/* *out is a NUL-terminated copy of a symbolic link's text in the arena. 0; -ENAMETOOLONG; -EINVAL:
 * empty, or has a NUL; -ENOMEM: the arena is full. */
int nfs_bulk_to_path(struct rn_arena *arena, const struct xdr_bulk *text, char **out);

#endif
