/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets that the service manager has opened and passed on (sd_listen_fds(3), ringnfsd.socket). It
 * keeps them while the server is restarted, so that clients which connect meanwhile wait and are not refused.
 */
#ifndef RN_DAEMON_ACTIVATION_H
#define RN_DAEMON_ACTIVATION_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/log.h"

enum { ACTIVATION_MAX = 32 }; /* sockets that may be passed */

struct activation {
	struct activation_socket {
		int fd; /* -1: taken */
		struct sockaddr_storage at;
	} socket[ACTIVATION_MAX];
	unsigned n;
};

/* Takes all that was passed to this process. One that is no listening TCP socket, or an IPv6 one that takes IPv4 too,
 * is an error, which is logged with what to change. 0; -EINVAL, with all of them closed. */
int activation_take(struct activation *a, const struct rn_logger *log);
/* The socket that listens at that address and port, which is the caller's from now on; -1: there is none. Port 0 is
 * any. */
int activation_get(struct activation *a, const struct sockaddr_storage *at);
/* Closes those that nobody has asked for, and logs each, with what to change. */
void activation_end(struct activation *a, const struct rn_logger *log);

#endif
