/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delegations are given and ended while other threads change the files: no change is made while
 * somebody else has a delegation, and no recall comes after the end.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/share.h"
#include "vfs_fixture.h"

#define GIVERS 2u
#define CHANGERS 2u
#define ROUNDS 4000u
#define PAUSE_US 50

static struct fixture f;
static struct vfs_node *n;
static _Atomic unsigned changed, given, recalled, refused;

struct deleg {
	struct vfs_deleg d;
	_Atomic bool over;
	_Atomic unsigned recalls;
};

static void on_recall(struct vfs_deleg *vd)
{
	struct deleg *d = (struct deleg *)vd;

	cr_assert_not(atomic_load(&d->over));
	cr_assert_eq(atomic_fetch_add(&d->recalls, 1), 0);
	atomic_fetch_add(&recalled, 1);
}

static const struct vfs_deleg_ops ops = { .recall = on_recall };

static void hold(struct deleg *d)
{
	const unsigned before = atomic_load(&changed);

	atomic_fetch_add(&given, 1);
	for (unsigned i = 0; i < 4; i++)
		sched_yield();
	cr_assert_eq(atomic_load(&changed), before, "changed under a delegation");
	vfs_deleg_end(&d->d);
	atomic_store(&d->over, true);
}

static void *give_main(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct deleg d = { .d = { .ops = &ops, .client = arg, .type = VFS_DELEG_READ } };
		int rc = vfs_deleg_give(&f.ctx, n, &d.d);

		if (rc == 0)
			hold(&d);
		else
			cr_assert_eq(rc, -RN_ENOTNOW);
		if (i % 4 == 0)
			usleep(PAUSE_US); /* the others' turn */
	}
	return NULL;
}

static void *change_main(void *arg)
{
	struct vfs_ctx ctx = f.ctx;

	ctx.client = arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct vfs_file_change c;

		if (vfs_file_change_begin(&ctx, n, &c) != 0) {
			atomic_fetch_add(&refused, 1);
			sched_yield();
			continue;
		}
		atomic_fetch_add(&changed, 1);
		vfs_file_change_end(&c);
		sched_yield();
	}
	return NULL;
}

static void *share_main(void *arg)
{
	const struct vfs_share_request r = { .access = VFS_SHARE_WRITE };
	struct vfs_ctx ctx = f.ctx;

	ctx.client = arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct vfs_share s;

		if (vfs_share_open(&ctx, n, &s, &r, NULL) == 0) {
			atomic_fetch_add(&changed, 1);
			vfs_share_close(&s);
		}
		sched_yield();
	}
	return NULL;
}

Test(vfs_deleg_threads, no_change_under_a_delegation, .timeout = 240)
{
	static int clients[GIVERS + CHANGERS + 1];
	pthread_t id[GIVERS + CHANGERS + 1];

	fixture_open(&f, 0);
	f.vfs->cfg.deleg_quiet_seconds = 0; /* a recall keeps nobody waiting */
	vfs_export_set_nfs_only(f.exp, true);
	n = must_create(&f.ctx, f.root, "file", 0644);
	for (unsigned i = 0; i < GIVERS + CHANGERS + 1; i++) {
		void *(*start)(void *) = i < GIVERS		 ? give_main
					 : i < GIVERS + CHANGERS ? change_main
								 : share_main;

		cr_assert_eq(pthread_create(&id[i], NULL, start, &clients[i]), 0);
	}
	for (unsigned i = 0; i < GIVERS + CHANGERS + 1; i++)
		pthread_join(id[i], NULL);
	cr_expect_gt(given, 0u);
	cr_expect_gt(changed, 0u);
	cr_expect_gt(recalled, 0u);
	cr_expect_gt(refused, 0u);
	cr_expect_eq(atomic_load(&f.vfs->files->delegs), 0);
	vfs_node_put(n);
	fixture_close(&f);
}
