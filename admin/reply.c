/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/reply.h"

#include <stdarg.h>
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

static void set(struct admin_reply *r, int status, json_t *object)
{
	free(r->body);
	r->status = status;
	r->type = JSON_TYPE;
	r->body = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
	json_decref(object);
}

void admin_reply_json(struct admin_reply *r, json_t *object)
{
	set(r, 200, object);
}

void admin_reply_json_status(struct admin_reply *r, int status, json_t *object)
{
	set(r, status, object);
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
	set(r, status, json_pack("{s:o, s:s}", "error", message, "code", code));
}
