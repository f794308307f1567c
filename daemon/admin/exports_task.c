/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists, reloads and changes of exports by the control socket, each in a task that may wait. */
#include "daemon/admin/exports_task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/admin_exports_diff.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/exports_json.h"
#include "daemon/admin/text.h"
#include "daemon/exports/export_set.h"

#define REFUSED "because of errors the exports that are in force stay as they are"
#define WOULD_BE "because of errors this would be refused; nothing was to be changed"

struct job {
	struct exports_task task;
	void (*run)(const struct exports_task *t, struct admin_reply *r);
	struct admin_later *later;
};

static void job_free(struct job *job)
{
	free(job->task.query);
	free(job->task.body);
	free(job);
}

static struct job *job_new(struct control *c, const struct admin_request *req)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->task = (struct exports_task){ .control = c,
					   .uid = req->peer.uid,
					   .query = req->query ? strdup(req->query) : NULL,
					   .body = calloc(1, req->body_len + 1),
					   .body_len = req->body_len };
	if (!job->task.body || (req->query && !job->task.query)) {
		job_free(job);
		return NULL;
	}
	if (req->body_len)
		memcpy(job->task.body, req->body, req->body_len);
	return job;
}

static void run_job(void *arg, bool cancelled)
{
	struct job *job = arg;
	struct admin_reply *r = admin_later_reply(job->later);

	if (cancelled)
		admin_reply_error(r, 503, "stopping", "the server stops");
	else
		job->run(&job->task, r);
	admin_later_send(job->later);
	job_free(job);
}

void exports_task_start(struct control *c, const struct admin_request *req, struct admin_reply *r,
			void (*run)(const struct exports_task *t, struct admin_reply *r))
{
	const enum task_rank rank = control_trusts(req) ? TASK_OF_ROOT : TASK_OF_READER;
	struct job *job = job_new(c, req);

	if (job) {
		job->run = run;
		job->later = admin_later(req);
	}
	if (!job || !job->later) {
		if (job)
			job_free(job);
		admin_reply_error(r, 503, "busy", "out of memory");
	} else if (!tasks_add(c->from.tasks, rank, run_job, job)) {
		admin_reply_error(admin_later_reply(job->later), 503, "busy",
				  "too many questions about exports wait already; ask again");
		admin_later_send(job->later);
		job_free(job);
	}
}

/* Paths of exports that lead to another directory than before. */
static json_t *replaced(const struct exports_outcome *out)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < out->is.table->n_exports; i++) {
		const struct exp_export *is = &out->is.table->exports[i];
		const struct exp_export *was = exp_table_by_path(out->was.table, is->path);

		if (was && out->was.place[was->index].exp && out->is.place[i].exp &&
		    !export_place_same(&out->was.place[was->index], &out->is.place[i]))
			json_array_append_new(list, control_text(is->path));
	}
	return list;
}

static json_t *outcome_json(const struct exports_outcome *out, int rc)
{
	json_t *answer = json_object();

	json_object_set_new(answer, "messages", exports_messages(out->is.diags));
	/* The table of a change that is refused lacks the exports in error. */
	if (rc)
		return answer;
	json_object_set_new(answer, "exports", json_integer(out->is.table->n_exports));
	json_object_set_new(answer, "changes", exports_diff(out->was.table, out->is.table));
	json_object_set_new(answer, "replaced", replaced(out));
	json_object_set_new(answer, "revoked", exports_revoked_json(&out->revoked));
	return answer;
}

/* Answers with the outcome of a change, or of a question about one. rc: its result; an error is one of the
 * request. tried: true if it was a question. */
static void exports_answer(const struct exports_outcome *out, int rc, bool tried,
			   struct admin_reply *r)
{
	if (!out->is.diags || rc == -ENOMEM) {
		admin_reply_error(r, 500, "internal", "%s", strerror(-rc));
		return;
	}
	json_t *answer = outcome_json(out, rc);

	if (rc) {
		json_object_set_new(answer, "error", json_string(tried ? WOULD_BE : REFUSED));
		json_object_set_new(answer, "code", json_string("exports_refused"));
	}
	admin_reply_json_status(r, rc ? 409 : 200, answer);
}

/* GET /v1/exports: the exports in force. ringnfsctl(8) describes the answer. */

static json_t *client_json(const struct exp_client *client, bool waits)
{
	json_t *object = json_object();

	json_object_set_new(object, "client", control_text(client->spec));
	json_object_set_new(object, "options", exports_options(&client->opts));
	json_object_set_new(object, "waiting", json_boolean(waits));
	exports_add_source(object, client);
	return object;
}

static json_t *export_json(const struct exp_export *e, const struct export_place *p)
{
	json_t *object = json_object(), *clients = json_array();

	json_object_set_new(object, "path", control_text(e->path));
	json_object_set_new(object, "id", json_integer(e->id));
	exports_add_state(object, p);
	if (p->fs_type[0])
		json_object_set_new(object, "fs_type", control_text(p->fs_type));
	json_object_set_new(object, "read_only_mount", json_boolean(p->read_only));
	for (unsigned i = 0; i < e->n_clients; i++)
		json_array_append_new(clients,
				      client_json(&e->clients[i], p->absent && p->absent[i]));
	json_object_set_new(object, "clients", clients);
	return object;
}

void control_exports(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	json_t *answer = json_object(), *list = json_array();
	struct exports_now now;

	(void)req;
	exports_now_get(c->from.exports, &now);
	for (unsigned i = 0; i < now.table->n_exports; i++)
		json_array_append_new(list, export_json(&now.table->exports[i], &now.place[i]));
	json_object_set_new(answer, "exports", list);
	json_object_set_new(answer, "messages", exports_messages(now.file_diags));
	json_object_set_new(answer, "temporary_changes", json_integer(now.edits));
	exports_now_put(&now);
	admin_reply_json(r, answer);
}

/* POST /v1/exports/reload; and /v1/exports/diff, which tells what that would do. */

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

/* POST /v1/exports/add and /v1/exports/remove: changes that last until the next reload. */

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
