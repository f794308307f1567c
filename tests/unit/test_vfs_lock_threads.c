/* SPDX-License-Identifier: BSD-2-Clause */
/* Several workers use the same files: a write lock excludes all other locks, and deny bits exclude
 * other opens. Files come and go, and lose their links, while threads use them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/export/mounts.h"
#include "vfs/lock.h"
#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs_fixture.h"

#define THREADS 4u
#define FILES 3u
#define BYTES 8u
#define ROUNDS 3000u

static struct fixture f;
static _Atomic int writers[FILES][BYTES], readers[FILES][BYTES], exclusive[FILES], using[FILES];
static struct vfs_fh fh[FILES];

struct holder {
	struct vfs_holder holder;
	_Atomic int refs;
};

static void holder_ref(struct vfs_holder *h)
{
	atomic_fetch_add(&((struct holder *)h)->refs, 1);
}

static void holder_put(struct vfs_holder *h)
{
	atomic_fetch_sub(&((struct holder *)h)->refs, 1);
}

static const struct vfs_holder_ops ops = { .ref = holder_ref, .put = holder_put };

struct thread {
	pthread_t id;
	unsigned seed;
	struct vfs_ctx ctx;
	struct holder holder;
	unsigned got, refused;
};

static unsigned rnd(struct thread *t, unsigned below)
{
	return (unsigned)rand_r(&t->seed) % below;
}

static void count_refusal(struct thread *t, int rc, int expected, struct vfs_conflict *c)
{
	cr_assert(rc == expected, "%d", rc);
	vfs_conflict_put(c);
	t->refused++;
}

static void use_lock(struct thread *t, struct vfs_node *n, struct vfs_file *file, unsigned i)
{
	unsigned type = 1 + rnd(t, 2), byte = rnd(t, BYTES);
	struct vfs_lock_request r = {
		.type = type, .offset = byte, .length = 1, .waiter = rnd(t, 4)
	};
	struct vfs_conflict c = { 0 };
	struct vfs_lock_owner o;
	int rc;

	vfs_lock_owner_init(&o, file, &t->holder.holder);
	rc = vfs_lock(&t->ctx, n, &o, &r, &c);
	if (rc != 0) {
		count_refusal(t, rc, -RN_EDENIED, &c);
		vfs_lock_remember_waiter(file, &r, NULL);
	} else {
		t->got++;
		atomic_fetch_add(type == VFS_LOCK_WRITE ? &writers[i][byte] : &readers[i][byte], 1);
		cr_assert_leq(atomic_load(&writers[i][byte]), type == VFS_LOCK_WRITE);
		cr_assert(type != VFS_LOCK_WRITE || atomic_load(&readers[i][byte]) == 0);
		atomic_fetch_sub(type == VFS_LOCK_WRITE ? &writers[i][byte] : &readers[i][byte], 1);
		cr_assert_eq(vfs_unlock(&t->ctx, &o, 0, UINT64_MAX), 0);
	}
	vfs_lock_owner_end(&o);
}

static void use_share(struct thread *t, struct vfs_node *n, unsigned i)
{
	uint8_t deny = rnd(t, 4) == 0 ? VFS_SHARE_BOTH : 0;
	struct vfs_conflict c = { 0 };
	struct vfs_share s;
	int rc = vfs_share_open(
		&t->ctx, n, &s,
		&(struct vfs_share_request){ &t->holder.holder, VFS_SHARE_BOTH, deny }, &c);

	if (rc != 0) {
		count_refusal(t, rc, -RN_ESHARE, &c);
		return;
	}
	t->got++;
	atomic_fetch_add(deny ? &exclusive[i] : &using[i], 1);
	cr_assert(!deny || atomic_load(&using[i]) == 0);
	cr_assert_leq(atomic_load(&exclusive[i]), deny != 0);
	use_lock(t, n, s.file, i);
	atomic_fetch_sub(deny ? &exclusive[i] : &using[i], 1);
	vfs_share_close(&s);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	struct rn_fiber fiber;
	struct vfs_worker *w;
	struct vfs_node *n;

	t->ctx = f.ctx;
	t->holder.holder.ops = &ops;
	cr_assert_eq(vfs_worker_new(f.vfs, 0, &w), 0);
	rn_fiber_of_thread(&fiber, w);
	t->ctx.fiber = &fiber;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = rnd(t, FILES);

		cr_assert_eq(vfs_fh_open(&t->ctx, &fh[i], &n), 0);
		use_share(t, n, i);
		vfs_node_put(n);
	}
	vfs_worker_free(w);
	return NULL;
}

static void check_exclusion(bool remote)
{
	static const char *const name[FILES] = { "a", "b", "c" };
	struct thread t[THREADS];
	struct vfs_file_stats st;
	unsigned got = 0, refused = 0;

	fixture_open(&f, 0);
	f.exp->root_mnt->fs.local = !remote;
	for (unsigned i = 0; i < FILES; i++) {
		struct vfs_node *n = must_create(&f.ctx, f.root, name[i], 0644);

		fh[i] = *vfs_node_fh(n);
		vfs_node_put(n);
	}
	memset(t, 0, sizeof(t));
	for (unsigned i = 0; i < THREADS; i++) {
		t[i].seed = i + 1;
		cr_assert_eq(pthread_create(&t[i].id, NULL, run, &t[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(t[i].id, NULL);
		cr_expect_eq(atomic_load(&t[i].holder.refs), 0);
		got += t[i].got;
		refused += t[i].refused;
	}
	cr_expect_gt(got, THREADS * ROUNDS / 4);
	cr_log_info("%u had, %u refused", got, refused);
	vfs_file_stats(f.vfs, &st);
	cr_expect_eq(st.files + st.shares + st.locks + st.held + st.unheld + st.waiters, 0);
	fixture_close(&f);
}

Test(vfs_lock_threads, exclusion)
{
	check_exclusion(false);
}

Test(vfs_lock_threads, exclusion_on_a_remote_file_system)
{
	check_exclusion(true);
}

/* One thread removes an open file's last link while others open and close it. */
static _Atomic bool stop;

static void *open_and_close(void *arg)
{
	struct thread *t = arg;
	struct rn_fiber fiber;
	struct vfs_worker *w;
	struct vfs_node *n;
	struct vfs_share s;
	struct vfs_attr attr;

	t->ctx = f.ctx;
	cr_assert_eq(vfs_worker_new(f.vfs, 0, &w), 0);
	rn_fiber_of_thread(&fiber, w);
	t->ctx.fiber = &fiber;
	while (!atomic_load(&stop)) {
		if (vfs_lookup(&t->ctx, f.root, "x", 1, &n, NULL) != 0)
			continue;
		if (vfs_share_open(&t->ctx, n, &s, &(struct vfs_share_request){ NULL, 1, 0 },
				   NULL) == 0) {
			t->got++;
			for (unsigned i = 0; i < 3; i++)
				cr_assert_eq(vfs_getattr(&t->ctx, n, &attr), 0, "open and gone");
			vfs_share_close(&s);
		}
		vfs_node_put(n);
	}
	vfs_worker_free(w);
	return NULL;
}

Test(vfs_lock_threads, open_files_are_never_gone)
{
	struct thread t[THREADS];
	struct vfs_file_stats st;

	fixture_open(&f, FIX_FEW_FDS);
	memset(t, 0, sizeof(t));
	atomic_store(&stop, false);
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&t[i].id, NULL, open_and_close, &t[i]), 0);
	for (unsigned i = 0; i < 300; i++) {
		struct vfs_node *n = must_create(&f.ctx, f.root, "x", 0644);

		vfs_node_put(n);
		cr_assert_eq(vfs_remove(&f.ctx, f.root, "x", 1, NULL), 0);
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	vfs_file_stats(f.vfs, &st);
	cr_expect_eq(st.files + st.shares + st.held, 0);
	fixture_close(&f);
}
