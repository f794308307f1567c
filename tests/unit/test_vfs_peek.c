/* SPDX-License-Identifier: BSD-2-Clause */
/* A name's handle and attributes, read without opening the file, equal those of a lookup. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs_fixture.h"

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
