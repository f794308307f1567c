/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/admin_reply.h"

#include <event2/buffer.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/util.h"

#define TEXT_MAX 512
#define JSON_TYPE "application/json"

static const struct {
	int status;
	const char *code;
} codes[] = {
	{ 400, "bad_request" },	       { 403, "forbidden" }, { 404, "not_found" },
	{ 405, "method_not_allowed" }, { 413, "too_large" }, { 417, "bad_expectation" },
	{ 501, "not_implemented" },
};

const char *admin_code(int status)
{
	for (size_t i = 0; i < rn_array_size(codes); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return status < 500 ? "bad_request" : "internal";
}

static void admin_reply_set(struct admin_reply *r, int status, json_t *object)
{
	free(r->body);
	r->status = status;
	r->type = JSON_TYPE;
	r->body = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
	json_decref(object);
}

void admin_reply_json(struct admin_reply *r, json_t *object)
{
	admin_reply_set(r, 200, object);
}

void admin_reply_json_status(struct admin_reply *r, int status, json_t *object)
{
	admin_reply_set(r, status, object);
}

void admin_reply_error(struct admin_reply *r, int status, const char *code, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_t *message = json_string(text);

	if (!message) /* no UTF-8 */
		message = json_string("see the code");
	admin_reply_set(r, status, json_pack("{s:o, s:s}", "error", message, "code", code));
}

struct admin_text {
	_Atomic unsigned refs;
	size_t len;
	char *body;
};

struct admin_text *admin_text_new(char *body, size_t len)
{
	struct admin_text *t = malloc(sizeof(*t));

	if (!t) {
		free(body);
		return NULL;
	}
	*t = (struct admin_text){ .refs = 1, .len = len, .body = body };
	return t;
}

void admin_text_put(struct admin_text *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
		return;
	free(t->body);
	free(t);
}

void admin_reply_text(struct admin_reply *r, const char *type, struct admin_text *t)
{
	admin_reply_drop(r);
	atomic_fetch_add(&t->refs, 1);
	r->status = 200;
	r->type = type;
	r->text = t;
}

static void on_sent(const void *data, size_t len, void *text)
{
	(void)data;
	(void)len;
	admin_text_put(text);
}

void admin_reply_put(struct admin_reply *r, struct evbuffer *out)
{
	struct admin_text *t = r->text;

	if (r->body)
		evbuffer_add_printf(out, "%s\n", r->body);
	if (t && evbuffer_add_reference(out, t->body, t->len, on_sent, t) == 0)
		r->text = NULL;
	admin_reply_drop(r);
}

void admin_reply_drop(struct admin_reply *r)
{
	free(r->body);
	admin_text_put(r->text);
	r->body = NULL;
	r->text = NULL;
}
