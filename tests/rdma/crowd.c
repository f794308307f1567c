/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Very many connections of one client, for tests: crowd HOST PORT SOURCE CONNECTIONS WINDOW MESSAGE
 *
 * Opens connections one after the other, until the server refuses or there are CONNECTIONS. Then
 * carries out the lines of standard input, and answers each with one line.
 *   round   one call on each connection:    answered N of M, credits LEAST..MOST
 *   flood   calls on all connections as fast as the server takes them, WINDOW at a time on each,
 *           until the next line:            flooding, at the first reply; flooded N
 *   deaf    WINDOW calls on each, without Receives for the replies:   sent N
 *   closed  connections that the server has closed:                   closed N
 * MESSAGE is an idempotent RPC call in hexadecimal digits. Replies are short: without a private
 * message, messages have at most 1024 bytes (RFC 8166 section 3.3.2).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE 1024u
#define HEADER 28u
#define PATIENCE_MS 120000
#define WINDOW_MAX 64u

struct conn {
	struct rdma_cm_id *id;
	unsigned out; /* calls without a reply yet */
	uint32_t credits;
	bool closed;
};

struct crowd {
	struct rdma_event_channel *channel;
	struct sockaddr_in to, from;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	/* For each connection window receive buffers; then one send buffer for all */
	uint8_t *block;
	struct conn *conns;
	unsigned n, max, window, closed;
	uint32_t message_len;
	uint64_t answers;
	bool deaf;
};

static void die(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t *recv_buf(struct crowd *w, unsigned conn, unsigned i)
{
	return w->block + ((size_t)conn * w->window + i) * SIZE;
}

static void post_recv(struct crowd *w, unsigned conn, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)recv_buf(w, conn, i), SIZE, w->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)conn * w->window + i,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	ibv_post_recv(w->conns[conn].id->qp, &wr, &bad);
}

static void lose(struct crowd *w, struct conn *c)
{
	w->closed += !c->closed;
	c->closed = true;
}

/* All calls have the same xid, which does no harm because the calls are not cached. */
static bool send_call(struct crowd *w, unsigned conn)
{
	struct conn *c = &w->conns[conn];
	uint8_t *buf = recv_buf(w, w->max, 0);
	struct ibv_sge sge = { (uintptr_t)buf, HEADER + w->message_len, w->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = UINT64_MAX - conn,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (c->closed || ibv_post_send(c->id->qp, &wr, &bad) != 0)
		return false;
	c->out++;
	return true;
}

/* Waits for the next event of id; events of others are about connections that end. */
static enum rdma_cm_event_type next_event(struct crowd *w, const struct rdma_cm_id *id)
{
	struct rdma_cm_event *ev;

	while (rdma_get_cm_event(w->channel, &ev) == 0) {
		enum rdma_cm_event_type type = ev->event;
		bool mine = ev->id == id;

		if (!mine && ev->id->context && type == RDMA_CM_EVENT_DISCONNECTED)
			lose(w, ev->id->context);
		rdma_ack_cm_event(ev);
		if (mine)
			return type;
	}
	die("rdma_get_cm_event");
	return RDMA_CM_EVENT_CONNECT_ERROR;
}

static void make_shared(struct crowd *w, struct ibv_context *verbs)
{
	const size_t size = ((size_t)w->max * w->window + 1) * SIZE;

	w->pd = ibv_alloc_pd(verbs);
	w->cq = ibv_create_cq(verbs, (int)(w->max * (2 * w->window + 2)), NULL, NULL, 0);
	w->mr = w->pd ? ibv_reg_mr(w->pd, w->block, size, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!w->pd || !w->cq || !w->mr)
		die("protection domain, completion queue, memory region");
}

static bool open_one(struct crowd *w)
{
	struct conn *c = &w->conns[w->n];
	struct rdma_conn_param param = { .responder_resources = 1,
					 .retry_count = 6,
					 .rnr_retry_count = 7 };

	if (rdma_create_id(w->channel, &c->id, NULL, RDMA_PS_TCP) < 0)
		die("rdma_create_id");
	if (rdma_resolve_addr(c->id, (struct sockaddr *)&w->from, (struct sockaddr *)&w->to, 5000) <
		    0 ||
	    next_event(w, c->id) != RDMA_CM_EVENT_ADDR_RESOLVED ||
	    rdma_resolve_route(c->id, 5000) < 0 ||
	    next_event(w, c->id) != RDMA_CM_EVENT_ROUTE_RESOLVED)
		die("resolving");
	if (!w->pd)
		make_shared(w, c->id->verbs);
	struct ibv_qp_init_attr attr = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { w->window + 1, w->window, 1, 1, 0 },
	};
	if (rdma_create_qp(c->id, w->pd, &attr) < 0)
		die("rdma_create_qp");
	for (unsigned i = 0; i < w->window && !w->deaf; i++)
		post_recv(w, w->n, i);
	if (rdma_connect(c->id, &param) < 0 || next_event(w, c->id) != RDMA_CM_EVENT_ESTABLISHED) {
		rdma_destroy_qp(c->id);
		rdma_destroy_id(c->id);
		return false;
	}
	c->id->context = c;
	c->credits = 1;
	w->n++;
	return true;
}

static uint32_t credits_of(const uint8_t *reply)
{
	uint32_t v;

	memcpy(&v, reply + 8, sizeof(v));
	return ntohl(v);
}

static void handle(struct crowd *w, const struct ibv_wc *wc)
{
	bool send = wc->wr_id > UINT64_MAX / 2;
	unsigned conn = (unsigned)(send ? UINT64_MAX - wc->wr_id : wc->wr_id / w->window);
	struct conn *c = &w->conns[conn];

	if (wc->status != IBV_WC_SUCCESS) {
		lose(w, c);
	} else if (!send) {
		unsigned i = (unsigned)(wc->wr_id % w->window);
		c->credits = credits_of(recv_buf(w, conn, i));
		c->out--;
		w->answers++;
		post_recv(w, conn, i);
	}
}

static unsigned reap(struct crowd *w)
{
	struct ibv_wc wc[64];
	int n = ibv_poll_cq(w->cq, 64, wc);

	for (int i = 0; i < n; i++)
		handle(w, &wc[i]);
	return n > 0 ? (unsigned)n : 0;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

/* Waits for that many answers, or until all connections are closed. */
static void wait_answers(struct crowd *w, uint64_t want)
{
	int64_t end = now_ms() + PATIENCE_MS;

	while (w->answers < want && w->closed < w->n && now_ms() < end)
		if (!reap(w))
			poll(NULL, 0, 1);
}

static void do_round(struct crowd *w)
{
	uint64_t start = w->answers;
	uint32_t least = UINT32_MAX, most = 0;
	unsigned sent = 0;

	for (unsigned i = 0; i < w->n; i++) {
		sent += send_call(w, i);
		if (i % 64 == 63)
			reap(w);
	}
	wait_answers(w, start + sent);
	for (unsigned i = 0; i < w->n; i++) {
		if (w->conns[i].closed)
			continue;
		least = w->conns[i].credits < least ? w->conns[i].credits : least;
		most = w->conns[i].credits > most ? w->conns[i].credits : most;
	}
	printf("answered %llu of %u, credits %u..%u\n", (unsigned long long)(w->answers - start),
	       w->n, least, most);
}

static void do_flood(struct crowd *w)
{
	struct pollfd in = { 0, POLLIN, 0 };
	uint64_t start = w->answers;
	bool told = false;

	while (poll(&in, 1, 0) == 0) {
		for (unsigned i = 0; i < w->n; i++) {
			struct conn *c = &w->conns[i];
			while (c->out < w->window && c->out < c->credits && send_call(w, i))
				;
		}
		if (!reap(w))
			poll(&in, 1, 1);
		if (!told && w->answers > start) {
			told = true;
			puts("flooding");
			fflush(stdout);
		}
	}
	printf("flooded %llu\n", (unsigned long long)(w->answers - start));
}

static void do_deaf(struct crowd *w)
{
	unsigned sent = 0;

	for (unsigned i = 0; i < w->n; i++)
		for (unsigned k = 0; k < w->window; k++)
			sent += send_call(w, i);
	printf("sent %u\n", sent);
}

static void do_closed(struct crowd *w)
{
	struct pollfd p = { w->channel->fd, POLLIN, 0 };
	struct rdma_cm_event *ev;

	while (reap(w))
		;
	while (poll(&p, 1, 0) > 0 && rdma_get_cm_event(w->channel, &ev) == 0) {
		if (ev->id->context && ev->event == RDMA_CM_EVENT_DISCONNECTED)
			lose(w, ev->id->context);
		rdma_ack_cm_event(ev);
	}
	printf("closed %u\n", w->closed);
}

static void set_message(struct crowd *w, const char *hex)
{
	uint8_t *buf = recv_buf(w, w->max, 0);

	w->message_len = (uint32_t)strlen(hex) / 2;
	if (w->message_len < 24 || HEADER + w->message_len > SIZE) {
		errno = EMSGSIZE;
		die("message");
	}
	for (uint32_t i = 0; i < w->message_len; i++) {
		unsigned byte = 0;
		sscanf(hex + 2 * i, "%2x", &byte);
		buf[HEADER + i] = (uint8_t)byte;
	}
	memcpy(buf, buf + HEADER, 4); /* keeps the xid */
	const uint32_t words[] = { 1, w->window, 0, 0, 0, 0 };
	for (unsigned i = 0; i < 6; i++) {
		uint32_t v = htonl(words[i]);
		memcpy(buf + 4 + 4 * i, &v, 4);
	}
}

static void obey(struct crowd *w, const char *line)
{
	if (!strcmp(line, "round\n"))
		do_round(w);
	else if (!strcmp(line, "flood\n"))
		do_flood(w);
	else if (!strcmp(line, "deaf\n"))
		do_deaf(w);
	else if (!strcmp(line, "closed\n"))
		do_closed(w);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct crowd w = { .to.sin_family = AF_INET, .from.sin_family = AF_INET };
	char line[64];

	if (argc < 7 || inet_pton(AF_INET, argv[1], &w.to.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[3], &w.from.sin_addr) != 1) {
		fprintf(stderr, "crowd HOST PORT SOURCE CONNECTIONS WINDOW MESSAGE [deaf]\n");
		return 2;
	}
	w.to.sin_port = htons((uint16_t)atoi(argv[2]));
	w.max = (unsigned)atoi(argv[4]);
	w.window = (unsigned)atoi(argv[5]);
	w.deaf = argc > 7;
	if (!w.max || !w.window || w.window > WINDOW_MAX)
		return 2;
	w.conns = calloc(w.max, sizeof(*w.conns));
	w.block = calloc((size_t)w.max * w.window + 1, SIZE);
	w.channel = rdma_create_event_channel();
	if (!w.conns || !w.block || !w.channel)
		die("memory");
	set_message(&w, argv[6]);
	setvbuf(stdin, NULL, _IONBF, 0); /* unbuffered, so that poll(2) shows unread input */
	while (w.n < w.max && open_one(&w))
		;
	printf("opened %u\n", w.n);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(&w, line);
	return 0; /* the connections close when the process ends */
}
