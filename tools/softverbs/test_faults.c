/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults: each is met at the event that the script names, and not before. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/softverbs/test_fixture.h"

/* The process of each test opens its fabric after this. */
static void script(const char *text)
{
	setenv("SOFTVERBS_FAULTS", text, 1);
}

static void ping(struct pair *p, enum ibv_wc_status a, enum ibv_wc_status b)
{
	CHECK_EQ(post_recv(&p->b, 1, 64), 0);
	CHECK_EQ(post_send(&p->a, IBV_WR_SEND, 2, 8), 0);
	expect_wc(&p->a, 2, a);
	expect_wc(&p->b, 1, b);
}

static void fault_drop_connection(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	script("on send 3: drop-connection");
	pair_make(&p, &o);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	ping(&p, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(p.a.qp), IBV_QPS_ERR);
	CHECK_EQ(state_of(p.b.qp), IBV_QPS_ERR);
	pair_free(&p);
}

/* The fault is at the responder, and on the second queue pair only. */
static void drop_at_request(void)
{
	struct options o = DEFAULTS;
	struct pair p, q;

	script("on request 2 qp 2 : drop-connection");
	pair_make(&p, &o); /* 1 and 2 */
	pair_make(&q, &o); /* 3 and 4 */
	for (int i = 0; i < 3; i++)
		ping(&q, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 5, 8, (uintptr_t)p.b.buf, p.b.mr->rkey), 0);
	wait_wc(&p.a);
	while (state_of(p.a.qp) != IBV_QPS_ERR || state_of(p.b.qp) != IBV_QPS_ERR)
		;
	ping(&q, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	pair_free(&p);
	pair_free(&q);
}

static void full_send_queue(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	script("on write 2 times 2: full-sq; on read : fail 12");
	pair_make(&p, &o);
	static const int expected[] = { 0, ENOMEM, ENOMEM, 0 };
	uint64_t at = (uintptr_t)p.b.buf;
	for (int i = 0; i < 4; i++)
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 8, at, p.b.mr->rkey), expected[i]);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 8, at, p.b.mr->rkey), 12);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 8, at, p.b.mr->rkey), 0);
	for (int i = 0; i < 3; i++)
		expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	pair_free(&p);
}

static void fault_rnr(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	o.rnr_retry = 1;
	script("on request 2 : rnr\non request 4 times 2 : rnr");
	pair_make(&p, &o);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS); /* comes twice */
	CHECK_EQ(post_recv(&p.b, 1, 64), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 8), 0);
	expect_wc(&p.a, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_free(&p);
}

static void stop_reading(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	script("on request 2 : stop-reading");
	pair_make(&p, &o);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	CHECK_EQ(post_recv(&p.b, 1, 64), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 8), 0);
	expect_wc(&p.a, 2, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(state_of(p.b.qp), IBV_QPS_RTS);
	pair_free(&p);
}

static void fault_device_removed(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	int n;

	script("on send 2 : device-removed");
	pair_make(&p, &o);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	struct ibv_device **list = ibv_get_device_list(&n);
	CHECK_EQ(n, 1);
	ibv_free_device_list(list);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 8), 0);
	expect_event(p.ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK_EQ(wait_wc(&p.a).wr_id, 2);
	while (state_of(p.a.qp) != IBV_QPS_ERR || state_of(p.b.qp) != IBV_QPS_ERR)
		;
	list = ibv_get_device_list(&n);
	CHECK(list && n == 0);
	ibv_free_device_list(list);
	CHECK(!ibv_reg_mr(p.pd, p.a.buf, 8, 0));
	pair_free(&p);
}

static void registration_fails(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	script("on reg-mr 3 every 2 times 2 : fail 105");
	pair_make(&p, &o); /* registers two */
	for (int i = 3; i < 8; i++) {
		errno = 0;
		struct ibv_mr *mr = ibv_reg_mr(p.pd, p.a.buf, 8, 0);
		if (i == 3 || i == 5)
			CHECK(!mr && errno == 105);
		else
			CHECK(mr && ibv_dereg_mr(mr) == 0);
	}
	pair_free(&p);
}

/* Completions of two queue pairs in one queue; the first is held until the second's has come. */
static void reorder(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	script("on completion qp 1 : reorder");
	pair_make(&p, &o);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 8, (uintptr_t)p.b.buf, p.b.mr->rkey), 0);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 2, 8, (uintptr_t)p.b.buf, p.b.mr->rkey), 0);
	CHECK_EQ(post_rdma(&p.b, IBV_WR_RDMA_WRITE, 3, 8, (uintptr_t)p.a.buf, p.a.mr->rkey), 0);
	expect_wc(&p.b, 3, IBV_WC_SUCCESS);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS); /* in their own order */
	expect_wc(&p.a, 2, IBV_WC_SUCCESS);
	pair_free(&p);
}

static void delay(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_wc wc;

	script("on completion qp 1 : delay 50ms");
	pair_make(&p, &o);
	CHECK_EQ(post_recv(&p.b, 1, 64), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 8), 0);
	expect_wc(&p.b, 1, IBV_WC_SUCCESS);
	/* The data have arrived, the sender does not know yet, and later requests wait. */
	CHECK_EQ(post_recv(&p.b, 3, 64), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 4, 8), 0);
	expect_wc(&p.b, 3, IBV_WC_SUCCESS);
	expect_wc(&p.a, 2, IBV_WC_SUCCESS);
	expect_wc(&p.a, 4, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_poll_cq(p.a.cq, 1, &wc), 0);
	pair_free(&p);
}

static void fault_by_process_name(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	setenv("SOFTVERBS_NAME", "client", 1);
	script("in server on send : drop-connection; in client on send 2 : drop-connection");
	pair_make(&p, &o);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	ping(&p, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	pair_free(&p);
}

static unsigned long count_failures(void)
{
	struct ibv_context *ctx = open_device(0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	unsigned long pattern = 0;
	char c;

	for (int i = 0; i < 64; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, &c, 1, 0);
		pattern = pattern << 1 | (mr ? 0 : 1);
		if (mr)
			ibv_dereg_mr(mr);
	}
	return pattern;
}

/* Random faults are the same in each run with the same seed. */
static void by_chance(void)
{
	int fd[2];
	unsigned long first, second;

	script("on reg-mr chance 4 seed 7 : fail");
	CHECK_EQ(pipe(fd), 0);
	for (int i = 0; i < 2; i++) {
		if (fork() != 0)
			continue;
		unsigned long n = count_failures();
		CHECK_EQ(write(fd[1], &n, sizeof(n)), sizeof(n));
		_exit(0);
	}
	CHECK_EQ(read(fd[0], &first, sizeof(first)), sizeof(first));
	CHECK_EQ(read(fd[0], &second, sizeof(second)), sizeof(second));
	CHECK(wait(NULL) > 0 && wait(NULL) > 0);
	CHECK_EQ(first, second);
	CHECK(__builtin_popcountl(first) > 4 && __builtin_popcountl(first) < 40);
}

static void bad_scripts(void)
{
	static const char *const bad[] = {
		"on send drop-connection",
		"on : drop-connection",
		"send : drop-connection",
		"on send 0 : drop-connection",
		"on send : rnr",
		"on completion : full-sq",
		"on send : delay",
		"on send : delay 5",
		"on reg-mr : fail 99999",
		"on send qp : drop-connection",
		"on send : explode",
		"on send : full-sq now",
		"on send chance x : full-sq",
		"on send : full-sq; nonsense",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			int n;
			fclose(stderr);
			script(bad[i]);
			_exit(ibv_get_device_list(&n) ? 1 : 0);
		}
		int status;
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
}

/* Finds the slot whose file names this process. */
static int own_slot(void)
{
	char path[128];
	int pid = 0;

	for (int i = 0; i < 256; i++) {
		snprintf(path, sizeof(path), "%.60s/slot.%d", getenv("SOFTVERBS_DIR"), i);
		FILE *f = fopen(path, "r");
		bool mine = f && fscanf(f, "%d", &pid) == 1 && pid == getpid();
		if (f)
			fclose(f);
		if (mine)
			return i;
	}
	test_fail(__FILE__, __LINE__, "no slot");
	return -1;
}

static void control(const char *command, const char *answer)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX }, from = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char buf[256];

	snprintf(to.sun_path, sizeof(to.sun_path), "%.60s/ctl.%d", getenv("SOFTVERBS_DIR"),
		 own_slot());
	CHECK_EQ(bind(fd, (struct sockaddr *)&from, sizeof(sa_family_t)), 0);
	CHECK(sendto(fd, command, strlen(command), 0, (struct sockaddr *)&to, sizeof(to)) > 0);
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);
	CHECK(n > 0);
	buf[n] = '\0';
	if (strncmp(buf, answer, strlen(answer)) != 0)
		fprintf(stderr, "%s", buf);
	CHECK(strncmp(buf, answer, strlen(answer)) == 0);
	close(fd);
}

/* A test arms a fault in a process that runs. */
static void control_socket(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	control("on send 2 : drop-connection", "ok");
	control("on nothing : fail", "not a fault: on nothing");
	control("status", "qps 2 mrs 2 pds_cqs 3 rules 1 fired 0 connected 2");
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	control("clear", "ok");
	ping(&p, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	control("on send : drop-connection", "ok");
	ping(&p, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	control("status", "qps 2 mrs 2 pds_cqs 3 rules 1 fired 1 connected 2");
	pair_free(&p);
	control("status", "qps 0 mrs 0 pds_cqs 0 rules 1 fired 1 connected 2");
}

static const struct test tests[] = {
	{ "drop_connection", fault_drop_connection },
	{ "drop_at_request", drop_at_request },
	{ "full_send_queue", full_send_queue },
	{ "receiver_not_ready", fault_rnr },
	{ "stop_reading", stop_reading },
	{ "device_removed", fault_device_removed },
	{ "registration_fails", registration_fails },
	{ "reorder", reorder },
	{ "delay", delay },
	{ "by_name", fault_by_process_name },
	{ "by_chance", by_chance },
	{ "bad_scripts", bad_scripts },
	{ "control_socket", control_socket },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return test_main(tests, argc, argv);
}
