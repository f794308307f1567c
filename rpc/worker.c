/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/worker.h"

#include "lib/fiber.h"
#include "rpc/request.h"

bool rpc_is_ready(struct rpc_worker *w)
{
	if (!w->spare)
		w->spare = rn_fiber_get(w->stacks);
	return w->spare;
}

/* At rest: it leaves an event thread, or is woken. */
static void move_fiber(struct rn_fiber *f)
{
	struct rpc_request *req = f->owner;
	struct rpc_worker *w = req->worker;

	req->waits = true;
	if (w->move)
		w->move(w, req);
	else
		rn_inbox_post(&w->inbox, &req->node);
}

static void adopt(struct rn_fiber *f, const struct rpc_worker *w)
{
	f->worker = w->vfs;
	f->move = w->prompt ? move_fiber : NULL;
	f->wake = move_fiber;
}

static void do_work(struct rn_fiber *f, void *arg)
{
	struct rpc_request *req = arg;

	(void)f;
	req->work(req);
}

void rpc_run(struct rpc_request *req)
{
	struct rpc_worker *w = req->worker;
	struct rn_fiber *f = req->waits ? req->fiber : w->spare;

	adopt(f, w);
	if (req->waits) {
		req->waits = false;
		rn_fiber_resume(f);
		return;
	}
	w->spare = NULL;
	req->fiber = f;
	f->owner = req;
	if (rn_fiber_begin(f, do_work, req))
		w->spare = f;
}

void rpc_move(struct rpc_request *req)
{
	rn_fiber_move(req->fiber);
}

bool rpc_is_prompt(const struct rpc_request *req)
{
	return req->worker->prompt;
}
