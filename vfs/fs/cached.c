/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/cached.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* cachestat(2), which older C libraries do not know. The number is that of all architectures. */
#define CACHESTAT_NUMBER 451
struct cache_range {
	uint64_t offset, len;
};
struct cache_pages {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

int64_t vfs_cached_pages(int fd, uint64_t offset, uint64_t len)
{
	struct cache_range range = { offset, len };
	struct cache_pages pages;

	return syscall(CACHESTAT_NUMBER, fd, &range, &pages, 0) == 0 ? (int64_t)pages.cached
								     : -errno;
}
