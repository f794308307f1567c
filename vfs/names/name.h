/* SPDX-License-Identifier: BSD-2-Clause */
/* Names as they come from the wire, made fit for system calls. */
#ifndef RN_VFS_NAME_H
#define RN_VFS_NAME_H

#include "vfs/types.h"

struct vfs_name {
	char s[VFS_NAME_MAX + 1];
};

/* 0; -EINVAL: empty, or with a NUL or '/' inside; -ENAMETOOLONG. */
int vfs_name_from(struct vfs_name *out, const char *name, uint32_t len);
/* True for "." and "..". */
static inline bool vfs_name_is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}
bool vfs_name_is_dot(const struct vfs_name *name);
bool vfs_name_is_dotdot(const struct vfs_name *name);

#endif
