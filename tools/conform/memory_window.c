/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/memory_window.h"

#include <stdlib.h>

static bool device_has_windows(struct ibv_context *verbs)
{
	struct ibv_device_attr attr;

	return ibv_query_device(verbs, &attr) == 0 &&
	       attr.device_cap_flags &
		       (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

/* The Bind is ordered before every later Send of the queue pair. */
static bool bind_window(struct cf_conn *c, struct cf_window *w)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = w->mw,
			.rkey = ibv_inc_rkey(w->mw->rkey),
			.bind_info = {
				.mr = w->bindable,
				.addr = (uintptr_t)w->data,
				.length = w->len,
				.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
			},
		},
	};

	if (ibv_post_send(c->id->qp, &wr, &bad))
		return false;
	c->sends_busy++;
	w->handle = wr.bind_mw.rkey;
	return true;
}

struct cf_window *cf_window_invalidatable(struct cf_test *t, size_t len)
{
	struct cf_conn *c = t->conn;
	struct cf_window *w = cf_window_new(c, len);

	if (!w) {
		cf_skip(t, "this machine's device registers no more memory");
		return NULL;
	}
	if (!device_has_windows(c->id->verbs))
		return w;
	w->bindable = ibv_reg_mr(c->pd, w->data, len,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	w->mw = w->bindable ? ibv_alloc_mw(c->pd, IBV_MW_TYPE_2) : NULL;
	if (w->mw && bind_window(c, w))
		return w;
	cf_skip(t, "this machine's device makes no memory windows, though it says so");
	return NULL;
}
