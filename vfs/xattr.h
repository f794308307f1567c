/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended attributes of users, security labels and POSIX ACLs.
 *
 * Extended attributes (xattr(7)) of the namespace "user". Names are without that prefix here, so
 * that those of other namespaces can neither be named nor are they listed. The kernel decides under
 * the caller's identity: regular files and directories have such attributes, who may read or write
 * the object may do so with them, and in a sticky directory only its owner may change them.
 */
#ifndef RN_VFS_XATTR_H
#define RN_VFS_XATTR_H

#include "vfs/vfs.h"

/* The kernel's limits in bytes: of a name without the prefix, a value, a list of names with it. */
#define VFS_XATTR_NAME_MAX 250u
#define VFS_XATTR_SIZE_MAX 65536u
#define VFS_XATTR_LIST_MAX 65536u

/* Bytes without NUL inside; not NUL-terminated. */
struct vfs_xattr_name {
	const char *bytes;
	uint32_t len;
};

/* True if the file system of n has such attributes. The thread is root afterwards. */
bool vfs_xattr_supported(struct vfs_ctx *ctx, const struct vfs_node *n);

/* Reads a value into buf and returns its length; size 0: the length alone. -ENODATA: there is none
 * of that name; -ERANGE: it is longer than size; -EOPNOTSUPP; -ENAMETOOLONG, -EINVAL: no name. */
int vfs_xattr_get(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_xattr_name *name,
		  void *buf, uint32_t size);

/* Puts the names into buf, each with a NUL behind it, and returns their bytes. The caller must be
 * able to read the object: the kernel would list for anybody. -ERANGE: there are more; -E2BIG: the
 * kernel cannot list them, as they exceed VFS_XATTR_LIST_MAX. */
int vfs_xattr_list(struct vfs_ctx *ctx, struct vfs_node *n, char *buf, uint32_t size);

enum vfs_xattr_how {
	VFS_XATTR_EITHER,
	VFS_XATTR_CREATE,  /* -EEXIST if there is one */
	VFS_XATTR_REPLACE, /* -ENODATA if there is none */
	VFS_XATTR_REMOVE,  /* likewise; without a value */
};

struct vfs_xattr_change {
	enum vfs_xattr_how how;
	struct vfs_xattr_name name;
	const void *value;
	uint32_t size;
	/* Result: the object before and after. Atomic for directories only: writes to a file are
	 * not counted. */
	struct vfs_dir_change states;
};
/* -E2BIG: the value is too long; -ENOSPC and -EDQUOT, also if the object cannot hold it. */
int vfs_xattr_change(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_xattr_change *c);

/*
 * Security labels: the extended attribute in which SELinux keeps an object's context. They are
 * stored and shown, and decide nothing here ("limited server mode", RFC 7862 section 9.5.2); a
 * kernel with SELinux enforces its policy for this server as for any process. Clients have them on
 * exports with the option security_label only (VFS_SECURITY_LABEL).
 */

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

/*
 * POSIX ACLs (acl(5)), read and set as the extended attributes in which the kernel shows them.
 * Their layout is part of the kernel's interface (linux/posix_acl_xattr.h), and short; libacl
 * allocates for each entry and takes no O_PATH descriptor.
 */

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
struct vfs_acl_buffer {
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
int vfs_acl_get(const struct vfs_node *n, uint32_t mode, struct vfs_acl_buffer *room,
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
