/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/admin_seats.h"

#include <string.h>
#include <sys/socket.h>

#include "lib/util.h"

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

static void admin_seat_free(struct admin_seats *seats, struct admin_seat *s)
{
	if (s->place.of)
		rn_quota_remove(&seats->quota, &s->place);
	if (s->reader_place.of)
		rn_quota_remove(&seats->readers, &s->reader_place);
	s->cookie = 0;
}

/* evhttp sees the end of the stream, and closes it. */
static void admin_seat_end(struct admin_seats *seats, struct admin_seat *s)
{
	shutdown(s->fd, SHUT_RDWR);
	admin_seat_free(seats, s);
}

/* A free seat, or NULL. Frees those of connections that are gone. */
static struct admin_seat *admin_seats_find(struct admin_seats *seats)
{
	struct admin_seat *found = NULL;

	for (unsigned i = 0; i < seats->seats; i++) {
		struct admin_seat *s = &seats->seat[i];

		if (s->cookie && cookie_of(s->fd) != s->cookie)
			admin_seat_free(seats, s);
		if (!s->cookie)
			found = s;
	}
	return found;
}

/* A seat for one more, for which others' connections are ended; or NULL. */
static struct admin_seat *admin_seats_take(struct admin_seats *seats, const struct rn_host *who,
					   bool reader)
{
	struct rn_quota_item *old;

	admin_seats_find(seats);
	while (reader && (old = rn_quota_in_the_way(&seats->readers, who, true, 1)) != NULL)
		admin_seat_end(seats, rn_container_of(old, struct admin_seat, reader_place));
	while ((old = rn_quota_in_the_way(&seats->quota, who, !reader, 1)) != NULL)
		admin_seat_end(seats, rn_container_of(old, struct admin_seat, place));
	return admin_seats_find(seats);
}

void admin_seats_init(struct admin_seats *seats, bool tcp)
{
	*seats = (struct admin_seats){
		.hosts = tcp,
		.seats = tcp ? ADMIN_TCP_CONNS_MAX : ADMIN_CONNS_MAX,
	};
	rn_quota_init(&seats->quota, seats->seats, 0);
	rn_quota_init(&seats->readers, tcp ? seats->seats : ADMIN_READERS_MAX, 0);
}

void admin_seats_fini(struct admin_seats *seats)
{
	for (unsigned i = 0; i < seats->seats; i++)
		admin_seat_free(seats, &seats->seat[i]);
	rn_quota_fini(&seats->quota);
	rn_quota_fini(&seats->readers);
}

void admin_seats_enter(struct admin_seats *seats, int fd, const struct admin_peer *reader,
		       uint64_t now_ns)
{
	struct rn_host who = { 0 };
	struct admin_seat *s;

	if (seats->hosts)
		peer_host(fd, &who);
	else if (reader)
		memcpy(who.bytes, &reader->uid, sizeof(reader->uid));
	s = admin_seats_take(seats, &who, reader);
	if (!s) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	*s = (struct admin_seat){
		.fd = fd, .reader = reader, .cookie = cookie_of(fd), .used_ns = now_ns
	};
	if (!rn_quota_add(&seats->quota, &who, !reader, &s->place, 1) ||
	    (reader && !rn_quota_add(&seats->readers, &who, true, &s->reader_place, 1)))
		admin_seat_end(seats, s);
}

void admin_seats_use(struct admin_seats *seats, int fd, bool busy, uint64_t now_ns)
{
	for (unsigned i = 0; i < seats->seats; i++) {
		struct admin_seat *s = &seats->seat[i];

		if (!s->cookie || s->fd != fd)
			continue;
		rn_quota_renew(&seats->quota, &s->place);
		if (s->reader)
			rn_quota_renew(&seats->readers, &s->reader_place);
		s->used_ns = now_ns;
		s->busy = busy;
	}
}

void admin_seats_expire(struct admin_seats *seats, uint64_t before_ns)
{
	for (unsigned i = 0; i < seats->seats; i++) {
		struct admin_seat *s = &seats->seat[i];

		if (s->cookie && s->reader && !s->busy && s->used_ns < before_ns &&
		    cookie_of(s->fd) == s->cookie)
			admin_seat_end(seats, s);
	}
}
