/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the kernel about its page cache. */
#ifndef RN_VFS_CACHED_H
#define RN_VFS_CACHED_H

#include <stdint.h>

/* Pages of a range of the file that are in the page cache; -ENOSYS before Linux 6.5, or -errno. */
int64_t vfs_cached_pages(int fd, uint64_t offset, uint64_t len);

#endif
