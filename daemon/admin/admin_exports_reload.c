/* SPDX-License-Identifier: BSD-2-Clause */
/* POST /v1/exports/reload; and /v1/exports/diff, which tells what that would do. */
#include <errno.h>

#include "admin/admin_query.h"
#include "daemon/admin/exports_task.h"

#define NAME_MAX_LEN 4096
#define NAME "name" /* parameter: a text comes with the request */

static void run_reload(const struct exports_task *t, struct admin_reply *r)
{
	const struct control_sources *from = &t->control->from;
	struct exports_outcome out;

	const int rc = from->reload(from->reload_ctx, &out);

	exports_answer(&out, rc, false, r);
	exports_outcome_free(&out);
}

/* The text comes with the request: the server reads no file but its own for a peer. */
static void run_diff(const struct exports_task *t, struct admin_reply *r)
{
	const struct admin_request query = { .query = t->query };
	char name[NAME_MAX_LEN];
	struct exports_outcome out;
	const int given = admin_query_text(&query, NAME, name, sizeof(name));

	if (given == -EINVAL || (given != 0 && t->body_len)) {
		admin_reply_error(r, 400, "bad_request",
				  "name: the name of the file whose text the body has");
		return;
	}
	const int rc = exports_try(t->control->from.exports, given == 0 ? name : NULL, t->body,
				   t->body_len, &out);

	exports_answer(&out, rc, true, r);
	exports_outcome_free(&out);
}

void control_exports_reload(void *control, const struct admin_request *req, struct admin_reply *r)
{
	exports_task_start(control, req, r, run_reload);
}

/* A text may name any path, and the server would look there with its own rights: a reader could find out what
 * is in folders that are closed to it. */
void control_exports_diff(void *control, const struct admin_request *req, struct admin_reply *r)
{
	char name[NAME_MAX_LEN];

	if (!control_trusts(req) && admin_query_text(req, NAME, name, sizeof(name)) != -ENOENT) {
		admin_reply_error(
			r, 403, "forbidden",
			"only root may have the server look at the paths of another file");
		return;
	}
	exports_task_start(control, req, r, run_diff);
}
