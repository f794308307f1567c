/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of kernel handles (the kernel's include/linux/exportfs.h). Their contents are in the byte
 * order of the machine. */
#ifndef RN_VFS_FID_H
#define RN_VFS_FID_H

#define FILEID_INO32_GEN 0x01	  /* {u32 inode, u32 generation} */
#define FILEID_XFS_INO64_GEN 0x81 /* {u64 inode, u32 generation} */
#define FILEID_BTRFS 0x4d	  /* {u64 inode, u64 subvolume, u32 generation} */

#endif
