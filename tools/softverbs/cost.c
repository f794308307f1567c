/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures operations between two processes of one machine: the round trip of a Send, polled and
 * with events, and the bandwidth of RDMA Reads and Writes, beside memcpy(). Each figure is the best
 * of five, since other load only makes a figure worse. Being a plain program of librdmacm, it
 * measures any device: cost [ADDRESS]
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define BIG (1u << 20)
#define DEPTH 16u	   /* operations outstanding */
#define AREA (DEPTH * BIG) /* larger than a processor's cache, as a server's data are */
#define VOLUME (64u << 20) /* bytes moved for each figure */
#define MESSAGE 64u
#define ROUNDS 400
#define REPEATS 5

struct side {
	struct rdma_cm_id *listener, *id;
	uint8_t *area;
	struct ibv_mr *area_mr, *message_mr;
	uint8_t message[2 * MESSAGE]; /* received, sent */
};

struct area {
	uint64_t addr;
	uint32_t rkey;
};

static void cost_need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "cost: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static struct rdma_cm_id *cost_create_ep(const char *host, const char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = {
		.cap = { DEPTH + 1, DEPTH + 1, 1, 1, MESSAGE },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	cost_need(rdma_getaddrinfo(host, port, &hints, &res) == 0, "rdma_getaddrinfo");
	cost_need(rdma_create_ep(&id, res, NULL, &attr) == 0, "rdma_create_ep");
	rdma_freeaddrinfo(res);
	return id;
}

static void cost_prepare_memory(struct side *s)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	s->area = aligned_alloc(4096, AREA);
	cost_need(s->area, "memory");
	memset(s->area, 1, AREA);
	s->area_mr = ibv_reg_mr(s->id->pd, s->area, AREA, access);
	s->message_mr = ibv_reg_mr(s->id->pd, s->message, sizeof(s->message), access);
	cost_need(s->area_mr && s->message_mr, "ibv_reg_mr");
	cost_need(rdma_post_recv(s->id, NULL, s->message, MESSAGE, s->message_mr) == 0, "receive");
}

static void wait_one(struct rdma_cm_id *id, bool receive, bool events)
{
	struct ibv_wc wc;
	int n = 0;

	if (events)
		n = receive ? rdma_get_recv_comp(id, &wc) : rdma_get_send_comp(id, &wc);
	while (!n)
		n = ibv_poll_cq(receive ? id->recv_cq : id->send_cq, 1, &wc);
	cost_need(n == 1 && wc.status == IBV_WC_SUCCESS, "completion");
}

static void send_one(struct side *s, char what, bool events)
{
	uint8_t *m = s->message + MESSAGE;

	m[0] = what;
	cost_need(rdma_post_send(s->id, NULL, m, MESSAGE, s->message_mr, 0) == 0, "send");
	wait_one(s->id, false, events);
}

static void receive_one(struct side *s, bool events)
{
	wait_one(s->id, true, events);
	cost_need(rdma_post_recv(s->id, NULL, s->message, MESSAGE, s->message_mr) == 0, "receive");
}

/* Answers until it is told to end: 'p' polls for the next message, 'e' waits for it. */
static int cost_serve(const char *host, int tell)
{
	struct side s = { .listener = cost_create_ep(host, "0", RAI_PASSIVE) };
	bool events = true;
	char what = 'e';

	cost_need(rdma_listen(s.listener, 1) == 0, "rdma_listen");
	uint16_t port = ntohs(rdma_get_src_port(s.listener));
	cost_need(write(tell, &port, sizeof(port)) == sizeof(port), "pipe");
	cost_need(rdma_get_request(s.listener, &s.id) == 0, "rdma_get_request");
	cost_prepare_memory(&s);
	struct area area = { (uintptr_t)s.area, s.area_mr->rkey };
	struct rdma_conn_param p = {
		.private_data = &area,
		.private_data_len = sizeof(area),
		.responder_resources = DEPTH,
		.initiator_depth = DEPTH,
		.rnr_retry_count = 7,
	};
	cost_need(rdma_accept(s.id, &p) == 0, "rdma_accept");
	while (what != 'q') {
		receive_one(&s, events);
		what = s.message[0];
		events = what != 'p';
		send_one(&s, what, events);
	}
	rdma_disconnect(s.id);
	rdma_destroy_ep(s.id);
	rdma_destroy_ep(s.listener);
	return 0;
}

static double cost_least(double a, double b)
{
	return a && a < b ? a : b;
}

static void round_trips(struct side *s, bool events)
{
	char what = events ? 'e' : 'p';
	double took = 0;

	send_one(s, what, events);
	receive_one(s, events);
	for (int n = 0; n < REPEATS; n++) {
		double start = now();
		for (int i = 0; i < ROUNDS; i++) {
			send_one(s, what, events);
			receive_one(s, events);
		}
		took = cost_least(took, now() - start);
	}
	printf("Send, %u bytes, %-8s          %10.2f us one way\n", MESSAGE,
	       events ? "events" : "polled", took / ROUNDS / 2 * 1e6);
}

static void cost_post_rdma(struct side *s, const struct area *to, unsigned i, uint32_t size,
			   bool read)
{
	uint64_t at = (uint64_t)(i % DEPTH) * BIG;
	int err;

	if (read)
		err = rdma_post_read(s->id, NULL, s->area + at, size, s->area_mr, 0, to->addr + at,
				     to->rkey);
	else
		err = rdma_post_write(s->id, NULL, s->area + at, size, s->area_mr, 0, to->addr + at,
				      to->rkey);
	cost_need(err == 0, "post");
}

static double transfer_once(struct side *s, const struct area *to, uint32_t size, bool read)
{
	unsigned n = VOLUME / size, posted = 0;
	double start = now();

	for (unsigned done = 0; done < n; done++) {
		while (posted < n && posted - done < DEPTH)
			cost_post_rdma(s, to, posted++, size, read);
		wait_one(s->id, false, false);
	}
	return now() - start;
}

static void transfer(struct side *s, const struct area *to, uint32_t size, bool read)
{
	double took = 0;

	for (int n = 0; n < REPEATS; n++)
		took = cost_least(took, transfer_once(s, to, size, read));
	printf("RDMA %-5s %7u bytes             %10.2f us, %8.0f MB/s\n", read ? "Read" : "Write",
	       size, took * size / VOLUME * 1e6, VOLUME / took / 1e6);
}

static void copies(struct side *s)
{
	uint8_t *from = aligned_alloc(4096, AREA);
	double took = 0;

	cost_need(from, "memory");
	memset(from, 2, AREA);
	for (int n = 0; n < REPEATS; n++) {
		double start = now();
		for (size_t i = 0; i < VOLUME / BIG; i++)
			memcpy(s->area + i % DEPTH * BIG, from + i % DEPTH * BIG, BIG);
		took = cost_least(took, now() - start);
	}
	printf("memcpy     %7u bytes             %10.2f us, %8.0f MB/s\n", BIG,
	       took * BIG / VOLUME * 1e6, VOLUME / took / 1e6);
	free(from);
}

static void cost_measure(const char *host, const char *port)
{
	struct side s = { .id = cost_create_ep(host, port, 0) };
	struct rdma_conn_param p = {
		.responder_resources = DEPTH,
		.initiator_depth = DEPTH,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct area area;

	cost_prepare_memory(&s);
	cost_need(rdma_connect(s.id, &p) == 0, "rdma_connect");
	memcpy(&area, s.id->event->param.conn.private_data, sizeof(area));
	round_trips(&s, false);
	round_trips(&s, true);
	for (uint32_t size = 65536; size <= BIG; size *= 16) {
		transfer(&s, &area, size, false);
		transfer(&s, &area, size, true);
	}
	copies(&s);
	send_one(&s, 'q', true);
	receive_one(&s, true);
	rdma_disconnect(s.id);
	ibv_dereg_mr(s.area_mr);
	ibv_dereg_mr(s.message_mr);
	rdma_destroy_ep(s.id);
	free(s.area);
}

int main(int argc, char **argv)
{
	const char *host = argc > 1 ? argv[1] : "127.0.0.1";
	int pipes[2], status;
	uint16_t port = 0;
	char text[8];

	cost_need(pipe(pipes) == 0, "pipe");
	pid_t pid = fork();
	if (pid == 0)
		return cost_serve(host, pipes[1]);
	close(pipes[1]);
	cost_need(pid > 0 && read(pipes[0], &port, sizeof(port)) == sizeof(port), "server");
	snprintf(text, sizeof(text), "%u", port);
	cost_measure(host, text);
	cost_need(waitpid(pid, &status, 0) == pid && status == 0, "server");
	return 0;
}
