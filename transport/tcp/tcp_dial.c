/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to clients: rpc/backchannel.h. */
#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/backchannel.h"
#include "transport/tcp/tcp_close.h"
#include "transport/tcp/tcp_start.h"

#define RESERVED_FIRST 665u /* as glibc's bindresvport() */
#define RESERVED_LAST 1023u

/* Splits an address into its family's; returns its length. */
static socklen_t unmap(const struct sockaddr_in6 *from, struct sockaddr_storage *to)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = from->sin6_port };

	memset(to, 0, sizeof(*to));
	if (!IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
		memcpy(to, from, sizeof(*from));
		return sizeof(*from);
	}
	memcpy(&in.sin_addr, from->sin6_addr.s6_addr + 12, sizeof(in.sin_addr));
	memcpy(to, &in, sizeof(in));
	return sizeof(in);
}

/* Binds to a free privileged port. -errno: there is none, or this process may not. */
static int bind_reserved(int fd, const struct sockaddr_in6 *from)
{
	const unsigned n = RESERVED_LAST - RESERVED_FIRST + 1, first = randombytes_uniform(n);
	struct sockaddr_in6 addr = *from;
	struct sockaddr_storage sa;

	for (unsigned i = 0; i < n; i++) {
		addr.sin6_port = htons((uint16_t)(RESERVED_FIRST + (first + i) % n));
		const socklen_t len = unmap(&addr, &sa);

		if (bind(fd, (struct sockaddr *)&sa, len) == 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return -errno;
}

/*
 * Binds to the address that the client calls, which it and its firewall know. The port is any
 * unprivileged one: a reserved port would lend the server's standing to a call whose receiver the
 * client has chosen. A route that the administrator has chosen has a reserved one, if one is free.
 */
static int bind_to(int fd, const struct rpc_route *route)
{
	const int on = 1;
	const struct sockaddr_in6 *from = &route->from;
	struct sockaddr_storage sa;
	struct sockaddr_in6 any_port = *from;

	if (from->sin6_family == AF_UNSPEC || (route->reserved && bind_reserved(fd, from) == 0))
		return 0;
	any_port.sin6_port = 0;
	/* The kernel chooses the port by both ends, when it connects. */
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	const socklen_t len = unmap(&any_port, &sa);

	return bind(fd, (struct sockaddr *)&sa, len) < 0 ? -errno : 0;
}

/* A socket whose connect() is under way, or -errno. */
static int begin_connect(const struct rpc_route *route, struct sockaddr_storage *peer)
{
	const socklen_t len = unmap(&route->to, peer);
	const int fd = socket(peer->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = bind_to(fd, route);
	if (rc == 0 && connect(fd, (struct sockaddr *)peer, len) < 0 && errno != EINPROGRESS)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int tcp_server_dial(struct tcp_server *srv, const struct rpc_route *route,
		    struct rpc_backchannel **out)
{
	struct sockaddr_storage peer;
	struct tcp_conn *c;
	const int fd = begin_connect(route, &peer);
	int rc = fd < 0 ? fd : tcp_conn_new_dialed(srv, fd, &peer, route->reply_max, &c);

	if (rc != 0)
		return rc;
	tcp_count(srv, dialed, 1);
	*out = rpc_backchannel_get(&c->rpc);
	if (!*out) { /* no memory, or it is closed already */
		tcp_conn_hang_up(&c->rpc);
		rc = -ENOTCONN;
	}
	rpc_conn_put(&c->rpc);
	return rc;
}
