/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric's connection manager with queue pairs: how they are moved with the connection, and
 * what ids learn of faults. Each test is a process of its own. test_cm_qp [NAME]
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "tools/softverbs/cm_testlib.h"

#define SIZE 64

struct buffers {
	uint8_t bytes[2][SIZE];
	struct ibv_mr *mr[2];
};

/* Uses the default protection domain and completion queues of librdmacm. */
static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	attr.sq_sig_all = 1;
	OK(rdma_create_qp(id, NULL, &attr));
	CHECK(id->qp && id->pd && id->send_cq && id->recv_cq);
}

static struct ibv_qp_attr query_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	OK(ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &init));
	return attr;
}

/* Waits until the client has the server's answer in its channel. */
static struct ends connect_answered(const char *host, struct rdma_conn_param *p)
{
	struct ends e = listening(host, NULL);

	resolved(&e, NULL, host);
	make_qp(e.client);
	CHECK(query_qp(e.client).qp_state == IBV_QPS_INIT);
	OK(rdma_connect(e.client, p));
	take_request(&e);
	make_qp(e.server);
	OK(rdma_accept(e.server, p));
	CHECK(query_qp(e.server).qp_state == IBV_QPS_RTS);
	wait_readable(e.cch);
	return e;
}

static struct ends joined(const char *host, struct rdma_conn_param *p)
{
	struct ends e = connect_answered(host, p);

	take_event(e.cch, RDMA_CM_EVENT_ESTABLISHED, 0);
	take_event(e.sch, RDMA_CM_EVENT_ESTABLISHED, 0);
	CHECK(query_qp(e.client).qp_state == IBV_QPS_RTS);
	return e;
}

static void destroy_qps_and_ends(struct ends *e)
{
	rdma_destroy_qp(e->client);
	rdma_destroy_qp(e->server);
	CHECK(!e->client->qp && !e->client->send_cq && !e->client->recv_cq_channel);
	close_ends(e);
}

static void register_buffers(struct ends *e, struct buffers *b)
{
	b->mr[0] = rdma_reg_msgs(e->server, b->bytes[0], SIZE);
	b->mr[1] = rdma_reg_msgs(e->client, b->bytes[1], SIZE);
	CHECK(b->mr[0] && b->mr[1]);
	strcpy((char *)b->bytes[1], "over the fabric");
}

static void drop_buffers(struct buffers *b)
{
	OK(rdma_dereg_mr(b->mr[0]));
	OK(rdma_dereg_mr(b->mr[1]));
}

static void send_recv(void)
{
	struct rdma_conn_param p = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ends e = joined("127.0.0.1", &p);
	struct buffers b;
	struct ibv_wc wc;

	register_buffers(&e, &b);
	OK(rdma_post_recv(e.server, NULL, b.bytes[0], SIZE, b.mr[0]));
	OK(rdma_post_send(e.client, NULL, b.bytes[1], SIZE, b.mr[1], 0));
	CHECK(rdma_get_recv_comp(e.server, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(wc.byte_len == SIZE && strcmp((char *)b.bytes[0], "over the fabric") == 0);
	CHECK(rdma_get_send_comp(e.client, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	drop_buffers(&b);
	destroy_qps_and_ends(&e);
}

static void cm_qp_shared_receives(void)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ends e = listening("127.0.0.1", NULL);
	struct buffers b;
	struct ibv_wc wc;

	resolved(&e, NULL, "127.0.0.1");
	make_qp(e.client);
	OK(rdma_connect(e.client, NULL));
	take_request(&e);
	OK(rdma_create_srq(e.server, NULL, &srq));
	make_qp(e.server);
	CHECK(e.server->qp->srq == e.server->srq);
	OK(rdma_accept(e.server, NULL));
	take_event(e.cch, RDMA_CM_EVENT_ESTABLISHED, 0);
	register_buffers(&e, &b);
	OK(rdma_post_recv(e.server, NULL, b.bytes[0], SIZE, b.mr[0]));
	OK(rdma_post_send(e.client, NULL, b.bytes[1], SIZE, b.mr[1], 0));
	CHECK(rdma_get_recv_comp(e.server, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(strcmp((char *)b.bytes[0], "over the fabric") == 0);
	drop_buffers(&b);
	rdma_destroy_qp(e.server);
	rdma_destroy_srq(e.server);
	rdma_destroy_qp(e.client);
	close_ends(&e);
}

/* The server may send as soon as it has accepted; the client takes it when it is ready to. */
static void receive_before_established(void)
{
	struct rdma_conn_param p = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ends e = connect_answered("127.0.0.1", &p);
	struct buffers b;
	struct ibv_wc wc;

	register_buffers(&e, &b);
	OK(rdma_post_recv(e.client, NULL, b.bytes[1], SIZE, b.mr[1]));
	strcpy((char *)b.bytes[0], "early");
	OK(rdma_post_send(e.server, NULL, b.bytes[0], SIZE, b.mr[0], 0));
	take_event(e.cch, RDMA_CM_EVENT_ESTABLISHED, 0);
	CHECK(rdma_get_recv_comp(e.client, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(strcmp((char *)b.bytes[1], "early") == 0);
	CHECK(rdma_get_send_comp(e.server, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	drop_buffers(&b);
	destroy_qps_and_ends(&e);
}

/* Reads are allowed to a peer that has been offered resources, and wants them. */
static void cm_qp_access_rights(void)
{
	struct rdma_conn_param p = { .responder_resources = 4, .initiator_depth = 4 };
	struct ends e = joined("127.0.0.1", &p);

	CHECK(query_qp(e.client).qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	CHECK(query_qp(e.client).qp_access_flags & IBV_ACCESS_REMOTE_READ);
	destroy_qps_and_ends(&e);
	p.initiator_depth = 0;
	e = joined("127.0.0.1", &p);
	CHECK(!(query_qp(e.client).qp_access_flags & IBV_ACCESS_REMOTE_READ));
	destroy_qps_and_ends(&e);
	/* Asks for more than the device has. */
	e = listening("127.0.0.1", NULL);
	resolved(&e, NULL, "127.0.0.1");
	make_qp(e.client);
	p.responder_resources = 250;
	FAILS(rdma_connect(e.client, &p), EINVAL);
	rdma_destroy_qp(e.client);
	close_ends(&e);
}

static void flushed(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	CHECK(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
}

static void disconnect_flushes(void)
{
	struct ends e = joined("127.0.0.1", NULL);
	struct buffers b;

	register_buffers(&e, &b);
	OK(rdma_post_recv(e.server, NULL, b.bytes[0], SIZE, b.mr[0]));
	OK(rdma_post_recv(e.client, NULL, b.bytes[1], SIZE, b.mr[1]));
	OK(rdma_disconnect(e.client));
	flushed(e.client);
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	/* On InfiniBand the application ends the other queue pair. */
	CHECK(query_qp(e.server).qp_state == IBV_QPS_RTS);
	OK(rdma_disconnect(e.server));
	flushed(e.server);
	drop_buffers(&b);
	destroy_qps_and_ends(&e);
}

static void iwarp_ends_with_the_stream(void)
{
	struct buffers b;

	setenv("SOFTVERBS_DEVICES", "iw0=127.0.0.1:iwarp", 1);
	struct ends e = joined("127.0.0.1", NULL);
	register_buffers(&e, &b);
	OK(rdma_post_recv(e.server, NULL, b.bytes[0], SIZE, b.mr[0]));
	OK(rdma_disconnect(e.client));
	flushed(e.server);
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	CHECK(query_qp(e.server).qp_state == IBV_QPS_ERR);
	drop_buffers(&b);
	destroy_qps_and_ends(&e);
}

static void reject_is_an_error(void)
{
	struct ends e = listening("127.0.0.1", NULL);

	resolved(&e, NULL, "127.0.0.1");
	make_qp(e.client);
	OK(rdma_connect(e.client, NULL));
	take_request(&e);
	OK(rdma_reject(e.server, NULL, 0));
	take_event(e.cch, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(query_qp(e.client).qp_state == IBV_QPS_ERR);
	rdma_destroy_qp(e.client);
	close_ends(&e);
}

static void post_send_and_recv(struct ends *e, struct buffers *b)
{
	register_buffers(e, b);
	OK(rdma_post_recv(e->server, NULL, b->bytes[0], SIZE, b->mr[0]));
	OK(rdma_post_send(e->client, NULL, b->bytes[1], SIZE, b->mr[1], 0));
}

static void cm_qp_connection_dropped(void)
{
	struct buffers b;

	setenv("SOFTVERBS_FAULTS", "on send : drop-connection", 1);
	struct ends e = joined("127.0.0.1", NULL);
	post_send_and_recv(&e, &b);
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	take_event(e.cch, RDMA_CM_EVENT_DISCONNECTED, 0);
	CHECK(query_qp(e.server).qp_state == IBV_QPS_ERR &&
	      query_qp(e.client).qp_state == IBV_QPS_ERR);
	OK(rdma_disconnect(e.client));
	no_event(e.sch);
	drop_buffers(&b);
	destroy_qps_and_ends(&e);
}

/* Every id of the device gets the event, the listener on its address too. */
static void cm_qp_device_removed(void)
{
	struct buffers b;
	struct rdma_cm_id *id;
	int n, listeners = 0, servers = 0;

	setenv("SOFTVERBS_FAULTS", "on send : device-removed", 1);
	struct ends e = joined("127.0.0.1", NULL);
	post_send_and_recv(&e, &b);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *ev = next_event(e.sch, RDMA_CM_EVENT_DEVICE_REMOVAL);
		listeners += ev->id == e.listener;
		servers += ev->id == e.server;
		rdma_ack_cm_event(ev);
	}
	CHECK(listeners == 1 && servers == 1);
	take_event(e.cch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	struct ibv_context **list = rdma_get_devices(&n);
	CHECK(list && n == 0 && !list[0]);
	rdma_free_devices(list);
	struct sockaddr_storage a = address("127.0.0.1", 0);
	OK(rdma_create_id(e.sch, &id, NULL, RDMA_PS_TCP));
	FAILS(rdma_bind_addr(id, (struct sockaddr *)&a), ENODEV);
	OK(rdma_destroy_id(id));
	drop_buffers(&b);
	destroy_qps_and_ends(&e);
}

int main(int argc, char **argv)
{
#define Q(name)                                                                                    \
	{                                                                                          \
#name, name                                                                        \
	}
	static const struct cm_test tests[] = {
		Q(send_recv),		Q(cm_qp_shared_receives),    Q(receive_before_established),
		Q(cm_qp_access_rights), Q(disconnect_flushes),	     Q(iwarp_ends_with_the_stream),
		Q(reject_is_an_error),	Q(cm_qp_connection_dropped), Q(cm_qp_device_removed),
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
