/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bound on the connections of the control socket. evhttp of libevent 2.1 has none, and does not tell
 * when it closes a connection. So this table knows sockets by descriptor and cookie, which no other
 * socket ever has, and looks which of them still exist. Readers have a part only, so that they cannot
 * keep root out. Used by the thread of the control socket.
 */
#ifndef RN_ADMIN_ROOM_H
#define RN_ADMIN_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/admin.h"

struct admin_room {
	struct admin_seat {
		int fd;
		bool reader;
		uint64_t cookie; /* SO_COOKIE; 0: the seat is free */
		uint64_t used;	 /* value of uses when it was last used */
	} seat[ADMIN_CONNS_MAX];
	uint64_t uses;
};

/* Takes a new connection in, and ends the least recently used one if there are too many. */
void admin_room_enter(struct admin_room *room, int fd, bool reader);
/* Records that the connection has sent a request. */
void admin_room_use(struct admin_room *room, int fd);

#endif
