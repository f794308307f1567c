/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a path cannot be exported, in words that help the administrator. */
#ifndef RN_VFS_WHY_H
#define RN_VFS_WHY_H

/* error is the result of the attempt on fd; the text is static. */
const char *vfs_why_no_handles(int fd, int error);

#endif
