/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of the control socket, or of metrics over TCP. Handlers for readers of the socket run on another (turns.h).
 * It alone touches the event base, evhttp and the table of
 * connections once it runs, so libevent needs no locks. An eventfd tells it to end.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/admin.h"
#include "admin/error_page.h"
#include "admin/later.h"
#include "admin/peer.h"
#include "admin/reply.h"
#include "admin/room.h"
#include "admin/route.h"
#include "admin/socket.h"
#include "admin/tcp.h"
#include "admin/turns.h"
#include "lib/clock.h"
#include "lib/log_ids.h"
#include "lib/log_limit.h"
#include "lib/util.h"

#define TCP_NICE 10

/* A connection that evhttp is about to set up. */
struct fresh {
	SLIST_ENTRY(fresh) link;
	struct bufferevent *bev; /* with a reference */
};

struct admin_server {
	const struct rn_logger *log;
	bool tcp;
	const struct sockaddr_storage *listen; /* over TCP */
	unsigned nlisten;
	int listen_fd[ADMIN_LISTEN_MAX]; /* -1: the listener's */
	struct admin_socket socket;	 /* else */
	_Atomic gid_t group;		 /* of the readers, or ADMIN_NO_GROUP */
	const struct admin_handler *handlers;
	size_t nhandlers;

	struct event_base *base;
	struct evhttp *http;
	int stop_fd;
	struct event *stop, *accepted, *tick;
	SLIST_HEAD(, fresh) fresh;
	struct admin_room room;
	struct admin_laters *laters;
	struct admin_turns *turns; /* of readers; NULL over TCP, where all are */
	bool replying;		   /* what is put into an output buffer is no page of evhttp's */
	struct rn_log_limit refusals;
	pthread_t thread;
	bool runs;
};

static const struct {
	enum evhttp_cmd_type type;
	const char *name;
} methods[] = {
	{ EVHTTP_REQ_GET, "GET" },	 { EVHTTP_REQ_POST, "POST" },
	{ EVHTTP_REQ_HEAD, "HEAD" },	 { EVHTTP_REQ_PUT, "PUT" },
	{ EVHTTP_REQ_DELETE, "DELETE" }, { EVHTTP_REQ_OPTIONS, "OPTIONS" },
	{ EVHTTP_REQ_PATCH, "PATCH" },
};

static const char *method_of(struct evhttp_request *req)
{
	for (size_t i = 0; i < rn_array_size(methods); i++)
		if (methods[i].type == evhttp_request_get_command(req))
			return methods[i].name;
	return "?";
}

static void send_reply(struct admin_server *s, struct evhttp_request *req, struct admin_reply *r)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	const bool empty = !r->body && !r->text;

	if (empty)
		r->status = 500;
	evhttp_add_header(headers, "Content-Type", empty ? "text/plain" : r->type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	if (r->policy) {
		evhttp_add_header(headers, "Content-Security-Policy", r->policy);
		evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	}
	if (conn) /* else the peer has gone */
		admin_room_use(&s->room, bufferevent_getfd(evhttp_connection_get_bufferevent(conn)),
			       false, rn_now_ns());
	admin_reply_put(r, evhttp_request_get_output_buffer(req));
	s->replying = true;
	evhttp_send_reply(req, r->status, NULL, NULL);
	s->replying = false;
}

static void log_refusal(struct admin_server *s, const struct admin_peer *peer, const char *method)
{
	unsigned left_out;

	if (rn_log_limit_pass(&s->refusals, rn_now_ns(), &left_out))
		rn_notice(
			s->log,
			"control socket: %s by user %u (process %d) refused; %u such messages were "
			"left out before",
			method, (unsigned)peer->uid, (int)peer->pid, left_out);
}

static bool changes(const struct admin_handler *h)
{
	return strcmp(h->method, "GET") != 0 && !h->reads;
}

/* Called for the answers of handlers, at once or later. */
static void send_answer(void *server, const struct admin_call *call, struct admin_reply *r)
{
	struct admin_server *s = server;
	const struct admin_handler *h = call->handler;

	const struct rn_log_event event = { .id = RN_ID_CHANGE, .operation = h->path };

	if (changes(h))
		rn_log_event(s->log, RN_NOTICE, &event,
			     "control socket: user %u (process %d): %s %s: %d",
			     (unsigned)call->peer.uid, (int)call->peer.pid, h->method, h->path,
			     r->status);
	send_reply(s, call->req, r);
}

/* For readers on the control socket the handler runs when their turn comes, so that nobody else waits for it. */
static void run_handler(struct admin_server *s, struct evhttp_request *req,
			const struct admin_handler *h, const struct admin_peer *peer, bool reader)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	struct admin_call call = { .laters = s->laters, .req = req, .handler = h, .peer = *peer };
	const struct admin_request request = {
		.peer = *peer,
		.query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)),
		.accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept"),
		.body = (const char *)evbuffer_pullup(in, -1),
		.body_len = evbuffer_get_length(in),
		.call = &call,
	};
	struct admin_reply r = { .status = 500 };

	if (!reader || !s->turns)
		h->run(h->ctx, &request, &r);
	else if (!admin_turns_add(s->turns, &request))
		admin_reply_error(&r, 503, "busy", "too many requests wait; ask again");
	if (!call.later)
		send_answer(s, &call, &r);
}

/* Answers a request that no handler gets. */
static void refuse(struct admin_server *s, struct evhttp_request *req, bool may, const char *allow)
{
	struct admin_reply r = { .status = 500 };

	if (!may && s->tcp) {
		admin_reply_error(&r, 403, admin_code(403), "nothing can be changed here");
	} else if (!may) {
		admin_reply_error(&r, 403, admin_code(403),
				  "only root may change anything, and only root and members of the "
				  "group that the server has for readers may ask");
	} else if (*allow) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allow);
		admin_reply_error(&r, 405, admin_code(405), "this path takes %s", allow);
	} else {
		admin_reply_error(&r, 404, admin_code(404), "there is nothing at this path");
	}
	send_reply(s, req, &r);
}

/* Over TCP nobody is asked who he is. */
static enum admin_right right_of(const struct admin_server *s, int fd, struct admin_peer *peer)
{
	if (!s->tcp)
		return admin_peer(fd, s->group, peer);
	*peer = (struct admin_peer){ .uid = (uid_t)-1 };
	return ADMIN_READ;
}

static void on_request(struct evhttp_request *req, void *arg)
{
	struct admin_server *s = arg;
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(conn));
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	const char *method = method_of(req);
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	char allow[ADMIN_ALLOW_MAX];
	struct admin_peer peer;

	admin_room_use(&s->room, fd, true, rn_now_ns());
	const struct admin_handler *h =
		admin_route(s->handlers, s->nhandlers, method, path ? path : "", allow);

	if (h)
		reads = !changes(h) && !h->private;
	const enum admin_right right = right_of(s, fd, &peer);
	const bool may = right >= (reads ? ADMIN_READ : ADMIN_CHANGE);

	if (!may && !s->tcp)
		log_refusal(s, &peer, method);
	if (h && may)
		run_handler(s, req, h, &peer, right < ADMIN_CHANGE);
	else
		refuse(s, req, may, allow);
}

static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	struct admin_server *s = arg;

	if (s->replying || !info->n_added)
		return;
	s->replying = true;
	admin_error_page(out);
	s->replying = false;
}

/* Called before evhttp gives the connection its descriptor, so the rest comes by on_accepted(). */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct admin_server *s = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	struct fresh *f = calloc(1, sizeof(*f));

	if (bev && f && evbuffer_add_cb(bufferevent_get_output(bev), on_output, s)) {
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
			admin_room_enter(&s->room, fd,
					 right_of(s, fd, &peer) < ADMIN_CHANGE ? &peer : NULL,
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

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct admin_server *s = arg;
	const uint64_t now = rn_now_ns(), most = ADMIN_PEER_SECONDS * RN_NS_PER_SECOND;

	(void)fd;
	(void)what;
	if (now > most)
		admin_room_expire(&s->room, now - most);
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
	struct admin_server *s = arg;

	(void)fd;
	(void)what;
	event_base_loopbreak(s->base);
}

static void *thread_main(void *arg)
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
static int start_thread(struct admin_server *s)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&s->thread, NULL, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->runs = rc == 0;
	return -rc;
}

static int make_tick(struct admin_server *s)
{
	const struct timeval second = { .tv_sec = 1 };

	s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	return s->tick ? event_add(s->tick, &second) : -1;
}

static int make_base(struct admin_server *s)
{
	struct event_config *cfg = event_config_new();

	if (!cfg)
		return -ENOMEM;
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	/* Not select(), whatever the environment says: it ends the process at descriptor 1024. */
	event_config_require_features(cfg, EV_FEATURE_O1);
	s->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!s->base)
		return -ENOMEM;
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->stop_fd < 0)
		return -errno;
	s->stop = event_new(s->base, s->stop_fd, EV_READ, on_stop, s);
	s->accepted = event_new(s->base, -1, 0, on_accepted, s);
	s->laters = admin_laters_new(s->base, send_answer, s);
	if (!s->tcp)
		s->turns = admin_turns_new();
	if (make_tick(s) < 0 || (!s->tcp && !s->turns))
		return -ENOMEM;
	return s->stop && s->accepted && s->laters && event_add(s->stop, NULL) == 0 ? 0 : -ENOMEM;
}

/* Gives evhttp a socket that listens already. Sets the descriptor to -1 when it is the listener's. */
static int add_listener(struct admin_server *s, int *fd)
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

static int add_listeners(struct admin_server *s)
{
	int rc = 0;

	if (!s->tcp)
		return add_listener(s, &s->socket.fd);
	for (unsigned i = 0; i < s->nlisten && !rc; i++)
		rc = add_listener(s, &s->listen_fd[i]);
	return rc;
}

static int make_http(struct admin_server *s)
{
	unsigned taken = 0;

	s->http = evhttp_new(s->base);
	if (!s->http)
		return -ENOMEM;
	for (size_t i = 0; i < rn_array_size(methods); i++)
		taken |= methods[i].type;
	evhttp_set_allowed_methods(s->http, (ev_uint16_t)taken);
	evhttp_set_default_content_type(s->http, NULL);
	evhttp_set_max_headers_size(s->http, ADMIN_HEADER_MAX);
	evhttp_set_max_body_size(s->http, s->tcp ? ADMIN_TCP_BODY_MAX : ADMIN_BODY_MAX);
	evhttp_set_timeout(s->http, ADMIN_TIMEOUT);
	evhttp_set_gencb(s->http, on_request, s);
	evhttp_set_bevcb(s->http, on_connection, s);
	return add_listeners(s);
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
	admin_room_init(&s->room, s->tcp);
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
	int rc = make_base(s);

	if (!rc)
		rc = make_http(s);
	return rc ? rc : start_thread(s);
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
	admin_turns_free(s->turns);
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
	close_sockets(s);
	free(s);
}
