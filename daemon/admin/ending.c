/* SPDX-License-Identifier: BSD-2-Clause */
/* POST: takes from clients what they hold. ringnfsctl(8) describes the answers. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/admin_query.h"
#include "daemon/admin/state_rows.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "nfs4/nfs4_view.h"

/* Client records are written to disk meanwhile. Longer than this the other peers of the socket do not wait. */
#define PATIENCE_NS (5 * RN_NS_PER_SECOND)
#define PAUSE_NS 5000000

struct ending {
	const struct control *c;
	struct nfs4_server *nfs4;
	uint64_t deadline_ns;
	int (*end)(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id);
	enum nfs4_view_kind kind;
	unsigned ended;
};

static int control_recall_delegation(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id)
{
	(void)kind;
	return nfs4_recall_delegation(s, id);
}

static int control_forget_client(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id)
{
	(void)kind;
	return nfs4_forget_client(s, id);
}

/* One thread at a time ends clients' state. */
static int end_once(const struct ending *e, uint64_t id)
{
	pthread_mutex_t *lock = e->c->from.clients_lock;

	if (pthread_mutex_trylock(lock) != 0)
		return -RN_ESOON;
	const int rc = e->end(e->nfs4, e->kind, id);

	pthread_mutex_unlock(lock);
	return rc;
}

/* Again while a record is being written. */
static int control_end_one(const struct ending *e, uint64_t id)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int rc;

	while ((rc = end_once(e, id)) == -RN_ESOON && rn_now_ns() < e->deadline_ns)
		nanosleep(&pause, NULL);
	return rc;
}

static int end_row(const struct ending *e, const char *id)
{
	if (strncmp(id, "nlm-", 4) == 0)
		return nlm_release(e->c->from.nfs3, strtoull(id + 4, NULL, 10));
	return control_end_one(e, strtoull(id, NULL, 16));
}

static const char *control_end_result(int rc, const char *done)
{
	switch (rc) {
	case 0:
		return done;
	case -ENOENT:
		return "gone";
	default:
		return "busy";
	}
}

static void end_rows(struct ending *e, const struct state_page *p, const char *done)
{
	json_t *row;
	size_t i;

	json_array_foreach(p->rows, i, row)
	{
		const char *id = json_string_value(json_object_get(row, "id"));
		const bool was_revoked = json_is_true(json_object_get(row, "revoked"));
		const int rc = id && !was_revoked ? end_row(e, id) : -ENOENT;

		e->ended += rc == 0;
		json_object_set_new(row, "result", json_string(control_end_result(rc, done)));
	}
}

static void end_page(struct ending *e, const struct admin_request *req, struct admin_reply *r,
		     const char *done)
{
	struct state_page p = { .kind = e->kind };

	e->nfs4 = e->c->from.parts.nfs4;
	e->deadline_ns = rn_now_ns() + PATIENCE_NS;
	if (state_page_init(&p, e->c, req, r)) {
		if (!state_filter_is_set(&p.filter)) {
			admin_reply_error(r, 400, "bad_request",
					  "id, file, client or export is expected");
		} else {
			end_rows(e, &p, done);
			state_page_answer(&p, req, r);
		}
	}
	state_page_done(&p);
	if (e->ended)
		rn_notice(e->c->log, "user %u: %u states of clients %s, by the query %s",
			  (unsigned)req->peer.uid, e->ended, done, req->query);
}

void control_open_close(void *control, const struct admin_request *req, struct admin_reply *r)
{
	struct ending e = { .c = control, .kind = NFS4_VIEW_OPENS, .end = nfs4_end_state };

	end_page(&e, req, r, "closed");
}

void control_lock_release(void *control, const struct admin_request *req, struct admin_reply *r)
{
	struct ending e = { .c = control, .kind = NFS4_VIEW_LOCKS, .end = nfs4_end_state };

	end_page(&e, req, r, "released");
}

void control_delegation_recall(void *control, const struct admin_request *req,
			       struct admin_reply *r)
{
	struct ending e = { .c = control,
			    .kind = NFS4_VIEW_DELEGATIONS,
			    .end = control_recall_delegation };
	uint64_t revoke = 0;
	const int rc = admin_query_number(req, "revoke", 1, &revoke);

	if (rc && rc != -ENOENT) {
		admin_reply_error(r, 400, "bad_request", "revoke: 0 or 1 is expected");
		return;
	}
	if (revoke)
		e.end = nfs4_end_state;
	end_page(&e, req, r, revoke ? "revoked" : "recalled");
}

static void answer_evicted(const struct admin_request *req, struct admin_reply *r,
			   const struct ending *e, uint64_t id)
{
	const int rc = e->nfs4 ? control_end_one(e, id) : -ENOENT;

	if (rc == -ENOENT) {
		admin_reply_error(r, 404, "not_found", "there is no NFSv4 client 0x%016" PRIx64,
				  id);
		return;
	}
	rn_notice(e->c->log, "user %u: client 0x%016" PRIx64 " is evicted", (unsigned)req->peer.uid,
		  id);
	if (rc == 0)
		admin_reply_json(r, json_pack("{s:s}", "result", "evicted"));
	else
		admin_reply_error(r, 503, "busy",
				  "the client is evicted, but others get what it held only when "
				  "its record is deleted from the disk");
}

void control_client_evict(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	const struct ending e = {
		.c = c,
		.nfs4 = c->from.parts.nfs4,
		.deadline_ns = rn_now_ns() + PATIENCE_NS,
		.end = control_forget_client,
	};
	uint64_t id;

	if (admin_query_number(req, "id", UINT64_MAX, &id) != 0)
		admin_reply_error(r, 400, "bad_request",
				  "id: the id of an NFSv4 client is expected");
	else
		answer_evicted(req, r, &e, id);
}
