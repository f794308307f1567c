/* SPDX-License-Identifier: BSD-2-Clause */
/* Rights of the process at the other end of a Unix socket. The kernel tells the credentials that it had at
 * connect(2), so a process that drops its rights later keeps those of the connection. */
#ifndef RN_ADMIN_PEER_H
#define RN_ADMIN_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "admin/admin.h"

#define ADMIN_NO_GROUP ((gid_t)-1)

enum admin_right { ADMIN_NOTHING, ADMIN_READ, ADMIN_CHANGE };

/* own: the daemon's user. groups: the peer's supplementary ones. group: the readers' group, or
 * ADMIN_NO_GROUP. */
enum admin_right admin_right_of(const struct ucred *peer, const gid_t *groups, size_t n, uid_t own,
				gid_t group);

/* The peer of a connected socket, and its right. Without its credentials: none. */
enum admin_right admin_peer(int fd, gid_t group, struct admin_peer *out);

#endif
