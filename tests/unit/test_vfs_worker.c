/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/inbox.h"
#include "tests/unit/vfs_io_fixture.h"
#include "vfs/worker/worker_state.h"

TestSuite(vfs_worker, .timeout = 120);

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

Test(vfs_worker, waiting_ends)
{
	for (int how = FX_FIXED; how < FX_HOWS; how += 2) {
		struct fx f;
		double t;

		fx_open(&f, (enum fx_how)how, VFS_IO_BUFFERED, NULL);
		t = now();
		cr_assert_eq(vfs_worker_wait(f.w, 60), -ETIME);
		cr_assert_geq(now() - t, 0.055);
		cr_assert_eq(vfs_worker_wait(f.w, 0), -ETIME);
		cr_assert_eq(vfs_worker_poll(f.w), 0);
		fx_close(&f);
	}
}

struct letters {
	struct rn_inbox in;
	struct rn_inbox_node node[4][2000];
	unsigned taken, woken;
};

static void letters_ready(void *ctx)
{
	struct letters *l = ctx;

	l->woken++;
	for (struct rn_inbox_node *n = rn_inbox_take(&l->in); n; n = n->next)
		l->taken++;
}

struct sender {
	struct letters *l;
	unsigned i;
};

static void *send_letters(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < 2000; i++) {
		rn_inbox_post(&s->l->in, &s->l->node[s->i][i]);
		if (i % 100 == 0)
			usleep(200);
	}
	return NULL;
}

/* The inbox writes its eventfd only when it becomes non-empty, so the loop stops for good if it
 * loses one wake-up. */
static void check_watch(enum fx_how how)
{
	struct letters *l = calloc(1, sizeof(*l));
	struct sender s[4];
	pthread_t t[4];
	struct fx f;

	fx_open(&f, how, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(rn_inbox_init(&l->in), 0);
	cr_assert_eq(vfs_worker_watch(f.w, l->in.fd, letters_ready, l), 0);
	cr_assert_eq(vfs_worker_watch(f.w, l->in.fd, letters_ready, l), -EBUSY);
	cr_assert_eq(vfs_worker_wait(f.w, 10), -ETIME);
	for (unsigned i = 0; i < 4; i++) {
		s[i] = (struct sender){ l, i };
		cr_assert_eq(pthread_create(&t[i], NULL, send_letters, &s[i]), 0);
	}
	while (l->taken < 8000)
		cr_assert_eq(vfs_worker_wait(f.w, 5000), 0, "a wake-up was lost");
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	cr_assert_eq(l->taken, 8000);
	/* One spare wake-up may be left, and none after it. */
	vfs_worker_poll(f.w);
	vfs_worker_poll(f.w);
	cr_assert_eq(vfs_worker_wait(f.w, 10), -ETIME);
	fx_close(&f);
	rn_inbox_fini(&l->in);
	free(l);
}

Test(vfs_worker, watch_ring)
{
	check_watch(FX_FIXED);
}

Test(vfs_worker, watch_syscall)
{
	check_watch(FX_SYSCALL);
}

#define MANY 600u

struct reading {
	struct vfs_io io;
	int64_t result;
	bool finished;
};

static void read_in_fiber(struct vfs_ctx *ctx, void *arg)
{
	struct reading *r = arg;

	r->io.ctx = ctx;
	r->result = vfs_read(&r->io);
	r->finished = true;
}

/* Many more operations than the ring and its completion queue have entries. */
Test(vfs_worker, more_operations_than_entries)
{
	struct reading *r = calloc(MANY, sizeof(*r));
	uint8_t *data = malloc(MANY * 100);
	struct vfs_node *n;
	struct fx f;

	fx_open_entries(&f, 8, VFS_IO_BUFFERED, NULL);
	fx_fill(data, MANY * 100, 0, 1);
	n = fx_file(&f, "file", data, MANY * 100);
	for (unsigned i = 0; i < MANY; i++) {
		r[i].io = (struct vfs_io){ .node = n, .offset = i * 100UL, .count = 100 };
		r[i].io.payload = rn_payload_get(f.pool, 100);
		cr_assert_not_null(r[i].io.payload);
		fx_start(&f, read_in_fiber, &r[i]);
	}
	cr_assert_eq(vfs_worker_in_flight(f.w), MANY);
	for (unsigned i = 0; i < MANY; i++) {
		fx_run(&f, &r[i].finished);
		cr_assert_eq(r[i].result, 100);
		cr_assert_eq(memcmp(r[i].io.payload->data, data + i * 100UL, 100), 0);
		rn_payload_put(r[i].io.payload);
	}
	vfs_node_put(n);
	fx_close(&f);
	free(data);
	free(r);
}

/* Installs a seccomp filter as containers have. */
static void forbid_io_uring(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		cr_skip_test("no seccomp: %s", strerror(errno));
}

static void check_without_io_uring(int error)
{
	struct vfs_worker *w = NULL;
	struct vfs_node *n;
	char out[10];
	struct fx f;
	bool eof;

	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	forbid_io_uring(error);
	cr_assert_eq(vfs_worker_new(f.vfs, 64, &w), 0);
	cr_assert_not(vfs_worker_has_ring(w));
	vfs_worker_free(f.w);
	f.w = w;
	f.fiber.worker = w;
	n = fx_file(&f, "file", "hello", 5);
	cr_assert_eq(fx_write(&f, n, 4, "ish", 3, VFS_FILE_SYNC), 3);
	cr_assert_eq(fx_read(&f, n, 0, 10, out, &eof), 7);
	cr_assert_eq(memcmp(out, "hellish", 7), 0);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_worker, io_uring_forbidden)
{
	check_without_io_uring(EPERM);
}

Test(vfs_worker, io_uring_not_there)
{
	check_without_io_uring(ENOSYS);
}

static void drop_cap(int cap)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	cr_assert_eq(syscall(SYS_capget, &h, d), 0);
	d[CAP_TO_INDEX(cap)].effective &= ~CAP_TO_MASK(cap);
	cr_assert_eq(syscall(SYS_capset, &h, d), 0);
}

static bool has_cap(int cap)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	cr_assert_eq(syscall(SYS_capget, &h, d), 0);
	return d[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

/* A slab that cannot be locked in memory is used without registration, and registration is not
 * tried again. */
Test(vfs_worker, locked_memory_limit)
{
	struct rlimit few = { 1u << 20, 1u << 20 };
	struct vfs_node *n;
	char out[10];
	struct fx f;
	bool eof;

	fx_need_root();
	drop_cap(CAP_IPC_LOCK);
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &few), 0);
	fx_open_entries(&f, 8, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "hello", 5);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(fx_write(&f, n, 4, "ish", 3, VFS_FILE_SYNC), 3);
		cr_assert_eq(fx_read(&f, n, 0, 10, out, &eof), 7);
		cr_assert_eq(memcmp(out, "hellish", 7), 0);
		cr_assert_eq(f.w->slab[0], VFS_SLAB_REFUSED);
	}
	vfs_node_put(n);
	fx_close(&f);
}

static void *use_worker(void *arg)
{
	struct fx *f = arg;
	struct vfs_worker *w;

	cr_assert_eq(vfs_worker_new(f->vfs, 64, &w), 0);
	cr_assert_not(has_cap(CAP_SYS_RESOURCE));
	cr_assert(has_cap(CAP_DAC_READ_SEARCH));
	cr_assert(has_cap(CAP_SETUID));
	vfs_worker_free(w);
	return NULL;
}

Test(vfs_worker, capabilities_of_its_thread_only)
{
	struct vfs_config cfg = { .max_fds = 100 };
	struct rn_budget budget;
	pthread_t t;
	struct fx f;

	fx_need_root();
	if (!has_cap(CAP_SYS_RESOURCE))
		cr_skip_test("needs CAP_SYS_RESOURCE");
	rn_budget_init(&budget, 64u << 20);
	cfg.pool = rn_payload_pool_new(&budget);
	cr_assert_eq(vfs_new(&cfg, &f.vfs), 0);
	cr_assert_eq(pthread_create(&t, NULL, use_worker, &f), 0);
	pthread_join(t, NULL);
	cr_assert(has_cap(CAP_SYS_RESOURCE));
	vfs_free(f.vfs);
	rn_payload_pool_free(cfg.pool);
}

struct writer {
	struct fx f;
	struct vfs_node *n;
	unsigned which;
};

/* Each thread uses its own worker, and its own half of one file. */
static void *write_half(void *arg)
{
	struct writer *wr = arg;
	struct fx *f = &wr->f;
	static _Thread_local uint8_t data[70000], back[70000];
	bool eof;

	cr_assert_eq(vfs_worker_new(f->vfs, 64, &f->w), 0);
	rn_fiber_of_thread(&f->fiber, f->w);
	f->ctx.fiber = &f->fiber;
	fx_user(f, 1000 + wr->which);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t at = wr->which * (8UL << 20) + i * 70000UL;

		fx_fill(data, sizeof(data), at, wr->which);
		cr_assert_eq(fx_write(f, wr->n, at, data, sizeof(data), i % 3), 70000);
		cr_assert_eq(fx_read(f, wr->n, at, sizeof(back), back, &eof), 70000);
		cr_assert_eq(memcmp(data, back, sizeof(data)), 0);
		cr_assert_eq(fx_commit(f, wr->n, at, 70000), 0);
	}
	cr_assert_eq(vfs_identity_root(&f->w->identity), 0);
	vfs_worker_free(f->w);
	return NULL;
}

Test(vfs_worker, two_workers_one_file)
{
	struct writer wr[2];
	pthread_t t[2];
	struct fx f;

	fx_open(&f, FX_FIXED, VFS_IO_BUFFERED, NULL);
	wr[0] = (struct writer){ f, fx_file(&f, "file", "", 0), 0 };
	wr[1] = (struct writer){ f, wr[0].n, 1 };
	cr_assert_eq(chmod(fx_path(&f, "file"), 0666), 0);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, write_half, &wr[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	vfs_node_put(wr[0].n);
	fx_close(&f);
}
