/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations against each operation of vfs/, by each kind of caller; and what stands against giving
 * one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/base/instance.h"
#include "vfs/deleg.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/lock.h"
#include "vfs/share.h"
#include "vfs/space.h"
#include "vfs/xattr.h"

TestSuite(vfs_deleg, .timeout = 120);

static const int alice, bob; /* clients: only their addresses count */

struct deleg {
	struct vfs_deleg d;
	unsigned recalls;
};

static void count_recall(struct vfs_deleg *d)
{
	((struct deleg *)d)->recalls++;
}

static const struct vfs_deleg_ops ops = { .recall = count_recall };

static int give(struct fx *f, struct vfs_node *n, struct deleg *d, const void *client,
		enum vfs_deleg_type type)
{
	*d = (struct deleg){ .d = { .ops = &ops, .client = client, .type = type } };
	return vfs_deleg_give(&f->ctx, n, &d->d);
}

static void must_give(struct fx *f, struct vfs_node *n, struct deleg *d, const void *client,
		      enum vfs_deleg_type type)
{
	cr_assert_eq(give(f, n, d, client, type), 0);
}

/* A recall makes a file quiet: forgets all of them. */
static void end_quiet(struct fx *f)
{
	memset(&f->vfs->files->recalled, 0, sizeof(f->vfs->files->recalled));
}

static void open_fx(struct fx *f)
{
	fx_open(f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	vfs_export_set_nfs_only(f->exp, true);
}

/* Operations on a file "file", whose delegation they meet. Each leaves it as it was if it fails. */
static int op_read(struct fx *f, struct vfs_node *n)
{
	char out[8];
	bool eof;

	return (int)fx_read(f, n, 0, sizeof(out), out, &eof);
}

static int op_write(struct fx *f, struct vfs_node *n)
{
	return (int)fx_write(f, n, 0, "new", 3, VFS_UNSTABLE);
}

static int op_mode(struct fx *f, struct vfs_node *n)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };

	return vfs_setattr(&f->ctx, n, &sa, NULL);
}

static int op_size(struct fx *f, struct vfs_node *n)
{
	const struct vfs_setattr sa = { .set_size = true, .size = 1 };

	return vfs_setattr(&f->ctx, n, &sa, NULL);
}

static int op_truncating_create(struct fx *f, struct vfs_node *n)
{
	const struct vfs_setattr sa = { .set_size = true };
	struct vfs_create how = { .how = VFS_UNCHECKED, .sa = &sa };
	struct vfs_node *again;
	int rc = vfs_create(&f->ctx, f->root, "file", 4, &how, &again);

	(void)n;
	if (rc == 0)
		vfs_node_put(again);
	return rc;
}

static int op_link(struct fx *f, struct vfs_node *n)
{
	return vfs_link(&f->ctx, n, f->root, "link", 4, NULL);
}

static int op_remove(struct fx *f, struct vfs_node *n)
{
	(void)n;
	return vfs_remove(&f->ctx, f->root, "file", 4, NULL);
}

static int do_rename(struct fx *f, const char *from, const char *to)
{
	const struct vfs_rename r = { .from_dir = f->root,
				      .to_dir = f->root,
				      .from = from,
				      .to = to,
				      .from_len = (uint32_t)strlen(from),
				      .to_len = (uint32_t)strlen(to) };

	return vfs_rename(&f->ctx, &r);
}

static int op_move(struct fx *f, struct vfs_node *n)
{
	(void)n;
	return do_rename(f, "file", "moved");
}

static int op_replace(struct fx *f, struct vfs_node *n)
{
	(void)n;
	return do_rename(f, "other", "file");
}

static int op_xattr(struct fx *f, struct vfs_node *n)
{
	struct vfs_xattr_change c = {
		.how = VFS_XATTR_EITHER, .name = { "x", 1 }, .value = "y", .size = 1
	};

	return vfs_xattr_change(&f->ctx, n, &c);
}

static int open_share(struct fx *f, struct vfs_node *n, uint8_t access, uint8_t deny)
{
	const struct vfs_share_request r = { .access = access, .deny = deny };
	struct vfs_share s;
	int rc = vfs_share_open(&f->ctx, n, &s, &r, NULL);

	if (rc == 0)
		vfs_share_close(&s);
	return rc;
}

static int op_open_read(struct fx *f, struct vfs_node *n)
{
	return open_share(f, n, VFS_SHARE_READ, VFS_SHARE_WRITE);
}

static int op_open_write(struct fx *f, struct vfs_node *n)
{
	return open_share(f, n, VFS_SHARE_WRITE, 0);
}

static int op_open_deny_read(struct fx *f, struct vfs_node *n)
{
	return open_share(f, n, VFS_SHARE_READ, VFS_SHARE_READ);
}

static int op_upgrade(struct fx *f, struct vfs_node *n)
{
	const struct vfs_share_request r = { .access = VFS_SHARE_READ };
	struct vfs_share s;
	int rc = vfs_share_open(&f->ctx, n, &s, &r, NULL);

	if (rc == 0)
		rc = vfs_share_change(&s, VFS_SHARE_BOTH, 0, NULL);
	vfs_share_close(&s);
	return rc;
}

static int op_check_open_write(struct fx *f, struct vfs_node *n)
{
	return vfs_open_breaks_leases(&f->ctx, n, VFS_MAY_WRITE);
}

static int take_lock(struct fx *f, struct vfs_node *n, enum vfs_lock_type type)
{
	const struct vfs_lock_request r = { .type = type, .length = 1 };
	struct vfs_lock_owner o;
	struct vfs_file *file;
	int rc;

	cr_assert_eq(vfs_file_get(&f->ctx, n, &file), 0);
	vfs_lock_owner_init(&o, file, NULL);
	rc = vfs_lock(&f->ctx, n, &o, &r, NULL);
	vfs_lock_owner_end(&o);
	vfs_file_put(file);
	return rc;
}

static int op_lock_read(struct fx *f, struct vfs_node *n)
{
	return take_lock(f, n, VFS_LOCK_READ);
}

static int op_lock_write(struct fx *f, struct vfs_node *n)
{
	return take_lock(f, n, VFS_LOCK_WRITE);
}

static int op_space(struct fx *f, struct vfs_node *n)
{
	struct vfs_space s = { .ctx = &f->ctx, .node = n, .what = VFS_SPACE_PUNCH, .length = 1 };

	return vfs_space(&s);
}

static int copy(struct fx *f, struct vfs_node *from, struct vfs_node *to)
{
	struct vfs_copy c = { .from = { .ctx = &f->ctx, .node = from },
			      .ctx = &f->ctx,
			      .node = to };

	return (int)vfs_copy(&c);
}

static int op_copy_to(struct fx *f, struct vfs_node *n)
{
	struct vfs_node *other = fx_lookup(f, "other");
	int rc = copy(f, other, n);

	vfs_node_put(other);
	return rc;
}

static int op_copy_from(struct fx *f, struct vfs_node *n)
{
	struct vfs_node *other = fx_lookup(f, "other");
	int rc = copy(f, n, other);

	vfs_node_put(other);
	return rc;
}

static int op_clone_to(struct fx *f, struct vfs_node *n)
{
	struct vfs_node *other = fx_lookup(f, "other");
	const struct vfs_copy c = { .from = { .ctx = &f->ctx, .node = other },
				    .ctx = &f->ctx,
				    .node = n };
	int rc = vfs_clone(&c);

	vfs_node_put(other);
	return rc == -EOPNOTSUPP ? 0 : rc;
}

static const struct op {
	const char *name;
	int (*run)(struct fx *f, struct vfs_node *n);
	bool reads; /* stands against write delegations only */
} table[] = {
	{ "read", op_read, true },
	{ "copy from", op_copy_from, true },
	{ "open to read", op_open_read, true },
	{ "lock to read", op_lock_read, true },
	{ "open that denies reading", op_open_deny_read, false },
	{ "open to write", op_open_write, false },
	{ "upgrade", op_upgrade, false },
	{ "check of an open", op_check_open_write, false },
	{ "lock to write", op_lock_write, false },
	{ "write", op_write, false },
	{ "mode", op_mode, false },
	{ "size", op_size, false },
	{ "create that truncates", op_truncating_create, false },
	{ "space", op_space, false },
	{ "copy to", op_copy_to, false },
	{ "clone to", op_clone_to, false },
	{ "xattr", op_xattr, false },
	{ "link", op_link, false },
	{ "remove", op_remove, false },
	{ "move", op_move, false },
	{ "replace", op_replace, false },
};

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mode == b->st_mode && a->st_nlink == b->st_nlink &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec;
}

/* The operation by a client, while alice has the delegation. */
static void meet(struct fx *f, const struct op *op, enum vfs_deleg_type type, const void *client)
{
	const bool conflict = client != &alice && (type == VFS_DELEG_WRITE || !op->reads);
	struct vfs_node *n = fx_file(f, "file", "old data", 8),
			*other = fx_file(f, "other", "other data", 10);
	struct stat before, after;
	struct deleg d;
	int rc;

	end_quiet(f);
	must_give(f, n, &d, &alice, type);
	cr_assert_eq(stat(fx_path(f, "file"), &before), 0);
	f->ctx.client = client;
	rc = op->run(f, n);
	if (conflict) {
		cr_expect_eq(rc, -RN_EDELEG, "%s: %d", op->name, rc);
		cr_expect_eq(op->run(f, n), -RN_EDELEG, "%s again", op->name);
		cr_assert_eq(stat(fx_path(f, "file"), &after), 0, "%s", op->name);
		cr_expect(same_file(&before, &after), "%s has changed something", op->name);
	} else {
		cr_expect_geq(rc, 0, "%s: %d", op->name, rc);
	}
	cr_expect_eq(d.recalls, conflict, "%s: %u recalls", op->name, d.recalls);
	cr_expect_eq(d.d.recalled, conflict);
	vfs_deleg_end(&d.d);
	if (conflict)
		cr_expect_geq(op->run(f, n), 0, "%s when the delegation has ended", op->name);
	cr_expect_eq(atomic_load(&f->vfs->files->changing[vfs_file_slot(&n->fh)]), 0, "%s",
		     op->name);
	f->ctx.client = NULL;
	vfs_node_put(n);
	vfs_node_put(other);
	fx_command("rm -f %s/*", f->dir);
}

Test(vfs_deleg, every_operation)
{
	const void *clients[] = { &alice, &bob, NULL };
	struct fx f;

	open_fx(&f);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (unsigned c = 0; c < 3; c++) {
			meet(&f, &table[i], VFS_DELEG_READ, clients[c]);
			meet(&f, &table[i], VFS_DELEG_WRITE, clients[c]);
		}
	}
	fx_close(&f);
}

/* A name is enough: neither its node nor a share of the file is there. */
Test(vfs_deleg, names_of_files_without_a_node)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "x", 1);
	must_give(&f, n, &d, &alice, VFS_DELEG_READ);
	vfs_node_put(n);
	vfs_forget_export(f.vfs, vfs_export_id(f.exp));
	cr_expect_eq(op_remove(&f, NULL), -RN_EDELEG);
	cr_expect_eq(op_move(&f, NULL), -RN_EDELEG);
	cr_expect_eq(d.recalls, 1);
	vfs_deleg_end(&d.d);
	cr_expect_eq(op_remove(&f, NULL), 0);
	fx_close(&f);
}

/* Whoever may not change a file or a directory causes no recalls. */
Test(vfs_deleg, permission_comes_first)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "x", 1);
	must_give(&f, n, &d, &alice, VFS_DELEG_READ);
	fx_user(&f, 4711);
	cr_expect_eq(op_remove(&f, n), -EACCES);
	cr_expect_eq(op_move(&f, n), -EACCES);
	cr_expect_eq(op_link(&f, n), -EACCES);
	cr_expect_eq(op_write(&f, n), -EACCES);
	cr_expect_eq(op_mode(&f, n), -EPERM);
	cr_expect_eq(op_size(&f, n), -EACCES);
	cr_expect_eq(op_xattr(&f, n), -EACCES);
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_deleg, several_readers_are_recalled_together)
{
	static const int clients[20];
	struct deleg d[20], mine;
	struct vfs_node *n;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "x", 1);
	for (unsigned i = 0; i < 20; i++)
		must_give(&f, n, &d[i], &clients[i], VFS_DELEG_READ);
	must_give(&f, n, &mine, &alice, VFS_DELEG_READ);
	f.ctx.client = &alice;
	cr_expect_eq(op_write(&f, n), -RN_EDELEG);
	for (unsigned i = 0; i < 20; i++) {
		cr_expect_eq(op_write(&f, n), -RN_EDELEG);
		cr_expect_eq(d[i].recalls, 1);
		vfs_deleg_end(&d[i].d);
		cr_expect_null(d[i].d.file);
		vfs_deleg_end(&d[i].d); /* nothing happens */
	}
	cr_expect_eq(op_write(&f, n), 3, "only the caller's own is left");
	cr_expect_eq(mine.recalls, 0);
	f.ctx.client = &bob;
	cr_expect_eq(op_write(&f, n), -RN_EDELEG);
	cr_expect_eq(mine.recalls, 1);
	vfs_deleg_end(&mine.d);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_deleg, what_stands_against_giving)
{
	struct vfs_share_request r = { .access = VFS_SHARE_READ };
	struct vfs_file_change change;
	struct deleg d, e;
	struct vfs_node *n;
	struct vfs_share s;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "x", 1);
	cr_expect_eq(give(&f, f.root, &d, &alice, VFS_DELEG_WRITE), -EOPNOTSUPP, "a directory");

	/* another client reads; then it writes; then it denies reading */
	f.ctx.client = &bob;
	cr_assert_eq(vfs_share_open(&f.ctx, n, &s, &r, NULL), 0);
	f.ctx.client = &alice;
	cr_expect(vfs_deleg_possible(&f.ctx, n, VFS_DELEG_READ));
	cr_expect_not(vfs_deleg_possible(&f.ctx, n, VFS_DELEG_WRITE));
	cr_expect_eq(give(&f, n, &d, &alice, VFS_DELEG_WRITE), -RN_ENOTNOW);
	must_give(&f, n, &d, &alice, VFS_DELEG_READ);
	cr_expect_eq(give(&f, n, &e, &alice, VFS_DELEG_READ), -RN_ENOTNOW, "it has one");
	vfs_deleg_end(&d.d);
	cr_assert_eq(vfs_share_change(&s, VFS_SHARE_WRITE, 0, NULL), 0);
	cr_expect_not(vfs_deleg_possible(&f.ctx, n, VFS_DELEG_READ));
	cr_expect_eq(give(&f, n, &d, &alice, VFS_DELEG_READ), -RN_ENOTNOW);
	must_give(&f, n, &d, &bob, VFS_DELEG_WRITE);
	vfs_deleg_end(&d.d);
	cr_assert_eq(vfs_share_change(&s, VFS_SHARE_WRITE, VFS_SHARE_READ, NULL), 0);
	cr_expect_eq(give(&f, n, &d, &bob, VFS_DELEG_WRITE), -RN_ENOTNOW);
	vfs_share_close(&s);

	/* delegations of others */
	must_give(&f, n, &d, &bob, VFS_DELEG_READ);
	cr_expect_eq(give(&f, n, &e, &alice, VFS_DELEG_WRITE), -RN_ENOTNOW);
	vfs_deleg_end(&d.d);
	must_give(&f, n, &d, &bob, VFS_DELEG_WRITE);
	cr_expect_eq(give(&f, n, &e, &alice, VFS_DELEG_READ), -RN_ENOTNOW);
	cr_expect_eq(d.recalls, 0, "to ask for one recalls nobody's");
	vfs_deleg_end(&d.d);

	/* a change under way */
	vfs_file_change_count(f.vfs, &n->fh, &change);
	cr_expect_eq(give(&f, n, &d, &alice, VFS_DELEG_READ), -RN_ENOTNOW);
	vfs_file_change_end(&change);
	must_give(&f, n, &d, &alice, VFS_DELEG_READ);

	/* a recall, until it is over and some time has passed */
	f.ctx.client = &bob;
	cr_expect_eq(op_write(&f, n), -RN_EDELEG);
	end_quiet(&f);
	cr_expect_eq(give(&f, n, &e, &bob, VFS_DELEG_READ), -RN_ENOTNOW, "under recall");
	vfs_deleg_end(&d.d);
	cr_expect_eq(give(&f, n, &e, &bob, VFS_DELEG_READ), -RN_ENOTNOW, "a recall that lasted");
	end_quiet(&f);
	must_give(&f, n, &e, &bob, VFS_DELEG_READ);
	f.ctx.client = NULL;
	cr_expect_eq(op_write(&f, n), -RN_EDELEG);
	vfs_deleg_end(&e.d);
	cr_expect_eq(give(&f, n, &e, &bob, VFS_DELEG_READ), -RN_ENOTNOW, "quiet");
	end_quiet(&f);
	must_give(&f, n, &e, &bob, VFS_DELEG_READ);
	vfs_deleg_end(&e.d);
	vfs_node_put(n);
	fx_close(&f);
}

Test(vfs_deleg, locks_stand_against_giving)
{
	const struct vfs_lock_request r = { .type = VFS_LOCK_READ, .length = 1 };
	struct vfs_lock_owner o;
	struct vfs_file *file;
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "x", 1);
	cr_assert_eq(vfs_file_get(&f.ctx, n, &file), 0);
	vfs_lock_owner_init(&o, file, NULL);
	cr_assert_eq(vfs_lock(&f.ctx, n, &o, &r, NULL), 0);
	cr_expect_eq(give(&f, n, &d, &alice, VFS_DELEG_READ), -RN_ENOTNOW);
	vfs_lock_owner_end(&o);
	vfs_file_put(file);
	must_give(&f, n, &d, &alice, VFS_DELEG_READ);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	fx_close(&f);
}

static const struct vfs_quiet_time at_100 = { .now = 100, .lasts = 90 };

/* The i-th file of the same bucket. */
static uint64_t file_of_bucket(unsigned i)
{
	return (uint64_t)(i + 1) << 32 | 7;
}

Test(vfs_deleg, files_are_quiet_by_themselves)
{
	struct vfs_quiet *q = calloc(1, sizeof(*q));
	struct vfs_quiet_time t = at_100;

	for (unsigned i = 0; i < VFS_QUIET_WAYS; i++)
		vfs_quiet_begin(q, file_of_bucket(i), t);
	for (unsigned i = 0; i < VFS_QUIET_WAYS; i++)
		cr_expect(vfs_quiet_is(q, file_of_bucket(i), t));
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(VFS_QUIET_WAYS), t), "another file");
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(0) + 1, t), "another bucket");

	t.now += 50;
	vfs_quiet_begin(q, file_of_bucket(0), t);
	t.now += 40;
	cr_expect(vfs_quiet_is(q, file_of_bucket(0), t), "its last recall counts");
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(1), t), "90 seconds after");
	vfs_quiet_begin(q, file_of_bucket(VFS_QUIET_WAYS), t);
	cr_expect(vfs_quiet_is(q, file_of_bucket(0), t), "what is over makes room");
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(1), t));
	free(q);
}

Test(vfs_deleg, many_recalls_make_a_bucket_quiet)
{
	struct vfs_quiet *q = calloc(1, sizeof(*q));
	struct vfs_quiet_time t = at_100;
	const unsigned n = VFS_QUIET_WAYS + 3;

	for (unsigned i = 0; i < n; i++)
		vfs_quiet_begin(q, file_of_bucket(i), t);
	for (unsigned i = 0; i < n; i++)
		cr_expect(vfs_quiet_is(q, file_of_bucket(i), t), "no recall is forgotten: %u", i);
	cr_expect(vfs_quiet_is(q, file_of_bucket(n), t));
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(n) + 1, t), "another bucket");
	t.now += 90;
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(0), t));
	cr_expect_not(vfs_quiet_is(q, file_of_bucket(n), t));
	t.lasts = 0;
	vfs_quiet_begin(q, 5, t);
	cr_expect_not(vfs_quiet_is(q, 5, t), "nothing is ever quiet");
	free(q);
}
