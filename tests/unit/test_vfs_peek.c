/* SPDX-License-Identifier: BSD-2-Clause */
/* A name's handle and attributes, read without opening the file, equal those of a lookup. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs_fixture.h"

/* Longer than ctimes count as fresh: handles of older files are kept. */
static void let_ctimes_settle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 60 * 1000 * 1000 }, NULL);
}

static void need_known_handles(struct fixture *f)
{
	if (f->exp->root_mnt->fs.handles_by_inode)
		return;
	fixture_close(f);
	cr_skip_test("a file system whose handles do not follow from the inode");
}

/* How many handles a look at the names f0 to f<n - 1> reads from the kernel. Each equals that of a
 * lookup. */
static uint64_t handles_read(struct fixture *f, unsigned n)
{
	struct vfs_stats before, after;
	char name[32];

	vfs_stats(f->vfs, &before);
	for (unsigned i = 0; i < n; i++) {
		struct vfs_attr seen, a;
		struct vfs_node *node;
		struct vfs_fh fh;
		uint32_t len = (uint32_t)snprintf(name, sizeof(name), "f%u", i);

		cr_assert_eq(vfs_peek(&f->ctx, f->root, name, len, &fh, &seen), 0, "%s", name);
		cr_assert_eq(vfs_lookup(&f->ctx, f->root, name, len, &node, &a), 0, "%s", name);
		cr_expect_eq(fh.len, vfs_node_fh(node)->len, "%s", name);
		cr_expect_arr_eq(fh.data, vfs_node_fh(node)->data, fh.len, "%s", name);
		cr_expect_eq(seen.fileid, a.fileid, "%s", name);
		cr_expect_eq(seen.size, a.size, "%s", name);
		cr_expect_eq(seen.change, a.change, "%s", name);
		vfs_node_put(node);
	}
	vfs_stats(f->vfs, &after);
	cr_expect_eq(after.handles_known - before.handles_known + after.handles_read -
			     before.handles_read,
		     n);
	return after.handles_read - before.handles_read;
}

#define FILES 50u

static void put_files(const struct fixture *f, const char *text)
{
	char name[32];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		put_file(in_export(f, name), text);
	}
}

Test(vfs_peek, a_second_look_reads_no_handle)
{
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	need_known_handles(&f);
	put_files(&f, "");
	cr_expect_eq(handles_read(&f, FILES), FILES);
	let_ctimes_settle();
	handles_read(&f, FILES);
	cr_expect_eq(handles_read(&f, FILES), 0);
	cr_assert_eq(chmod(in_export(&f, "f7"), 0600), 0);
	cr_expect_eq(handles_read(&f, FILES), 1, "a file that has changed");
	fixture_close(&f);
}

/* Inode numbers are used again at once by ext4: each name gets another file with a number that was
 * known. */
Test(vfs_peek, numbers_are_used_again)
{
	struct fixture f;
	char name[32];

	fixture_open(&f, FIX_MAC);
	need_known_handles(&f);
	put_files(&f, "old");
	for (unsigned round = 0; round < 3; round++) {
		let_ctimes_settle();
		handles_read(&f, FILES);
		cr_expect_eq(handles_read(&f, FILES), 0);
		for (unsigned i = 0; i < FILES; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			cr_assert_eq(unlink(in_export(&f, name)), 0);
		}
		put_files(&f, "another");
		cr_expect_eq(handles_read(&f, FILES), FILES, "none is known");
	}
	fixture_close(&f);
}

/* Names are exchanged, replaced and linked by a local process. */
Test(vfs_peek, names_change_hands)
{
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	need_known_handles(&f);
	put_files(&f, "x");
	let_ctimes_settle();
	handles_read(&f, FILES);
	cr_assert_eq(rename(in_export(&f, "f1"), in_export(&f, "aside")), 0);
	cr_assert_eq(rename(in_export(&f, "f2"), in_export(&f, "f1")), 0);
	cr_assert_eq(rename(in_export(&f, "aside"), in_export(&f, "f2")), 0);
	cr_assert_eq(unlink(in_export(&f, "f3")), 0);
	cr_assert_eq(link(in_export(&f, "f4"), in_export(&f, "f3")), 0);
	put_file(in_export(&f, "new"), "longer");
	cr_assert_eq(rename(in_export(&f, "new"), in_export(&f, "f5")), 0);
	handles_read(&f, FILES);
	fixture_close(&f);
}

/* A cached handle is not shown to a user who may not search the directory. */
Test(vfs_peek, known_handles_are_not_shown_to_others)
{
	struct vfs_attr a;
	struct vfs_ctx user;
	struct vfs_node *d;
	struct vfs_fh fh;
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	need_known_handles(&f);
	user = as_user(&f, 1000, 100);
	d = must_mkdir(&f.ctx, f.root, "closed", 0700);
	put_file(in_export(&f, "closed/in"), "x");
	let_ctimes_settle();
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(vfs_peek(&f.ctx, d, "in", 2, &fh, &a), 0);
	cr_expect_eq(vfs_peek(&user, d, "in", 2, &fh, &a), -EACCES);
	be_root(&f);
	vfs_node_put(d);
	fixture_close(&f);
}

static int try_peek(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name)
{
	struct vfs_attr a;
	struct vfs_fh fh;

	return vfs_peek(ctx, dir, name, (uint32_t)strlen(name), &fh, &a);
}

static void expect_same(struct fixture *f, const char *name)
{
	uint32_t len = (uint32_t)strlen(name);
	struct vfs_attr seen, a;
	struct vfs_stats before, after;
	struct vfs_node *n;
	struct vfs_fh fh;

	vfs_stats(f->vfs, &before);
	cr_assert_eq(vfs_peek(&f->ctx, f->root, name, len, &fh, &seen), 0, "%s", name);
	vfs_stats(f->vfs, &after);
	cr_expect_eq(after.nodes, before.nodes, "%s", name);
	cr_expect_eq(after.fds, before.fds, "%s", name);
	cr_assert_eq(vfs_lookup(&f->ctx, f->root, name, len, &n, &a), 0, "%s", name);
	cr_expect_eq(fh.len, vfs_node_fh(n)->len, "%s", name);
	cr_expect_arr_eq(fh.data, vfs_node_fh(n)->data, fh.len, "%s", name);
	cr_expect_eq(seen.fileid, a.fileid, "%s", name);
	cr_expect_eq(seen.fsid, a.fsid, "%s", name);
	cr_expect_eq(seen.mode, a.mode, "%s", name);
	cr_expect_eq(seen.size, a.size, "%s", name);
	cr_expect_eq(seen.change, a.change, "%s", name);
	vfs_node_put(n);
}

Test(vfs_peek, shows_what_a_lookup_shows)
{
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	put_file(in_export(&f, "file"), "text");
	cr_assert_eq(mkdir(in_export(&f, "dir"), 0751), 0);
	cr_assert_eq(symlink("nowhere", in_export(&f, "link")), 0);
	cr_assert_eq(mkfifo(in_export(&f, "fifo"), 0600), 0);
	expect_same(&f, "file");
	expect_same(&f, "dir");
	expect_same(&f, "link");
	expect_same(&f, "fifo");
	expect_same(&f, ".");
	expect_same(&f, "..");
	fixture_close(&f);
}

Test(vfs_peek, permission_and_errors)
{
	struct fixture f;
	struct vfs_ctx user;
	struct vfs_node *d, *file;

	fixture_open(&f, 0);
	user = as_user(&f, 1000, 100);
	d = must_mkdir(&f.ctx, f.root, "closed", 0744);
	put_file(in_export(&f, "closed/in"), "x");
	file = must_create(&f.ctx, f.root, "file", 0644);
	cr_expect_eq(try_peek(&user, d, "in"), -EACCES, "readable, but not to be searched");
	cr_expect_eq(try_peek(&f.ctx, d, "in"), 0);
	cr_expect_eq(try_peek(&f.ctx, d, "not"), -ENOENT);
	cr_expect_eq(try_peek(&f.ctx, d, "a/b"), -EINVAL);
	cr_expect_eq(try_peek(&f.ctx, file, "x"), -ENOTDIR);
	be_root(&f);
	cr_assert_eq(unlink(in_export(&f, "closed/in")), 0);
	cr_assert_eq(rmdir(in_export(&f, "closed")), 0);
	cr_expect_eq(try_peek(&f.ctx, d, "in"), -ESTALE);
	vfs_node_put(d);
	vfs_node_put(file);
	fixture_close(&f);
}
