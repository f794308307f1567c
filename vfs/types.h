/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Types that pass between the protocol folders and vfs/: attributes, identities, file handles. Times
 * and types are the kernel's (timespec, S_IF* modes). Errors everywhere below vfs/ are 0 or -errno.
 */
#ifndef RN_VFS_TYPES_H
#define RN_VFS_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define VFS_FH_MAX 64u /* NFS3_FHSIZE (RFC 1813 section 2.4); NFSv4 allows 128 */
#define VFS_NAME_MAX 255u
#define VFS_PATH_MAX 4095u /* a symbolic link's target */
#define VFS_GROUPS_MAX 64u

struct vfs_fh {
	uint32_t len;
	uint8_t data[VFS_FH_MAX];
};

/* An identity to act under: already squashed. */
struct vfs_cred {
	uint32_t uid, gid;
	uint32_t ngroups;
	uint32_t groups[VFS_GROUPS_MAX];
};

struct vfs_attr {
	uint32_t mode; /* S_IFMT and permission bits */
	uint32_t nlink;
	uint32_t uid, gid;
	uint64_t size;
	uint64_t used; /* bytes allocated */
	uint32_t rdev_major, rdev_minor;
	uint64_t fsid; /* the same after a restart; differs for each file system of an export */
	uint64_t fileid;
	struct timespec atime, mtime, ctime;
	uint64_t change; /* changes whenever data or metadata do: STATX_CHANGE_COOKIE or from ctime
			  */
	uint32_t blksize;
	bool has_btime;
	struct timespec btime; /* when it was made, where the file system knows */
};

struct vfs_acls;

/* Bytes of a security label (vfs/xattr.h); len 0: none. */
struct vfs_label {
	uint32_t len;
	const uint8_t *bytes;
};

enum vfs_set_time { VFS_TIME_KEEP, VFS_TIME_SERVER, VFS_TIME_CLIENT };

struct vfs_setattr {
	bool set_mode, set_uid, set_gid, set_size;
	uint32_t mode;	/* permission bits only */
	uint32_t umask; /* of what is made: taken from mode, unless the directory has a default ACL
			 */
	uint32_t uid, gid;
	uint64_t size;
	bool opened; /* the permission to set the size was checked when the file was opened */
	enum vfs_set_time set_atime, set_mtime;
	struct timespec atime, mtime;
	const struct vfs_acls *acls; /* vfs/xattr.h; after the mode, whose permissions they replace.
				      * NULL: not set */
	struct vfs_label label;	     /* the export must have it: vfs_label_supported */
};

struct vfs_statfs {
	uint64_t total_bytes, free_bytes, avail_bytes;
	uint64_t total_files, free_files, avail_files;
	uint32_t name_max, link_max;
	uint64_t size_max; /* bytes of the largest file */
	uint32_t block;	   /* bytes of a block: what vfs_clone's ranges must be aligned to */
	uint32_t time_ns;  /* nanoseconds by which times differ at least */
	bool links;	   /* symbolic and further hard links can be made */
	bool case_insensitive;
};

#endif
