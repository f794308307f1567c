/* SPDX-License-Identifier: BSD-2-Clause */
/* Removal, renaming and linking; the space of removed files is freed at once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"
#include "vfs_fixture.h"

static int move(struct vfs_ctx *ctx, struct vfs_node *from_dir, const char *from,
		struct vfs_node *to_dir, const char *to)
{
	return vfs_rename(ctx,
			  &(struct vfs_rename){ from_dir, to_dir, from, to, (uint32_t)strlen(from),
						(uint32_t)strlen(to), NULL, NULL });
}

/* Number of this process's descriptors of removed files. */
static unsigned held_removed(void)
{
	DIR *d = opendir("/proc/self/fd");
	char target[512];
	struct dirent *e;
	unsigned count = 0;

	while ((e = readdir(d)) != NULL) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		count += strstr(target, "(deleted)") != NULL;
	}
	closedir(d);
	return count;
}

Test(vfs_names, removal_lets_go_of_descriptors)
{
	struct fixture f;
	struct vfs_node *n;
	struct vfs_attr a;
	unsigned before;

	fixture_open(&f, 0);
	before = held_removed();
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_assert_geq(vfs_node_fd(&f.ctx, n, VFS_FD_WRITE), 0);
	cr_assert_geq(vfs_node_fd(&f.ctx, n, VFS_FD_READ), 0);
	vfs_node_put(n);
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "a", 1, NULL), 0);
	cr_expect_eq(held_removed(), before);

	n = must_create(&f.ctx, f.root, "b", 0644);
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "b", 1, NULL), 0);
	cr_expect_eq(vfs_getattr(&f.ctx, n, &a), -ESTALE, "still referenced");
	cr_expect_eq(held_removed(), before + 2);
	vfs_node_put(n);
	cr_expect_eq(held_removed(), before);
	fixture_close(&f);
}

Test(vfs_names, rename_over_lets_go_of_the_victim)
{
	struct fixture f;
	struct vfs_node *a, *b, *now;
	struct vfs_fh fh;
	unsigned before;

	fixture_open(&f, 0);
	before = held_removed();
	a = must_create(&f.ctx, f.root, "a", 0644);
	b = must_create(&f.ctx, f.root, "b", 0644);
	fh = *vfs_node_fh(b);
	vfs_node_put(b);
	cr_assert_eq(move(&f.ctx, f.root, "a", f.root, "b"), 0);
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	cr_expect_eq(held_removed(), before);
	now = must_lookup(&f.ctx, f.root, "b");
	cr_expect_eq(now, a);
	cr_expect_eq(try_lookup(&f.ctx, f.root, "a"), -ENOENT);
	vfs_node_put(now);
	vfs_node_put(a);
	fixture_close(&f);
}

Test(vfs_names, rename_edges)
{
	struct fixture f;
	struct vfs_node *d, *sub, *file;
	int rc;

	fixture_open(&f, 0);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	sub = must_mkdir(&f.ctx, d, "sub", 0755);
	file = must_create(&f.ctx, f.root, "file", 0644);
	cr_assert_eq(link(in_export(&f, "file"), in_export(&f, "file2")), 0);
	cr_expect_eq(move(&f.ctx, f.root, "file", f.root, "file2"), 0,
		     "two links of one file: nothing");
	cr_expect_eq(try_lookup(&f.ctx, f.root, "file"), 0);
	cr_expect_eq(move(&f.ctx, f.root, "d", sub, "x"), -EINVAL, "into itself");
	cr_expect_eq(move(&f.ctx, f.root, "file", f.root, "d"), -EISDIR);
	cr_expect_eq(move(&f.ctx, f.root, "d", f.root, "file"), -ENOTDIR);
	cr_expect_eq(move(&f.ctx, f.root, "none", f.root, "x"), -ENOENT);
	cr_expect_eq(move(&f.ctx, f.root, "file", file, "x"), -ENOTDIR);
	for (const char *const *n = (const char *const[]){ ".", "..", NULL }; *n; n++) {
		cr_expect_eq(move(&f.ctx, d, *n, f.root, "x"), -EINVAL);
		cr_expect_eq(move(&f.ctx, f.root, "file", d, *n), -EINVAL);
	}
	cr_assert_eq(mkdir(in_export(&f, "e"), 0755), 0);
	rc = move(&f.ctx, f.root, "e", f.root, "d");
	cr_expect(rc == -ENOTEMPTY || rc == -EEXIST, "%d", rc);
	cr_expect_eq(move(&f.ctx, f.root, "d", f.root, "e"), 0, "over an empty directory");
	cr_expect_eq(move(&f.ctx, d, "sub", f.root, "sub"), 0);
	vfs_node_put(file);
	vfs_node_put(sub);
	vfs_node_put(d);
	fixture_close(&f);
}

Test(vfs_names, remove_and_rmdir_edges)
{
	struct fixture f;
	struct vfs_node *d, *file;

	fixture_open(&f, 0);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	file = must_create(&f.ctx, d, "file", 0644);
	cr_expect_eq(vfs_remove(&f.ctx, f.root, "d", 1, NULL), -EISDIR);
	cr_expect_eq(vfs_rmdir(&f.ctx, d, "file", 4, NULL), -ENOTDIR);
	cr_expect_eq(vfs_rmdir(&f.ctx, f.root, "d", 1, NULL), -ENOTEMPTY);
	cr_expect_eq(vfs_rmdir(&f.ctx, d, ".", 1, NULL), -EINVAL);
	cr_expect_eq(vfs_rmdir(&f.ctx, d, "..", 2, NULL), -ENOTEMPTY);
	cr_expect_eq(vfs_remove(&f.ctx, d, "..", 2, NULL), -EISDIR);
	cr_expect_eq(vfs_remove(&f.ctx, file, "x", 1, NULL), -ENOTDIR);
	cr_expect_eq(vfs_remove(&f.ctx, d, "none", 4, NULL), -ENOENT);
	cr_expect_eq(vfs_remove(&f.ctx, d, "file", 4, NULL), 0);
	cr_expect_eq(vfs_rmdir(&f.ctx, f.root, "d", 1, NULL), 0);
	cr_expect_eq(vfs_remove(&f.ctx, d, "file", 4, NULL), -ESTALE);
	vfs_node_put(file);
	vfs_node_put(d);
	fixture_close(&f);
}

Test(vfs_names, sticky_directories)
{
	struct fixture f;
	struct vfs_ctx mine, other;

	fixture_open(&f, 0);
	chmod(f.dir, 01777);
	mine = as_user(&f, 1000, 100);
	other = as_user(&f, 1001, 100);
	vfs_node_put(must_create(&mine, f.root, "a", 0666));
	cr_expect_eq(vfs_remove(&other, f.root, "a", 1, NULL), -EPERM);
	cr_expect_eq(move(&other, f.root, "a", f.root, "b"), -EPERM);
	cr_expect_eq(vfs_remove(&mine, f.root, "a", 1, NULL), 0);
	fixture_close(&f);
}

static bool hardlinks_are_protected(void)
{
	FILE *f = fopen("/proc/sys/fs/protected_hardlinks", "r");
	int c = f ? fgetc(f) : '0';

	if (f)
		fclose(f);
	return c == '1';
}

/* The kernel's server links whatever the client names, and its directory and flags alone may forbid it. */
Test(vfs_names, links_to_what_is_another_users)
{
	struct fixture f;
	struct vfs_ctx user;
	struct vfs_node *n, *open_dir, *closed;

	if (!hardlinks_are_protected())
		cr_skip_test("fs.protected_hardlinks is off here");
	fixture_open(&f, FIX_MAC);
	open_dir = must_mkdir(&f.ctx, f.root, "open", 0777);
	closed = must_mkdir(&f.ctx, f.root, "closed", 0755);
	n = must_create(&f.ctx, f.root, "readable", 0644);
	user = as_user(&f, 1000, 100);
	cr_expect_eq(vfs_link(&user, n, open_dir, "l", 1, NULL), 0);
	cr_expect_eq(vfs_link(&user, n, closed, "l", 1, NULL), -EACCES);
	cr_expect_eq(vfs_link(&user, open_dir, open_dir, "d", 1, NULL), -EPERM);
	/* The right goes with the call. */
	cr_expect_eq(vfs_act_as_caller(&user), 0);
	cr_expect_eq(linkat(AT_FDCWD, in_export(&f, "readable"), AT_FDCWD,
			    in_export(&f, "open/again"), 0),
		     -1);
	cr_expect_eq(errno, EPERM);
	be_root(&f);
	cr_expect_eq(must_getattr(&f.ctx, n).nlink, 2);
	vfs_node_put(n);
	vfs_node_put(closed);
	vfs_node_put(open_dir);
	fixture_close(&f);
}

Test(vfs_names, links)
{
	struct fixture f;
	struct vfs_node *n, *l, *d, *same;
	struct vfs_fh fh;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0644);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	cr_assert_eq(vfs_link(&f.ctx, n, d, "b", 1, NULL), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).nlink, 2);
	same = must_lookup(&f.ctx, d, "b");
	cr_expect_eq(same, n, "one file, one node");
	vfs_node_put(same);
	cr_expect_eq(vfs_link(&f.ctx, n, d, "b", 1, NULL), -EEXIST);
	cr_expect_eq(vfs_link(&f.ctx, n, d, "..", 2, NULL), -EEXIST);
	cr_expect_eq(vfs_link(&f.ctx, d, f.root, "x", 1, NULL), -EPERM);
	cr_expect_eq(vfs_link(&f.ctx, n, n, "x", 1, NULL), -ENOTDIR);
	/* vfs_link() of a symbolic link links the link itself, not its target. */
	cr_assert_eq(symlink("nowhere", in_export(&f, "l")), 0);
	l = must_lookup(&f.ctx, f.root, "l");
	cr_expect_eq(vfs_link(&f.ctx, l, d, "l", 1, NULL), 0);
	cr_expect_eq(must_getattr(&f.ctx, l).nlink, 2);
	vfs_node_put(l);
	/* A file known by its handle alone can be linked. */
	fh = *vfs_node_fh(n);
	vfs_node_put(n);
	vfs_node_put(d);
	fixture_restart(&f);
	cr_assert_eq(vfs_fh_open(&f.ctx, &fh, &n), 0);
	cr_expect_eq(vfs_link(&f.ctx, n, f.root, "c", 1, NULL), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).nlink, 3);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_names, any_bytes_are_a_name)
{
	struct fixture f;
	char name[255];
	struct vfs_setattr sa = { 0 };
	struct vfs_create cr = { .how = VFS_GUARDED, .sa = &sa };
	struct vfs_node *n;

	fixture_open(&f, 0);
	for (unsigned i = 0; i < 255; i++)
		name[i] = (char)(i + 1 == '/' ? 1 : i + 1);
	cr_assert_eq(vfs_create(&f.ctx, f.root, name, 255, &cr, &n), 0);
	vfs_node_put(n);
	cr_assert_eq(vfs_lookup(&f.ctx, f.root, name, 255, &n, NULL), 0);
	vfs_node_put(n);
	cr_expect_eq(vfs_remove(&f.ctx, f.root, name, 255, NULL), 0);
	fixture_close(&f);
}
