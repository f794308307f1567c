/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners, and the server as a whole, whose functions are called by one thread, which is not one of its loops. */
#include "transport/udp/udp_private.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/address.h"

/* Reads a bounded number of datagrams, as others wait for the loop. The rest makes the socket ready again. */
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

static void udp_listener_quiet(void *listener)
{
	struct udp_listener *l = listener;

	if (l->ev)
		event_free(l->ev);
	l->ev = NULL;
}

static void udp_listener_free(struct udp_listener *l)
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

size_t udp_server_memory(void)
{
	return udp_pool_memory();
}

int udp_server_new(const struct udp_config *cfg, struct udp_server **out)
{
	struct udp_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	SLIST_INIT(&s->listeners);
	STAILQ_INIT(&s->idle);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->gone, NULL);
	udp_ration_init(&s->ration);
	udp_asked_init(&s->asked);
	crypto_shorthash_keygen(s->id_key);
	const int rc = udp_pool_fill(s);
	if (rc)
		udp_server_free(s);
	else
		*out = s;
	return rc;
}

void udp_server_quiesce(struct udp_server *s)
{
	struct udp_listener *l;

	SLIST_FOREACH (l, &s->listeners, link)
		ev_loop_call(l->loop, udp_listener_quiet, l);
}

void udp_server_free(struct udp_server *s)
{
	struct udp_listener *l;

	if (!s)
		return;
	udp_server_quiesce(s);
	pthread_mutex_lock(&s->lock);
	while (s->busy)
		pthread_cond_wait(&s->gone, &s->lock);
	pthread_mutex_unlock(&s->lock);
	while ((l = SLIST_FIRST(&s->listeners))) {
		SLIST_REMOVE_HEAD(&s->listeners, link);
		udp_listener_free(l);
	}
	udp_pool_free(s);
	udp_ration_fini(&s->ration);
	udp_asked_fini(&s->asked);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->gone);
	free(s);
}

void udp_server_stats(struct udp_server *s, struct udp_stats *out)
{
	pthread_mutex_lock(&s->lock);
	out->requests_busy = s->busy;
	pthread_mutex_unlock(&s->lock);
	out->requests = atomic_load(&s->made);
	out->calls = atomic_load(&s->calls);
	out->replies = atomic_load(&s->replies);
	out->bytes_in = atomic_load(&s->bytes_in);
	out->bytes_out = atomic_load(&s->bytes_out);
	for (unsigned i = 0; i < UDP_DROPPED; i++)
		out->dropped[i] = atomic_load(&s->dropped[i]);
}
