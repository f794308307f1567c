/* SPDX-License-Identifier: BSD-2-Clause */
/* From a request to its handler, and from the handler's answer to the peer. On the server's thread. */
#include <event2/bufferevent.h>
#include <string.h>

#include "admin/error_page.h"
#include "admin/admin_reply.h"
#include "admin/route.h"
#include "admin/admin_server.h"
#include "lib/clock.h"
#include "lib/log_ids.h"
#include "lib/util.h"

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

static void admin_send_reply(struct admin_server *s, struct evhttp_request *req,
			     struct admin_reply *r)
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
		admin_seats_use(&s->seats,
				bufferevent_getfd(evhttp_connection_get_bufferevent(conn)), false,
				rn_now_ns());
	admin_reply_put(r, evhttp_request_get_output_buffer(req));
	s->replying = true;
	evhttp_send_reply(req, r->status, NULL, NULL);
	s->replying = false;
}

static void admin_log_refusal(struct admin_server *s, const struct admin_peer *peer,
			      const char *method)
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

void admin_send_answer(void *server, const struct admin_call *call, struct admin_reply *r)
{
	struct admin_server *s = server;
	const struct admin_handler *h = call->handler;

	const struct rn_log_event event = { .id = RN_ID_CHANGE, .operation = h->path };

	if (changes(h))
		rn_log_event(s->log, RN_NOTICE, &event,
			     "control socket: user %u (process %d): %s %s: %d",
			     (unsigned)call->peer.uid, (int)call->peer.pid, h->method, h->path,
			     r->status);
	admin_send_reply(s, call->req, r);
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
		admin_send_answer(s, &call, &r);
}

/* Answers a request that no handler gets. */
static void admin_refuse_request(struct admin_server *s, struct evhttp_request *req, bool may,
				 const char *allow)
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
	admin_send_reply(s, req, &r);
}

enum admin_right admin_server_right(const struct admin_server *s, int fd, struct admin_peer *peer)
{
	if (!s->tcp)
		return admin_peer(fd, s->group, peer);
	*peer = (struct admin_peer){ .uid = (uid_t)-1 };
	return ADMIN_READ;
}

void admin_on_request(struct evhttp_request *req, void *arg)
{
	struct admin_server *s = arg;
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(conn));
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	const char *method = method_of(req);
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	char allow[ADMIN_ALLOW_MAX];
	struct admin_peer peer;

	admin_seats_use(&s->seats, fd, true, rn_now_ns());
	const struct admin_handler *h =
		admin_route(s->handlers, s->nhandlers, method, path ? path : "", allow);

	if (h)
		reads = !changes(h) && !h->private;
	const enum admin_right right = admin_server_right(s, fd, &peer);
	const bool may = right >= (reads ? ADMIN_READ : ADMIN_CHANGE);

	if (!may && !s->tcp)
		admin_log_refusal(s, &peer, method);
	if (h && may)
		run_handler(s, req, h, &peer, right < ADMIN_CHANGE);
	else
		admin_refuse_request(s, req, may, allow);
}

void admin_on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	struct admin_server *s = arg;

	if (s->replying || !info->n_added)
		return;
	s->replying = true;
	admin_error_page(out);
	s->replying = false;
}

unsigned admin_methods(void)
{
	unsigned all = 0;

	for (size_t i = 0; i < rn_array_size(methods); i++)
		all |= methods[i].type;
	return all;
}
