/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a packed file handle, VFS_PACKED_FH of them. Big-endian:
 *
 *    0      version: 2, with the top bit set if it ends with a MAC
 *    1      length of the kernel's handle, 1..12
 *    2      type of the kernel's handle, 1..254
 *    3      zero
 *    4..7   export id
 *    8..11  submount id
 *    12..23 the kernel's handle, then zeros
 *    24..31 SipHash-2-4 over all before, or zeros
 *
 * The key is that of the longer form (vfs/fs/handle.h). The two forms differ in their first byte,
 * which both MACs cover, so no MAC of one is good for the other.
 */
#ifndef RN_VFS_PACKED_HANDLE_H
#define RN_VFS_PACKED_HANDLE_H

#include "vfs/fs/handle.h"
#include "vfs/packed.h"

/* 0, or -EOPNOTSUPP: the kernel's handle does not fit. */
int vfs_packed_encode(const struct vfs_handle *h, vfs_handle_key key, struct vfs_packed_fh *out);
/* 0, or -EBADF: not in the form of a packed handle. */
int vfs_packed_parse(const struct vfs_packed_fh *fh, bool has_mac, struct vfs_handle *out);
/* 0, or -ESTALE: the MAC differs. */
int vfs_packed_check(const struct vfs_packed_fh *fh, vfs_handle_key key);

#endif
