/* SPDX-License-Identifier: BSD-2-Clause */
/* Files, shares and locks as administrators see them (vfs/view.h). */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/node/cache.h"
#include "vfs/view.h"
#include "vfs_fixture.h"

static struct vfs_view_path path_of(const struct fixture *f, const struct vfs_fh *fh,
				    struct vfs_file *file)
{
	struct vfs_export *const exps[] = { f->exp };
	const struct vfs_view_exports all = { .exp = exps, .n = 1 };
	struct vfs_view_path out;

	vfs_view_path(&all, f->exp, fh, file, &out);
	return out;
}

static void expect_path(const struct fixture *f, const struct vfs_fh *fh, struct vfs_file *file,
			const char *path)
{
	const struct vfs_view_path found = path_of(f, fh, file);
	char real[4096] = "";

	if (*path)
		snprintf(real, sizeof(real), "%s%s", vfs_export_real_path(f->exp), path);
	cr_expect_str_eq(found.text, real);
	cr_expect_not(found.removed);
}

static void close_idle(const struct fixture *f)
{
	vfs_cache_close_idle(f->vfs, INT64_MAX);
}

static void test_names(unsigned flags)
{
	struct vfs_view_path top;
	struct vfs_node *dir, *n;
	struct fixture f;
	struct vfs_fh fh;

	fixture_open(&f, flags);
	dir = must_mkdir(&f.ctx, f.root, "d", 0755);
	n = must_create(&f.ctx, dir, "one (deleted)", 0644);
	fh = *vfs_node_fh(n);
	expect_path(&f, &fh, NULL, "/d/one (deleted)");
	expect_path(&f, vfs_node_fh(dir), NULL, "/d");
	top = path_of(&f, vfs_node_fh(f.root), NULL);
	cr_expect_str_eq(top.text, vfs_export_real_path(f.exp));
	cr_assert_eq(rename(in_export(&f, "d/one (deleted)"), in_export(&f, "two")), 0);
	expect_path(&f, &fh, NULL, "/two");
	vfs_node_put(n);
	expect_path(&f, &fh, NULL, "/two");
	close_idle(&f);
	expect_path(&f, &fh, NULL, "");
	vfs_node_put(dir);
	fixture_close(&f);
}

/* The file of an EXCLUSIVE create has no name when it is opened. */
Test(vfs_view, file_of_an_exclusive_create)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	struct vfs_create cr = { .how = VFS_EXCLUSIVE,
				 .sa = &sa,
				 .verf = (const uint8_t *)"verifier" };
	struct vfs_node *n;
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	cr_assert_eq(vfs_create(&f.ctx, f.root, "f", 1, &cr, &n), 0);
	expect_path(&f, vfs_node_fh(n), NULL, "/f");
	vfs_node_put(n);
	fixture_close(&f);
}

/* Mounts of exports with crossmnt are not cloned: the kernel tells paths of this process's root. */
Test(vfs_view, names)
{
	test_names(FIX_MAC);
}

Test(vfs_view, names_crossmnt)
{
	test_names(FIX_MAC | FIX_CROSSMNT);
}

static void open_file(struct fixture *f, struct vfs_node *n, struct vfs_share *s)
{
	const struct vfs_share_request r = { .access = VFS_SHARE_WRITE, .deny = VFS_SHARE_READ };

	cr_assert_eq(vfs_share_open(&f->ctx, n, s, &r, NULL), 0);
}

Test(vfs_view, removed_while_open)
{
	struct vfs_view_path path;
	struct vfs_share_request r;
	struct vfs_share share;
	struct vfs_node *n;
	struct vfs_fh fh;
	struct fixture f;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	fh = *vfs_node_fh(n);
	open_file(&f, n, &share);
	vfs_node_put(n);
	cr_assert(vfs_view_share(share.file, &share, &r));
	cr_expect_eq(r.access, VFS_SHARE_WRITE);
	cr_expect_eq(r.deny, VFS_SHARE_READ);
	close_idle(&f); /* the open file keeps a descriptor */
	expect_path(&f, &fh, share.file, "/f");
	cr_assert_eq(unlink(in_export(&f, "f")), 0);
	path = path_of(&f, &fh, share.file);
	cr_expect(path.removed);
	cr_expect_str_eq(strrchr(path.text, '/'), "/f");
	vfs_share_close(&share);
	fixture_close(&f);
}

Test(vfs_view, hard_links)
{
	struct vfs_view_path path;
	struct vfs_node *n;
	struct fixture f;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	cr_assert_eq(link(in_export(&f, "f"), in_export(&f, "g")), 0);
	cr_assert_eq(unlink(in_export(&f, "f")), 0);
	path = path_of(&f, vfs_node_fh(n), NULL);
	cr_expect_not(path.removed, "it has another name");
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_view, no_export)
{
	const struct vfs_view_exports none = { .n = 0 };
	struct vfs_view_path path;
	struct vfs_node *n;
	struct fixture f;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	vfs_view_path(&none, NULL, vfs_node_fh(n), NULL, &path);
	cr_expect_str_eq(path.text, "");
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_view, ranges)
{
	struct vfs_lock_request r = { .type = VFS_LOCK_WRITE, .length = 1 };
	struct vfs_view_ranges out;
	struct vfs_lock_owner o;
	struct vfs_file *file;
	struct vfs_node *n;
	struct fixture f;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	cr_assert_eq(vfs_file_get(&f.ctx, n, &file), 0);
	vfs_lock_owner_init(&o, file, NULL);
	cr_assert(vfs_view_ranges(file, &o, &out));
	cr_expect_eq(out.n + out.total, 0);
	for (unsigned i = 0; i < VFS_VIEW_RANGES + 10; i++) {
		r.offset = 10 * (uint64_t)i;
		cr_assert_eq(vfs_lock(&f.ctx, n, &o, &r, NULL), 0);
	}
	r = (struct vfs_lock_request){ VFS_LOCK_READ, .offset = 1u << 20, .length = UINT64_MAX };
	cr_assert_eq(vfs_lock(&f.ctx, n, &o, &r, NULL), 0);
	cr_assert(vfs_view_ranges(file, &o, &out));
	cr_expect_eq(out.total, VFS_VIEW_RANGES + 11);
	cr_expect_eq(out.n, VFS_VIEW_RANGES);
	cr_expect_eq(out.range[2].offset, 20);
	cr_expect_eq(out.range[2].length, 1);
	cr_expect_eq(out.range[2].type, VFS_LOCK_WRITE);
	cr_assert_eq(vfs_unlock(&f.ctx, &o, 0, 1u << 20), 0);
	cr_assert(vfs_view_ranges(file, &o, &out));
	cr_expect_eq(out.n, 1);
	cr_expect_eq(out.range[0].offset, 1u << 20);
	cr_expect_eq(out.range[0].length, UINT64_MAX);
	cr_expect_eq(out.range[0].type, VFS_LOCK_READ);
	vfs_lock_owner_end(&o);
	cr_assert(vfs_view_ranges(file, &o, &out), "an owner that has ended");
	cr_expect_eq(out.total, 0);
	vfs_file_put(file);
	vfs_node_put(n);
	fixture_close(&f);
}

static void expect_found(const struct fixture *f, const struct vfs_fh *fh, const char *path)
{
	struct vfs_view_search *s = vfs_view_search_new();
	char real[4096], *found;

	snprintf(real, sizeof(real), "%s%s", vfs_export_real_path(f->exp), path);
	cr_assert(s);
	cr_assert_eq(vfs_view_search_add(s, f->exp, fh), 0);
	cr_assert_eq(vfs_view_search_add(s, f->exp, fh), 1);
	cr_expect_eq(vfs_view_search_count(s), 2);
	for (uint32_t i = 0; i < 2; i++) {
		found = vfs_view_search_run(s, i);
		if (*path)
			cr_expect_str_eq(found ? found : "none", real);
		else
			cr_expect_null(found);
		free(found);
	}
	vfs_view_search_free(s);
}

static void test_search(unsigned flags)
{
	struct vfs_node *n;
	struct fixture f;
	struct vfs_fh fh;
	int fd;

	fixture_open(&f, flags);
	n = must_create(&f.ctx, f.root, "f", 0644);
	fh = *vfs_node_fh(n);
	vfs_node_put(n);
	close_idle(&f);
	expect_path(&f, &fh, NULL, "");
	expect_found(&f, &fh, "/f");
	fd = open(in_export(&f, "f"), O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(in_export(&f, "f")), 0);
	expect_found(&f, &fh, ""); /* removed, and open */
	close(fd);
	expect_found(&f, &fh, ""); /* gone */
	fixture_close(&f);
}

Test(vfs_view, search)
{
	test_search(FIX_MAC);
}

Test(vfs_view, search_crossmnt)
{
	test_search(FIX_MAC | FIX_CROSSMNT);
}

Test(vfs_view, is_file)
{
	struct vfs_file *file;
	struct vfs_node *n;
	struct fixture f;
	struct stat st;
	const uint8_t *part;
	uint32_t len;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	cr_assert_eq(vfs_file_get(&f.ctx, n, &file), 0);
	cr_assert_eq(stat(in_export(&f, "f"), &st), 0);
	part = vfs_view_handle(vfs_node_fh(n), &len);
	cr_expect(vfs_view_is_file(file, major(st.st_dev), minor(st.st_dev), part, len));
	cr_expect_not(vfs_view_is_file(file, major(st.st_dev), minor(st.st_dev) + 1, part, len));
	cr_expect_not(vfs_view_is_file(file, major(st.st_dev), minor(st.st_dev), part, len - 1));
	part = vfs_view_handle(vfs_node_fh(f.root), &len);
	cr_expect_not(vfs_view_is_file(file, major(st.st_dev), minor(st.st_dev), part, len));
	cr_expect_not(vfs_view_is_file(NULL, 0, 0, part, len));
	vfs_file_put(file);
	vfs_node_put(n);
	fixture_close(&f);
}
