/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_NAME "handle.key"

static int make_path(const char *dir)
{
	char path[4096];

	if (strlen(dir) >= sizeof(path))
		return -ENAMETOOLONG;
	strcpy(path, dir);
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int read_secret(int dirfd, uint8_t *secret)
{
	int fd = openat(dirfd, SECRET_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, secret, STATE_SECRET_SIZE);
	int err = n < 0 ? -errno : n != STATE_SECRET_SIZE ? -EIO : 0;
	close(fd);
	return err;
}

/* Written beside, synced, then linked into place: a crash leaves the whole key or none. */
static int write_secret(int dirfd, uint8_t *secret)
{
	const char *tmp = SECRET_NAME ".new";
	int fd, err = 0;

	if (getrandom(secret, STATE_SECRET_SIZE, 0) != STATE_SECRET_SIZE)
		return -EIO;
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, secret, STATE_SECRET_SIZE);
	if (n != STATE_SECRET_SIZE)
		err = n < 0 ? -errno : -EIO;
	else if (fsync(fd) < 0 || renameat(dirfd, tmp, dirfd, SECRET_NAME) < 0 || fsync(dirfd) < 0)
		err = -errno;
	close(fd);
	return err;
}

int state_dir_secret(const char *dir, uint8_t secret[STATE_SECRET_SIZE],
		     const struct rn_logger *log)
{
	int err = make_path(dir);
	int dirfd = err ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!err && dirfd < 0)
		err = -errno;
	if (!err)
		err = read_secret(dirfd, secret);
	if (err == -ENOENT && dirfd >= 0)
		err = write_secret(dirfd, secret);
	if (dirfd >= 0)
		close(dirfd);
	if (err)
		rn_err(log, "state directory %s: cannot keep the key of file handles: %s", dir,
		       strerror(-err));
	return err;
}
