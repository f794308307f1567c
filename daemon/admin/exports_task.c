/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/exports_task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/admin_exports_diff.h"
#include "daemon/admin/exports_json.h"
#include "daemon/admin/text.h"
#include "daemon/export_place.h"

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

void exports_answer(const struct exports_outcome *out, int rc, bool tried, struct admin_reply *r)
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
