/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/softverbs/test_fixture.h"

#define LIMIT_SEC 60 /* for one test: one that waits for what does not come */

void test_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	_exit(1);
}

void test_fail_eq(const char *file, int line, const char *what, long long a, long long b)
{
	fprintf(stderr, "%s:%d: %s: %lld, %lld\n", file, line, what, a, b);
	_exit(1);
}

/* In a process of its own: a failure or a crash does not end the others. */
static bool test_run(const struct test *t, const char *dir)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(LIMIT_SEC);
		setenv("SOFTVERBS_DIR", dir, 1);
		t->fn();
		exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static bool is_asked_for(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

/* Removes the files that test processes leave in their fabric. */
static void remove_dir(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(path);
}

int test_main(const struct test *tests, int argc, char **argv)
{
	char dir[] = "/tmp/softverbs-test-XXXXXX";
	unsigned passed = 0, failed = 0;

	CHECK(mkdtemp(dir));

	for (; tests->name; tests++) {
		if (!is_asked_for(tests->name, argc, argv))
			continue;
		bool ok = test_run(tests, dir);
		printf("%s %s\n", ok ? "ok" : "FAIL", tests->name);
		passed += ok;
		failed += !ok;
	}
	remove_dir(dir);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

struct ibv_context *open_device(unsigned index)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list && (unsigned)n > index);
	struct ibv_context *ctx = ibv_open_device(list[index]);
	CHECK(ctx);
	ibv_free_device_list(list);
	return ctx;
}

void end_make(struct end *e, struct ibv_pd *pd, const struct options *o, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.srq = srq,
		.sq_sig_all = o->sig_all,
		.cap = { o->send_wr, o->recv_wr, o->sge, o->sge, o->inline_data },
	};

	e->channel = ibv_create_comp_channel(pd->context);
	CHECK(e->channel);
	e->cq = ibv_create_cq(pd->context, o->cqe, e, e->channel, 0);
	CHECK(e->cq);
	attr.send_cq = attr.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &attr);
	CHECK(e->qp);
	e->buf = calloc(1, BUF_SIZE);
	CHECK(e->buf);
	e->mr = ibv_reg_mr(pd, e->buf, BUF_SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(e->mr);
}

void end_free(struct end *e)
{
	if (e->qp)
		CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	if (e->cq)
		CHECK_EQ(ibv_destroy_cq(e->cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(e->channel), 0);
	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	free(e->buf);
}

void end_init(struct end *e, const struct options *o)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = o->access };

	CHECK_EQ(
		ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
}

void end_connect(struct end *e, uint32_t peer, const struct options *o)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = o->dest_rd_atomic,
		.min_rnr_timer = 1,
		.ah_attr = { .dlid = 1, .port_num = 1 },
	};

	CHECK_EQ(ibv_modify_qp(e->qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER),
		 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 10;
	attr.retry_cnt = 3;
	attr.rnr_retry = o->rnr_retry;
	attr.max_rd_atomic = o->rd_atomic;
	CHECK_EQ(ibv_modify_qp(e->qp, &attr,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		 0);
}

void pair_make(struct pair *p, const struct options *o)
{
	p->ctx = open_device(o->device);
	p->pd = ibv_alloc_pd(p->ctx);
	CHECK(p->pd);
	end_make(&p->a, p->pd, o, NULL);
	end_make(&p->b, p->pd, o, o->srq);
	end_init(&p->a, o);
	end_init(&p->b, o);
	end_connect(&p->a, p->b.qp->qp_num, o);
	end_connect(&p->b, p->a.qp->qp_num, o);
}

void pair_free(struct pair *p)
{
	end_free(&p->a);
	end_free(&p->b);
	CHECK_EQ(ibv_dealloc_pd(p->pd), 0);
	CHECK_EQ(ibv_close_device(p->ctx), 0);
}

int post_wr(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(e->qp, wr, &bad);

	if (err)
		CHECK(bad);
	return err;
}

int post_rdma(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len, uint64_t raddr,
	      uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { raddr, rkey },
	};

	return post_wr(e, &wr);
}

int post_send(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len)
{
	return post_rdma(e, op, id, len, 0, 0);
}

int post_recv(struct end *e, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

struct ibv_wc wait_wc(struct end *e)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (n == 0);
	CHECK_EQ(n, 1);
	return wc;
}

struct ibv_wc expect_wc(struct end *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(e);

	CHECK_EQ(wc.wr_id, id);
	CHECK_EQ(wc.status, status);
	CHECK_EQ(wc.qp_num, e->qp->qp_num);
	return wc;
}

void expect_event(struct ibv_context *ctx, enum ibv_event_type type, void *object)
{
	struct ibv_async_event ev;

	CHECK_EQ(ibv_get_async_event(ctx, &ev), 0);
	CHECK_EQ(ev.event_type, type);
	if (object)
		CHECK(ev.element.qp == object);
	ibv_ack_async_event(&ev);
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

bool is_filled(const uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(i * 7 + (i >> 8) + seed))
			return false;
	return true;
}
