/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection's state that every layer above changes: events, turns, progress, and its closing. */
#include "transport/rdma/rdma_conn.h"

#include <netdb.h>
#include <stdio.h>

const char *rr_peer_name(const struct rr_conn *c, char *buf, size_t len)
{
	const struct sockaddr *sa = (const struct sockaddr *)&c->rpc.peer;
	socklen_t size = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in);

	if (getnameinfo(sa, size, buf, len, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(buf, len, "?");
	return buf;
}

void rr_conn_notify(struct rr_conn *c, unsigned events)
{
	if (atomic_fetch_or(&c->events, events))
		return; /* the task is on its way */
	rpc_conn_ref(&c->rpc);
	ev_loop_post(c->loop, &c->task);
}

void rr_conn_send_locked(struct rr_conn *c)
{
	if (c->sends_handed)
		return;
	c->sends_handed = true;
	rpc_conn_ref(&c->rpc);
	ev_loop_post(c->loop, &c->send_task);
}

void rr_conn_take_turn(struct rr_conn *c)
{
	const bool waits = turn_waits(&c->turn);

	turn_take(c->loop, &c->rpc.client->loop[c->loop_index], &c->turn);
	/* The connection may be dead before its turn comes. */
	if (!waits && turn_waits(&c->turn))
		rpc_conn_ref(&c->rpc);
}

void rr_conn_sending(struct rr_conn *c)
{
	c->posted++;
	if (c->sending++ == 0)
		c->sending_ns = rn_now_ns();
}

void rr_conn_close(struct rr_conn *c, const char *why)
{
	char name[INET6_ADDRSTRLEN + 8];

	if (c->state >= RR_CLOSING)
		return;
	c->state = RR_CLOSING;
	rr_count(c->srv, disconnects, 1);
	rn_debug(c->srv->cfg.log, "rdma: %s: closed: %s", rr_peer_name(c, name, sizeof(name)), why);
	c->open = false;
	rdma_disconnect(c->id);
	/* Where the connection manager has given up already, the QP still has to be flushed. */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
	rr_conn_notify(c, RR_EV_RELEASE);
}
