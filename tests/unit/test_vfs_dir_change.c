/* SPDX-License-Identifier: BSD-2-Clause */
/* A change of a directory reports the states before and after: whether they are atomic, and that one
 * change's after is the next one's before. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/mover.h"
#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/meta/dir_change.h"
#include "vfs/node/cache.h"
#include "vfs/vfs_worker.h"
#include "vfs_fixture.h"

static void open_promised(struct fixture *f)
{
	fixture_open(f, 0);
	vfs_export_set_nfs_only(f->exp, true);
}

static struct vfs_dir_change create(struct fixture *f, const char *name)
{
	struct vfs_dir_change change = { .known = false };
	struct vfs_create how = { .how = VFS_GUARDED, .change = &change };
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0644 };
	struct vfs_node *n;

	how.sa = &sa;
	cr_assert_eq(vfs_create(&f->ctx, f->root, name, (uint32_t)strlen(name), &how, &n), 0);
	vfs_node_put(n);
	return change;
}

static struct vfs_dir_change removed(struct fixture *f, const char *name)
{
	struct vfs_dir_change change = { .known = false };

	cr_assert_eq(vfs_remove(&f->ctx, f->root, name, (uint32_t)strlen(name), &change), 0);
	return change;
}

/* All kinds of changes in one directory, one after the other. */
static unsigned every_change(struct fixture *f, struct vfs_dir_change *c)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0755 };
	struct vfs_make m = { .dir = f->root, .name = "d", .len = 1, .sa = &sa, .change = &c[1] };
	struct vfs_rename r = { f->root, f->root, "a", "b", 1, 1, &c[3], &c[4] };
	struct vfs_mknod fifo = { .type = S_IFIFO };
	struct vfs_node *n;

	c[0] = create(f, "a");
	cr_assert_eq(vfs_mkdir(&f->ctx, &m, &n), 0);
	vfs_node_put(n);
	m.name = "l";
	m.change = &c[2];
	cr_assert_eq(vfs_symlink(&f->ctx, &m, "target", &n), 0);
	vfs_node_put(n);
	cr_assert_eq(vfs_rename(&f->ctx, &r), 0);
	cr_assert_eq(c[3].before.change, c[4].before.change, "it is one directory");
	cr_assert_eq(c[3].after.change, c[4].after.change);
	c[4] = removed(f, "l");
	n = must_lookup(&f->ctx, f->root, "b");
	cr_assert_eq(vfs_link(&f->ctx, n, f->root, "a", 1, &c[5]), 0);
	vfs_node_put(n);
	cr_assert_eq(vfs_rmdir(&f->ctx, f->root, "d", 1, &c[6]), 0);
	m.name = "p";
	m.change = &c[7];
	cr_assert_eq(vfs_mknod(&f->ctx, &m, &fifo, &n), 0);
	vfs_node_put(n);
	c[8] = removed(f, "p");
	c[9] = removed(f, "a");
	c[10] = removed(f, "b");
	return 11;
}

/* getattr: a look in between, after a while, finds the last state, too. */
static void one_chain(struct fixture *f, bool getattr)
{
	struct vfs_dir_change c[16] = { { .known = false } };
	const struct timespec pause = { .tv_nsec = 60 * 1000 * 1000 };
	uint64_t last = create(f, "first").after.change;

	for (unsigned round = 0; round < 10; round++) {
		unsigned n = every_change(f, c);

		for (unsigned i = 0; i < n; i++) {
			cr_assert(c[i].known, "change %u", i);
			cr_assert(c[i].atomic, "change %u", i);
			cr_assert_eq(c[i].before.change, last, "change %u", i);
			cr_assert_gt(c[i].after.change, last, "change %u", i);
			last = c[i].after.change;
		}
		nanosleep(&pause, NULL); /* coarse ctimes settle */
		if (getattr)
			cr_assert_eq(must_getattr(&f->ctx, f->root).change, last);
	}
}

Test(vfs_dir_change, one_chain)
{
	struct fixture f;

	open_promised(&f);
	one_chain(&f, true);
	fixture_close(&f);
}

/* The same where ctimes go by the tick, whatever this kernel's are. */
Test(vfs_dir_change, one_chain_of_coarse_ctimes)
{
	struct fixture f;

	open_promised(&f);
	f.root->mnt->dir_changes = f.vfs->changes;
	one_chain(&f, true);
	fixture_close(&f);
}

/* The same where nothing is promised, and the kernel's events tell that there is nobody else. */
static void need_watch(struct fixture *f)
{
	if (f->root->mnt->watch)
		return;
	fixture_close(f);
	cr_skip_test("no directory events here");
}

Test(vfs_dir_change, one_chain_by_events)
{
	struct fixture f;

	fixture_open(&f, 0);
	need_watch(&f);
	one_chain(&f, true);
	fixture_close(&f);
}

Test(vfs_dir_change, one_chain_by_events_of_coarse_ctimes)
{
	struct fixture f;

	fixture_open(&f, 0);
	need_watch(&f);
	f.root->mnt->dir_changes = f.vfs->changes;
	one_chain(&f, true);
	fixture_close(&f);
}

Test(vfs_dir_change, nothing_is_known)
{
	struct vfs_dir_watch *watch;
	struct vfs_dir_change c;
	struct fixture f;

	fixture_open(&f, 0);
	watch = f.root->mnt->watch;
	f.root->mnt->watch = NULL;
	c = create(&f, "a");
	cr_expect(c.known);
	cr_expect_not(c.atomic);
	cr_expect_gt(c.after.change, c.before.change);
	f.root->mnt->watch = watch;
	fixture_close(&f);
}

/* Changes by a local process of the directory f->dir, which has the entries "there" and "sub". */
static void do_create(struct fixture *f)
{
	close(open(in_export(f, "new"), O_CREAT | O_WRONLY, 0600));
}
static void do_unlink(struct fixture *f)
{
	unlink(in_export(f, "there"));
}
static void do_rename(struct fixture *f)
{
	rename(in_export(f, "there"), in_export(f, "elsewhere"));
}
static void do_move_out(struct fixture *f)
{
	rename(in_export(f, "there"), in_base(f, "out"));
}
static void do_move_in(struct fixture *f)
{
	rename(in_base(f, "outside"), in_export(f, "in"));
}
static void do_mkdir(struct fixture *f)
{
	mkdir(in_export(f, "newdir"), 0700);
}
static void do_rmdir(struct fixture *f)
{
	rmdir(in_export(f, "sub"));
}
static void do_link(struct fixture *f)
{
	link(in_export(f, "there"), in_export(f, "newlink"));
}
static void do_symlink(struct fixture *f)
{
	symlink("target", in_export(f, "newsymlink"));
}
static void do_mknod(struct fixture *f)
{
	mkfifo(in_export(f, "newfifo"), 0600);
}
static void do_chmod(struct fixture *f)
{
	chmod(f->dir, 0711);
}
static void do_chown(struct fixture *f)
{
	chown(f->dir, 1, 1);
}
static void do_touch(struct fixture *f)
{
	utimensat(AT_FDCWD, f->dir, NULL, 0);
}
static void do_setxattr(struct fixture *f)
{
	setxattr(f->dir, "trusted.test", "1", 1, 0);
}
static void do_move_itself(struct fixture *f)
{
	rename(f->dir, in_base(f, "moved"));
	rename(in_base(f, "moved"), f->dir);
}
/* These leave the directory as it is. */
static void do_nothing(struct fixture *f)
{
	(void)f;
}
static void do_write(struct fixture *f)
{
	put_file(in_export(f, "there"), "text");
	chmod(in_export(f, "there"), 0600);
	chmod(in_export(f, "sub"), 0700);
}
static void do_below(struct fixture *f)
{
	mkdir(in_export(f, "sub/d"), 0700);
}

static const struct {
	const char *what;
	void (*act)(struct fixture *f);
	bool changes;
} local[] = {
	{ "create", do_create, true },
	{ "unlink", do_unlink, true },
	{ "rename", do_rename, true },
	{ "rename out of it", do_move_out, true },
	{ "rename into it", do_move_in, true },
	{ "mkdir", do_mkdir, true },
	{ "rmdir", do_rmdir, true },
	{ "link", do_link, true },
	{ "symlink", do_symlink, true },
	{ "mknod", do_mknod, true },
	{ "chmod", do_chmod, true },
	{ "chown", do_chown, true },
	{ "touch", do_touch, true },
	{ "setxattr", do_setxattr, true },
	{ "rename of it", do_move_itself, true },
	{ "nothing", do_nothing, false },
	{ "write to a file", do_write, false },
	{ "mkdir below", do_below, false },
};

static void by_another_process(struct fixture *f, void (*act)(struct fixture *f))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		act(f);
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
}

enum when { BEFORE, BETWEEN, AFTER };

/* A change through us, and a local process that acts before it, between the looks, or after it. */
static struct vfs_dir_change change_with(struct fixture *f, void (*act)(struct fixture *f),
					 enum when when)
{
	struct vfs_dir_changing mine;
	struct vfs_dir_change c;
	int fd;

	if (when == BEFORE)
		by_another_process(f, act);
	vfs_dir_change_begin(&mine, &f->ctx, f->root, "mine", &c);
	fd = openat(f->root->path_fd, "mine", O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (when == BETWEEN)
		by_another_process(f, act);
	vfs_dir_change_end(&mine, fd >= 0);
	close(fd);
	if (when == AFTER)
		by_another_process(f, act);
	return c;
}

/* Where ctimes are coarse, a local change may have the same ctime as what was looked at before, until the tick is over. */
static void pass_the_tick(const struct fixture *f)
{
	const struct timespec pause = { .tv_nsec = 60 * 1000 * 1000 };

	if (f->root->mnt->dir_changes)
		nanosleep(&pause, NULL);
}

static void with_local_change(unsigned i, enum when when)
{
	struct vfs_dir_change c, next;
	struct fixture f;
	bool seen, over = false;

	fixture_open(&f, 0);
	put_file(in_export(&f, "there"), "");
	put_file(in_base(&f, "outside"), "");
	mkdir(in_export(&f, "sub"), 0755);
	create(&f, "first"); /* from here on it is watched */
	c = change_with(&f, local[i].act, when);
	cr_expect(c.known);
	if (when == BETWEEN)
		cr_expect_eq(c.atomic, !local[i].changes, "%s in between", local[i].what);
	next = create(&f, "next");
	seen = !next.atomic || next.before.change != c.after.change;
	if (when == AFTER)
		cr_expect_eq(seen, local[i].changes, "%s after", local[i].what);
	/* On a busy machine the clock of ctimes has stood still for longer than its tick. */
	for (unsigned tries = 0; tries < 50 && !over; tries++) {
		char name[16];

		pass_the_tick(&f);
		snprintf(name, sizeof(name), "last%u", tries);
		over = create(&f, name).atomic;
	}
	cr_expect(over, "%s is over", local[i].what);
	fixture_close(&f);
}

Test(vfs_dir_change, local_processes)
{
	struct fixture f;

	fixture_open(&f, 0);
	need_watch(&f);
	fixture_close(&f);
	for (unsigned i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		with_local_change(i, BEFORE);
		with_local_change(i, BETWEEN);
		with_local_change(i, AFTER);
	}
}

/* A look after a local process' change, also one with the same coarse ctime, finds another value. */
Test(vfs_dir_change, a_look_tells_of_others)
{
	const struct timespec pause = { .tv_nsec = 60 * 1000 * 1000 };
	struct fixture f;
	char name[16];

	fixture_open(&f, 0);
	need_watch(&f);
	f.root->mnt->dir_changes = f.vfs->changes;
	create(&f, "first");
	for (unsigned i = 0; i < 20; i++) {
		struct vfs_dir_change c;

		snprintf(name, sizeof(name), "n%u", i);
		c = create(&f, name);
		by_another_process(&f, i % 2 ? do_touch : do_chmod);
		nanosleep(&pause, NULL);
		cr_expect_neq(must_getattr(&f.ctx, f.root).change, c.after.change, "%u", i);
	}
	fixture_close(&f);
}

/* Event threads do not make a look that has to wait for the directory's lock. */
Test(vfs_dir_change, a_look_that_must_ask_moves)
{
	const struct timespec pause = { .tv_nsec = 60 * 1000 * 1000 };
	struct vfs_worker *event;
	struct mover mover;
	struct vfs_dir_change c;
	struct vfs_attr attr;
	struct fixture f;

	fixture_open(&f, 0);
	need_watch(&f);
	f.root->mnt->dir_changes = f.vfs->changes;
	cr_assert_eq(vfs_worker_new_event(f.vfs, &event), 0);
	mover_init(&mover, event, f.w);
	create(&f, "first");
	c = create(&f, "second");
	nanosleep(&pause, NULL);
	f.ctx.fiber = &mover.fiber;
	cr_expect_eq(must_getattr(&f.ctx, f.root).change, c.after.change);
	cr_expect(mover_has_moved(&mover));
	cr_expect_eq(vfs_getattr(&f.ctx, f.root, &attr), 0);
	cr_expect_eq(attr.change, c.after.change);
	f.ctx.fiber = &f.fiber;
	vfs_worker_free(event);
	fixture_close(&f);
}

/* An unused directory is kept ten minutes longer than other nodes if it is marked. */
Test(vfs_dir_change, a_mark_outlives_other_nodes)
{
	const int64_t now = (int64_t)rn_now_coarse_seconds();
	struct vfs_dir_changing mine;
	struct vfs_dir_change change;
	struct vfs_stats st;
	struct vfs_node *dir;
	struct fixture f;

	fixture_open(&f, 0);
	need_watch(&f);
	mkdir(in_export(&f, "plain"), 0755);
	mkdir(in_export(&f, "marked"), 0755);
	vfs_node_put(must_lookup(&f.ctx, f.root, "plain"));
	dir = must_lookup(&f.ctx, f.root, "marked");
	vfs_dir_change_begin(&mine, &f.ctx, dir, "x", &change);
	vfs_dir_change_end(&mine, false);
	cr_assert(dir->watched);
	vfs_node_put(dir);
	vfs_cache_stats(f.vfs, &st);
	cr_assert_eq(st.nodes, 3);
	vfs_cache_close_idle(f.vfs, now + 60);
	vfs_cache_stats(f.vfs, &st);
	cr_expect_eq(st.nodes, 2, "the root, which is in use, and the marked one");
	vfs_cache_close_idle(f.vfs, now + 700);
	vfs_cache_stats(f.vfs, &st);
	cr_expect_eq(st.nodes, 1);
	fixture_close(&f);
}

/* A mark that is gone (with its inode, say) is missed, and made again. */
Test(vfs_dir_change, mark_is_gone)
{
	struct vfs_dir_change c;
	struct fixture f;

	fixture_open(&f, 0);
	need_watch(&f);
	cr_expect(create(&f, "a").atomic);
	vfs_dir_watch_unmark(f.root->mnt->watch, f.root->path_fd);
	c = change_with(&f, do_create, BETWEEN);
	cr_expect_not(c.atomic);
	pass_the_tick(&f);
	cr_expect(create(&f, "b").atomic);
	fixture_close(&f);
}

/* Events of the root that come from making a file in it. */
static uint64_t events_of_a_file(struct fixture *f, const char *name)
{
	struct vfs_dir_watch *w = f->root->mnt->watch;
	uint64_t before;

	vfs_dir_watch_read(w);
	before = vfs_dir_events(w, &f->root->fh).ours;
	close(open(in_export(f, name), O_CREAT | O_WRONLY, 0600));
	vfs_dir_watch_read(w);
	return vfs_dir_events(w, &f->root->fh).ours - before;
}

/* Two exports of one file system have one watch, and one mark for the same directory: it stays until both are gone. */
Test(vfs_dir_change, exports_share_a_watch)
{
	struct vfs_node *root;
	struct vfs_export *exp;
	struct vfs_ctx ctx;
	struct fixture f;
	const char *why;

	fixture_open(&f, 0);
	need_watch(&f);
	cr_assert_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ f.dir, 9, VFS_IO_BUFFERED, 0 },
				     &exp, &why),
		     0);
	ctx = f.ctx;
	ctx.exp = exp;
	cr_assert_eq(vfs_root(&ctx, &root), 0);
	cr_assert_eq(root->mnt->watch, f.root->mnt->watch);
	cr_assert(vfs_dir_watch_mark(f.root->mnt->watch, f.root->path_fd, &f.root->fh));
	cr_assert(vfs_dir_watch_mark(root->mnt->watch, root->path_fd, &root->fh));
	vfs_dir_watch_unmark(root->mnt->watch, root->path_fd);
	cr_expect_eq(events_of_a_file(&f, "a"), 1);
	vfs_node_put(root);
	vfs_export_put(exp);
	vfs_cache_close_idle(f.vfs, INT64_MAX);
	cr_expect_eq(events_of_a_file(&f, "b"), 1);
	vfs_dir_watch_unmark(f.root->mnt->watch, f.root->path_fd);
	cr_expect_eq(events_of_a_file(&f, "c"), 0);
	fixture_close(&f);
}

#define DIRS 200u
#define CHILDREN 85u

/* A marked directory whose events are not counted where the root's are. */
static void make_apart(struct fixture *f, const char *name)
{
	struct vfs_dir_watch *w = f->root->mnt->watch;
	uint64_t before;
	int fd;

	cr_assert_eq(mkdirat(f->root->path_fd, name, 0700), 0);
	fd = openat(f->root->path_fd, name, O_PATH);
	cr_assert(vfs_dir_watch_mark(w, fd, &f->root->fh));
	vfs_dir_watch_read(w);
	before = vfs_dir_events(w, &f->root->fh).ours;
	cr_assert_eq(fchmodat(f->root->path_fd, name, 0750, 0), 0);
	vfs_dir_watch_read(w);
	if (vfs_dir_events(w, &f->root->fh).ours != before)
		vfs_dir_watch_unmark(w, fd);
	close(fd);
}

/* The kernel joins events of a process in a directory, and not those of two processes. */
static void touch_all(struct fixture *f)
{
	char name[32];

	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		if (fchmodat(f->root->path_fd, name, 0700, 0) < 0)
			_exit(1);
	}
}

/* More events than the queue holds, or than are read at a time: any directory may have changed. */
Test(vfs_dir_change, events_are_lost)
{
	struct vfs_dir_events before, after;
	struct vfs_dir_watch *w;
	struct fixture f;
	char name[32];

	fixture_open(&f, 0);
	need_watch(&f);
	w = f.root->mnt->watch;
	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		make_apart(&f, name);
	}
	before = vfs_dir_events(w, &f.root->fh);
	by_another_process(&f, touch_all);
	vfs_dir_watch_read(w);
	after = vfs_dir_events(w, &f.root->fh);
	cr_expect_eq(after.others, before.others, "events of others are not the root's");
	for (unsigned i = 0; i < CHILDREN; i++)
		by_another_process(&f, touch_all);
	vfs_dir_watch_read(w);
	after = vfs_dir_events(w, &f.root->fh);
	cr_expect_gt(after.others, before.others);
	for (unsigned i = 0; i < 10; i++)
		vfs_dir_watch_read(w);
	cr_expect(create(&f, "b").atomic, "it is known again");
	fixture_close(&f);
}

static void failed(struct fixture *f)
{
	struct vfs_dir_change c = { .known = true };
	struct vfs_create how = { .how = VFS_GUARDED, .change = &c };
	struct vfs_node *n;

	cr_expect_eq(vfs_create(&f->ctx, f->root, "a", 1, &how, &n), -EEXIST);
	cr_expect_not(c.known);
	c.known = true;
	cr_expect_eq(vfs_remove(&f->ctx, f->root, "none", 4, &c), -ENOENT);
	cr_expect_not(c.known);
}

Test(vfs_dir_change, failure)
{
	struct fixture f;

	open_promised(&f);
	create(&f, "a");
	failed(&f);
	cr_expect(create(&f, "b").atomic, "a failure leaves nothing behind");
	fixture_close(&f);
}

/* Another change through this server that overlaps: began before, or in between. */
Test(vfs_dir_change, overlapping)
{
	struct vfs_dir_changing mine, other;
	struct vfs_dir_change c;
	struct fixture f;

	open_promised(&f);
	vfs_dir_change_begin(&other, &f.ctx, f.root, "x", NULL);
	vfs_dir_change_begin(&mine, &f.ctx, f.root, "x", &c);
	vfs_dir_change_end(&other, true);
	vfs_dir_change_end(&mine, true);
	cr_expect(c.known);
	cr_expect_not(c.atomic, "the other had begun");

	vfs_dir_change_begin(&mine, &f.ctx, f.root, "x", &c);
	vfs_dir_change_begin(&other, &f.ctx, f.root, "x", NULL);
	vfs_dir_change_end(&other, true);
	vfs_dir_change_end(&mine, true);
	cr_expect_not(c.atomic, "the other came in between");

	vfs_dir_change_begin(&mine, &f.ctx, f.root, "x", &c);
	vfs_dir_change_end(&mine, true);
	cr_expect(c.atomic);
	fixture_close(&f);
}

/* A directory that is renamed changes by that. */
Test(vfs_dir_change, moved_and_set)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0700 };
	struct vfs_dir_changing mine;
	struct vfs_dir_change c;
	struct vfs_node *d;
	struct fixture f;

	open_promised(&f);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	vfs_dir_change_begin(&mine, &f.ctx, d, "x", &c);
	cr_assert_eq(vfs_rename(&f.ctx,
				&(struct vfs_rename){ f.root, f.root, "d", "e", 1, 1, NULL, NULL }),
		     0);
	vfs_dir_change_end(&mine, true);
	cr_expect_not(c.atomic);
	vfs_dir_change_begin(&mine, &f.ctx, d, "x", &c);
	cr_assert_eq(vfs_setattr(&f.ctx, d, &sa, NULL), 0);
	vfs_dir_change_end(&mine, true);
	cr_expect_not(c.atomic);
	vfs_node_put(d);
	fixture_close(&f);
}
