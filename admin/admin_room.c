/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/admin_room.h"

#include <string.h>
#include <sys/socket.h>

/* 0: the descriptor is closed, or is no socket. */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

static void peer_host(int fd, struct rn_host *out)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	if (getpeername(fd, (struct sockaddr *)&ss, &len) < 0)
		memset(&ss, 0, sizeof(ss));
	rn_host_of((struct sockaddr *)&ss, out);
}

/* Frees the seats of connections that are gone. Returns those of readers, or of all. */
static unsigned admin_room_count(struct admin_room *room, bool readers)
{
	unsigned n = 0;

	for (unsigned i = 0; i < room->seats; i++) {
		struct admin_seat *s = &room->seat[i];

		if (s->cookie && cookie_of(s->fd) != s->cookie)
			s->cookie = 0;
		n += s->cookie && (s->reader || !readers);
	}
	return n;
}

/* Connections of the same reader as that of the seat. None of others: they make room last. */
static unsigned crowd(const struct admin_room *room, const struct admin_seat *of)
{
	unsigned n = 0;

	for (unsigned i = 0; of->reader && i < room->seats; i++) {
		const struct admin_seat *s = &room->seat[i];

		n += s->cookie && s->reader && rn_host_equal(&s->who, &of->who);
	}
	return n;
}

/* evhttp sees the end of the stream, and closes it. */
static void admin_seat_end(struct admin_seat *s)
{
	shutdown(s->fd, SHUT_RDWR);
	s->cookie = 0;
}

/* Ends the least recently used connection of the largest crowd. */
static void admin_room_evict(struct admin_room *room)
{
	struct admin_seat *victim = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < room->seats; i++) {
		struct admin_seat *s = &room->seat[i];
		const unsigned n = s->cookie ? crowd(room, s) : 0;

		if (!s->cookie || n < most || (victim && n == most && s->used > victim->used))
			continue;
		victim = s;
		most = n;
	}
	if (victim)
		admin_seat_end(victim);
}

void admin_room_init(struct admin_room *room, bool tcp)
{
	*room = (struct admin_room){
		.hosts = tcp,
		.seats = tcp ? ADMIN_TCP_CONNS_MAX : ADMIN_CONNS_MAX,
	};
}

void admin_room_enter(struct admin_room *room, int fd, const struct admin_peer *reader,
		      uint64_t now_ns)
{
	if (admin_room_count(room, false) >= room->seats ||
	    (!room->hosts && reader && admin_room_count(room, true) >= ADMIN_READERS_MAX))
		admin_room_evict(room);
	for (unsigned i = 0; i < room->seats; i++) {
		struct admin_seat *s = &room->seat[i];

		if (s->cookie)
			continue;
		*s = (struct admin_seat){ .fd = fd,
					  .reader = reader != NULL,
					  .cookie = cookie_of(fd),
					  .used = ++room->uses,
					  .used_ns = now_ns };
		if (room->hosts)
			peer_host(fd, &s->who);
		else if (reader)
			memcpy(s->who.bytes, &reader->uid, sizeof(reader->uid));
		return;
	}
}

void admin_room_use(struct admin_room *room, int fd, bool busy, uint64_t now_ns)
{
	for (unsigned i = 0; i < room->seats; i++) {
		struct admin_seat *s = &room->seat[i];

		if (!s->cookie || s->fd != fd)
			continue;
		s->used = ++room->uses;
		s->used_ns = now_ns;
		s->busy = busy;
	}
}

void admin_room_expire(struct admin_room *room, uint64_t before_ns)
{
	for (unsigned i = 0; i < room->seats; i++) {
		struct admin_seat *s = &room->seat[i];

		if (s->cookie && s->reader && !s->busy && s->used_ns < before_ns &&
		    cookie_of(s->fd) == s->cookie)
			admin_seat_end(s);
	}
}
