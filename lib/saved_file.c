/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/saved_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

int rn_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		const ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A file of that name is removed first: it may have another owner, mode or links, or be a symbolic link. */
static int file_open_new(int dirfd, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dirfd, name, flags, 0600);

	if (fd < 0 && errno == EEXIST && unlinkat(dirfd, name, 0) == 0)
		fd = openat(dirfd, name, flags, 0600);
	return fd < 0 ? -errno : fd;
}

int rn_file_make(int dirfd, const char *name, const void *bytes, size_t len)
{
	const int fd = file_open_new(dirfd, name);
	int rc;

	if (fd < 0)
		return fd;
	rc = rn_write_all(fd, bytes, len);
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (rc)
		(void)unlinkat(dirfd, name, 0);
	return rc;
}

int rn_file_replace(int dirfd, const char *name, const void *bytes, size_t len)
{
	char tmp[NAME_MAX + 1];
	int rc;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s" RN_FILE_NEW, name) >= sizeof(tmp))
		return -ENAMETOOLONG;
	rc = rn_file_make(dirfd, tmp, bytes, len);
	if (rc)
		return rc;
	if (renameat(dirfd, tmp, dirfd, name) < 0) {
		rc = -errno;
		(void)unlinkat(dirfd, tmp, 0);
		return rc;
	}
	return fsync(dirfd) < 0 ? -errno : 0;
}
