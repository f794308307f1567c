/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories are listed in steps of any size, by several readers, while they change. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs_fixture.h"

#define MANY 2000

/* Accepts up to room entries; counts the names "f<number>". */
struct taker {
	unsigned room;
	unsigned char seen[MANY];
	unsigned others, dots;
	uint64_t cookie;
	uint64_t dotdot_ino;
};

static bool take(void *arg, const struct vfs_dirent *de)
{
	struct taker *t = arg;
	unsigned i;

	if (t->room == 0)
		return false;
	t->room--;
	cr_assert_eq(de->len, strlen(de->name));
	cr_assert_neq(de->cookie, t->cookie);
	t->cookie = de->cookie;
	if (sscanf(de->name, "f%u", &i) == 1 && i < MANY)
		t->seen[i]++;
	else if (de->name[0] == '.')
		t->dots++;
	else
		t->others++;
	if (strcmp(de->name, "..") == 0)
		t->dotdot_ino = de->fileid;
	return true;
}

/* One call for up to room entries; true at the end of the directory. */
static bool step(struct fixture *f, struct vfs_node *dir, struct taker *t, unsigned room)
{
	uint64_t from = t->cookie;
	bool eof;
	int rc;

	t->room = room;
	rc = vfs_readdir(&f->ctx, dir, from, &(struct vfs_listing){ .each = take, .arg = t }, &eof);
	cr_assert_eq(rc, 0, "readdir: %d", rc);
	cr_assert(eof || t->room == 0, "stopped early");
	return eof;
}

static void fill(const struct fixture *f, unsigned from, unsigned to)
{
	char name[32];

	for (unsigned i = from; i < to; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		close(open(in_export(f, name), O_CREAT | O_WRONLY, 0644));
	}
}

static void drop(const struct fixture *f, unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "f%u", i);
	cr_assert_eq(unlink(in_export(f, name)), 0);
}

Test(vfs_readdir, every_step_sees_each_entry_once)
{
	static struct taker t;
	const unsigned steps[] = { 1, 2, 7, 300, MANY + 10 };
	struct fixture f;

	fixture_open(&f, 0);
	fill(&f, 0, MANY);
	for (unsigned s = 0; s < 5; s++) {
		t = (struct taker){ 0 };
		while (!step(&f, f.root, &t, steps[s]))
			;
		for (unsigned i = 0; i < MANY; i++)
			cr_assert_eq(t.seen[i], 1, "step %u: f%u seen %u times", steps[s], i,
				     t.seen[i]);
		cr_expect_eq(t.dots, 2);
		cr_expect_eq(t.dotdot_ino, must_getattr(&f.ctx, f.root).fileid, ".. of the root");
	}
	fixture_close(&f);
}

Test(vfs_readdir, readers_do_not_disturb_each_other)
{
	static struct taker t[7];
	bool done[7] = { 0 };
	unsigned left = 7;
	struct fixture f;

	fixture_open(&f, 0);
	fill(&f, 0, MANY);
	while (left > 0) {
		for (unsigned r = 0; r < 7; r++) {
			if (done[r])
				continue;
			done[r] = step(&f, f.root, &t[r], 10 + r * 30);
			left -= done[r];
		}
	}
	for (unsigned r = 0; r < 7; r++) {
		for (unsigned i = 0; i < MANY; i++)
			cr_assert_eq(t[r].seen[i], 1, "reader %u: f%u", r, i);
	}
	fixture_close(&f);
}

Test(vfs_readdir, what_stays_is_seen_once_while_others_come_and_go)
{
	static struct taker t;
	struct fixture f;
	unsigned round = 0;

	fixture_open(&f, 0);
	fill(&f, 0, 1500);
	while (!step(&f, f.root, &t, 25)) {
		if (round < 400) {
			drop(&f, 1000 + round);
			fill(&f, 1500 + round, 1501 + round);
		}
		round++;
	}
	for (unsigned i = 0; i < 1000; i++)
		cr_assert_eq(t.seen[i], 1, "f%u seen %u times", i, t.seen[i]);
	for (unsigned i = 1000; i < MANY; i++)
		cr_assert_leq(t.seen[i], 1, "f%u seen %u times", i, t.seen[i]);
	fixture_close(&f);
}

Test(vfs_readdir, goes_on_after_a_restart)
{
	static struct taker t;
	struct fixture f;

	fixture_open(&f, 0);
	fill(&f, 0, MANY);
	step(&f, f.root, &t, 777);
	fixture_restart(&f);
	while (!step(&f, f.root, &t, 500))
		;
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(t.seen[i], 1);
	fixture_close(&f);
}

Test(vfs_readdir, a_new_listing_sees_what_is_new)
{
	static struct taker t;
	struct fixture f;

	fixture_open(&f, 0);
	cr_expect(step(&f, f.root, &t, 100));
	fill(&f, 0, 3);
	t = (struct taker){ 0 };
	cr_expect(step(&f, f.root, &t, 100));
	cr_expect_eq(t.seen[0] + t.seen[1] + t.seen[2], 3);
	/* Behind the last cookie there is only the end. */
	t.room = 100;
	cr_expect(step(&f, f.root, &t, 100));
	fixture_close(&f);
}

Test(vfs_readdir, permission_and_errors)
{
	static struct taker t;
	const struct vfs_listing to = { .each = take, .arg = &t };
	struct fixture f;
	struct vfs_ctx user;
	struct vfs_node *d, *file;
	bool eof;

	fixture_open(&f, 0);
	user = as_user(&f, 1000, 100);
	d = must_mkdir(&f.ctx, f.root, "d", 0711);
	file = must_create(&f.ctx, f.root, "file", 0644);
	t.room = 100;
	cr_expect_eq(vfs_readdir(&user, d, 0, &to, &eof), -EACCES);
	cr_expect_eq(vfs_readdir(&user, file, 0, &to, &eof), -ENOTDIR);
	cr_expect_eq(vfs_readdir(&f.ctx, d, UINT64_MAX, &to, &eof), -EINVAL);
	be_root(&f);
	cr_assert_eq(rmdir(in_export(&f, "d")), 0);
	cr_expect_eq(vfs_readdir(&f.ctx, d, 0, &to, &eof), -ESTALE);
	vfs_node_put(d);
	vfs_node_put(file);
	fixture_close(&f);
}

/* ".." of a directory below the root comes from the file system. */
Test(vfs_readdir, dotdot_below_the_root)
{
	static struct taker t;
	struct fixture f;
	struct vfs_node *d;

	fixture_open(&f, 0);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	step(&f, d, &t, 100);
	cr_expect_eq(t.dotdot_ino, must_getattr(&f.ctx, f.root).fileid);
	vfs_node_put(d);
	fixture_close(&f);
}
