/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP socket. It takes IPv6 and IPv4, or IPv4 alone where the kernel has no IPv6. Datagrams are
 * sent from the address that the peer knows the server by.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/host.h"
#include "lib/util.h"
#include "nsm/nsm_call.h"
#include "nsm/nsm_private.h"

#define RESERVED_FIRST 665u /* as glibc's bindresvport() */
#define RESERVED_LAST 1023u
#define PORT_TRIES 40u
#define LAST_FRAGMENT 0x80000000u
#define MARK 4u /* bytes of a record mark */

static const struct rpc_address unknown_address;

static int nsm_stream_bind(int fd, const struct rpc_address *local, uint16_t port)
{
	struct sockaddr_storage ss;
	const socklen_t len = rn_address_unmap(local->bytes, local->scope, port, &ss);

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

	return memcmp(peer->bytes, v4.bytes, 12) == 0 ? &v4 : &unknown_address;
}

static int nsm_stream_dial(const struct nsm_datagram *d)
{
	const int on = 1;
	struct sockaddr_storage peer;
	const socklen_t len = rn_address_unmap(d->peer.bytes, d->peer.scope, d->port, &peer);
	const int fd = socket(peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	bind_local(fd,
		   rpc_address_equal(&d->local, &unknown_address) ? any_like(&d->peer) : &d->local);
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

#define RESERVED_FIRST 665u /* as glibc's bindresvport() */
#define RESERVED_LAST 1023u

union control {
	struct cmsghdr align;
	char v6[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	char v4[CMSG_SPACE(sizeof(struct in_pktinfo))];
};

static bool is_ipv6(int fd)
{
	int family = AF_INET;
	socklen_t len = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	return family == AF_INET6;
}

static int nsm_socket_new(void)
{
	const int type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, off = 0, on = 1;
	int fd = socket(AF_INET6, type, 0);

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
		return fd;
	}
	fd = socket(AF_INET, type, 0);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	return fd < 0 ? -errno : fd;
}

static int nsm_socket_bind(int fd, const struct rpc_address *at, uint16_t port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (at) {
		memcpy(&in6.sin6_addr, at->bytes, sizeof(in6.sin6_addr));
		memcpy(&in.sin_addr, at->bytes + 12, sizeof(in.sin_addr));
	}
	const int rc = is_ipv6(fd) ? bind(fd, (const struct sockaddr *)&in6, sizeof(in6))
				   : bind(fd, (const struct sockaddr *)&in, sizeof(in));

	return rc < 0 ? -errno : 0;
}

static int bind_any(int fd, const struct rpc_address *at)
{
	const unsigned ports = RESERVED_LAST - RESERVED_FIRST + 1,
		       first = randombytes_uniform(ports);
	int rc = -EADDRINUSE;

	for (unsigned i = 0; i < ports && rc == -EADDRINUSE; i++)
		rc = nsm_socket_bind(fd, at, (uint16_t)(RESERVED_FIRST + (first + i) % ports));
	return rc;
}

int nsm_calls_open(struct nsm_calls *c, const struct rpc_address *at, uint16_t port)
{
	const int fd = nsm_socket_new();
	int rc;

	TAILQ_INIT(&c->list);
	c->n = 0;
	c->fd = -1;
	if (fd < 0)
		return fd;
	rc = port ? nsm_socket_bind(fd, at, port) : bind_any(fd, at);
	if (rc)
		close(fd);
	else
		c->fd = fd;
	return rc;
}

uint16_t nsm_calls_port(const struct nsm_calls *c)
{
	struct sockaddr_storage ss = { .ss_family = AF_INET6 };
	socklen_t len = sizeof(ss);

	if (c->fd < 0 || getsockname(c->fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	return rpc_address_port(&ss);
}

/* The address as the socket's family has it; returns its length, or 0: it has no such addresses. */
static socklen_t put_peer(int fd, const struct nsm_datagram *d, struct sockaddr_storage *out)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(d->port),
				    .sin6_scope_id = d->peer.scope };
	if (!is_ipv6(fd))
		return rn_address_is_ipv4(d->peer.bytes)
			       ? rn_address_unmap(d->peer.bytes, 0, d->port, out)
			       : 0;
	memcpy(&in6.sin6_addr, d->peer.bytes, 16);
	memcpy(out, &in6, sizeof(in6));
	return sizeof(in6);
}

/* The source address. None if it is unknown. */
static void nsm_put_local_addr(int fd, const struct nsm_datagram *d, struct msghdr *m)
{
	struct in6_pktinfo v6 = { .ipi6_ifindex = d->local.scope };
	struct in_pktinfo v4 = { .ipi_ifindex = 0 };
	struct cmsghdr *c = m->msg_control;
	static const uint8_t none[16];
	const bool ipv6 = is_ipv6(fd);

	memcpy(&v6.ipi6_addr, d->local.bytes, 16);
	memcpy(&v4.ipi_spec_dst, d->local.bytes + 12, 4);
	m->msg_controllen = 0;
	if (memcmp(d->local.bytes, none, sizeof(none)) == 0)
		return;
	m->msg_controllen = ipv6 ? CMSG_SPACE(sizeof(v6)) : CMSG_SPACE(sizeof(v4));
	c->cmsg_level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
	c->cmsg_type = ipv6 ? IPV6_PKTINFO : IP_PKTINFO;
	c->cmsg_len = ipv6 ? CMSG_LEN(sizeof(v6)) : CMSG_LEN(sizeof(v4));
	memcpy(CMSG_DATA(c), ipv6 ? (void *)&v6 : (void *)&v4, ipv6 ? sizeof(v6) : sizeof(v4));
}

void nsm_send(struct nsm_calls *c, const struct nsm_datagram *d)
{
	struct sockaddr_storage peer;
	union control control = { .v6 = { 0 } };
	struct iovec iov = { (void *)d->data, d->len };
	struct msghdr m = {
		.msg_name = &peer, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control
	};

	m.msg_namelen = put_peer(c->fd, d, &peer);
	if (m.msg_namelen == 0)
		return;
	nsm_put_local_addr(c->fd, d, &m);
	if (sendmsg(c->fd, &m, 0) >= 0 || m.msg_controllen == 0)
		return;
	/* The address may not be this machine's any more. */
	m.msg_control = NULL;
	m.msg_controllen = 0;
	(void)!sendmsg(c->fd, &m, 0);
}

static void nsm_get_local_addr(struct msghdr *m, struct rpc_address *out)
{
	memset(out, 0, sizeof(*out));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo v6;

			memcpy(&v6, CMSG_DATA(c), sizeof(v6));
			memcpy(out->bytes, &v6.ipi6_addr, sizeof(out->bytes));
			if (IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr))
				out->scope = v6.ipi6_ifindex;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo v4;

			memcpy(&v4, CMSG_DATA(c), sizeof(v4));
			out->bytes[10] = out->bytes[11] = 0xff;
			memcpy(out->bytes + 12, &v4.ipi_spec_dst, 4);
		}
	}
}

bool nsm_receive(struct nsm_calls *c, uint8_t *buf, size_t size, struct nsm_datagram *out)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	union control control;
	struct iovec iov = { buf, size };
	struct msghdr m = { .msg_name = &peer,
			    .msg_namelen = sizeof(peer),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const ssize_t n = recvmsg(c->fd, &m, 0);

	if (n < 0)
		return false;
	rpc_address_of(&peer, &out->peer);
	out->port = rpc_address_port(&peer);
	nsm_get_local_addr(&m, &out->local);
	out->data = buf;
	out->len = m.msg_flags & MSG_TRUNC ? 0 : (size_t)n;
	return true;
}
