/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets that tell to which of the machine's addresses a datagram came, and send from one of them. */
#ifndef RN_TRANSPORT_UDP_SOCKET_H
#define RN_TRANSPORT_UDP_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* A bound socket that does not block, or -errno. */
int udp_socket_open(const struct sockaddr *addr, socklen_t len);

/* Bytes of the next datagram, or -errno; -EMSGSIZE: it was longer, and is gone. local is the address that it came to,
 * with that port. */
ssize_t udp_socket_receive(int fd, uint8_t *buf, size_t size, uint16_t port,
			   struct sockaddr_storage *peer, struct sockaddr_storage *local);

/* Sends one datagram from local to peer. 0 or -errno. */
int udp_socket_send(int fd, const struct iovec *iov, unsigned niov,
		    const struct sockaddr_storage *peer, const struct sockaddr_storage *local);

#endif
