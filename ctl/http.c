/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_SIZE 16384u

static int http_dial(const char *path, unsigned seconds)
{
	const struct timeval patience = { .tv_sec = seconds ? seconds : HTTP_SECONDS };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int rc = 0;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		rc = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int send_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int http_send_request(int fd, const struct http_question *q)
{
	char *text;
	int len = asprintf(&text,
			   "%s %s HTTP/1.1\r\nHost: ringnfs\r\nAccept: application/json\r\n"
			   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			   q->method, q->path, q->body_len);

	if (len < 0)
		return -ENOMEM;
	int rc = send_all(fd, text, (size_t)len);

	free(text);
	return rc ? rc : send_all(fd, q->body, q->body_len);
}

static int http_grow_text(char **text, size_t *size)
{
	const size_t want = *size ? *size * 2 : FIRST_SIZE;
	char *more = want > HTTP_MOST ? NULL : realloc(*text, want);

	if (!more)
		return want > HTTP_MOST ? -EPROTO : -ENOMEM;
	*text = more;
	*size = want;
	return 0;
}

/* Reads until the server closes, which the request asks it to do. */
static int http_receive(int fd, char **text, size_t *len)
{
	size_t size = 0;

	*len = 0;
	for (;;) {
		int rc = *len + 1 >= size ? http_grow_text(text, &size) : 0;

		if (rc)
			return rc;
		ssize_t n = recv(fd, *text + *len, size - *len - 1, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (n == 0)
			break;
		*len += (size_t)n;
	}
	(*text)[*len] = '\0';
	return 0;
}

/* The value of a header, or NULL. head ends with an empty line. */
static const char *header(const char *head, const char *name)
{
	const size_t len = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	}
	return NULL;
}

int http_parse(char *text, size_t len, struct http_answer *out)
{
	char *end = strstr(text, "\r\n\r\n");
	const char *length;
	int minor;

	if (!end || sscanf(text, "HTTP/1.%1d %3d", &minor, &out->status) != 2)
		return -EPROTO;
	out->body = end + 4;
	out->body_len = len - (size_t)(out->body - text);
	end[2] = '\0'; /* headers are not looked for in the body */
	length = header(text, "Content-Length");
	if (header(text, "Transfer-Encoding") || !length ||
	    strtoull(length, NULL, 10) != out->body_len)
		return -EPROTO;
	return 0;
}

int http_ask(const char *socket_path, const struct http_question *q, struct http_answer *out)
{
	int fd = http_dial(socket_path, q->seconds);
	size_t len;

	*out = (struct http_answer){ 0 };
	if (fd < 0)
		return fd;
	int rc = http_send_request(fd, q);

	/* A server that refuses early may close before it has read all: its answer counts. */
	if (!rc || rc == -EPIPE)
		rc = http_receive(fd, &out->text, &len);
	close(fd);
	return rc ? rc : http_parse(out->text, len, out);
}

void http_free(struct http_answer *a)
{
	free(a->text);
	*a = (struct http_answer){ 0 };
}
