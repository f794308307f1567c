/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of one loop. get on the loop only; get_from_afar and put from any thread. */
#ifndef RN_TRANSPORT_TCP_POOL_H
#define RN_TRANSPORT_TCP_POOL_H

#include "transport/tcp/tcp_types.h"

/* Takes memory for the least number of requests out of the budget, before the loops are made. 0 or
 * -ENOMEM. */
int tcp_pool_reserve(struct tcp_server *srv);
void tcp_pool_unreserve(struct tcp_server *srv);
/* Bytes that the pools of so many loops take out of a budget of `whole` bytes, with the heads of replies. */
size_t tcp_pool_memory(unsigned nloops, size_t whole);
int tcp_pool_fill(struct tcp_loop *loop); /* 0 or -ENOMEM */
/* NULL: there is no memory, or the client has its share. */
struct tcp_req *tcp_pool_get(struct tcp_loop *loop, struct rpc_client *client);
/* The same, for a call to the client. */
struct tcp_req *tcp_pool_get_from_afar(struct tcp_loop *loop, struct rpc_client *client);
void tcp_pool_put(struct tcp_loop *loop, struct tcp_req *t);
void tcp_pool_free(struct tcp_loop *loop);
unsigned tcp_pool_idle(struct tcp_loop *loop); /* any thread */

/* Puts a connection on the list of those that wait for a request, and takes it off. On the loop. */
void tcp_pool_starve(struct tcp_conn *c);
void tcp_pool_unstarve(struct tcp_conn *c);
/* Has tcp_feed run when a request comes back, or soon. On the loop. */
void tcp_pool_await(struct tcp_loop *loop);

#endif
