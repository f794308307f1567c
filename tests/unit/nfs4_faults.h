/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures on demand of the functions that NFSv4's operations call. The linker's --wrap puts
 * wrappers around these functions (tests/unit/nfs4_errors.inc has the same list). */
#ifndef RN_TESTS_NFS4_FAULTS_H
#define RN_TESTS_NFS4_FAULTS_H

enum fault {
	FAULT_NONE,
	FAULT_VFS_GETATTR,
	FAULT_VFS_SETATTR,
	FAULT_VFS_LOOKUP,
	FAULT_VFS_PEEK,
	FAULT_VFS_ACCESS,
	FAULT_VFS_OPEN_CHECK,
	FAULT_VFS_READLINK,
	FAULT_VFS_CREATE,
	FAULT_VFS_MKDIR,
	FAULT_VFS_SYMLINK,
	FAULT_VFS_MKNOD,
	FAULT_VFS_REMOVE,
	FAULT_VFS_RMDIR,
	FAULT_VFS_RENAME,
	FAULT_VFS_LINK,
	FAULT_VFS_READDIR,
	FAULT_VFS_STATFS,
	FAULT_VFS_ROOT,
	FAULT_VFS_FH_OPEN,
	FAULT_VFS_SEEK,
	FAULT_VFS_PARTS,
	FAULT_VFS_XATTR_GET,
	FAULT_VFS_XATTR_LIST,
	FAULT_VFS_XATTR_CHANGE,
	FAULT_VFS_LABEL_GET,
	FAULT_VFS_LABEL_SET,
	FAULT_VFS_SPACE_FREED,
	FAULT_VFS_CLONE,
	FAULT_VFS_FILE_GET,
	FAULT_VFS_SHARE_OPEN,
	FAULT_VFS_LOCK,
	FAULT_VFS_UNLOCK,
	FAULT_VFS_LOCK_TEST,
	FAULT_VFS_READ,
	FAULT_VFS_WRITE,
	FAULT_VFS_COMMIT,
	FAULT_VFS_SPACE,
	FAULT_VFS_COPY,
	FAULT_VFS_SYNC,
	FAULT_NFS4_GROW_REPLY,
	FAULT_NFS4_RESERVE_REPLY,
};

/* Function that fails at each call, and its result: -errno, or an nfsstat4. */
extern enum fault fault_at;
extern int fault_result;
extern unsigned fault_spared; /* calls that succeed before the first failure */
extern unsigned fault_hits;   /* failures so far */

#endif
