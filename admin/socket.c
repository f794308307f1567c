/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/admin.h"

#define HINT "; correct server.control_socket, or leave it empty to go without"

static int make_address(const char *path, struct sockaddr_un *sa)
{
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(sa->sun_path))
		return -ENAMETOOLONG;
	strcpy(sa->sun_path, path);
	return 0;
}

static int admin_socket_new(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* True if a process listens there: *pid is its number, or 0. */
static bool admin_socket_is_served(const struct sockaddr_un *sa, pid_t *pid)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	int fd = admin_socket_new();
	bool served = false;

	*pid = 0;
	if (fd < 0)
		return true; /* better refused than taken from another */
	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0) {
		served = true;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
			*pid = cred.pid;
	} else {
		served = errno != ECONNREFUSED && errno != ENOENT;
	}
	close(fd);
	return served;
}

static int admin_socket_busy(const char *path, pid_t pid, const struct rn_logger *log)
{
	char who[48] = "";

	if (pid)
		snprintf(who, sizeof(who), " (process %d)", (int)pid);
	rn_err(log,
	       "control socket %s: another process%s serves it: stop that one, or give this one a "
	       "path of its own (server.control_socket)",
	       path, who);
	return -EBUSY;
}

/* The directory, made if only it is missing. Others must not write there: they could put a socket of
 * their own in place of this one. */
static int check_directory(const char *dir, const struct rn_logger *log)
{
	struct stat st;
	int rc = 0;

	if ((mkdir(dir, 0755) < 0 && errno != EEXIST) || stat(dir, &st) < 0)
		rc = -errno;
	else if (!S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	if (rc) {
		rn_err(log, "directory %s of the control socket: %s" HINT, dir, strerror(-rc));
		return rc;
	}
	if (!(st.st_mode & (S_IWGRP | S_IWOTH)) && (st.st_uid == 0 || st.st_uid == geteuid()))
		return 0;
	rn_err(log,
	       "directory %s of the control socket: user %u or others may write to it (mode %03o), "
	       "and "
	       "could pose as ringnfsd: it must be root's, and chmod go-w" HINT,
	       dir, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
	return -EPERM;
}

static int make_directory(const char *path, const struct rn_logger *log)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *slash = strrchr(path, '/');

	snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return check_directory(dir, log);
}

/* The file stays when the lock is released, or two processes could lock two files of that name. */
static int take_lock(struct admin_socket *s, const struct sockaddr_un *sa,
		     const struct rn_logger *log)
{
	char name[PATH_MAX];
	pid_t pid;

	snprintf(name, sizeof(name), "%s.lock", s->path);
	s->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0) {
		int rc = -errno;

		rn_err(log, "control socket: cannot open %s: %s" HINT, name, strerror(-rc));
		return rc;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	admin_socket_is_served(sa, &pid);
	return admin_socket_busy(s->path, pid, log);
}

/* Removes a socket that nobody serves. */
static int clear_path(const char *path, const struct sockaddr_un *sa, const struct rn_logger *log)
{
	struct stat st = { 0 };
	pid_t pid;

	if (lstat(path, &st) < 0 && errno == ENOENT)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		rn_err(log, "control socket %s: there is a file that is no socket" HINT, path);
		return -EEXIST;
	}
	if (admin_socket_is_served(sa, &pid))
		return admin_socket_busy(path, pid, log);
	unlink(path); /* if that fails, so does bind(2) */
	return 0;
}

/* The mode is set before the file exists: bind(2) takes it over, less the umask. */
static int admin_socket_listen(struct admin_socket *s, const struct sockaddr_un *sa)
{
	struct stat st;

	s->fd = admin_socket_new();
	if (s->fd < 0)
		return s->fd;
	if (fchmod(s->fd, 0600) < 0 || bind(s->fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 ||
	    lstat(s->path, &st) < 0)
		return -errno;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return listen(s->fd, ADMIN_BACKLOG) < 0 ? -errno : 0;
}

static bool is_in_place(const struct admin_socket *s)
{
	struct stat st;

	return s->ino && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

int admin_socket_share(const struct admin_socket *s, gid_t group)
{
	if (!is_in_place(s))
		return -ESTALE;
	if (lchown(s->path, (uid_t)-1, group) < 0 || chmod(s->path, 0660) < 0)
		return -errno;
	return 0;
}

int admin_socket_open(struct admin_socket *s, const char *path, const struct rn_logger *log)
{
	struct sockaddr_un sa;
	int rc = make_address(path, &sa);

	*s = (struct admin_socket){ .path = path, .fd = -1, .lock_fd = -1 };
	if (rc) {
		rn_err(log, "control socket %s: %s" HINT, path, strerror(-rc));
		return rc;
	}
	rc = make_directory(path, log);
	if (!rc)
		rc = take_lock(s, &sa, log);
	if (!rc)
		rc = clear_path(path, &sa, log);
	if (!rc) {
		rc = admin_socket_listen(s, &sa);
		if (rc)
			rn_err(log, "control socket %s: %s" HINT, path, strerror(-rc));
	}
	if (rc)
		admin_socket_close(s);
	return rc;
}

void admin_socket_close(struct admin_socket *s)
{
	if (is_in_place(s))
		unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	*s = (struct admin_socket){ .path = s->path, .fd = -1, .lock_fd = -1 };
}
