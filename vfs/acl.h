/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POSIX ACLs (acl(5)), read and set as the extended attributes by which the kernel shows them.
 * Their layout is part of the kernel's interface (linux/posix_acl_xattr.h), and short: libacl would
 * bring a library that allocates for each entry and takes no O_PATH descriptor.
 */
#ifndef RN_VFS_ACL_H
#define RN_VFS_ACL_H

#include "vfs/vfs.h"

/* Entries of one ACL that are read or set: what ext4 can hold, and more than anybody has. */
#define VFS_ACL_MAX 512u

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
	uint32_t id; /* of VFS_ACL_USER and VFS_ACL_GROUP */
};

/* In the kernel's order: by tag, those of a tag by id. */
struct vfs_acl {
	uint32_t count; /* 0: there is none */
	const struct vfs_acl_entry *entry;
};

struct vfs_acls {
	struct vfs_acl access;
	struct vfs_acl inherited; /* the default ACL: directories only */
};

/* Where entries of both are read into. */
struct vfs_acl_room {
	struct vfs_acl_entry access[VFS_ACL_MAX], inherited[VFS_ACL_MAX];
};

/* True if the file system of n has ACLs. Its symbolic links have none all the same. */
bool vfs_acl_supported(const struct vfs_node *n);

/*
 * The ACLs of n, which point into room. What has none of its own is given the one that mode (its
 * permission bits) says. Nobody needs a right for that, as for other attributes. 0 or -errno:
 * -EOPNOTSUPP: it can have none; -E2BIG: more than VFS_ACL_MAX entries.
 */
int vfs_acl_get(const struct vfs_node *n, uint32_t mode, struct vfs_acl_room *room,
		struct vfs_acls *out);

/* Sets both, or takes away a default ACL that there shall not be, as whoever the thread is now:
 * only the owner may. Both or, as long as the file system can take back what it has done, none. */
int vfs_acl_set(struct vfs_node *n, const struct vfs_acls *acls);

#endif
