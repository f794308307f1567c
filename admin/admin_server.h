/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of the control socket, or of metrics over TCP: server.c has its sockets and its thread, request.c what it does with a request. */
#ifndef RN_ADMIN_ADMIN_SERVER_H
#define RN_ADMIN_ADMIN_SERVER_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "admin/admin.h"
#include "admin/later.h"
#include "admin/peer.h"
#include "admin/admin_seats.h"
#include "admin/socket.h"
#include "admin/admin_turns.h"
#include "lib/log.h"

struct fresh;

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
	struct admin_seats seats;
	struct admin_laters *laters;
	struct rn_jobs *turns; /* of readers; NULL over TCP, where all are */
	bool replying;	       /* what is put into an output buffer is no page of evhttp's */
	struct rn_log_limit refusals;
	pthread_t thread;
	bool runs;
};

/* Methods of HTTP that requests may have: a mask of enum evhttp_cmd_type. */
unsigned admin_methods(void);
/* For evhttp_set_gencb(): arg is the server. */
void admin_on_request(struct evhttp_request *req, void *arg);
/* Called for the answers of handlers, at once or later. */
void admin_send_answer(void *server, const struct admin_call *call, struct admin_reply *r);
/* The right of a connection's peer, and who it is. Over TCP, which tells no user, everybody may read and nobody may change. */
enum admin_right admin_server_right(const struct admin_server *s, int fd, struct admin_peer *peer);
/* Called when something is put into a connection's output: pages of evhttp's own are replaced. arg is the server. */
void admin_on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg);

#endif
