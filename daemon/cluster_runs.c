/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define RUNS_FILE "runs"

int cluster_runs_open(const char *dir)
{
	char path[PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/" RUNS_FILE, dir) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

static struct flock cluster_runs_byte(short type, uint64_t run)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)run, .l_len = 1
	};
}

int cluster_runs_hold(int fd, uint64_t run)
{
	struct flock fl = cluster_runs_byte(F_RDLCK, run);

	return fcntl(fd, F_OFD_SETLK, &fl) < 0 ? -errno : 0;
}

void cluster_runs_drop(int fd)
{
	fcntl(fd, F_OFD_SETLK, &(struct flock){ .l_type = F_UNLCK, .l_whence = SEEK_SET });
}

int cluster_runs_stand(int fd, uint64_t run)
{
	struct flock fl = cluster_runs_byte(F_WRLCK, run);

	if (fcntl(fd, F_OFD_GETLK, &fl) < 0)
		return -errno;
	return fl.l_type != F_UNLCK;
}
