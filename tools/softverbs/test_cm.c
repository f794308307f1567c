/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric's connection manager, without queue pairs: what programs see of ids, ports and the
 * handshake. Each test is a process of its own, so that it opens the fabric anew.
 *   test_cm [NAME]
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "tools/softverbs/cm_testlib.h"

static void test_handshake(void)
{
	struct rdma_conn_param p = { .private_data = "hello", .private_data_len = 5 };
	uint8_t want[196] = "hello";
	int context;

	p.responder_resources = 3;
	p.initiator_depth = 5;
	p.rnr_retry_count = 6;
	p.retry_count = 9; /* three bits: 7 */
	p.qp_num = 4711;
	struct ends e = listening("127.0.0.1", &context);
	resolved(&e, NULL, "127.0.0.1");
	OK(rdma_connect(e.client, &p));
	struct rdma_cm_event *ev = next_event(e.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	e.server = ev->id;
	CHECK(ev->listen_id == e.listener && ev->id->context == &context && ev->id->verbs);
	CHECK(ev->param.conn.private_data_len == 56);
	CHECK(memcmp(ev->param.conn.private_data, want, 56) == 0);
	CHECK(ev->param.conn.responder_resources == 5 && ev->param.conn.initiator_depth == 3);
	CHECK(ev->param.conn.qp_num == 4711 && ev->param.conn.retry_count == 7);
	CHECK(ev->param.conn.rnr_retry_count == 6);
	OK(rdma_ack_cm_event(ev));
	p.responder_resources = 2;
	p.qp_num = 4712;
	OK(rdma_accept(e.server, &p));
	ev = next_event(e.cch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(ev->param.conn.private_data_len == 196);
	CHECK(memcmp(ev->param.conn.private_data, want, 196) == 0);
	CHECK(ev->param.conn.initiator_depth == 2 && ev->param.conn.qp_num == 4712);
	rdma_ack_cm_event(ev);
	OK(rdma_establish(e.client));
	take_event(e.sch, RDMA_CM_EVENT_ESTABLISHED, 0);
	FAILS(rdma_notify(e.server, IBV_EVENT_COMM_EST), EISCONN);
	close_ends(&e);
}

static void test_disconnect(void)
{
	struct ends e = connected("127.0.0.1");

	OK(rdma_disconnect(e.client));
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	no_event(e.cch);
	OK(rdma_disconnect(e.server));
	take_event(e.cch, RDMA_CM_EVENT_DISCONNECTED, 0);
	take_event(e.cch, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	take_event(e.sch, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	close_ends(&e);
}

static void test_disconnect_without_answer(void)
{
	struct ends e = connected("127.0.0.1");

	OK(rdma_disconnect(e.client));
	take_event(e.cch, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	close_ends(&e);
}

static void test_both_disconnect(void)
{
	struct ends e = connected("::1");

	OK(rdma_disconnect(e.client));
	OK(rdma_disconnect(e.server));
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	take_event(e.cch, RDMA_CM_EVENT_DISCONNECTED, 0);
	close_ends(&e);
}

static void test_destroy_disconnects(void)
{
	struct ends e = connected("127.0.0.1");

	OK(rdma_destroy_id(e.client));
	e.client = NULL;
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	close_ends(&e);
}

static void test_reject(void)
{
	struct ends e = requested("127.0.0.1");
	uint8_t want[148] = "no";

	FAILS(rdma_reject(e.server, want, 149), EINVAL);
	OK(rdma_reject(e.server, "no", 2));
	struct rdma_cm_event *ev = next_event(e.cch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->status == 28 && ev->param.conn.private_data_len == 148);
	CHECK(memcmp(ev->param.conn.private_data, want, 148) == 0);
	rdma_ack_cm_event(ev);
	FAILS(rdma_accept(e.server, NULL), EINVAL);
	close_ends(&e);
}

static void test_no_listener(void)
{
	struct ends e = listening("127.0.0.1", NULL);

	resolved(&e, NULL, "127.0.0.1");
	OK(rdma_destroy_id(e.listener));
	e.listener = NULL;
	OK(rdma_connect(e.client, NULL));
	take_event(e.cch, RDMA_CM_EVENT_REJECTED, 8);
	close_ends(&e);
}

static void test_addresses(void)
{
	struct ends e = listening("0.0.0.0", NULL);

	resolved(&e, "127.0.0.5", "127.0.0.9");
	OK(rdma_connect(e.client, NULL));
	struct rdma_cm_event *ev = next_event(e.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(is_addr(rdma_get_peer_addr(ev->id), "127.0.0.5"));
	CHECK(is_addr(rdma_get_local_addr(ev->id), "127.0.0.9"));
	CHECK(rdma_get_dst_port(ev->id) == rdma_get_src_port(e.client));
	CHECK(rdma_get_src_port(ev->id) == rdma_get_src_port(e.listener));
	e.server = ev->id;
	rdma_ack_cm_event(ev);
	close_ends(&e);
	e = listening("127.0.0.1", NULL);
	resolved(&e, NULL, "127.0.0.1");
	CHECK(is_addr(rdma_get_local_addr(e.client), "127.0.0.1"));
	CHECK(rdma_get_src_port(e.client) != 0);
	close_ends(&e);
}

static void test_unknown_address(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	struct sockaddr_storage a = address("192.0.2.1", 7);

	OK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	FAILS(rdma_bind_addr(id, (struct sockaddr *)&a), ENODEV);
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000));
	take_event(ch, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	FAILS(rdma_resolve_route(id, 1000), EINVAL);
	FAILS(rdma_connect(id, NULL), EINVAL);
	OK(rdma_destroy_id(id));
	FAILS(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), EPROTONOSUPPORT);
	rdma_destroy_event_channel(ch);
}

/* True if a client of `to` reaches a listener on `at`. */
static bool meets(const char *at, int v6only, const char *to)
{
	struct ends e = open_ends();
	struct rdma_cm_event *ev;

	if (v6only >= 0)
		OK(rdma_set_option(e.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &v6only,
				   sizeof(v6only)));
	start_listening(&e, at);
	resolved(&e, NULL, to);
	OK(rdma_connect(e.client, NULL));
	struct pollfd fds[2] = { { e.sch->fd, POLLIN, 0 }, { e.cch->fd, POLLIN, 0 } };
	CHECK(poll(fds, 2, WAIT_MS) > 0);
	bool met = fds[0].revents;
	if (met) {
		ev = next_event(e.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
		e.server = ev->id;
		rdma_ack_cm_event(ev);
	} else {
		take_event(e.cch, RDMA_CM_EVENT_REJECTED, 8);
	}
	close_ends(&e);
	return met;
}

static void test_wildcards(void)
{
	CHECK(meets("0.0.0.0", -1, "127.0.0.3"));
	CHECK(!meets("0.0.0.0", -1, "::1"));
	CHECK(meets("::", -1, "::1"));
	CHECK(meets("::", -1, "127.0.0.3"));
	CHECK(!meets("::", 1, "127.0.0.3"));
	CHECK(meets("127.0.0.3", -1, "127.0.0.3"));
	CHECK(!meets("127.0.0.3", -1, "127.0.0.4"));
}

static int try_bind(struct rdma_cm_id **id, struct rdma_event_channel *ch, const char *host,
		    uint16_t port, int options)
{
	struct sockaddr_storage a = address(host, port);
	int one = 1;

	OK(rdma_create_id(ch, id, NULL, RDMA_PS_TCP));
	if (options & 1)
		OK(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one,
				   sizeof(one)));
	if (options & 2)
		OK(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)));
	return rdma_bind_addr(*id, (struct sockaddr *)&a) < 0 ? errno : 0;
}

static void test_ports(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id[8];

	CHECK(try_bind(&id[0], ch, "127.0.0.1", 0, 0) == 0);
	uint16_t port = ntohs(rdma_get_src_port(id[0]));
	CHECK(port >= 1024);
	CHECK(try_bind(&id[1], ch, "127.0.0.1", port, 0) == EADDRINUSE);
	CHECK(try_bind(&id[2], ch, "127.0.0.2", port, 0) == 0);
	CHECK(try_bind(&id[3], ch, "0.0.0.0", port, 0) == EADDRNOTAVAIL);
	CHECK(try_bind(&id[4], ch, "::", port, 2) == 0);
	FAILS(rdma_bind_addr(id[4], rdma_get_local_addr(id[0])), EINVAL);
	CHECK(try_bind(&id[5], ch, "127.0.0.1", port, 1) == EADDRINUSE);
	for (int i = 0; i < 6; i++)
		OK(rdma_destroy_id(id[i]));
	/* Binds two ids to one address, of which one may listen. */
	CHECK(try_bind(&id[0], ch, "127.0.0.1", port, 1) == 0);
	CHECK(try_bind(&id[1], ch, "127.0.0.1", port, 1) == 0);
	FAILS(rdma_listen(id[0], 1), EADDRINUSE);
	OK(rdma_destroy_id(id[1]));
	OK(rdma_listen(id[0], 1));
	OK(rdma_destroy_id(id[0]));
	rdma_destroy_event_channel(ch);
}

static void test_backlog(void)
{
	struct ends e = open_ends();
	struct rdma_cm_id *more[2];
	struct rdma_cm_event *ev;

	e.backlog = 2;
	start_listening(&e, "127.0.0.1");
	resolved(&e, NULL, "127.0.0.1");
	OK(rdma_connect(e.client, NULL));
	for (int i = 0; i < 2; i++) {
		more[i] = new_client(&e, NULL, "127.0.0.1");
		OK(rdma_connect(more[i], NULL));
	}
	ev = next_event(e.cch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->id == more[1] && ev->status == 28);
	rdma_ack_cm_event(ev);
	/* One request is taken, so there is room for one again. */
	ev = next_event(e.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	e.server = ev->id;
	rdma_ack_cm_event(ev);
	OK(rdma_destroy_id(more[1]));
	more[1] = new_client(&e, NULL, "127.0.0.1");
	OK(rdma_connect(more[1], NULL));
	for (int i = 0; i < 2; i++) {
		ev = next_event(e.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *id = ev->id;
		rdma_ack_cm_event(ev);
		OK(rdma_reject(id, NULL, 0));
		OK(rdma_destroy_id(id));
		take_event(e.cch, RDMA_CM_EVENT_REJECTED, 28);
		OK(rdma_destroy_id(more[i]));
	}
	close_ends(&e);
}

static void test_private_data_limits(void)
{
	uint8_t data[255] = { 1 };
	struct rdma_conn_param p = { .private_data = data, .private_data_len = 57 };
	struct ends e = listening("127.0.0.1", NULL);

	resolved(&e, NULL, "127.0.0.1");
	FAILS(rdma_connect(e.client, &p), EINVAL);
	p.private_data_len = 56;
	OK(rdma_connect(e.client, &p));
	take_request(&e);
	p.private_data_len = 197;
	FAILS(rdma_accept(e.server, &p), EINVAL);
	p.private_data_len = 196;
	OK(rdma_accept(e.server, &p));
	take_event(e.cch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	close_ends(&e);
}

/* Private data arrive with the length sent, up to the limit of the API. */
static void test_private_data_iwarp(void)
{
	uint8_t data[255];
	struct rdma_conn_param p = { .private_data = data, .private_data_len = 255 };

	for (int i = 0; i < 255; i++)
		data[i] = i;
	setenv("SOFTVERBS_DEVICES", "ib0=127.0.0.1 iw0=127.0.0.2:iwarp", 1);
	struct ends e = listening("127.0.0.2", NULL);
	resolved(&e, "127.0.0.2", "127.0.0.2");
	CHECK(e.client->verbs->device->transport_type == IBV_TRANSPORT_IWARP);
	OK(rdma_connect(e.client, &p));
	struct rdma_cm_event *ev = next_event(e.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(ev->param.conn.private_data_len == 255);
	CHECK(memcmp(ev->param.conn.private_data, data, 255) == 0);
	e.server = ev->id;
	rdma_ack_cm_event(ev);
	OK(rdma_reject(e.server, data, 3));
	ev = next_event(e.cch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->status == -ECONNREFUSED && ev->param.conn.private_data_len == 3);
	rdma_ack_cm_event(ev);
	close_ends(&e);
	/* InfiniBand and iWARP devices do not connect to each other. */
	e = open_ends();
	struct sockaddr_storage from = address("127.0.0.1", 0), to = address("127.0.0.2", 9);
	OK(rdma_resolve_addr(e.client, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000));
	take_event(e.cch, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	close_ends(&e);
}

/* Connects to the port that comes through the pipe, and waits for its end. */
static void doomed_client(int port_from)
{
	struct ends c = open_ends();

	CHECK(read(port_from, &c.port, sizeof(c.port)) == sizeof(c.port));
	resolved(&c, NULL, "127.0.0.1");
	OK(rdma_connect(c.client, NULL));
	take_event(c.cch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	OK(rdma_establish(c.client));
	for (;;)
		pause();
}

static void test_peer_killed(void)
{
	int pipes[2];

	CHECK(pipe(pipes) == 0);
	pid_t pid = fork();
	if (pid == 0)
		doomed_client(pipes[0]);
	struct ends e = listening("127.0.0.1", NULL);
	CHECK(write(pipes[1], &e.port, sizeof(e.port)) == sizeof(e.port));
	take_request(&e);
	OK(rdma_accept(e.server, NULL));
	take_event(e.sch, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_process(pid);
	take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	close_ends(&e);
}

static void test_listener_killed(void)
{
	int pipes[2];
	uint16_t port;

	CHECK(pipe(pipes) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct ends s = listening("127.0.0.1", NULL);
		port = ntohs(rdma_get_src_port(s.listener));
		CHECK(write(pipes[1], &port, sizeof(port)) == sizeof(port));
		for (;;)
			pause();
	}
	CHECK(read(pipes[0], &port, sizeof(port)) == sizeof(port));
	struct ends e = open_ends();
	e.port = port;
	resolved(&e, NULL, "127.0.0.1");
	OK(rdma_connect(e.client, NULL));
	no_event(e.cch);
	end_process(pid);
	take_event(e.cch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	struct rdma_cm_id *again = new_client(&e, NULL, "127.0.0.1");
	OK(rdma_connect(again, NULL));
	take_event(e.cch, RDMA_CM_EVENT_REJECTED, 8);
	OK(rdma_destroy_id(again));
	/* The port of the dead process is free. */
	start_listening(&e, "127.0.0.1");
	close_ends(&e);
}

static void test_client_gone_before_accept(void)
{
	struct ends e = listening("127.0.0.1", NULL);

	resolved(&e, NULL, "127.0.0.1");
	OK(rdma_connect(e.client, NULL));
	wait_readable(e.sch);
	OK(rdma_destroy_id(e.client));
	e.client = NULL;
	struct rdma_cm_id *other = new_client(&e, NULL, "127.0.0.1");
	OK(rdma_connect(other, NULL)); /* behind the first one's end */
	take_request(&e);
	struct rdma_cm_id *first = e.server;
	/* The application gets an event if it took the request before the client ended. */
	wait_readable(e.sch);
	struct rdma_cm_event *ev;
	OK(rdma_get_cm_event(e.sch, &ev));
	if (ev->event == RDMA_CM_EVENT_REJECTED) {
		CHECK(ev->id == first);
		OK(rdma_ack_cm_event(ev));
		take_request(&e);
	} else {
		CHECK(ev->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		e.server = ev->id;
		OK(rdma_ack_cm_event(ev));
	}
	FAILS(rdma_accept(first, NULL), EINVAL);
	OK(rdma_accept(e.server, NULL));
	take_event(e.cch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	OK(rdma_destroy_id(first));
	OK(rdma_destroy_id(other));
	close_ends(&e);
}

static void test_listener_gone_before_accept(void)
{
	struct ends e = listening("127.0.0.1", NULL);

	resolved(&e, NULL, "127.0.0.1");
	OK(rdma_connect(e.client, NULL));
	wait_readable(e.sch);
	OK(rdma_destroy_id(e.listener));
	e.listener = NULL;
	take_event(e.cch, RDMA_CM_EVENT_REJECTED, 28);
	no_event(e.sch);
	close_ends(&e);
}

static void *destroy_it(void *arg)
{
	OK(rdma_destroy_id(arg));
	return NULL;
}

static void test_destroy_waits_for_ack(void)
{
	struct ends e = connected("127.0.0.1");
	pthread_t thread;

	OK(rdma_disconnect(e.client));
	struct rdma_cm_event *ev = next_event(e.sch, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(pthread_create(&thread, NULL, destroy_it, e.server) == 0);
	take_event(e.cch, RDMA_CM_EVENT_DISCONNECTED, 0); /* the destroy has answered */
	usleep(50000);
	CHECK(pthread_tryjoin_np(thread, NULL) == EBUSY);
	rdma_ack_cm_event(ev);
	CHECK(pthread_join(thread, NULL) == 0);
	e.server = NULL;
	close_ends(&e);
}

static void test_nonblocking(void)
{
	struct ends e = open_ends();
	struct rdma_cm_event *ev;
	struct sockaddr_storage a = address("127.0.0.1", 9);

	fcntl(e.cch->fd, F_SETFL, fcntl(e.cch->fd, F_GETFL) | O_NONBLOCK);
	FAILS(rdma_get_cm_event(e.cch, &ev), EAGAIN);
	no_event(e.cch);
	OK(rdma_resolve_addr(e.client, NULL, (struct sockaddr *)&a, 1000));
	wait_readable(e.cch);
	take_event(e.cch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	no_event(e.cch);
	FAILS(rdma_get_cm_event(e.cch, &ev), EAGAIN);
	/* Destroying an id drops its events. */
	OK(rdma_resolve_route(e.client, 1000));
	wait_readable(e.cch);
	OK(rdma_destroy_id(e.client));
	e.client = NULL;
	no_event(e.cch);
	close_ends(&e);
}

static void test_migrate(void)
{
	struct ends e = open_ends();
	struct sockaddr_storage a = address("127.0.0.1", 9);

	OK(rdma_resolve_addr(e.client, NULL, (struct sockaddr *)&a, 1000));
	OK(rdma_migrate_id(e.client, e.sch));
	no_event(e.cch);
	take_event(e.sch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	OK(rdma_resolve_route(e.client, 1000));
	take_event(e.sch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	OK(rdma_migrate_id(e.client, NULL));
	CHECK(e.client->channel != e.sch);
	FAILS(rdma_connect(e.client, NULL), ECONNREFUSED); /* synchronous now */
	close_ends(&e);
}

static void *reject_request_thread(void *arg)
{
	struct rdma_cm_id *id;

	OK(rdma_get_request(arg, &id));
	CHECK(id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	OK(rdma_reject(id, NULL, 0));
	rdma_destroy_ep(id);
	return NULL;
}

static void test_synchronous(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;
	struct rdma_cm_id *listener, *client;
	pthread_t thread;
	char port[8];

	OK(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res));
	OK(rdma_create_ep(&listener, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	OK(rdma_listen(listener, 4));
	CHECK(pthread_create(&thread, NULL, reject_request_thread, listener) == 0);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(listener)));
	hints.ai_flags = RAI_NUMERICHOST;
	OK(rdma_getaddrinfo("127.0.0.1", port, &hints, &res));
	CHECK(res->ai_qp_type == IBV_QPT_RC && res->ai_dst_len == sizeof(struct sockaddr_in));
	OK(rdma_create_ep(&client, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	FAILS(rdma_connect(client, NULL), ECONNREFUSED);
	CHECK(client->event->event == RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(client);
	CHECK(pthread_join(thread, NULL) == 0);
	rdma_destroy_ep(listener);
}

/* Ids and ports are free again each time. */
static void test_many(void)
{
	enum { N = 1000 };
	static struct rdma_cm_id *id[N], *server[N];
	struct ends e = open_ends();

	e.backlog = N;
	start_listening(&e, "127.0.0.1");
	for (int i = 0; i < N; i++) {
		id[i] = new_client(&e, NULL, "127.0.0.1");
		OK(rdma_connect(id[i], NULL));
	}
	for (int i = 0; i < N; i++) {
		take_request(&e);
		server[i] = e.server;
		OK(rdma_accept(server[i], NULL));
	}
	for (int i = 0; i < N; i++)
		take_event(e.cch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	for (int i = 0; i < N; i++)
		OK(rdma_establish(id[i]));
	for (int i = 0; i < N; i++)
		take_event(e.sch, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (int i = 0; i < N; i++)
		OK(rdma_destroy_id(id[i]));
	for (int i = 0; i < N; i++)
		take_event(e.sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	for (int i = 0; i < N; i++)
		OK(rdma_destroy_id(server[i]));
	e.server = NULL;
	close_ends(&e);
}

int main(int argc, char **argv)
{
	static const struct cm_test tests[] = {
		T(handshake),
		T(disconnect),
		T(disconnect_without_answer),
		T(both_disconnect),
		T(destroy_disconnects),
		T(reject),
		T(no_listener),
		T(addresses),
		T(unknown_address),
		T(wildcards),
		T(ports),
		T(backlog),
		T(private_data_limits),
		T(private_data_iwarp),
		T(peer_killed),
		T(listener_killed),
		T(client_gone_before_accept),
		T(listener_gone_before_accept),
		T(destroy_waits_for_ack),
		T(nonblocking),
		T(migrate),
		T(synchronous),
		T(many),
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
