/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POSIX ACLs (acl(5)), read and set as the extended attributes in which the kernel shows them.
 * Their layout is part of the kernel's interface (linux/posix_acl_xattr.h), and short; libacl
 * allocates for each entry and takes no O_PATH descriptor.
 */
#ifndef RN_VFS_ACL_H
#define RN_VFS_ACL_H

#include "vfs/vfs.h"

/* Most entries of one ACL that are read or set: as many as NFSACL can carry. ext4 holds about half
 * of that, XFS more. */
#define VFS_ACL_MAX 1024u

/* Tags, permissions and the id of entries without one: the kernel's values. */
enum vfs_acl_tag {
	VFS_ACL_USER_OBJ = 0x01,
	VFS_ACL_USER = 0x02,
	VFS_ACL_GROUP_OBJ = 0x04,
	VFS_ACL_GROUP = 0x08,
	VFS_ACL_MASK = 0x10,
	VFS_ACL_OTHER = 0x20,
};
#define VFS_ACL_READ 4u
#define VFS_ACL_WRITE 2u
#define VFS_ACL_EXEC 1u
#define VFS_ACL_NO_ID UINT32_MAX

struct vfs_acl_entry {
	uint16_t tag, perm;
	uint32_t id; /* uid or gid, for VFS_ACL_USER and VFS_ACL_GROUP */
};

/* In the kernel's order: by tag, entries of one tag by id. */
struct vfs_acl {
	uint32_t count; /* 0: there is none */
	const struct vfs_acl_entry *entry;
};

struct vfs_acls {
	struct vfs_acl access;
	struct vfs_acl inherited; /* the default ACL: directories only */
	/* For vfs_acl_set. True: the one that is there stays, whatever stands above. */
	bool keep_access, keep_inherited;
};

/* Room for the entries of both ACLs. */
struct vfs_acl_room {
	struct vfs_acl_entry access[VFS_ACL_MAX], inherited[VFS_ACL_MAX];
};

/* True if the file system of n has ACLs, and the export shows them (VFS_NO_ACL). Its symbolic links
 * have none all the same. */
bool vfs_acl_supported(const struct vfs_ctx *ctx, const struct vfs_node *n);

/*
 * The ACLs of n, which point into room. If n has no access ACL, it is made from mode (its
 * permission bits). Needs no permission, like other attributes. 0 or -errno: -EOPNOTSUPP: n can
 * have none; -E2BIG: more than VFS_ACL_MAX entries.
 */
int vfs_acl_get(const struct vfs_node *n, uint32_t mode, struct vfs_acl_room *room,
		struct vfs_acls *out);

/* The access ACL that permission bits stand for. */
#define VFS_ACL_OF_MODE 3u /* entries */
void vfs_acl_from_mode(uint32_t mode, struct vfs_acl_entry room[VFS_ACL_OF_MODE],
		       struct vfs_acl *out);

/* Brings entries into the kernel's order. */
void vfs_acl_sort(struct vfs_acl_entry *entry, uint32_t count);

/* Sets both, or removes one that has no entries, under the thread's identity: only the owner may.
 * Both or, as far as the file system can undo a change, none. -EACCES: a default ACL for what is no
 * directory. */
int vfs_acl_set(struct vfs_node *n, const struct vfs_acls *acls);

#endif
