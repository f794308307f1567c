/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/udp/udp_listen.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/address.h"
#include "transport/udp/udp_call.h"
#include "transport/udp/udp_reply.h"
#include "transport/udp/udp_socket.h"

/* A bounded number: others wait for the loop. What is left makes the socket ready again. */
static void on_datagrams(evutil_socket_t fd, short what, void *arg)
{
	struct udp_listener *l = arg;
	struct udp_datagram d;

	(void)what;
	for (unsigned i = 0; i < UDP_BATCH; i++) {
		const ssize_t n = udp_socket_receive((int)fd, l->buffer, sizeof(l->buffer), l->port,
						     &d.peer, &d.local);

		if (n == -EAGAIN || n == -EWOULDBLOCK)
			return;
		if (n < 0 || n > UDP_MESSAGE_MAX) {
			if (n >= 0 || n == -EMSGSIZE)
				udp_dropped(l->srv, UDP_TOO_LONG);
			continue; /* other errors are those of earlier replies */
		}
		d.data = l->buffer;
		d.len = (uint32_t)n;
		udp_call_take(l, &d);
	}
}

void udp_listener_quiet(void *listener)
{
	struct udp_listener *l = listener;

	if (l->ev)
		event_free(l->ev);
	l->ev = NULL;
}

void udp_listener_free(struct udp_listener *l)
{
	close(l->fd);
	free(l);
}

struct setup {
	struct udp_listener *l;
	int err;
};

/* On the listener's loop. */
static void udp_listener_set_up(void *arg)
{
	struct setup *s = arg;
	struct udp_listener *l = s->l;

	l->ev = event_new(l->loop->base, l->fd, EV_READ | EV_PERSIST, on_datagrams, l);
	if (!l->ev || event_add(l->ev, NULL) < 0)
		s->err = -ENOMEM;
}

int udp_server_listen(struct udp_server *srv, const struct sockaddr *addr, socklen_t len,
		      struct sockaddr_storage *bound)
{
	const int fd = udp_socket_open(addr, len);
	socklen_t blen = sizeof(*bound);

	if (fd < 0)
		return fd;
	struct udp_listener *l = calloc(1, sizeof(*l));
	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	memset(bound, 0, sizeof(*bound));
	getsockname(fd, (struct sockaddr *)bound, &blen);
	l->fd = fd;
	l->port = rpc_address_port(bound);
	l->srv = srv;
	l->loop = srv->cfg.loops[srv->nlisteners++ % srv->cfg.nloops];
	struct setup s = { .l = l };
	ev_loop_call(l->loop, udp_listener_set_up, &s);
	if (s.err) {
		ev_loop_call(l->loop, udp_listener_quiet, l);
		udp_listener_free(l);
		return s.err;
	}
	SLIST_INSERT_HEAD(&srv->listeners, l, link);
	return 0;
}
