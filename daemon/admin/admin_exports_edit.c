/* SPDX-License-Identifier: BSD-2-Clause */
/* POST /v1/exports/add and /v1/exports/remove: changes that last until the next reload. */
#include <errno.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/exports_task.h"

#define TEXT_LEN 4097

struct words {
	char client[TEXT_LEN], path[TEXT_LEN], options[TEXT_LEN];
	uint64_t only_try;
};

/* Words are logged. */
static bool control_exports_is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* A change that is longer than a line of exports(5) could be is none. */
static bool read_words(const struct exports_task *t, struct words *w)
{
	const struct admin_request query = { .query = t->query };
	const int options = admin_query_text(&query, "options", w->options, sizeof(w->options));
	const int only_try = admin_query_number(&query, "try", 1, &w->only_try);

	return admin_query_text(&query, "client", w->client, sizeof(w->client)) == 0 &&
	       admin_query_text(&query, "path", w->path, sizeof(w->path)) == 0 &&
	       control_exports_is_plain(w->client) && control_exports_is_plain(w->path) &&
	       control_exports_is_plain(w->options) && w->path[0] == '/' &&
	       exp_path_clean(w->path) && (options == 0 || options == -ENOENT) &&
	       (only_try == 0 || only_try == -ENOENT);
}

static void log_edit(const struct exports_task *t, const struct exports_edit *e)
{
	const struct exp_change *c = &e->change;

	rn_notice(t->control->log, "user %u: export %s until the next reload: %s:%s%s%s%s",
		  (unsigned)t->uid, e->remove ? "removed" : "added", c->client, c->path,
		  *c->options ? "(" : "", c->options, *c->options ? ")" : "");
}

static void control_exports_edit(const struct exports_task *t, struct admin_reply *r, bool remove)
{
	struct words w = { .only_try = 0 };
	const struct exports_edit e = { .remove = remove,
					.change = { w.client, w.path, w.options } };
	struct exports_outcome out;

	if (!read_words(t, &w)) {
		admin_reply_error(r, 400, "bad_request",
				  "client: a machine as in exports(5); path: an absolute path "
				  "without \"..\"; options as in exports(5), or none; all without "
				  "control characters; try: 0 or 1");
		return;
	}
	const int rc = exports_edit(t->control->from.exports, &e, w.only_try, &out);

	exports_answer(&out, rc, w.only_try, r);
	if (!rc && !w.only_try)
		log_edit(t, &e);
	exports_outcome_free(&out);
}

static void run_add(const struct exports_task *t, struct admin_reply *r)
{
	control_exports_edit(t, r, false);
}

static void control_exports_run_remove(const struct exports_task *t, struct admin_reply *r)
{
	control_exports_edit(t, r, true);
}

void control_exports_add(void *control, const struct admin_request *req, struct admin_reply *r)
{
	exports_task_start(control, req, r, run_add);
}

void control_exports_remove(void *control, const struct admin_request *req, struct admin_reply *r)
{
	exports_task_start(control, req, r, control_exports_run_remove);
}
