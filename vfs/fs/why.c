/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/vfs.h>

#include "lib/util.h"
#include "vfs/fs/why.h"

#define FUSE_MAGIC 0x65735546

static const struct {
	unsigned long magic;
	const char *text;
} known[] = {
	{ OVERLAYFS_SUPER_MAGIC,
	  "overlayfs has file handles only when mounted with nfs_export=on,index=on" },
	{ FUSE_MAGIC, "this FUSE file system gives no lasting file handles" },
	{ NFS_SUPER_MAGIC,
	  "NFS mounts cannot be exported again: their file handles are too long; refer= sends "
	  "clients to the server itself" },
	{ CIFS_SUPER_MAGIC, "SMB mounts have no file handles" },
	{ SMB2_SUPER_MAGIC, "SMB mounts have no file handles" },
	{ PROC_SUPER_MAGIC, "/proc has no file handles" },
	{ RAMFS_MAGIC, "ramfs has no file handles; tmpfs has" },
};

const char *vfs_why_no_handles(int fd, int error)
{
	struct statfs fs;

	if (error == -EPERM)
		return "open_by_handle_at(2) is not permitted: the daemon needs "
		       "CAP_DAC_READ_SEARCH";
	if (error == -ENOSYS)
		return "this kernel cannot open files by handle (open_by_handle_at(2))";
	if (error != -EOPNOTSUPP && error != -ESTALE && error != -EINVAL)
		return strerrordesc_np(-error);
	for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < rn_array_size(known); i++) {
		if ((unsigned long)fs.f_type == known[i].magic)
			return known[i].text;
	}
	return "this file system has no file handles that fit into NFS's";
}
