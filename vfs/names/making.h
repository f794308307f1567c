/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that making files shares with making directories, links and special files. */
#ifndef RN_VFS_MAKING_H
#define RN_VFS_MAKING_H

#include "vfs/vfs.h"

/* Modes where the client asks for none: its owner's alone. */
#define VFS_MODE_FILE 0600u
#define VFS_MODE_DIR 0700u

/* Checks that clients may change dir: a directory of a writable export that no mount covers. */
int vfs_dir_check(struct vfs_ctx *ctx, const struct vfs_node *dir);

/* Checks that something can be made in dir, and the attributes
 * (NULL: none). */
int vfs_create_check(struct vfs_ctx *ctx, const struct vfs_node *dir, const struct vfs_setattr *sa);

/* sa (NULL: none) for something that is made in dir: its umask is taken from its mode, or passed
 * over if a default ACL says who may do what (RFC 8275 section 5). With an access ACL to be set it is
 * made without permissions. */
struct vfs_setattr vfs_create_attrs(const struct vfs_node *dir, const struct vfs_setattr *sa);

/* The end of each: fetches the attributes if attr is not NULL, even if the object has lost its name meanwhile; puts the
 * node on failure. */
int vfs_created(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *attr);
/* The same for a new object, with the attributes of sa that it was not made with set before. */
int vfs_made(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
	     struct vfs_attr *attr);

#endif
