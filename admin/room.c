/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/room.h"

#include <sys/socket.h>

/* 0: the descriptor is closed, or is no socket. */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

/* Frees the seats of connections that are gone. Returns those of readers, or of all. */
static unsigned count(struct admin_room *room, bool readers)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ADMIN_CONNS_MAX; i++) {
		struct admin_seat *s = &room->seat[i];

		if (s->cookie && cookie_of(s->fd) != s->cookie)
			s->cookie = 0;
		n += s->cookie && (s->reader || !readers);
	}
	return n;
}

/* Ends the least recently used connection, of readers if there is one: evhttp sees the end of the
 * stream, and closes it. */
static void evict(struct admin_room *room)
{
	struct admin_seat *oldest = NULL;

	for (unsigned i = 0; i < ADMIN_CONNS_MAX; i++) {
		struct admin_seat *s = &room->seat[i];

		if (!s->cookie || (oldest && oldest->reader && !s->reader))
			continue;
		if (!oldest || (s->reader && !oldest->reader) || s->used < oldest->used)
			oldest = s;
	}
	if (!oldest)
		return;
	shutdown(oldest->fd, SHUT_RDWR);
	oldest->cookie = 0;
}

void admin_room_enter(struct admin_room *room, int fd, bool reader)
{
	if (count(room, false) >= ADMIN_CONNS_MAX ||
	    (reader && count(room, true) >= ADMIN_READERS_MAX))
		evict(room);
	for (unsigned i = 0; i < ADMIN_CONNS_MAX; i++) {
		struct admin_seat *s = &room->seat[i];

		if (s->cookie)
			continue;
		*s = (struct admin_seat){
			.fd = fd, .reader = reader, .cookie = cookie_of(fd), .used = ++room->uses
		};
		return;
	}
}

void admin_room_use(struct admin_room *room, int fd)
{
	for (unsigned i = 0; i < ADMIN_CONNS_MAX; i++)
		if (room->seat[i].cookie && room->seat[i].fd == fd)
			room->seat[i].used = ++room->uses;
}
