/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories and files of an export that other mounts lie over. An export without crossmnt reaches its files through a clone of the
 * mount, which shows what is beneath. Clients would write there where nobody looks for it, so nothing beneath is shown or changed.
 *
 * Which they are is looked up by the first call that has to know it after a change of the mount table: it waits for the export's own
 * file system alone, and so does nobody else.
 */
#ifndef RN_VFS_COVERED_H
#define RN_VFS_COVERED_H

#include "vfs/node/node.h"

/* Checks that the caller may change the node: 0; -EROFS: not by the export's options; -EACCES: it is covered. As
 * vfs_node_is_covered() otherwise. */
int vfs_check_writable(struct vfs_ctx *ctx, const struct vfs_node *n);

#endif
