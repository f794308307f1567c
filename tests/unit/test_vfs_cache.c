/* SPDX-License-Identifier: BSD-2-Clause */
/* The node cache: its descriptor budget, use by several threads, closing when idle. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs_fixture.h"

#define FILES 1000

static struct vfs_stats stats(const struct fixture *f)
{
	struct vfs_stats st;

	vfs_stats(f->vfs, &st);
	return st;
}

static const char *numbered(unsigned i)
{
	static _Thread_local char name[32];

	snprintf(name, sizeof(name), "f%u", i);
	return name;
}

Test(vfs_cache, the_budget_holds)
{
	static struct vfs_fh fh[FILES];
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, FIX_MAC | FIX_FEW_FDS);
	for (unsigned i = 0; i < FILES; i++) {
		n = must_create(&f.ctx, f.root, numbered(i), 0644);
		cr_assert_geq(vfs_node_fd(&f.ctx, n, VFS_FD_READ), 0);
		fh[i] = *vfs_node_fh(n);
		vfs_node_put(n);
		cr_assert_leq(stats(&f).fds, 32 + 3);
	}
	for (unsigned i = 0; i < FILES; i++) {
		cr_assert_eq(vfs_fh_open(&f.ctx, &fh[i], &n), 0);
		cr_assert(S_ISREG(must_getattr(&f.ctx, n).mode));
		vfs_node_put(n);
		cr_assert_leq(stats(&f).fds, 32 + 3);
	}
	cr_expect_geq(stats(&f).evictions, FILES);
	fixture_close(&f);
}

/*
 * Descriptors of nodes in use may exceed the budget, but leave those reserved for connections free.
 */
Test(vfs_cache, what_requests_hold_is_bounded)
{
	struct vfs_node *held[64];
	unsigned n = 0;
	struct fixture f;
	int rc;

	fixture_open(&f, FIX_FEW_FDS);
	f.cfg.max_fds_most = 48;
	fixture_restart(&f);
	for (unsigned i = 0; i < rn_array_size(held); i++)
		put_file(in_export(&f, numbered(i)), "");
	do {
		const char *name = numbered(n);

		rc = vfs_lookup(&f.ctx, f.root, name, (uint32_t)strlen(name), &held[n], NULL);
	} while (rc == 0 && ++n < rn_array_size(held));
	cr_expect_eq(rc, -RN_EFULL);
	cr_expect_gt(n, 32);
	cr_expect_leq(stats(&f).fds, 48);
	vfs_node_put(held[0]);
	held[0] = must_lookup(&f.ctx, f.root, numbered(63));
	while (n > 0)
		vfs_node_put(held[--n]);
	fixture_close(&f);
}

/*
 * The process runs out of descriptors long before the budget is used up: the cache closes its own.
 */
Test(vfs_cache, emfile_is_never_seen)
{
	struct fixture f;
	struct vfs_node *n;
	struct rlimit lim;
	unsigned i;

	fixture_open(&f, FIX_MAC);
	for (i = 0; i < FILES; i++)
		put_file(in_export(&f, numbered(i)), "");
	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = 64;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	for (i = 0; i < FILES; i++) {
		n = must_lookup(&f.ctx, f.root, numbered(i));
		cr_assert_geq(vfs_node_fd(&f.ctx, n, VFS_FD_READ), 0);
		vfs_node_put(n);
	}
	cr_expect_geq(stats(&f).evictions, 1);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	fixture_close(&f);
}

Test(vfs_cache, descriptors_stay_while_the_node_is_held)
{
	struct fixture f;
	struct vfs_node *held, *n;
	struct stat st;
	int fd;

	fixture_open(&f, FIX_FEW_FDS);
	held = must_create(&f.ctx, f.root, "held", 0644);
	fd = vfs_node_fd(&f.ctx, held, VFS_FD_READ);
	for (unsigned i = 0; i < 200; i++) {
		n = must_create(&f.ctx, f.root, numbered(i), 0644);
		vfs_node_put(n);
	}
	vfs_reap(f.vfs);
	vfs_forget_export(f.vfs, 7);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_ino, must_getattr(&f.ctx, held).fileid);
	cr_expect_eq(vfs_node_fd(&f.ctx, held, VFS_FD_READ), fd);
	vfs_node_put(held);
	fixture_close(&f);
}

Test(vfs_cache, idle_nodes_are_closed)
{
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	f.cfg.idle_seconds = 1;
	fixture_restart(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	vfs_node_put(must_create(&f.ctx, f.root, "b", 0644));
	vfs_reap(f.vfs);
	cr_expect_eq(stats(&f).nodes, 3);
	sleep(3);
	vfs_reap(f.vfs);
	cr_expect_eq(stats(&f).nodes, 2, "what is held stays: the root and a");
	vfs_node_put(n);
	fixture_close(&f);
}

/* Their space is free without waiting for the idle time, unless a client has them open. */
Test(vfs_cache, files_removed_by_a_local_process_are_let_go)
{
	const struct vfs_share_request r = { .access = VFS_SHARE_READ };
	struct vfs_share share = { .file = NULL };
	struct vfs_node *n;
	struct fixture f;
	struct vfs_fh fh;

	fixture_open(&f, 0);
	vfs_node_put(must_create(&f.ctx, f.root, "a", 0644));
	vfs_node_put(must_create(&f.ctx, f.root, "b", 0644));
	n = must_create(&f.ctx, f.root, "open", 0644);
	fh = *vfs_node_fh(n);
	cr_assert_eq(vfs_share_open(&f.ctx, n, &share, &r, NULL), 0);
	vfs_node_put(n);
	cr_assert_eq(unlink(in_export(&f, "a")), 0);
	cr_assert_eq(unlink(in_export(&f, "open")), 0);
	sleep(2);
	vfs_reap(f.vfs);
	cr_expect_eq(stats(&f).nodes, 3, "the root, b, and what is open");
	cr_expect_eq(try_open(&f.ctx, &fh), 0);
	vfs_share_close(&share);
	sleep(2);
	vfs_reap(f.vfs);
	cr_expect_eq(stats(&f).nodes, 2, "not that after its last close");
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	fixture_close(&f);
}

/* True if the file cannot be run, since somebody has it open to write. */
static bool is_text_busy(const struct fixture *f, const char *name)
{
	const char *path = in_export(f, name);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(path, path, NULL);
		_exit(errno == ETXTBSY ? 1 : 0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* A writer that never says that it has closed the file, as with NFSv3, or whose open has ended without a call. */
Test(vfs_cache, descriptors_for_writing_go_soon)
{
	const struct vfs_share_request r = { .access = VFS_SHARE_BOTH };
	struct vfs_share share = { .file = NULL };
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0755);
	cr_assert_geq(vfs_node_fd(&f.ctx, n, VFS_FD_WRITE), 0);
	cr_assert_eq(vfs_share_open(&f.ctx, n, &share, &r, NULL), 0);
	vfs_node_put(n);
	sleep(4);
	vfs_reap(f.vfs);
	cr_expect(is_text_busy(&f, "a"), "it is open to write");
	cr_assert_eq(vfs_share_change(&share, VFS_SHARE_READ, 0, NULL), 0);
	vfs_reap(f.vfs);
	cr_expect_not(is_text_busy(&f, "a"), "no more after a downgrade");
	vfs_share_close(&share);
	n = must_lookup(&f.ctx, f.root, "a");
	cr_assert_geq(vfs_node_fd(&f.ctx, n, VFS_FD_WRITE), 0);
	vfs_node_put(n);
	vfs_reap(f.vfs);
	cr_expect(is_text_busy(&f, "a"), "it was written just now");
	sleep(4);
	vfs_reap(f.vfs);
	cr_expect_not(is_text_busy(&f, "a"));
	fixture_close(&f);
}

Test(vfs_cache, only_files_and_directories_are_opened)
{
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	cr_assert_eq(mkfifo(in_export(&f, "p"), 0666), 0);
	cr_assert_eq(symlink("p", in_export(&f, "l")), 0);
	n = must_lookup(&f.ctx, f.root, "p");
	cr_expect_eq(vfs_node_fd(&f.ctx, n, VFS_FD_READ), -EINVAL);
	vfs_node_put(n);
	n = must_lookup(&f.ctx, f.root, "l");
	cr_expect_eq(vfs_node_fd(&f.ctx, n, VFS_FD_READ), -EINVAL);
	vfs_node_put(n);
	cr_expect_geq(vfs_node_fd(&f.ctx, f.root, VFS_FD_READ), 0);
	cr_expect_eq(vfs_node_fd(&f.ctx, f.root, VFS_FD_WRITE), -EINVAL);
	fixture_close(&f);
}

/*
 * Threads look up, create, remove, rename and open a few shared names while the budget is used up.
 */
struct hammer {
	struct fixture *f;
	unsigned seed;
	_Atomic bool *stop;
	pthread_t thread;
	unsigned surprises;
};

static bool expected_in_a_race(int rc)
{
	return rc == 0 || rc == -ENOENT || rc == -EEXIST || rc == -ESTALE;
}

static bool count_entry(void *arg, const struct vfs_dirent *de)
{
	(void)de;
	return ++*(unsigned *)arg < 50;
}

static int one_blow(struct vfs_ctx *ctx, struct vfs_node *root, unsigned r)
{
	const char *name = numbered(r / 16 % 24);
	uint32_t len = (uint32_t)strlen(name);
	struct vfs_setattr sa = { .set_mode = true, .mode = 0666 };
	struct vfs_node *n = NULL;
	struct vfs_attr a;
	struct vfs_create cr = { .how = VFS_UNCHECKED, .sa = &sa, .attr = &a };
	unsigned count = 0;
	bool eof;
	int rc;

	switch (r % 8) {
	case 0:
		rc = vfs_create(ctx, root, name, len, &cr, &n);
		break;
	case 1:
		return vfs_remove(ctx, root, name, len, NULL);
	case 2:
		return vfs_rename(
			ctx, &(struct vfs_rename){ root, root, name, "f3", len, 2, NULL, NULL });
	case 3:
		return vfs_readdir(ctx, root, 0,
				   &(struct vfs_listing){ .each = count_entry, .arg = &count },
				   &eof);
	default:
		rc = vfs_lookup(ctx, root, name, len, &n, &a);
	}
	if (rc == 0) {
		rc = vfs_node_fd(ctx, n, r % 2 ? VFS_FD_READ : VFS_FD_WRITE);
		rc = rc < 0 ? rc : vfs_setattr(ctx, n, &sa, NULL);
		vfs_node_put(n);
	}
	return rc;
}

static void *hammer(void *arg)
{
	struct hammer *h = arg;
	struct vfs_ctx ctx = as_user(h->f, h->seed % 2 ? 0 : 1000, 100);
	struct rn_fiber fiber;
	struct vfs_worker *w;

	if (vfs_worker_new(h->f->vfs, 0, &w) != 0)
		return NULL;
	rn_fiber_of_thread(&fiber, w);
	ctx.fiber = &fiber;
	while (!atomic_load(h->stop)) {
		int rc = one_blow(&ctx, h->f->root, (unsigned)rand_r(&h->seed) >> 3);

		if (!expected_in_a_race(rc) && rc != -EPERM && h->surprises++ == 0)
			fprintf(stderr, "surprise: %s\n", strerror(-rc));
	}
	vfs_worker_free(w);
	return NULL;
}

Test(vfs_cache, threads)
{
	_Atomic bool stop = false;
	struct hammer h[4];
	struct fixture f;

	fixture_open(&f, FIX_MAC | FIX_FEW_FDS);
	chmod(f.dir, 0777);
	for (unsigned i = 0; i < 4; i++) {
		h[i] = (struct hammer){ .f = &f, .seed = i + 1, .stop = &stop };
		cr_assert_eq(pthread_create(&h[i].thread, NULL, hammer, &h[i]), 0);
	}
	for (unsigned i = 0; i < 30; i++) {
		usleep(50000);
		vfs_reap(f.vfs);
		if (i % 5 == 0)
			vfs_forget_export(f.vfs, 7);
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(h[i].thread, NULL);
		cr_expect_eq(h[i].surprises, 0);
	}
	cr_expect_leq(stats(&f).fds, 32 + 4 * 4);
	fixture_close(&f);
}
