/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin.h"

static uint16_t admin_tcp_port(const struct sockaddr_storage *addr)
{
	return ntohs(addr->ss_family == AF_INET ? ((const struct sockaddr_in *)addr)->sin_port
						: ((const struct sockaddr_in6 *)addr)->sin6_port);
}

static int admin_tcp_set_up(int fd, const struct sockaddr_storage *addr)
{
	const bool v4 = addr->ss_family == AF_INET;
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (!v4 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(fd, (const struct sockaddr *)addr,
		 v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) < 0 ||
	    listen(fd, ADMIN_TCP_BACKLOG) < 0)
		return -errno;
	return 0;
}

static const char *address_text(const struct sockaddr_storage *addr, char text[INET6_ADDRSTRLEN])
{
	const void *bytes = addr->ss_family == AF_INET
				    ? (const void *)&((const struct sockaddr_in *)addr)->sin_addr
				    : &((const struct sockaddr_in6 *)addr)->sin6_addr;

	return inet_ntop(addr->ss_family, bytes, text, INET6_ADDRSTRLEN) ? text : "?";
}

int admin_tcp_listen(const struct sockaddr_storage *addr, const struct rn_logger *log)
{
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = fd < 0 ? -errno : admin_tcp_set_up(fd, addr);
	const unsigned port = admin_tcp_port(addr);
	char text[INET6_ADDRSTRLEN];

	address_text(addr, text);
	if (!rc) {
		rn_notice(log, "metrics by HTTP on %s port %u", text, port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	rn_err(log,
	       "metrics: cannot listen on %s port %u: %s; correct metrics.listen, or leave it "
	       "empty to go without",
	       text, port, strerror(-rc));
	return rc;
}

bool admin_tcp_is_connection(int fd, const struct sockaddr_storage *addrs, unsigned n)
{
	struct sockaddr_storage ss = { 0 }, peer;
	socklen_t len = sizeof(ss), peer_len = sizeof(peer);

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (ss.ss_family == addrs[i].ss_family &&
		    admin_tcp_port(&ss) == admin_tcp_port(&addrs[i]))
			return true;
	return false;
}
