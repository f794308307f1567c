/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "vfs/names/name.h"

int vfs_name_from(struct vfs_name *out, const char *name, uint32_t len)
{
	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || memchr(name, '\0', len) || memchr(name, '/', len))
		return -EINVAL;
	memcpy(out->s, name, len);
	out->s[len] = '\0';
	return 0;
}

bool vfs_name_is_dot(const struct vfs_name *name)
{
	return strcmp(name->s, ".") == 0;
}

bool vfs_name_is_dotdot(const struct vfs_name *name)
{
	return strcmp(name->s, "..") == 0;
}
