/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/conn.h"

#include "rpc/backchannel.h"

void rpc_conn_ref(struct rpc_conn *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void rpc_conn_put(struct rpc_conn *c)
{
	struct rpc_backchannel *back;

	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
		return;
	back = atomic_load(&c->back);
	c->ops->destroy(c);
	rpc_backchannel_put(back);
}
