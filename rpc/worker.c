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

/* At rest, on the thread that it leaves. */
static void move_fiber(struct rn_fiber *f)
{
	struct rpc_request *req = f->owner;

	req->waits = true;
	req->worker->move(req->worker, req);
}

static void wake_fiber(struct rn_fiber *f)
{
	struct rpc_request *req = f->owner;

	req->waits = true;
	rpc_requeue(req, req->work);
}

static void adopt(struct rn_fiber *f, const struct rpc_worker *w)
{
	f->worker = w->vfs;
	f->move = w->move ? move_fiber : NULL;
	f->wake = wake_fiber;
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

void rpc_requeue(struct rpc_request *req, void (*work)(struct rpc_request *req))
{
	struct rpc_worker *w = req->worker;

	req->work = work;
	if (w->move)
		w->move(w, req);
	else
		rn_inbox_post(&w->inbox, &req->node);
}

bool rpc_is_prompt(const struct rpc_request *req)
{
	return req->worker->move;
}
