/* SPDX-License-Identifier: BSD-2-Clause */
/* GET and POST /v1/log: the levels of the log's modules. ringnfsctl(8) describes the answer. */
#include <errno.h>
#include <stdio.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"

#define WORD_MAX 16u /* bytes of a level or module, its NUL included */

static json_t *control_log_json(const struct logs *logs)
{
	json_t *list = json_array();

	for (int i = 0; i < LOG_MODULES; i++) {
		const enum log_module m = (enum log_module)i;
		const char *level = logs_level_name(logs_level(logs, m));

		json_array_append_new(list, json_pack("{s:s, s:s}", "module", logs_module_name(m),
						      "level", level));
	}
	return json_pack("{s:o}", "modules", list);
}

void control_log(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;

	(void)req;
	admin_reply_json(r, control_log_json(c->from.logs));
}

struct change {
	enum rn_level level;
	bool all;
	enum log_module module; /* unless all */
};

static bool refuse_module(struct admin_reply *r)
{
	char names[LOG_MODULES * WORD_MAX] = "";
	size_t len = 0;

	for (int i = 0; i < LOG_MODULES; i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					i == 0		       ? ""
					: i + 1 == LOG_MODULES ? " or "
							       : ", ",
					logs_module_name((enum log_module)i));
	admin_reply_error(r, 400, "bad_request", "module: %s is expected, or none for all of them",
			  names);
	return false;
}

static bool read_change(const struct admin_request *req, struct admin_reply *r, struct change *out)
{
	char text[WORD_MAX];

	if (admin_query_text(req, "level", text, sizeof(text)) != 0 ||
	    !logs_find_level(text, &out->level)) {
		admin_reply_error(r, 400, "bad_request",
				  "level: error, warning, notice, info or debug is expected");
		return false;
	}
	const int rc = admin_query_text(req, "module", text, sizeof(text));

	out->all = rc == -ENOENT;
	if (!out->all && (rc != 0 || !logs_find_module(text, &out->module)))
		return refuse_module(r);
	return true;
}

void control_log_set(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct change change = { .all = false };

	if (!read_change(req, r, &change))
		return;
	for (int i = 0; i < LOG_MODULES; i++)
		if (change.all || i == (int)change.module)
			logs_set_level(c->from.logs, (enum log_module)i, change.level);
	rn_log_always(c->log, RN_NOTICE, "user %u (process %d): the log level of %s is %s now",
		      (unsigned)req->peer.uid, (int)req->peer.pid,
		      change.all ? "all modules" : logs_module_name(change.module),
		      logs_level_name(change.level));
	admin_reply_json(r, control_log_json(c->from.logs));
}
