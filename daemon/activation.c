/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/activation.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum { TEXT_MAX = INET6_ADDRSTRLEN + 8 };

static const char *text_of(const struct sockaddr_storage *ss, char text[TEXT_MAX])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)ss;
	char addr[INET6_ADDRSTRLEN] = "?";

	if (ss->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, addr, sizeof(addr));
		snprintf(text, TEXT_MAX, "[%s]:%u", addr, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, addr, sizeof(addr));
		snprintf(text, TEXT_MAX, "%s:%u", addr, ntohs(v4->sin_port));
	}
	return text;
}

/* The reason why the server cannot take the socket, or NULL. */
static const char *fault_of(int fd, struct sockaddr_storage *at)
{
	socklen_t len = sizeof(*at);
	int v6only = 0;

	*at = (struct sockaddr_storage){ 0 };
	if (sd_is_socket_inet(fd, AF_UNSPEC, SOCK_STREAM, 1, 0) <= 0)
		return "it is no listening TCP socket; use ListenStream= with an address and a "
		       "port";
	if (getsockname(fd, (struct sockaddr *)at, &len) < 0)
		return strerror(errno);
	if (at->ss_family == AF_INET)
		return NULL;
	len = sizeof(v6only);
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len) < 0)
		return strerror(errno);
	return v6only ? NULL
		      : "it takes IPv4, too; set BindIPv6Only=ipv6-only, and name an IPv4 address";
}

/* The server waits for the socket beside others, and its children must not have it. */
static int activation_prepare(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static void activation_close_all(struct activation *a)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->socket[i].fd >= 0)
			close(a->socket[i].fd);
	a->n = 0;
}

int activation_take(struct activation *a, const struct rn_logger *log)
{
	const int n = sd_listen_fds(1);
	int rc = n > ACTIVATION_MAX ? -EINVAL : 0;

	a->n = 0;
	if (rc)
		rn_err(log, "the service manager passes %d sockets, and %d are the most", n,
		       ACTIVATION_MAX);
	for (int i = 0; i < n && i < ACTIVATION_MAX; i++) {
		struct activation_socket *s = &a->socket[a->n++];

		s->fd = SD_LISTEN_FDS_START + i;
		const char *fault = fault_of(s->fd, &s->at);

		if (!fault && activation_prepare(s->fd) < 0)
			fault = strerror(errno);
		if (!fault)
			continue;
		rn_err(log, "socket %d of the service manager (ringnfsd.socket): %s", i + 1, fault);
		rc = -EINVAL;
	}
	if (rc)
		activation_close_all(a);
	return rc;
}

static bool is_at(const struct sockaddr_storage *is, const struct sockaddr_storage *want)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)is;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)want;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)is;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)want;

	if (is->ss_family != want->ss_family)
		return false;
	if (is->ss_family == AF_INET6)
		return (b6->sin6_port == 0 || a6->sin6_port == b6->sin6_port) &&
		       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
	return (b4->sin_port == 0 || a4->sin_port == b4->sin_port) &&
	       a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

int activation_get(struct activation *a, const struct sockaddr_storage *at)
{
	for (unsigned i = 0; i < a->n; i++) {
		const int fd = a->socket[i].fd;

		if (fd < 0 || !is_at(&a->socket[i].at, at))
			continue;
		a->socket[i].fd = -1;
		return fd;
	}
	return -1;
}

void activation_end(struct activation *a, const struct rn_logger *log)
{
	char text[TEXT_MAX];

	for (unsigned i = 0; i < a->n; i++)
		if (a->socket[i].fd >= 0)
			rn_warn(log,
				"the service manager has a socket at %s, which [tcp] does not "
				"name: it is "
				"not served; change listen, port, mount_port or rquota_port, or "
				"ringnfsd.socket",
				text_of(&a->socket[i].at, text));
	activation_close_all(a);
}
