/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Facts about a file system from the kernel: its identity, how it keeps metadata, whether others change it, and what of a
 * file is in the page cache. Also the number of a device, and the path of a descriptor under /proc.
 */
#ifndef RN_VFS_FS_FILE_SYSTEM_H
#define RN_VFS_FS_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The identity of a file system: it stays the same over remounts, restarts and reboots, and changes
 * when a different file system takes the place. doc/design/exports.md has the reasons. */
enum vfs_fs_id_kind {
	VFS_FS_ID_GIVEN,  /* fsid= of exports(5) replaces it: the export's id is enough */
	VFS_FS_ID_UUID,	  /* UUID as text, as libblkid and the kernel have it */
	VFS_FS_ID_STATFS, /* f_fsid of statfs(2) */
	VFS_FS_ID_DEVICE, /* device number, for want of anything better */
};

#define VFS_FS_ID_MAX 46u /* padding: with the two members before it a multiple of 8 */

struct vfs_fs_id {
	uint8_t kind;
	uint8_t len;
	uint8_t bytes[VFS_FS_ID_MAX];
};

/* The identity of the file system that fd (O_PATH will not do) lies on. May read its device; the
 * thread must be root. 0 or -errno. */
int vfs_fs_id_of(int fd, struct vfs_fs_id *out);

/* Properties of a file system that the server relies on, from its type and features. A type that is not known has none of them. */
struct vfs_fs_traits {
	/* This machine's own: ext4, XFS, btrfs, F2FS or tmpfs. Nobody else changes it, and it does not wait for other machines or processes. */
	bool local;
	/* Handles follow from the inode: vfs/fs/handle.h. */
	bool handles_by_inode;
	/*
	 * All changes of metadata go into one log that is written in their order. An fsync of an inode then covers everything that
	 * was changed before that inode's last change: ext4 with a journal, XFS.
	 */
	bool one_log;
	/*
	 * A file that was made without a name (O_TMPFILE) and then linked is there after a power failure once it was synced: XFS, btrfs,
	 * tmpfs, and ext4 without fast commits, whose records leave out that such a file was made.
	 */
	bool keeps_linked;
	/* Each change that follows a look has a ctime of its own (vfs/fs/change.h): of directories, and of all else. */
	bool fine_dirs, fine_files;
};

/* The properties of the file system that fd lies on. fd may not be of O_PATH, as ioctl(2) asks for features; those of ext4 are read from its
 * device, so the thread must be root. */
struct vfs_fs_traits vfs_fs_traits_of(int fd);

/*
 * Facts about file systems that were found while exports were opened one after the other, so that each is found once. A descriptor
 * holds each file system, so that no other one can take its device number. To be zeroed before, and closed at the end.
 */
enum { VFS_FS_SEEN = 8 };

struct vfs_fs_facts {
	uint64_t dev, fsid; /* device number, and what statfs(2) tells */
	long type;
	int fd;
	bool has_id, has_traits; /* true if the member is filled */
	struct vfs_fs_id id;
	struct vfs_fs_traits traits;
};

struct vfs_fs_seen {
	unsigned n; /* file systems so far: the last ones are there */
	struct vfs_fs_facts fs[VFS_FS_SEEN];
};

/* Facts, to be filled, about the file system that fd lies on. NULL: they cannot be kept. */
struct vfs_fs_facts *vfs_fs_seen_find(struct vfs_fs_seen *seen, int fd);
void vfs_fs_seen_close(struct vfs_fs_seen *seen);

/* Pages of a range of the file that are in the page cache; -ENOSYS before Linux 6.5, or -errno. */
int64_t vfs_cached_pages(int fd, uint64_t offset, uint64_t len);

/* One number for the device that a file is on. */
static inline uint64_t vfs_device_of(const struct statx *sx)
{
	return (uint64_t)sx->stx_dev_major << 32 | sx->stx_dev_minor;
}

static inline uint64_t vfs_device_number(dev_t dev)
{
	return (uint64_t)major(dev) << 32 | minor(dev);
}

/* The path of a descriptor under /proc, "/proc/self/fd/N": for calls that take no descriptor of an O_PATH file. */
struct vfs_proc_path {
	char s[32];
};

static inline struct vfs_proc_path vfs_proc_path(int fd)
{
	struct vfs_proc_path p;

	snprintf(p.s, sizeof(p.s), "/proc/self/fd/%d", fd);
	return p;
}

#endif
