/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bound on the connections of a server of HTTP. evhttp of libevent 2.1 has none, and does not tell
 * when it closes a connection. So this table knows sockets by descriptor and cookie, which no other
 * socket ever has, and looks which of them still exist. On the control socket readers have a part only, so
 * that they cannot keep root out. Over TCP, the host with most connections loses one. Used by the server's thread.
 */
#ifndef RN_ADMIN_ROOM_H
#define RN_ADMIN_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/admin.h"

#define ADMIN_SEATS_MAX ADMIN_TCP_CONNS_MAX /* the larger of the two bounds */

struct admin_room {
	struct admin_seat {
		int fd;
		bool reader;
		uint8_t host[16]; /* over TCP: the peer's address, as far as it tells hosts apart */
		uint64_t cookie;  /* SO_COOKIE; 0: the seat is free */
		uint64_t used;	  /* value of uses when it was last used */
		uint64_t used_ns;
	} seat[ADMIN_SEATS_MAX];
	unsigned seats; /* the first so many may be used */
	bool hosts;	/* over TCP */
	uint64_t uses;
};

void admin_room_init(struct admin_room *room, bool tcp);
/* Takes a new connection in, and ends another if there are too many. */
void admin_room_enter(struct admin_room *room, int fd, bool reader, uint64_t now_ns);
/* Records that the connection has sent a request. */
void admin_room_use(struct admin_room *room, int fd, uint64_t now_ns);
/* Ends the connections whose last request, or beginning, was before that: their peers are slow. */
void admin_room_expire(struct admin_room *room, uint64_t before_ns);

#endif
