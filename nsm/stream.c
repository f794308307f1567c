/* SPDX-License-Identifier: BSD-2-Clause */
#include "nsm/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"

#define RESERVED_FIRST 665u /* as glibc's bindresvport() */
#define RESERVED_LAST 1023u
#define PORT_TRIES 40u
#define LAST_FRAGMENT 0x80000000u
#define MARK 4u /* bytes of a record mark */

static const struct rpc_address none; /* unknown */

/* The address as its family has it; returns the length. */
static socklen_t put_address(const struct rpc_address *a, uint16_t port,
			     struct sockaddr_storage *out)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_scope_id = a->scope };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	memcpy(&in6.sin6_addr, a->bytes, 16);
	memcpy(&in.sin_addr, a->bytes + 12, 4);
	memset(out, 0, sizeof(*out));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
		memcpy(out, &in6, sizeof(in6));
		return sizeof(in6);
	}
	memcpy(out, &in, sizeof(in));
	return sizeof(in);
}

static int nsm_stream_bind(int fd, const struct rpc_address *local, uint16_t port)
{
	struct sockaddr_storage ss;
	const socklen_t len = put_address(local, port, &ss);

	return bind(fd, (const struct sockaddr *)&ss, len) < 0 ? -errno : 0;
}

/* A connection that cannot have the address or a privileged port is tried without. */
static void bind_local(int fd, const struct rpc_address *local)
{
	const unsigned ports = RESERVED_LAST - RESERVED_FIRST + 1;
	int rc = -EADDRINUSE;

	for (unsigned i = 0; i < PORT_TRIES && rc == -EADDRINUSE; i++)
		rc = nsm_stream_bind(fd, local,
				     (uint16_t)(RESERVED_FIRST + randombytes_uniform(ports)));
	if (rc)
		nsm_stream_bind(fd, local, 0);
}

/* Any address of the peer's family. */
static const struct rpc_address *any_like(const struct rpc_address *peer)
{
	static const struct rpc_address v4 = { .bytes = { [10] = 0xff, 0xff } };

	return memcmp(peer->bytes, v4.bytes, 12) == 0 ? &v4 : &none;
}

static int nsm_stream_dial(const struct nsm_datagram *d)
{
	const int on = 1;
	struct sockaddr_storage peer;
	const socklen_t len = put_address(&d->peer, d->port, &peer);
	const int fd = socket(peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	bind_local(fd, rpc_address_equal(&d->local, &none) ? any_like(&d->peer) : &d->local);
	if (connect(fd, (const struct sockaddr *)&peer, len) < 0 && errno != EINPROGRESS)
		rc = -errno;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int nsm_stream_open(struct nsm_stream *s, const struct nsm_datagram *d)
{
	const uint32_t mark = htonl(LAST_FRAGMENT | (uint32_t)d->len);

	*s = (struct nsm_stream){ .fd = -1 };
	s->out = malloc(MARK + d->len);
	if (!s->out)
		return -ENOMEM;
	s->out_len = MARK + d->len;
	memcpy(s->out, &mark, MARK);
	memcpy(s->out + MARK, d->data, d->len);
	s->fd = nsm_stream_dial(d);
	if (s->fd >= 0)
		return 0;

	const int rc = s->fd;

	nsm_stream_close(s);
	return rc;
}

void nsm_stream_close(struct nsm_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	free(s->out);
	s->out = NULL;
}

short nsm_stream_events(const struct nsm_stream *s)
{
	return s->sent < s->out_len ? POLLOUT : POLLIN;
}

/* 0: all is sent, or the connection is not ready; or -errno. */
static int send_more(struct nsm_stream *s)
{
	const ssize_t n = send(s->fd, s->out + s->sent, s->out_len - s->sent, MSG_NOSIGNAL);

	if (n >= 0)
		s->sent += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN)
		return -errno;
	return 0;
}

/* Moves whole fragments to the body. True: the last one is there. False with *rc 0: more has to come. */
static bool take_fragments(struct nsm_stream *s, int *rc)
{
	uint32_t mark;

	while (s->len - s->body >= MARK) {
		memcpy(&mark, s->in + s->body, MARK);
		mark = ntohl(mark);

		const size_t size = mark & ~LAST_FRAGMENT, there = s->len - s->body - MARK;

		if (size > sizeof(s->in) - MARK - s->body) {
			*rc = -EMSGSIZE;
			return false;
		}
		if (there < size)
			return false;
		memmove(s->in + s->body, s->in + s->body + MARK, there);
		s->body += size;
		s->len -= MARK;
		if (mark & LAST_FRAGMENT)
			return true;
	}
	return false;
}

int nsm_stream_step(struct nsm_stream *s)
{
	int rc = 0;

	if (s->sent < s->out_len)
		return send_more(s);

	const ssize_t n = recv(s->fd, s->in + s->len, sizeof(s->in) - s->len, 0);

	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	s->len += (size_t)n;
	if (take_fragments(s, &rc))
		return s->body > 0 ? (int)s->body : -EBADMSG;
	return rc;
}
