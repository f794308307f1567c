/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/error_page.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_reply.h"

#define PAGE_MAX 2048 /* bytes; evhttp's pages have some hundred */
#define HEAD "HTTP/1."
#define STATUS_AT (sizeof(HEAD "1 ") - 1)
#define TAIL "</BODY></HTML>\n"

/* The status of a whole page, or 0. *phrase: the words after it, in text. */
static int read_page(char *text, size_t len, char **phrase)
{
	char *end = strstr(text, "\r\n");

	if (len < sizeof(TAIL) || strncmp(text, HEAD, sizeof(HEAD) - 1) != 0 || !end ||
	    (size_t)(end - text) < STATUS_AT + 4 ||
	    strcmp(text + len - (sizeof(TAIL) - 1), TAIL) != 0)
		return 0;
	*end = '\0';
	*phrase = text + STATUS_AT + 4;
	return atoi(text + STATUS_AT);
}

static void write_error(struct evbuffer *out, int status, const char *phrase)
{
	struct admin_reply r = { 0 };

	admin_reply_error(&r, status, admin_code(status), "%s", phrase);
	evbuffer_add_printf(out,
			    "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
			    "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
			    status, phrase, r.body ? strlen(r.body) : 0, r.body ? r.body : "");
	free(r.body);
}

int admin_error_page(struct evbuffer *out)
{
	const size_t len = evbuffer_get_length(out);
	char text[PAGE_MAX + 1], *phrase;
	int status;

	if (len == 0 || len > PAGE_MAX)
		return 0;
	evbuffer_copyout(out, text, len);
	text[len] = '\0';
	status = read_page(text, len, &phrase);
	/* Only bufferevents drain their output otherwise, so it is frozen at its start. */
	if (!status || evbuffer_unfreeze(out, 1) < 0)
		return 0;
	evbuffer_drain(out, len);
	evbuffer_freeze(out, 1);
	write_error(out, status, phrase);
	return status;
}
