/* SPDX-License-Identifier: BSD-2-Clause */
/* The change attribute: each state that was read has its own value. The fixture gives its file
 * system coarse ctimes, which change at clock ticks only. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "vfs/fs/change.h"
#include "vfs/export/mounts.h"
#include "vfs/base/instance.h"
#include "vfs/io.h"
#include "vfs/hold/file_change.h"
#include "lib/clock.h"
#include "vfs/node/node.h"
#include "vfs_fixture.h"

#define TICK 4000000

/* A statx result of a file with this ctime. */
static struct statx state(uint64_t ino, int64_t ctime)
{
	return (struct statx){ .stx_ino = ino,
			       .stx_ctime = { .tv_sec = ctime / 1000000000,
					      .tv_nsec = (uint32_t)(ctime % 1000000000) } };
}

static uint64_t look(struct vfs_changes *t, uint64_t ino, int64_t ctime, int64_t clock)
{
	struct statx sx = state(ino, ctime);

	return vfs_change_of(t, &sx, &(struct vfs_look){ .clock = clock });
}

Test(vfs_change, within_a_tick)
{
	struct vfs_changes *t = vfs_changes_new(false);
	int64_t tick = 100 * (int64_t)TICK;
	uint64_t a, b, c;

	a = look(t, 5, tick, tick);
	cr_expect_eq(look(t, 5, tick, tick), a, "looking changes nothing");
	vfs_change_made(t, 0, 5, 0);
	b = look(t, 5, tick, tick);
	cr_expect_gt(b, a);
	vfs_change_made(t, 0, 6, 0);
	cr_expect_eq(look(t, 5, tick, tick + TICK), b, "another file's change");
	vfs_change_made(t, 0, 5, 0);
	c = look(t, 5, tick + TICK, tick + TICK);
	cr_expect_gt(c, b);
	vfs_change_made(t, 0, 5, 0);
	cr_expect_gt(look(t, 5, tick + TICK, tick + TICK), c);
	vfs_changes_free(t);
}

/* Another server may make a change with the same ctime, or with one that is earlier by as much as its clock is behind. */
Test(vfs_change, other_servers)
{
	struct vfs_changes *t = vfs_changes_new(true);
	const int64_t made = 100 * (int64_t)TICK, over = made + 21 * INT64_C(1000000);
	uint64_t last = 0, now;

	for (unsigned i = 0; i < 10; i++) {
		now = look(t, 5, made, made);
		cr_expect_gt(now, last, "no two looks take each other's state for theirs");
		last = now;
	}
	cr_expect_gt(look(t, 5, made, over), last, "the ctime is over");
	cr_expect_eq(look(t, 5, made, over), (uint64_t)made + VFS_CHANGE_SETTLED);
	const int64_t clock = vfs_change_clock(t), here = (int64_t)rn_wall_ns();

	cr_expect_leq(clock, here - VFS_CLOCKS_APART, "no clock is before that");
	vfs_changes_free(t);
}

/* A local process changes a file in the tick in which it was read, and the server does not count
 * the change. Both states have the same ctime, and must not have the same value for ever. */
Test(vfs_change, local_change_within_a_tick)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK, later = tick + 100 * (int64_t)TICK;
	uint64_t fresh, settled;

	for (uint64_t own = 0; own < 3; own++) {
		fresh = look(t, 5 + own, tick, tick);
		for (uint64_t i = 0; i < own; i++)
			vfs_change_made(t, 0, 5 + own, 0);
		fresh = look(t, 5 + own, tick, tick);
		settled = look(t, 5 + own, tick, later);
		cr_expect_gt(settled, fresh);
		cr_expect_eq(look(t, 5 + own, tick, later + 1000 * (int64_t)TICK), settled,
			     "it stays as it is");
	}
	vfs_changes_free(t);
}

/* A file that the server does not know, after a restart for example: a settled file has one value,
 * which no earlier state can have had. */
Test(vfs_change, settled)
{
	struct vfs_changes *t = vfs_changes_new(false), *after = vfs_changes_new(false);
	int64_t tick = 100 * (int64_t)TICK;
	uint64_t last;

	for (unsigned i = 0; i < 100; i++) {
		last = look(t, 5, tick, tick);
		vfs_change_made(t, 0, 5, 0);
	}
	cr_expect_gt(look(after, 5, tick, tick + 100 * (int64_t)TICK), last);
	cr_expect_lt(look(after, 5, tick, tick + 100 * (int64_t)TICK),
		     look(after, 5, tick + 1000000, tick + 1000000));
	cr_expect_eq(look(after, 5, tick, tick + 100 * (int64_t)TICK),
		     (uint64_t)tick + VFS_CHANGE_SETTLED);
	/* A file system with ctimes in whole seconds: the tick is one second. */
	last = look(t, 7, 9000000000, 9900000000);
	vfs_change_made(t, 0, 7, 0);
	cr_expect_gt(look(t, 7, 9000000000, 9900000000), last);
	vfs_changes_free(t);
	vfs_changes_free(after);
}

static uint64_t look_counted(struct vfs_changes *t, uint64_t ino, int64_t ctime, int64_t clock)
{
	struct statx sx = state(ino, ctime);

	return vfs_change_of(t, &sx, &(struct vfs_look){ .clock = clock, .counted = true });
}

/* Where all changes are counted, the value that a client got with its own change stays. */
Test(vfs_change, counted)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK, later = tick + 100 * (int64_t)TICK;
	uint64_t a, b;

	a = look_counted(t, 5, tick, tick);
	vfs_change_made(t, 0, 5, 0);
	b = look_counted(t, 5, tick, tick);
	cr_expect_gt(b, a);
	cr_expect_eq(look_counted(t, 5, tick, later), b);
	cr_expect_eq(look_counted(t, 5, tick, later + 1000 * (int64_t)TICK), b);
	/* Somebody has looked through an export that promises nothing. */
	cr_expect_gt(look(t, 5, tick, later), b);
	cr_expect_eq(look_counted(t, 5, tick, later), look(t, 5, tick, later));
	vfs_changes_free(t);
}

/* Changes that were counted in an entry that had to make room are not known any more: the state is
 * given a value that no earlier one can have had. */
Test(vfs_change, counted_and_lost)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK, later = tick + 100 * (int64_t)TICK;
	uint64_t lost = 0;

	for (uint64_t ino = 1; ino < 300000; ino++) {
		look_counted(t, ino, tick, tick);
		vfs_change_made(t, 0, ino, 0);
		look_counted(t, ino, tick, tick);
	}
	for (uint64_t ino = 1; ino < 300000; ino += 100) {
		uint64_t now = look_counted(t, ino, tick, tick);

		if (now == (uint64_t)tick + 1) {
			lost++;
			cr_assert_eq(look_counted(t, ino, tick, later),
				     (uint64_t)tick + VFS_CHANGE_SETTLED);
		}
	}
	cr_expect_gt(lost, 0, "the table overflows");
	vfs_changes_free(t);
}

static uint64_t look_watched(struct vfs_changes *t, int64_t ctime, int64_t clock, uint64_t others)
{
	struct statx sx = state(5, ctime);

	return vfs_change_of(t, &sx, &(struct vfs_look){ .clock = clock, .others = others });
}

static bool is_exact(struct vfs_changes *t, int64_t ctime, uint64_t others)
{
	const struct timespec ts = { .tv_sec = ctime / 1000000000, .tv_nsec = ctime % 1000000000 };

	return vfs_change_is_exact(t, 0, 5, &ts, others);
}

/* A directory whose changes by local processes are counted, and had none since the first look. */
Test(vfs_change, watched)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK, later = tick + 100 * (int64_t)TICK;
	uint64_t a;

	cr_expect(is_exact(NULL, tick, 0), "fine ctimes");
	look_watched(t, tick, tick, 7);
	cr_expect(is_exact(t, tick, 7));
	cr_expect_not(is_exact(t, tick, 8), "a local process has changed it with the same ctime");
	vfs_change_made(t, 0, 5, 0);
	a = look_watched(t, tick, tick, 7);
	cr_expect_eq(vfs_change_asks(t, 0, 5), 7);
	vfs_change_stays(t, 0, 5, 7);
	cr_expect_eq(vfs_change_asks(t, 0, 5), 0, "it is decided");
	cr_expect_eq(look_watched(t, tick, later, 8), a);
	cr_expect(is_exact(t, tick, 9));
	look_watched(t, later, later, 8);
	cr_expect_eq(vfs_change_asks(t, 0, 5), 8);
	vfs_change_stays(t, 0, 5, 7);
	cr_expect_eq(vfs_change_asks(t, 0, 5), 8, "not for another count");
	look_watched(t, later, later, 9);
	cr_expect_eq(vfs_change_asks(t, 0, 5), 0, "a local process came in between two looks");
	cr_expect_not(is_exact(t, later, 9));
	cr_expect_eq(look_watched(t, later, 2 * later, 9), (uint64_t)later + VFS_CHANGE_SETTLED);
	cr_expect(is_exact(t, later, 9), "a settled value differs from all before");
	vfs_changes_free(t);
}

/* Nobody counted at the first look. */
Test(vfs_change, watched_too_late)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK;

	look(t, 5, tick, tick);
	look_watched(t, tick, tick, 7);
	cr_expect_not(is_exact(t, tick, 7));
	cr_expect_eq(vfs_change_asks(t, 0, 5), 0);
	vfs_changes_free(t);
}

static bool tells(struct vfs_changes *t, uint64_t ino, int64_t ctime, uint64_t who)
{
	const struct timespec ts = { .tv_sec = ctime / 1000000000, .tv_nsec = ctime % 1000000000 };

	return vfs_change_ctime_tells(t, 0, ino, &ts, who, 0);
}

/* A ctime is enough for a caller that has made all changes between the states that share it. */
Test(vfs_change, ctime_tells)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK, later = tick + 100 * (int64_t)TICK;
	const int64_t now = vfs_change_clock(t);

	cr_expect(tells(NULL, 5, tick, 1), "fine ctimes");
	cr_expect_not(tells(t, 5, tick, 1), "nothing is known");
	look(t, 5, tick, tick);
	cr_expect(tells(t, 5, tick, 1), "one state");
	cr_expect_not(tells(t, 5, later, 1), "another ctime");
	vfs_change_made(t, 0, 5, 1);
	look(t, 5, tick, tick);
	cr_expect(tells(t, 5, tick, 1));
	cr_expect_not(tells(t, 5, tick, 2), "the other has not seen the second state");
	look_counted(t, 5, tick, later);
	cr_expect(tells(t, 5, tick, 1), "later, too");
	vfs_change_made(t, 0, 5, 2);
	look(t, 5, tick, tick);
	cr_expect_not(tells(t, 5, tick, 1));
	cr_expect_not(tells(t, 5, tick, 2));
	look(t, 5, later, later);
	cr_expect(tells(t, 5, later, 1));
	cr_expect_not(tells(t, 5, later + TICK, 1),
		      "perhaps looked at before the server was started");
	cr_expect(tells(t, 5, now + TICK, 1), "an old state, not looked at while it was fresh");
	vfs_change_made(t, 0, 5, 0);
	cr_expect_not(tells(t, 5, later, 0), "nobody knows who");
	vfs_changes_free(t);
}

/* The value has settled, as somebody has looked without asking for local changes, but there were
 * none. */
Test(vfs_change, ctime_tells_when_settled)
{
	struct vfs_changes *t = vfs_changes_new(false);
	const int64_t tick = 100 * (int64_t)TICK, later = tick + 100 * (int64_t)TICK;
	const struct timespec ts = { .tv_nsec = tick };

	look_watched(t, tick, tick, 7);
	look(t, 5, tick, later);
	cr_expect(vfs_change_ctime_tells(t, 0, 5, &ts, 1, 7));
	cr_expect_not(vfs_change_ctime_tells(t, 0, 5, &ts, 1, 8), "a local process has changed it");
	cr_expect_not(vfs_change_ctime_tells(t, 0, 5, &ts, 1, 0), "nobody counts any more");
	vfs_changes_free(t);
}

Test(vfs_change, table_overflows)
{
	struct vfs_changes *t = vfs_changes_new(false);
	int64_t tick = 100 * (int64_t)TICK;
	uint64_t value;

	for (uint64_t ino = 1; ino < 300000; ino++) {
		value = look(t, ino, tick, tick);
		vfs_change_made(t, 0, ino, 0);
		cr_assert_gt(look(t, ino, tick, tick), value);
	}
	for (uint64_t ino = 1; ino < 300000; ino += 1000)
		cr_assert_geq(look(t, ino, tick, tick + 100 * (int64_t)TICK), (uint64_t)tick + 2);
	vfs_changes_free(t);
}

static uint64_t change_of(struct fixture *f, struct vfs_node *n)
{
	return must_getattr(&f->ctx, n).change;
}

static void replace(struct fixture *f)
{
	const struct vfs_rename r = { .from_dir = f->root,
				      .to_dir = f->root,
				      .from = "new",
				      .to = "old",
				      .from_len = 3,
				      .to_len = 3 };
	uint64_t dir;

	vfs_node_put(must_create(&f->ctx, f->root, "new", 0644));
	vfs_node_put(must_create(&f->ctx, f->root, "old", 0644));
	dir = change_of(f, f->root);
	cr_assert_eq(vfs_rename(&f->ctx, &r), 0);
	cr_assert_gt(change_of(f, f->root), dir);
	cr_assert_eq(vfs_remove(&f->ctx, f->root, "old", 3, NULL), 0);
}

/* Every operation on a file or a directory changes the value, however fast one follows another. */
static void every_operation(struct fixture *f)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	struct vfs_rename r = { .from_dir = f->root,
				.to_dir = f->root,
				.from = "a",
				.to = "b",
				.from_len = 1,
				.to_len = 1 };
	struct vfs_node *n, *d;
	uint64_t dir, file;

	for (unsigned i = 0; i < 50; i++) {
		dir = change_of(f, f->root);
		n = must_create(&f->ctx, f->root, "a", 0644);
		cr_assert_gt(change_of(f, f->root), dir);
		file = change_of(f, n);
		cr_assert_eq(vfs_setattr(&f->ctx, n, &sa, NULL), 0);
		cr_assert_gt(change_of(f, n), file);
		dir = change_of(f, f->root);
		file = change_of(f, n);
		cr_assert_eq(vfs_rename(&f->ctx, &r), 0);
		cr_assert_gt(change_of(f, f->root), dir);
		cr_assert_gt(change_of(f, n), file);
		dir = change_of(f, f->root);
		file = change_of(f, n);
		cr_assert_eq(vfs_link(&f->ctx, n, f->root, "c", 1, NULL), 0);
		cr_assert_gt(change_of(f, f->root), dir);
		cr_assert_gt(change_of(f, n), file);
		dir = change_of(f, f->root);
		d = must_mkdir(&f->ctx, f->root, "d", 0755);
		cr_assert_gt(change_of(f, f->root), dir);
		vfs_node_put(d);
		dir = change_of(f, f->root);
		cr_assert_eq(vfs_rmdir(&f->ctx, f->root, "d", 1, NULL), 0);
		cr_assert_gt(change_of(f, f->root), dir);
		dir = change_of(f, f->root);
		file = change_of(f, n);
		cr_assert_eq(vfs_remove(&f->ctx, f->root, "b", 1, NULL), 0);
		cr_assert_gt(change_of(f, f->root), dir);
		cr_assert_gt(change_of(f, n), file);
		cr_assert_eq(vfs_remove(&f->ctx, f->root, "c", 1, NULL), 0);
		vfs_node_put(n);
		replace(f);
	}
}

static void every_write(struct fixture *f)
{
	struct vfs_node *n = must_create(&f->ctx, f->root, "w", 0644);
	uint64_t before = change_of(f, n), after;

	for (unsigned i = 0; i < 100; i++) {
		struct vfs_io io = { .ctx = &f->ctx,
				     .node = n,
				     .count = 1,
				     .npieces = 1,
				     .piece[0] = { (char[]){ "x" }, 1 } };

		cr_assert_eq(vfs_write(&io), 1);
		after = change_of(f, n);
		cr_assert_gt(after, before);
		cr_assert_geq(change_of(f, n), after); /* the file may have settled meanwhile */
		before = after;
	}
	vfs_node_put(n);
}

Test(vfs_change, as_the_file_system_has_it)
{
	struct fixture f;

	fixture_open(&f, 0);
	every_operation(&f);
	every_write(&f);
	fixture_close(&f);
}

static void write_within(struct fixture *f, const char *name, const char *text)
{
	int fd = open(in_export(f, name), O_WRONLY);

	cr_assert_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	close(fd);
}

/*
 * A look while a write is under way that has set the ctime, and not all data yet, has a value of its own. None goes back,
 * also if the write before was looked at within the same tick.
 */
static void value_of_a_write_under_way(struct fixture *f, long pause_ns)
{
	const struct timespec pause = { .tv_nsec = pause_ns };
	struct vfs_node *n = must_create(&f->ctx, f->root, "u", 0644);
	uint64_t before, begun, set, later, after;
	struct vfs_file_change change, second;
	struct timespec young;

	for (unsigned i = 0; i < 50; i++) {
		before = change_of(f, n);
		cr_assert_eq(vfs_file_change_begin(&f->ctx, n, &change), 0);
		begun = change_of(f, n);
		cr_assert_geq(begun, before, "%u", i);
		write_within(f, "u", "a");
		set = change_of(f, n);
		cr_assert_geq(set, begun, "%u", i);
		cr_assert_eq(vfs_file_change_begin(&f->ctx, n, &second), 0);
		write_within(f, "u", "b");
		vfs_file_change_end(&second);
		nanosleep(&pause, NULL);
		later = change_of(f, n);
		cr_assert_geq(later, set, "%u", i);
		young = must_getattr(&f->ctx, n).ctime;
		vfs_node_changed(n);
		vfs_file_change_end(&change);
		after = change_of(f, n);
		cr_assert_gt(after, later, "%u", i);
		cr_assert_neq(must_getattr(&f->ctx, n).ctime.tv_nsec, young.tv_nsec, "NFSv3");
		cr_assert_gt(after, before, "%u", i);
		if (!n->mnt->changes || pause_ns)
			cr_assert_eq(change_of(f, n), after, "%u", i);
	}
	cr_assert_eq(vfs_remove(&f->ctx, f->root, "u", 1, NULL), 0);
	vfs_node_put(n);
}

Test(vfs_change, write_under_way)
{
	struct fixture f;

	fixture_open(&f, 0);
	value_of_a_write_under_way(&f, 0);
	f.exp->root_mnt->changes = f.exp->root_mnt->dir_changes = f.vfs->changes;
	value_of_a_write_under_way(&f, 0);
	value_of_a_write_under_way(&f, 30 * 1000 * 1000);
	fixture_close(&f);
}

/* Files that have not changed since it began keep their values, also where they share its slot. */
Test(vfs_change, another_files_write_under_way)
{
	struct vfs_file_change change;
	struct vfs_node *n;
	struct fixture f;
	uint64_t before;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "u", 0644);
	before = change_of(&f, n);
	cr_assert_eq(vfs_file_change_count(f.vfs, &n->fh, &change), 0);
	cr_expect_eq(change_of(&f, n), before);
	vfs_file_change_end(&change);
	vfs_node_put(n);
	fixture_close(&f);
}

enum { BIG = 1 << 20, LOOKS = 4096 };

/* A write of many pages, by a thread of its own. */
struct writer {
	struct fixture *f;
	struct vfs_node *n;
	char *data;
	_Atomic bool done;
};

static void write_all(struct vfs_ctx *ctx, struct vfs_node *n, char *data)
{
	struct vfs_io io = {
		.ctx = ctx, .node = n, .count = BIG, .npieces = 1, .piece[0] = { data, BIG }
	};

	cr_assert_eq(vfs_write(&io), BIG);
}

static void *writer(void *arg)
{
	struct writer *w = arg;
	struct vfs_ctx ctx = w->f->ctx;
	struct vfs_worker *own;
	struct rn_fiber fiber;

	cr_assert_eq(vfs_worker_new(w->f->vfs, 0, &own), 0);
	rn_fiber_of_thread(&fiber, own);
	ctx.fiber = &fiber;
	write_all(&ctx, w->n, w->data);
	vfs_worker_free(own);
	atomic_store(&w->done, true);
	return NULL;
}

/* A client's cached data, which it read after it saw that change attribute. */
struct cached {
	uint64_t change;
	char last;
};

static char last_byte(int fd)
{
	char c = 0;

	cr_assert_eq(pread(fd, &c, 1, BIG - 1), 1);
	return c;
}

static unsigned look_meanwhile(struct writer *w, int fd, struct cached seen[LOOKS])
{
	pthread_t thread;
	unsigned looks = 0;

	atomic_store(&w->done, false);
	cr_assert_eq(pthread_create(&thread, NULL, writer, w), 0);
	while (!atomic_load(&w->done)) {
		const uint64_t change = change_of(w->f, w->n);

		seen[looks++ % LOOKS] = (struct cached){ change, last_byte(fd) };
	}
	pthread_join(thread, NULL);
	return looks < LOOKS ? looks : LOOKS;
}

/* Old data that were read in the middle of a write are not current by the value of its end. */
Test(vfs_change, read_in_the_middle_of_a_write)
{
	static struct cached seen[LOOKS];
	struct fixture f;
	struct writer w = { .f = &f, .data = malloc(BIG) };
	unsigned old = 0;
	int fd;

	fixture_open(&f, 0);
	w.n = must_create(&f.ctx, f.root, "big", 0644);
	memset(w.data, 0, BIG);
	write_all(&f.ctx, w.n, w.data);
	fd = open(in_export(&f, "big"), O_RDONLY);
	for (char i = 1; i < 100; i++) {
		unsigned looks;

		memset(w.data, i, BIG);
		looks = look_meanwhile(&w, fd, seen);
		for (unsigned k = 0; k < looks; k++)
			old += seen[k].last != i && seen[k].change == change_of(&f, w.n);
	}
	cr_expect_eq(old, 0, "%u looks", old);
	close(fd);
	vfs_node_put(w.n);
	free(w.data);
	fixture_close(&f);
}

enum { CHANGES = 100000 };

static void *change_often(void *arg)
{
	struct writer *w = arg;
	struct vfs_ctx ctx = w->f->ctx;
	struct vfs_file_change change;
	int fd = open(in_export(w->f, "u"), O_WRONLY);

	for (unsigned i = 0; i < CHANGES; i++) {
		cr_assert_eq(vfs_file_change_begin(&ctx, w->n, &change), 0);
		cr_assert_eq(pwrite(fd, "x", 1, 0), 1);
		vfs_file_change_end(&change);
	}
	close(fd);
	atomic_store(&w->done, true);
	return NULL;
}

/* The change attribute that clients got between two changes stays the same until the second change has set another ctime. */
Test(vfs_change, looks_amid_many_changes)
{
	struct fixture f;
	struct writer w = { .f = &f };
	uint64_t before = 0, now;
	pthread_t thread;
	unsigned back = 0;

	fixture_open(&f, 0);
	w.n = must_create(&f.ctx, f.root, "u", 0644);
	cr_assert_eq(pthread_create(&thread, NULL, change_often, &w), 0);
	while (!atomic_load(&w.done)) {
		now = change_of(&f, w.n);
		back += now < before;
		before = now;
	}
	pthread_join(thread, NULL);
	cr_expect_eq(back, 0, "%u times", back);
	vfs_node_put(w.n);
	fixture_close(&f);
}

static bool open_on_tmpfs(struct fixture *f)
{
	struct statfs fs;

	if (statfs("/dev/shm", &fs) != 0 || fs.f_type != TMPFS_MAGIC) {
		cr_skip_test("no tmpfs on /dev/shm");
		return false;
	}
	setenv("TMPDIR", "/dev/shm", 1);
	fixture_open(f, 0);
	return true;
}

/* An entry of tmpfs that is removed or replaced gives its ctime to the directory, which may have that one already. */
Test(vfs_change, on_tmpfs)
{
	struct fixture f;

	if (!open_on_tmpfs(&f))
		return;
	every_operation(&f);
	every_write(&f);
	fixture_close(&f);
}

/* The same by local processes: the value may be late, but is another one in the end. */
Test(vfs_change, local_removals_on_tmpfs)
{
	const struct timespec pause = { .tv_nsec = 60 * 1000 * 1000 };
	struct vfs_node *dir[50];
	uint64_t before[50];
	struct fixture f;
	char name[32];

	if (!open_on_tmpfs(&f))
		return;
	for (unsigned i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		dir[i] = must_mkdir(&f.ctx, f.root, name, 0755);
		snprintf(name, sizeof(name), "d%u/x", i);
		cr_assert_eq(mkdir(in_export(&f, name), 0755), 0);
		before[i] = change_of(&f, dir[i]);
		cr_assert_eq(rmdir(in_export(&f, name)), 0);
	}
	nanosleep(&pause, NULL);
	for (unsigned i = 0; i < 50; i++) {
		cr_expect_neq(change_of(&f, dir[i]), before[i], "%u", i);
		vfs_node_put(dir[i]);
	}
	fixture_close(&f);
}

Test(vfs_change, helped_out)
{
	struct fixture f;

	fixture_open(&f, 0);
	f.exp->root_mnt->changes = f.exp->root_mnt->dir_changes = f.vfs->changes;
	every_operation(&f);
	every_write(&f);
	fixture_close(&f);
}

/*
 * Two changes by a local process within a tick, and a read between them. After the tick at the
 * latest, a read must show another value than the one between. Only relevant on kernels whose
 * ctimes change at ticks.
 */
Test(vfs_change, local_changes_are_seen)
{
	enum { FILES = 300 };
	static uint64_t between[FILES];
	static struct vfs_node *node[FILES];
	struct fixture f;
	char name[16];
	int fd;

	fixture_open(&f, 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		fd = open(in_export(&f, name), O_CREAT | O_WRONLY, 0644);
		cr_assert_geq(fd, 0);
		cr_assert_eq(write(fd, "1", 1), 1);
		node[i] = must_lookup(&f.ctx, f.root, name);
		between[i] = change_of(&f, node[i]);
		cr_assert_eq(write(fd, "2", 1), 1);
		close(fd);
	}
	usleep(50000);
	for (int i = 0; i < FILES; i++) {
		cr_expect_neq(change_of(&f, node[i]), between[i], "file %d", i);
		vfs_node_put(node[i]);
	}
	fixture_close(&f);
}
