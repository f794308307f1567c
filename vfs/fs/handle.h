/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a file handle. Big-endian:
 *
 *    0      version: 1, with the top bit set if a MAC follows
 *    1      length of the kernel's handle, 1..48 (..40 with a MAC)
 *    2..3   zero
 *    4..7   export id
 *    8..11  submount id; 0: the export's own file system
 *    12..15 type of the kernel's handle, 1..254
 *    16..   the kernel's handle, then the 8 bytes of a SipHash-2-4 over all before
 *
 * No device number is in it: those change from boot to boot. Every field is checked whether or not
 * there is a MAC, and one file of an export has one handle only.
 *
 * The MAC's key is that of the mount that the file lies on (vfs/export/mounts.c): made of the secret
 * and of what the mount's root is. So a handle ends when its export becomes another directory, or
 * another file system takes its place, and nothing of that is in its bytes.
 */
#ifndef RN_VFS_HANDLE_H
#define RN_VFS_HANDLE_H

#include "vfs/packed.h"
#include "vfs/types.h"

#define VFS_KERNEL_FH_MAX 48u

struct vfs_handle {
	uint32_t export_id;
	uint32_t submount_id;
	int32_t type;
	uint32_t len;
	uint8_t bytes[VFS_KERNEL_FH_MAX];
};

#define VFS_HANDLE_KEY_LEN 16u
/* Key of the MAC; NULL: handles carry none. */
typedef const uint8_t *vfs_handle_key;

/* 0, or -EOPNOTSUPP: the kernel's handle is too long or of a type out of range. */
int vfs_handle_encode(const struct vfs_handle *h, vfs_handle_key key, struct vfs_fh *out);
/* 0, or -EBADF: not in the form of a handle. Nothing in it can be trusted before its MAC is
 * checked, which needs the key of the mount that it names. */
int vfs_handle_parse(const struct vfs_fh *fh, bool has_mac, struct vfs_handle *out);
/* 0, or -ESTALE: the MAC differs. A forged handle cannot be told from one given before the mount's
 * root was replaced, so the status is the right one for the latter. */
int vfs_handle_check(const struct vfs_fh *fh, vfs_handle_key key);

/* Type and bytes of the kernel's handle within a decoded or encoded handle: the same for one file
 * in all exports. */
const uint8_t *vfs_handle_file_part(const struct vfs_fh *fh, uint32_t *len);

/* Hash of such a part without a key, for tables of slots that files share. */
uint64_t vfs_handle_part_hash(const uint8_t *part, uint32_t len);

/* The kernel's handle of name in dirfd, or of dirfd itself for "" (symbolic links are not
 * followed), and the id of its mount. Fills type, len and bytes. -EOPNOTSUPP: none, or too long. */
int vfs_handle_of(int dirfd, const char *name, struct vfs_handle *out, uint64_t *mnt_id);
/* True if the handle is certainly that inode's. Of the layouts that name the inode, known are the
 * generic one and XFS's with 64 bits; false for the others. */
bool vfs_handle_shows_inode(const struct vfs_handle *h, uint64_t ino);
/* The inode's number and its subvolume, by which btrfs tells apart inodes of one number. false: the
 * handle is not of btrfs. */
bool vfs_handle_subvolume(const struct vfs_handle *h, uint64_t *ino, uint64_t *subvolume);
/* As above, for a decoded or encoded handle. */
bool vfs_fh_subvolume(const struct vfs_fh *fh, uint64_t *ino, uint64_t *subvolume);
/* open_by_handle_at(2), O_PATH. The descriptor or -errno. */
int vfs_handle_open(int mount_fd, const struct vfs_handle *h);

/*
 * The bytes of a packed file handle, VFS_PACKED_FH of them. Big-endian:
 *
 *    0      version: 2, with the top bit set if it ends with a MAC
 *    1      length of the kernel's handle, 1..12
 *    2      type of the kernel's handle, 1..254
 *    3      zero
 *    4..7   export id
 *    8..11  submount id
 *    12..23 the kernel's handle, then zeros
 *    24..31 SipHash-2-4 over all before, or zeros
 *
 * The key is that of the longer form. The two forms differ in their first byte,
 * which both MACs cover, so no MAC of one is good for the other.
 */

/* 0, or -EOPNOTSUPP: the kernel's handle does not fit. */
int vfs_packed_encode(const struct vfs_handle *h, vfs_handle_key key, struct vfs_packed_fh *out);
/* 0, or -EBADF: not in the form of a packed handle. */
int vfs_packed_parse(const struct vfs_packed_fh *fh, bool has_mac, struct vfs_handle *out);
/* 0, or -ESTALE: the MAC differs. */
int vfs_packed_check(const struct vfs_packed_fh *fh, vfs_handle_key key);

/*
 * Kernel handles that are made of the inode's number and generation: those of ext4, XFS and btrfs.
 * Such a handle follows from the inode, whatever its name is.
 */
struct vfs_inode_handle {
	uint64_t ino;
	uint32_t volume; /* btrfs: id of the subvolume; others: 0 */
	uint32_t generation;
	int32_t type; /* the kernel's type of the handle */
};

/* The parts of a handle of a file system whose handles are made so (struct vfs_fs_traits). Others use the same types for other contents. False: the handle has another layout, or parts that
 * do not fit. */
bool vfs_handle_split(const struct vfs_handle *h, struct vfs_inode_handle *out);
/* The inverse: sets type, len and bytes of out as the kernel would. */
void vfs_handle_join(const struct vfs_inode_handle *in, struct vfs_handle *out);

/* Types of kernel handles (the kernel's include/linux/exportfs.h). Their contents are in the byte
 * order of the machine. */
#define FILEID_INO32_GEN 0x01	  /* {u32 inode, u32 generation} */
#define FILEID_XFS_INO64_GEN 0x81 /* {u64 inode, u32 generation} */
#define FILEID_BTRFS 0x4d	  /* {u64 inode, u64 subvolume, u32 generation} */

#endif
