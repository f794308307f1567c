/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/admin_turns.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

struct turn {
	struct rn_job job; /* of the user, in place of a host */
	struct admin_call call;
	struct admin_request req; /* with copies of the texts */
	char *query, *accept, *body;
};

static void turn_free(struct turn *turn)
{
	free(turn->query);
	free(turn->accept);
	free(turn->body);
	free(turn);
}

static struct turn *turn_new(const struct admin_request *req)
{
	struct turn *turn = calloc(1, sizeof(*turn));

	if (!turn)
		return NULL;
	turn->call = *req->call;
	turn->req = *req;
	turn->query = req->query ? strdup(req->query) : NULL;
	turn->accept = req->accept ? strdup(req->accept) : NULL;
	turn->body = malloc(req->body_len + 1);
	if (!turn->body || (req->query && !turn->query) || (req->accept && !turn->accept)) {
		turn_free(turn);
		return NULL;
	}
	if (req->body_len)
		memcpy(turn->body, req->body, req->body_len);
	turn->req.query = turn->query;
	turn->req.accept = turn->accept;
	turn->req.body = turn->body;
	turn->req.call = &turn->call;
	return turn;
}

/* A handler that has asked for the later answer gives it by itself. */
static void admin_turn_run(struct rn_job *job)
{
	struct turn *turn = rn_container_of(job, struct turn, job);
	const struct admin_handler *h = turn->call.handler;
	struct admin_reply r = { .status = 500 };

	h->run(h->ctx, &turn->req, &r);
	if (turn->call.taken)
		return;
	*admin_later_reply(turn->call.later) = r;
	admin_later_send(turn->call.later);
}

static void admin_turn_done(struct rn_job *job)
{
	struct turn *turn = rn_container_of(job, struct turn, job);

	if (job->made_room)
		admin_reply_error(admin_later_reply(turn->call.later), 503, "busy",
				  "too many requests wait; ask again");
	if (!job->ran)
		admin_later_send(turn->call.later);
	turn_free(turn);
}

struct rn_jobs *admin_turns_new(void)
{
	const struct rn_jobs_config cfg = {
		.name = "readers",
		.threads = 1,
		.max = ADMIN_TURNS_MAX,
		.host_max = ADMIN_TURNS_USER,
		.keep_oldest = true,
	};

	return rn_jobs_new(&cfg);
}

bool admin_turns_add(struct rn_jobs *t, const struct admin_request *req)
{
	struct turn *turn = turn_new(req);

	if (!turn)
		return false;
	turn->job.run = admin_turn_run;
	turn->job.done = admin_turn_done;
	memcpy(turn->job.host.bytes, &req->peer.uid, sizeof(req->peer.uid));
	turn->call.later = admin_later(req);
	if (!turn->call.later) {
		turn_free(turn);
		return false;
	}
	if (!rn_jobs_submit(t, &turn->job)) {
		turn->job.made_room = true;
		admin_turn_done(&turn->job);
	}
	return true;
}
