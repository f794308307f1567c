/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of HTTP/1.1 over a Unix socket: one request on a connection, and its whole answer. */
#ifndef RN_CTL_HTTP_H
#define RN_CTL_HTTP_H

#include <stddef.h>

#define HTTP_SECONDS                                                                               \
	30 /* without a byte from the server, unless the question says another number */
#define HTTP_MOST (64u << 20) /* bytes of an answer */

struct http_answer {
	int status;
	char *text;	  /* all that came, NUL-terminated */
	const char *body; /* within text */
	size_t body_len;
};

struct http_question {
	const char *method;
	const char *path; /* with its query, encoded */
	const char *body; /* or NULL */
	size_t body_len;
	unsigned seconds; /* that the server may be silent; 0: HTTP_SECONDS */
};

/* 0, or -errno: of connect(2); -EPROTO if the answer is no HTTP, or is cut off; -ETIMEDOUT. The
 * caller frees the answer in each case. */
int http_ask(const char *socket_path, const struct http_question *q, struct http_answer *out);
void http_free(struct http_answer *a);

/* Finds status and body in what came until the end of the stream. 0 or -EPROTO. */
int http_parse(char *text, size_t len, struct http_answer *out);

#endif
