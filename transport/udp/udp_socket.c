/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/udp/udp_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define RECEIVE_BYTES                                                                              \
	(1 << 20) /* datagrams that wait for the event loop; the kernel may allow less */

union control {
	struct cmsghdr align;
	char v6[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	char v4[CMSG_SPACE(sizeof(struct in_pktinfo))];
};

static int udp_set_socket_options(int fd, int family)
{
	static const int on = 1, room = RECEIVE_BYTES;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (family == AF_INET)
		return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -1;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
}

int udp_socket_open(const struct sockaddr *addr, socklen_t len)
{
	const int fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (udp_set_socket_options(fd, addr->sa_family) < 0 || bind(fd, addr, len) < 0) {
		const int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

static void udp_get_local_addr(struct msghdr *m, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	memset(out, 0, sizeof(*out));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof(i));
			in6.sin6_addr = i.ipi6_addr;
			if (IN6_IS_ADDR_LINKLOCAL(&i.ipi6_addr))
				in6.sin6_scope_id = i.ipi6_ifindex;
			memcpy(out, &in6, sizeof(in6));
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof(i));
			in.sin_addr = i.ipi_spec_dst;
			memcpy(out, &in, sizeof(in));
		}
	}
}

ssize_t udp_socket_receive(int fd, uint8_t *buf, size_t size, uint16_t port,
			   struct sockaddr_storage *peer, struct sockaddr_storage *local)
{
	union control control;
	struct iovec iov = { buf, size };
	struct msghdr m = { .msg_name = peer,
			    .msg_namelen = sizeof(*peer),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	memset(peer, 0, sizeof(*peer));
	const ssize_t n = recvmsg(fd, &m, 0);

	if (n < 0)
		return -errno;
	udp_get_local_addr(&m, port, local);
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

/* The address to send from. */
static void udp_put_local_addr(const struct sockaddr_storage *local, struct msghdr *m)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)local;
	const struct sockaddr_in *in = (const struct sockaddr_in *)local;
	const struct in6_pktinfo v6 = { .ipi6_addr = in6->sin6_addr,
					.ipi6_ifindex = in6->sin6_scope_id };
	const struct in_pktinfo v4 = { .ipi_spec_dst = in->sin_addr };
	const bool is_v6 = local->ss_family == AF_INET6;
	struct cmsghdr *c = m->msg_control;

	m->msg_controllen = is_v6 ? CMSG_SPACE(sizeof(v6)) : CMSG_SPACE(sizeof(v4));
	c->cmsg_level = is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;
	c->cmsg_type = is_v6 ? IPV6_PKTINFO : IP_PKTINFO;
	c->cmsg_len = is_v6 ? CMSG_LEN(sizeof(v6)) : CMSG_LEN(sizeof(v4));
	if (is_v6)
		memcpy(CMSG_DATA(c), &v6, sizeof(v6));
	else
		memcpy(CMSG_DATA(c), &v4, sizeof(v4));
}

int udp_socket_send(int fd, const struct iovec *iov, unsigned niov,
		    const struct sockaddr_storage *peer, const struct sockaddr_storage *local)
{
	union control control = { .v6 = { 0 } };
	struct msghdr m = { .msg_name = (void *)peer,
			    .msg_namelen = peer->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								       : sizeof(struct sockaddr_in),
			    .msg_iov = (struct iovec *)iov,
			    .msg_iovlen = niov,
			    .msg_control = &control };
	ssize_t n;

	if (local->ss_family == AF_UNSPEC)
		m.msg_control = NULL;
	else
		udp_put_local_addr(local, &m);
	do
		n = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}
