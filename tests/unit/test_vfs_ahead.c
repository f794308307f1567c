/* SPDX-License-Identifier: BSD-2-Clause */
/* Listings whose names helper threads look at, too: they show what listings without helpers show. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs_fixture.h"

#define FILES 1500u
#define ROUNDS 200u

/* Takes entries and looks at each. */
struct taker {
	struct fixture *f;
	struct vfs_ctx *ctx;
	struct vfs_node *dir;
	unsigned room, taken;
	unsigned ahead; /* entries that a helper has looked at */
	unsigned looked, refused, gone, wrong;
	bool slow; /* let helpers come first */
	void (*between)(struct taker *t);
};

static void check(struct taker *t, const struct vfs_dirent *de, const struct vfs_fh *fh,
		  const struct vfs_attr *a)
{
	struct vfs_attr by_handle;
	struct vfs_node *n;
	int rc = vfs_fh_open(t->ctx, fh, &n);

	if (rc == 0) {
		rc = vfs_getattr(t->ctx, n, &by_handle);
		vfs_node_put(n);
	}
	/* Gone: it is checked that it names no other file. */
	if (rc == 0 && (by_handle.fileid != a->fileid || by_handle.fsid != a->fsid))
		t->wrong++;
	if (rc != 0 && rc != -ESTALE)
		t->wrong++;
	if (a->fileid != de->fileid && strcmp(de->name, "..") != 0 && !t->between)
		t->wrong++;
}

static bool take(void *arg, const struct vfs_dirent *de)
{
	struct taker *t = arg;
	struct vfs_attr a;
	struct vfs_fh fh;
	int rc;

	if (t->taken == t->room)
		return false;
	t->taken++;
	t->ahead += de->shown != NULL;
	if (t->slow)
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	rc = vfs_peek_entry(t->ctx, t->dir, de, &fh, &a);
	if (rc == 0) {
		t->looked++;
		if (t->taken % 10 == 0)
			check(t, de, &fh, &a);
	}
	t->refused += rc == -EACCES;
	t->gone += rc == -ENOENT;
	if (t->between && t->taken == 5)
		t->between(t);
	return true;
}

static unsigned expect(void *arg)
{
	const struct taker *t = arg;

	return t->room - t->taken;
}

static int list(struct taker *t)
{
	const struct vfs_listing to = { .each = take, .expect = expect, .arg = t, .looks = true };
	bool eof;

	t->taken = 0;
	return vfs_readdir(t->ctx, t->dir, 0, &to, &eof);
}

static void fill(const struct fixture *f, const char *dir, unsigned n)
{
	char name[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/f%u", dir, i);
		close(open(in_export(f, name), O_CREAT | O_WRONLY, 0644));
	}
}

Test(vfs_ahead, helpers_show_what_the_worker_would)
{
	struct fixture f;
	struct taker t = { .f = &f, .room = UINT32_MAX };

	fixture_open(&f, FIX_MAC | FIX_HELPERS);
	fill(&f, ".", FILES);
	t.ctx = &f.ctx;
	t.dir = f.root;
	for (unsigned i = 0; i < ROUNDS && t.ahead < FILES; i++) {
		cr_assert_eq(list(&t), 0);
		cr_expect_eq(t.taken, FILES + 2);
	}
	cr_expect_eq(t.wrong, 0);
	cr_expect_eq(t.refused + t.gone, 0);
	cr_expect_geq(t.ahead, FILES, "helpers have looked at %u names", t.ahead);
	fixture_close(&f);
}

/* A user who may read the directory, but not search it, has no look by the helpers' rights. */
Test(vfs_ahead, helpers_have_the_rights_of_the_caller)
{
	struct fixture f;
	struct taker t = { .f = &f, .room = UINT32_MAX };
	struct vfs_ctx user;

	fixture_open(&f, FIX_MAC | FIX_HELPERS);
	user = as_user(&f, 1000, 100);
	t.dir = must_mkdir(&f.ctx, f.root, "d", 0744);
	be_root(&f);
	fill(&f, "d", FILES);
	for (unsigned i = 0; i < 10; i++) {
		t.ctx = &f.ctx;
		cr_assert_eq(list(&t), 0);
		t.ctx = &user;
		t.slow = true;
		t.ahead = t.looked = t.refused = 0;
		cr_assert_eq(list(&t), 0);
		cr_expect_eq(t.ahead, 0);
		cr_expect_eq(t.refused, FILES + 2);
		cr_expect_eq(t.looked, 0);
		t.slow = false;
	}
	be_root(&f);
	vfs_node_put(t.dir);
	fixture_close(&f);
}

/* While a listing is under way, all files are replaced by others. */
static void replace_all(struct taker *t)
{
	char from[64], to[64];

	be_root(t->f);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(from, sizeof(from), "new/f%u", i);
		snprintf(to, sizeof(to), "d/f%u", i);
		rename(in_export(t->f, from), in_export(t->f, to));
	}
}

Test(vfs_ahead, names_change_hands_meanwhile)
{
	struct fixture f;
	struct taker t = { .f = &f, .room = UINT32_MAX, .between = replace_all };
	struct vfs_node *new;

	fixture_open(&f, FIX_MAC | FIX_HELPERS);
	t.ctx = &f.ctx;
	t.dir = must_mkdir(&f.ctx, f.root, "d", 0755);
	new = must_mkdir(&f.ctx, f.root, "new", 0755);
	for (unsigned i = 0; i < 5; i++) {
		fill(&f, "d", FILES);
		fill(&f, "new", FILES);
		cr_assert_eq(list(&t), 0);
		cr_expect_eq(t.wrong, 0);
	}
	vfs_node_put(new);
	vfs_node_put(t.dir);
	fixture_close(&f);
}

/* Several workers list, as different users, and end at any entry. */
struct lister {
	struct fixture *f;
	struct vfs_node *open, *closed;
	unsigned wrong;
	uint32_t uid;
};

static void *list_often(void *arg)
{
	struct lister *l = arg;
	struct vfs_ctx ctx = l->f->ctx;
	struct rn_fiber fiber;
	struct vfs_worker *w;

	ctx.cred = (struct vfs_cred){ .uid = l->uid, .gid = 100 };
	if (vfs_worker_new(l->f->vfs, 0, &w) != 0)
		return NULL;
	rn_fiber_of_thread(&fiber, w);
	ctx.fiber = &fiber;
	for (unsigned i = 0; i < 60; i++) {
		const bool closed = i % 2;
		struct taker t = { .f = l->f,
				   .ctx = &ctx,
				   .dir = closed ? l->closed : l->open,
				   .room = 100 + i * 20 };
		const bool may = !closed || l->uid == 0;

		if (list(&t) != 0)
			l->wrong++;
		if (t.wrong || t.looked != (may ? t.taken : 0) || t.refused != (may ? 0 : t.taken))
			l->wrong++;
	}
	vfs_worker_free(w);
	return NULL;
}

Test(vfs_ahead, many_listings_at_a_time)
{
	struct fixture f;
	struct vfs_node *open, *closed;
	struct lister l[6];
	pthread_t t[6];

	fixture_open(&f, FIX_MAC | FIX_HELPERS);
	open = must_mkdir(&f.ctx, f.root, "open", 0755);
	closed = must_mkdir(&f.ctx, f.root, "closed", 0744);
	fill(&f, "open", FILES);
	fill(&f, "closed", FILES);
	for (unsigned i = 0; i < 6; i++) {
		l[i] = (struct lister){
			.f = &f, .open = open, .closed = closed, .uid = i % 3 * 1000
		};
		cr_assert_eq(pthread_create(&t[i], NULL, list_often, &l[i]), 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		cr_expect_eq(l[i].wrong, 0, "lister %u", i);
	}
	vfs_node_put(open);
	vfs_node_put(closed);
	fixture_close(&f);
}

Test(vfs_ahead, pieces_are_of_the_budget)
{
	struct rn_budget budget;
	struct fixture f;
	struct taker t = { .f = &f, .room = UINT32_MAX };
	size_t before;

	fixture_open(&f, FIX_MAC);
	fill(&f, ".", 200);
	rn_budget_init(&budget, (size_t)256 << 20);
	fixture_with(&f, &budget, 2);
	t.ctx = &f.ctx;
	t.dir = f.root;
	before = budget.used;
	cr_assert_eq(list(&t), 0);
	cr_expect_gt(budget.used, before);
	cr_expect_leq(budget.used - before, (size_t)3 << 19);
	fixture_close(&f);
	cr_expect_eq(budget.used, 0);
}
