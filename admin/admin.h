/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: HTTP/1.1 with JSON on a Unix socket, for ringnfsctl(8), curl and monitoring. And metrics over
 * TCP, by a server of its own, which answers GET to everybody.
 *
 * One thread with an event base of its own serves it, so that its peers cannot hold up NFS. Its
 * handlers are the daemon's: a table of method, path and function. Root and the daemon's own user
 * may call all of them; members of one group may call those that change nothing; others get 403.
 */
#ifndef RN_ADMIN_ADMIN_H
#define RN_ADMIN_ADMIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "lib/log.h"

#define ADMIN_CONNS_MAX 64u   /* connections at a time; the least recently used one makes room */
#define ADMIN_READERS_MAX 48u /* of them, those of others than root and the daemon's user */
#define ADMIN_BACKLOG 15u     /* connections that wait to be accepted */
#define ADMIN_HEADER_MAX 8192u
#define ADMIN_BODY_MAX 524288u
#define ADMIN_TIMEOUT 10 /* seconds that a peer may take for a part of a request or reply */
/* Seconds that a reader, or a peer over TCP, may take from a connection's begin to its request, and from an answer to the
 * next request, which begins when the answer was taken. */
#define ADMIN_PEER_SECONDS 10u

/* Over TCP. */
#define ADMIN_TCP_CONNS_MAX 128u /* at a time; the host with most loses one to a further one */
#define ADMIN_TCP_BACKLOG 128
#define ADMIN_LISTEN_MAX 16u
#define ADMIN_TCP_BODY_MAX 4096u

struct admin_server;
struct admin_call;
struct admin_later;

struct admin_peer {
	uid_t uid;
	pid_t pid;
};

struct admin_request {
	struct admin_peer peer;
	const char *query;  /* text behind the ? of the URI, not decoded; or NULL */
	const char *accept; /* header of that name, or NULL */
	const char *body;   /* not NUL-terminated */
	size_t body_len;
	struct admin_call *call; /* the server's own */
};

/* A handler's answer. Without a call of the functions below it is an internal error. */
struct admin_reply {
	int status;		 /* of HTTP */
	const char *type;	 /* media type */
	const char *policy;	 /* Content-Security-Policy of a page for browsers, or NULL */
	char *body;		 /* by malloc(), or NULL: no memory */
	struct admin_text *text; /* in place of the body, if it is not NULL */
};

/* A text that replies share, as long as some peer is still to get it. Thread-safe. */
struct admin_text;
/* Takes over body, which is malloc()'s. NULL: no memory, and it is freed. */
struct admin_text *admin_text_new(char *body, size_t len);
void admin_text_put(struct admin_text *t); /* NULL is allowed */
/* Answers 200 with the text; takes a reference of its own. */
void admin_reply_text(struct admin_reply *r, const char *type, struct admin_text *t);

/* Answers 200 with the object, whose reference it takes. NULL: there was no memory for it. */
void admin_reply_json(struct admin_reply *r, json_t *object);
/* Like admin_reply_json(), with another status. */
void admin_reply_json_status(struct admin_reply *r, int status, json_t *object);
/* Answers {"error": text, "code": code}. code is a word for programs, which never changes. */
void admin_reply_error(struct admin_reply *r, int status, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * For a handler that cannot answer at once: called by the handler, which then leaves its reply alone. Other
 * peers are served until a thread of any kind fills the reply and sends it, which it must do once; the
 * request itself ends with the handler. A peer that has gone, or a server that is freed, gets no answer.
 * NULL: no memory, and the handler answers by itself.
 */
struct admin_later *admin_later(const struct admin_request *req);
struct admin_reply *admin_later_reply(struct admin_later *later);
/* Frees it. */
void admin_later_send(struct admin_later *later);

/* Runs on the thread of the server for those who may change anything, and over TCP; on another, which takes turns among the
 * users, for readers. So two may run at a time. It may wait for a short while: peers of its kind wait, too. */
struct admin_handler {
	const char *method; /* "GET", or another, which changes something */
	const char *path;   /* exact */
	void (*run)(void *ctx, const struct admin_request *req, struct admin_reply *r);
	void *ctx;
	bool private; /* tells what users do: readers may not call it, whatever the method */
	bool reads; /* changes nothing, though it is no GET: readers may call it, and no call is logged */
};

struct admin_config {
	const char *path; /* of the socket; absolute. NULL: over TCP */
	const struct sockaddr_storage
		*listen;  /* over TCP: addresses with ports, which outlive the server */
	unsigned nlisten; /* at most ADMIN_LISTEN_MAX */
	const struct rn_logger *log;
};

/*
 * Takes the path: makes its directory if that is missing, and replaces a socket that nobody serves.
 * Peers that connect from now on wait for admin_start(). -EBUSY: another process serves it; or
 * another -errno. Both are logged. Strings and log must outlive the server. Over TCP it listens on the addresses.
 */
int admin_new(const struct admin_config *cfg, struct admin_server **out);
/* Starts the thread. The handlers, and their contexts, must outlive the server. 0 or -errno. */
int admin_start(struct admin_server *s, const struct admin_handler *handlers, size_t n);
/* Lets the members of that group connect, and call the handlers that change nothing. Until then nobody but root and the
 * daemon's user may. Any thread, between admin_new() and admin_free(). 0 or -errno. */
int admin_set_readers(struct admin_server *s, gid_t group);
/* Ends the thread, removes the socket and frees. NULL is allowed. */
void admin_free(struct admin_server *s);

#endif
