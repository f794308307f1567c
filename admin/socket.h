/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listening Unix socket that one process at a time has. A lock (flock(2)) on PATH.lock tells whether
 * its process lives, so that a socket left behind is replaced, and a living one's never is.
 */
#ifndef RN_ADMIN_SOCKET_H
#define RN_ADMIN_SOCKET_H

#include <sys/stat.h>
#include <sys/types.h>

#include "lib/log.h"

struct admin_socket {
	const char *path;
	int fd, lock_fd; /* -1: not open */
	dev_t dev;	 /* of the socket's file, constant once it is open; ino 0: there is none */
	ino_t ino;
};

/* path is absolute, and must outlive the socket. Only the owner may connect. 0, -EBUSY: another process
 * serves it, or -errno; logged. */
int admin_socket_open(struct admin_socket *s, const char *path, const struct rn_logger *log);
/* Lets the members of the group connect, too. Any thread. 0 or -errno; -ESTALE: the file is another's by now. */
int admin_socket_share(const struct admin_socket *s, gid_t group);
/* Removes the file if it is still this socket's. Does not close s->fd if that is -1. */
void admin_socket_close(struct admin_socket *s);

#endif
