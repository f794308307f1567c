/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bound on the connections of a server of HTTP. evhttp of libevent 2.1 has none, and does not tell
 * when it closes a connection. So this table knows sockets by descriptor and cookie, which no other
 * socket ever has, and looks which of them still exist. On the control socket readers have a part only, so
 * that they cannot keep root out. The user, or over TCP the host, with most connections loses one. Used by the server's
 * thread.
 */
#ifndef RN_ADMIN_ADMIN_SEATS_H
#define RN_ADMIN_ADMIN_SEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/admin.h"
#include "lib/quota.h"

#define ADMIN_SEATS_MAX ADMIN_TCP_CONNS_MAX /* the larger of the two bounds */

struct admin_seats {
	struct admin_seat {
		int fd;
		bool reader; /* may not change anything: anybody over TCP, and members of the group */
		bool busy;   /* a request has come, and is not answered yet */
		uint64_t cookie; /* SO_COOKIE; 0: the seat is free */
		uint64_t used_ns;
		struct rn_quota_item place, reader_place;
	} seat[ADMIN_SEATS_MAX];
	unsigned seats; /* seats that may be used, from the first on */
	bool hosts;	/* over TCP */
	/* By host, or user: of all, where readers count as strangers; of readers alone. */
	struct rn_quota quota, readers;
};

void admin_seats_init(struct admin_seats *seats, bool tcp);
void admin_seats_fini(struct admin_seats *seats);
/* Takes a new connection in, and ends another if there are too many. reader: its peer if that is a reader, or NULL. */
void admin_seats_enter(struct admin_seats *seats, int fd, const struct admin_peer *reader,
		       uint64_t now_ns);
/* Records that the connection has sent a request (busy), or gets an answer. */
void admin_seats_use(struct admin_seats *seats, int fd, bool busy, uint64_t now_ns);
/* Ends those connections of readers that wait for no answer and were last used before that: their peers are slow. */
void admin_seats_expire(struct admin_seats *seats, uint64_t before_ns);

#endif
