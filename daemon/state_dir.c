/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/saved_file.h"

#define SECRET_NAME "handle.key"

/* Refuses a directory that others than root and this user could write to. Logs only -EPERM. */
static int check_owner(const char *dir, const struct rn_logger *log)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		rn_err(log,
		       "state directory %s: others may write to it (mode %03o): it holds the key "
		       "of "
		       "file handles; chmod go-w it, or better 700",
		       dir, (unsigned)st.st_mode & 0777);
		return -EPERM;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		rn_err(log, "state directory %s: it belongs to user %u: it must be root's", dir,
		       (unsigned)st.st_uid);
		return -EPERM;
	}
	return 0;
}

/* A missing directory can be made if the one above it exists. */
static int state_dir_check_parent(const char *dir, const struct rn_logger *log)
{
	char *copy = strdup(dir);
	struct stat st;

	if (!copy)
		return -ENOMEM;
	int rc = stat(dirname(copy), &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;

	free(copy);
	if (rc)
		rn_err(log,
		       "state directory %s: the directory above it does not exist: make that, if "
		       "the path is right",
		       dir);
	return rc;
}

int state_dir_check(const char *dir, const struct rn_logger *log)
{
	int rc = check_owner(dir, log);

	if (rc == -ENOENT)
		return state_dir_check_parent(dir, log);
	if (rc && rc != -EPERM)
		rn_err(log, "state directory %s: %s%s", dir, strerror(-rc),
		       rc == -ESHUTDOWN ? ": this machine's client of the file system was evicted; "
					  "unmount and mount it again"
		       /* The kernel's CephFS says so even to root. */
		       : rc == -EACCES && geteuid() == 0
			       ? ": on CephFS, this machine's client of it was evicted; "
				 "unmount and mount it again"
			       : "");
	return rc;
}

int state_dir_make(const char *dir, const struct rn_logger *log)
{
	int rc = state_dir_check(dir, log);

	if (!rc && mkdir(dir, 0700) < 0 && errno != EEXIST) {
		rc = -errno;
		rn_err(log, "state directory %s: it cannot be made: %s", dir, strerror(-rc));
	}
	return rc;
}

static int read_secret(int dirfd, uint8_t *secret)
{
	int fd = openat(dirfd, SECRET_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, secret, STATE_SECRET_SIZE);
	int rc = n < 0 ? -errno : n != STATE_SECRET_SIZE ? -EIO : 0;
	close(fd);
	return rc;
}

/*
 * Writes a temporary file, syncs it and links it into place: a crash leaves the whole key or none, and of several that are made at
 * once one is kept. -EEXIST: there is one.
 */
static int write_secret(int dirfd, const char *maker, uint8_t *secret)
{
	char tmp[NAME_MAX];
	int rc;

	snprintf(tmp, sizeof(tmp), SECRET_NAME ".%s", maker);
	if (getrandom(secret, STATE_SECRET_SIZE, 0) != STATE_SECRET_SIZE)
		return -EIO;
	rc = rn_file_make(dirfd, tmp, secret, STATE_SECRET_SIZE);
	if (rc)
		return rc;
	if (linkat(dirfd, tmp, dirfd, SECRET_NAME, 0) < 0)
		rc = -errno;
	unlinkat(dirfd, tmp, 0);
	return !rc && fsync(dirfd) < 0 ? -errno : rc;
}

int state_dir_secret(const char *dir, const char *maker, uint8_t secret[STATE_SECRET_SIZE],
		     const struct rn_logger *log)
{
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dirfd < 0 ? -errno : 0;

	if (!rc)
		rc = read_secret(dirfd, secret);
	if (rc == -ENOENT && dirfd >= 0) {
		rc = write_secret(dirfd, maker, secret);
		if (rc == -EEXIST)
			rc = read_secret(dirfd, secret);
	}
	if (dirfd >= 0)
		close(dirfd);
	if (rc)
		rn_err(log, "state directory %s: cannot keep the key of file handles: %s", dir,
		       strerror(-rc));
	return rc;
}
