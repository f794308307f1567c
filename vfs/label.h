/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Security labels: the extended attribute in which SELinux keeps an object's context. They are
 * stored and shown, and decide nothing here ("limited server mode", RFC 7862 section 9.5.2); a
 * kernel with SELinux enforces its policy for this server as for any process. Clients have them on
 * exports with the option security_label only (VFS_SECURITY_LABEL).
 */
#ifndef RN_VFS_LABEL_H
#define RN_VFS_LABEL_H

#include "vfs/vfs.h"

#define VFS_LABEL_MAX 4096u /* bytes; a longer label is not shown */

/* True if the export shows labels to this client, and the file system of n has them. The thread is
 * root afterwards. */
bool vfs_label_supported(struct vfs_ctx *ctx, const struct vfs_node *n);

/* Reads the label of n into buf and returns its length. Needs no permission, like other attributes.
 * -ENODATA: it has none, or a longer one. */
int vfs_label_get(struct vfs_ctx *ctx, struct vfs_node *n, uint8_t buf[VFS_LABEL_MAX]);

/* Sets the label as root, as the kernel without SELinux lets nobody else: the caller has checked
 * that the client may. 0 or -errno; -RN_ELABEL (vfs/file_state.h). */
int vfs_label_set(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_label *label);

#endif
