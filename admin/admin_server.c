/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of the control socket, or of metrics over TCP. Handlers for readers of the socket run on another (admin_turns.h).
 * The server's thread alone touches the event base, evhttp and the table of
 * connections once it runs, so libevent needs no locks. An eventfd tells it to end.
 */
#include "admin/admin_server.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/tcp.h"
#include "lib/clock.h"

#define TCP_NICE 10

/* A connection that evhttp is about to set up. */
struct fresh {
	SLIST_ENTRY(fresh) link;
	struct bufferevent *bev; /* with a reference */
};

/* Called before evhttp gives the connection its descriptor, so the rest comes by on_accepted(). */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct admin_server *s = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	struct fresh *f = calloc(1, sizeof(*f));

	if (bev && f && evbuffer_add_cb(bufferevent_get_output(bev), admin_on_output, s)) {
		f->bev = bev;
		bufferevent_incref(bev);
		SLIST_INSERT_HEAD(&s->fresh, f, link);
		event_active(s->accepted, EV_TIMEOUT, 0);
		return bev;
	}
	free(f);
	return bev;
}

/* True if the descriptor is a connection to this socket. If setting one up failed, evhttp has closed
 * it, and another thread may have the number by now. */
static bool is_connection(const struct admin_server *s, int fd)
{
	struct sockaddr_un sa = { 0 };
	socklen_t len = sizeof(sa);

	if (s->tcp)
		return admin_tcp_is_connection(fd, s->listen, s->nlisten);
	return fd >= 0 && getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
	       sa.sun_family == AF_UNIX &&
	       strncmp(sa.sun_path, s->socket.path, sizeof(sa.sun_path)) == 0;
}

static void take_fresh(struct admin_server *s, bool enter)
{
	struct fresh *f;

	while ((f = SLIST_FIRST(&s->fresh))) {
		const int fd = bufferevent_getfd(f->bev);
		struct admin_peer peer;

		SLIST_REMOVE_HEAD(&s->fresh, link);
		if (enter && is_connection(s, fd))
			admin_seats_enter(&s->seats, fd,
					  admin_server_right(s, fd, &peer) < ADMIN_CHANGE ? &peer
											  : NULL,
					  rn_now_ns());
		bufferevent_decref(f->bev);
		free(f);
	}
}

/* Runs in the round of events that accepted the connections, before any of them is read. */
static void on_accepted(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	take_fresh(arg, true);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(arg);
}

/* Most likely descriptors are used up: a listener that goes on would spin. The argument is evhttp's. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
	const struct timeval second = { .tv_sec = 1 };

	(void)arg;
	evconnlistener_disable(l);
	event_base_once(evconnlistener_get_base(l), -1, EV_TIMEOUT, on_resume, l, &second);
}

static void admin_server_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct admin_server *s = arg;
	const uint64_t now = rn_now_ns(), most = ADMIN_PEER_SECONDS * RN_NS_PER_SECOND;

	(void)fd;
	(void)what;
	if (now > most)
		admin_seats_expire(&s->seats, now - most);
}

static void admin_server_on_stop(evutil_socket_t fd, short what, void *arg)
{
	struct admin_server *s = arg;

	(void)fd;
	(void)what;
	event_base_loopbreak(s->base);
}

static void *admin_server_main(void *arg)
{
	struct admin_server *s = arg;

	pthread_setname_np(pthread_self(), s->tcp ? "metrics" : "control");
	/* Anybody may ask, as often as he likes: NFS comes first. */
	if (s->tcp)
		setpriority(PRIO_PROCESS, 0, TCP_NICE);
	event_base_loop(s->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

/* All signals are blocked in the thread: they belong to the daemon's main thread. */
static int admin_server_start_thread(struct admin_server *s)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&s->thread, NULL, admin_server_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->runs = rc == 0;
	return -rc;
}

static int make_tick(struct admin_server *s)
{
	const struct timeval second = { .tv_sec = 1 };

	s->tick = event_new(s->base, -1, EV_PERSIST, admin_server_on_tick, s);
	return s->tick ? event_add(s->tick, &second) : -1;
}

static int admin_server_make_base(struct admin_server *s)
{
	struct event_config *cfg = event_config_new();

	if (!cfg)
		return -ENOMEM;
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	/* Rules out select(), which the environment may ask for: it ends the process at descriptor 1024. */
	event_config_require_features(cfg, EV_FEATURE_O1);
	s->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!s->base)
		return -ENOMEM;
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->stop_fd < 0)
		return -errno;
	s->stop = event_new(s->base, s->stop_fd, EV_READ, admin_server_on_stop, s);
	s->accepted = event_new(s->base, -1, 0, on_accepted, s);
	s->laters = admin_laters_new(s->base, admin_send_answer, s);
	if (!s->tcp)
		s->turns = admin_turns_new();
	if (make_tick(s) < 0 || (!s->tcp && !s->turns))
		return -ENOMEM;
	return s->stop && s->accepted && s->laters && event_add(s->stop, NULL) == 0 ? 0 : -ENOMEM;
}

/* Gives evhttp a socket that listens already. Sets the descriptor to -1 when it is the listener's. */
static int admin_server_add_listener(struct admin_server *s, int *fd)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC;
	/* No backlog: listen(2) is not called again. */
	struct evconnlistener *l = evconnlistener_new(s->base, NULL, NULL, flags, 0, *fd);

	if (!l)
		return -ENOMEM;
	*fd = -1;
	evconnlistener_set_error_cb(l, on_accept_error);
	if (!evhttp_bind_listener(s->http, l)) {
		evconnlistener_free(l);
		return -ENOMEM;
	}
	return 0;
}

static int admin_server_add_listeners(struct admin_server *s)
{
	int rc = 0;

	if (!s->tcp)
		return admin_server_add_listener(s, &s->socket.fd);
	for (unsigned i = 0; i < s->nlisten && !rc; i++)
		rc = admin_server_add_listener(s, &s->listen_fd[i]);
	return rc;
}

static int make_http(struct admin_server *s)
{
	s->http = evhttp_new(s->base);
	if (!s->http)
		return -ENOMEM;
	evhttp_set_allowed_methods(s->http, (ev_uint16_t)admin_methods());
	evhttp_set_default_content_type(s->http, NULL);
	evhttp_set_max_headers_size(s->http, ADMIN_HEADER_MAX);
	evhttp_set_max_body_size(s->http, s->tcp ? ADMIN_TCP_BODY_MAX : ADMIN_BODY_MAX);
	evhttp_set_timeout(s->http, ADMIN_TIMEOUT);
	evhttp_set_gencb(s->http, admin_on_request, s);
	evhttp_set_bevcb(s->http, on_connection, s);
	return admin_server_add_listeners(s);
}

static void close_sockets(struct admin_server *s)
{
	if (!s->tcp)
		admin_socket_close(&s->socket);
	for (unsigned i = 0; i < s->nlisten; i++)
		if (s->listen_fd[i] >= 0)
			close(s->listen_fd[i]);
}

static int open_sockets(struct admin_server *s, const struct admin_config *cfg)
{
	if (!s->tcp)
		return admin_socket_open(&s->socket, cfg->path, cfg->log);
	s->listen = cfg->listen;
	for (; s->nlisten < cfg->nlisten && s->nlisten < ADMIN_LISTEN_MAX; s->nlisten++) {
		const int fd = admin_tcp_listen(&cfg->listen[s->nlisten], cfg->log);

		if (fd < 0) {
			close_sockets(s);
			return fd;
		}
		s->listen_fd[s->nlisten] = fd;
	}
	return 0;
}

int admin_new(const struct admin_config *cfg, struct admin_server **out)
{
	struct admin_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->log = cfg->log;
	s->stop_fd = -1;
	s->tcp = !cfg->path;
	SLIST_INIT(&s->fresh);
	admin_seats_init(&s->seats, s->tcp);
	atomic_init(&s->group, ADMIN_NO_GROUP);
	int rc = open_sockets(s, cfg);

	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int admin_set_readers(struct admin_server *s, gid_t group)
{
	atomic_store(&s->group, group);
	return admin_socket_share(&s->socket, group);
}

int admin_start(struct admin_server *s, const struct admin_handler *handlers, size_t n)
{
	s->handlers = handlers;
	s->nhandlers = n;
	int rc = admin_server_make_base(s);

	if (!rc)
		rc = make_http(s);
	return rc ? rc : admin_server_start_thread(s);
}

static void stop_thread(struct admin_server *s)
{
	if (!s->runs)
		return;
	while (eventfd_write(s->stop_fd, 1) < 0 && errno == EINTR)
		;
	pthread_join(s->thread, NULL);
}

void admin_free(struct admin_server *s)
{
	if (!s)
		return;
	stop_thread(s);
	take_fresh(s, false);
	rn_jobs_free(s->turns, RN_JOBS_FOREVER);
	admin_laters_free(s->laters);
	if (s->http)
		evhttp_free(s->http);
	if (s->stop)
		event_free(s->stop);
	if (s->accepted)
		event_free(s->accepted);
	if (s->tick)
		event_free(s->tick);
	if (s->base)
		event_base_free(s->base);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	admin_seats_fini(&s->seats);
	close_sockets(s);
	free(s);
}
