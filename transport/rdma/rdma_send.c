/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queue: work that fits is posted, other work waits in order for completions. All on the
 * connection's loop.
 */
#include "transport/rdma/rdma_send.h"

#include <errno.h>

#include "lib/error.h"
#include "transport/rdma/rdma_back.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_read.h"
#include "transport/rdma/rdma_reply.h"
#include "transport/rdma/rdma_request.h"

/* *release: nothing of r is in use by the QP. */
static int post_step(struct rr_req *r, bool *release)
{
	bool kept = false;
	int rc;

	switch (r->step) {
	case RR_STEP_READ:
		rc = rr_read_post(r);
		*release = false;
		return rc;
	case RR_STEP_REPLY:
		rc = rr_reply_post(r, &kept);
		break;
	case RR_STEP_ERR_VERS:
		rc = rr_error_post(r, RR_ERR_VERS);
		break;
	case RR_STEP_DROP:
		rc = 0;
		break;
	default:
		rc = rr_error_post(r, RR_ERR_CHUNK);
		break;
	}
	*release = !kept;
	return rc;
}

void rr_post(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	bool release = true;
	int rc = 0;

	if (c->open) {
		rc = TAILQ_EMPTY(&c->waiting) ? post_step(r, &release) : -RN_EFULL;
		if (rc == -RN_EFULL) {
			TAILQ_INSERT_TAIL(&c->waiting, r, link);
			rr_count(c->srv, sq_waits, 1);
			return;
		}
	}
	if (rc)
		rr_conn_close(c, "cannot post");
	if (release)
		rr_req_done(r);
}

void rr_fail(struct rr_req *r, enum rr_step step)
{
	r->step = step;
	rr_post(r);
}

void rr_post_waiting(struct rr_conn *c)
{
	struct rr_req *r;

	while (c->open && (r = TAILQ_FIRST(&c->waiting))) {
		bool release = false;
		TAILQ_REMOVE(&c->waiting, r, link);
		int rc = post_step(r, &release);
		if (rc == -RN_EFULL) {
			TAILQ_INSERT_HEAD(&c->waiting, r, link);
			return;
		}
		if (rc)
			rr_conn_close(c, "cannot post");
		if (release)
			rr_req_done(r);
	}
}

/* Gives back the contexts of a Send and of the quiet ones before it. */
static void rr_sends_give_back(struct rr_conn *c, struct rr_send *s)
{
	struct rr_send *earlier;

	for (; s; s = earlier) {
		earlier = s->earlier;
		c->sq_room += s->wrs;
		SLIST_INSERT_HEAD(&c->free_sends, s, link);
	}
}

void rr_send_done(struct rr_conn *c, struct rr_send *s)
{
	struct rr_req *r = s->req;

	s->req = NULL;
	rr_sends_give_back(c, s);
	if (r)
		rr_req_done(r);
	rr_post_waiting(c);
	rr_back_post(c);
}
