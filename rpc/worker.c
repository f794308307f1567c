/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/worker.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/fiber.h"
#include "lib/util.h"
#include "rpc/program.h"
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
	f->move = w->on_event_thread ? move_fiber : NULL;
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
	f->longest_ns = 0;
	if (rn_fiber_begin(f, do_work, req))
		w->spare = f;
}

void rpc_move(struct rpc_request *req)
{
	rn_fiber_move(req->fiber);
}

static void rpc_worker_leave(void *arg)
{
	struct rn_fiber *f = arg;

	f->wake(f);
}

void rpc_hand_over(struct rpc_request *req)
{
	rn_fiber_wait(req->fiber, RN_WAIT_THREAD, rpc_worker_leave, req->fiber);
}

bool rpc_on_event_thread(const struct rpc_request *req)
{
	return req->worker->on_event_thread;
}

enum { ARRIVED, CONN, XID_AND_VERS, PROGRAM, PROC, OP };
_Static_assert(OP + 1 == RN_FIBER_ABOUT, "one for each");

static void rpc_call_view_set(struct rpc_request *req, unsigned i, uint64_t value)
{
	atomic_store_explicit(&req->fiber->about[i], value, memory_order_relaxed);
}

void rpc_call_show(struct rpc_request *req, const struct rpc_program *program,
		   const struct rpc_proc *proc)
{
	rpc_call_view_set(req, CONN, req->conn->id);
	rpc_call_view_set(req, XID_AND_VERS, (uint64_t)req->call.xid << 32 | req->call.vers);
	rpc_call_view_set(req, PROGRAM, (uintptr_t)program);
	rpc_call_view_set(req, PROC, (uintptr_t)proc);
	rpc_call_view_set(req, OP, 0);
	/* Last: whoever sees it sees the others. */
	atomic_store_explicit(&req->fiber->about[ARRIVED], req->arrived_ns, memory_order_release);
}

void rpc_call_show_op(struct rpc_request *req, uint32_t opnum)
{
	rpc_call_view_set(req, OP, opnum);
}

static int by_arrival(const void *a, const void *b)
{
	const struct rn_fiber_view *x = a, *y = b;

	return (x->about[ARRIVED] > y->about[ARRIVED]) - (x->about[ARRIVED] < y->about[ARRIVED]);
}

static void rpc_call_view_copy(const struct rn_fiber_view *f, struct rpc_call_view *v)
{
	*v = (struct rpc_call_view){
		.arrived_ns = f->about[ARRIVED],
		.conn_id = f->about[CONN],
		.xid = (uint32_t)(f->about[XID_AND_VERS] >> 32),
		.vers = (uint32_t)f->about[XID_AND_VERS],
		.program = (const struct rpc_program *)(uintptr_t)f->about[PROGRAM],
		.proc = (const struct rpc_proc *)(uintptr_t)f->about[PROC],
		.opnum = (uint32_t)f->about[OP],
		.waits_for = f->waits_for,
		.waits_since_ns = f->waits_since_ns,
		.waits_until_ns = f->waits_until_ns,
	};
}

int rpc_calls_view(struct rn_stacks *stacks, struct rpc_call_view *out, size_t n, size_t *all)
{
	const size_t room = (size_t)rn_stacks_used(stacks) + 64;
	struct rn_fiber_view *f = calloc(room, sizeof(*f));

	if (!f)
		return -ENOMEM;
	*all = rn_stacks_view(stacks, f, room);
	const size_t found = rn_min(*all, room);

	qsort(f, found, sizeof(*f), by_arrival);
	for (size_t i = 0; i < found && i < n; i++)
		rpc_call_view_copy(&f[i], &out[i]);
	free(f);
	return (int)rn_min(found, n);
}
