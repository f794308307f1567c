/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation: the three ways to create a file, and objects that are not files. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs_fixture.h"

static const uint8_t verf[8] = { 0x81, 2, 3, 4, 0xff, 6, 7, 8 };

static int create(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
		  enum vfs_create_how how, const struct vfs_setattr *sa, const uint8_t *v)
{
	static const struct vfs_setattr none;
	struct vfs_attr a;
	struct vfs_create cr = { .how = how,
				 .sa = sa ? sa : &none,
				 .verf = v,
				 .may = VFS_MAY_READ | VFS_MAY_WRITE,
				 .attr = &a };
	struct vfs_node *n = NULL;
	int rc = vfs_create(ctx, dir, name, (uint32_t)strlen(name), &cr, &n);

	if (rc == 0) {
		cr_expect(S_ISREG(a.mode));
		vfs_node_put(n);
	}
	return rc;
}

Test(vfs_create, exclusive_repeats_are_known_even_after_a_restart)
{
	struct fixture f;
	uint8_t other[8];

	fixture_open(&f, FIX_MAC);
	cr_expect_eq(create(&f.ctx, f.root, "x", VFS_EXCLUSIVE, NULL, verf), 0);
	cr_expect_eq(create(&f.ctx, f.root, "x", VFS_EXCLUSIVE, NULL, verf), 0);
	for (unsigned i = 0; i < 8; i++) {
		memcpy(other, verf, 8);
		other[i] ^= 1;
		cr_expect_eq(create(&f.ctx, f.root, "x", VFS_EXCLUSIVE, NULL, other), -EEXIST);
	}
	fixture_restart(&f);
	cr_expect_eq(create(&f.ctx, f.root, "x", VFS_EXCLUSIVE, NULL, verf), 0);
	/* The file has data, so it is no longer as the first call created it. */
	put_file(in_export(&f, "x"), "data");
	cr_expect_eq(create(&f.ctx, f.root, "x", VFS_EXCLUSIVE, NULL, verf), -EEXIST);
	fixture_close(&f);
}

/* The verifier that corresponds to the times of path, on file systems that store the verifier
 * unchanged. */
static void verifier_by_times(const char *path, uint8_t v[8])
{
	uint32_t half[2];
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	half[0] = htobe32((uint32_t)st.st_atim.tv_sec);
	half[1] = htobe32((uint32_t)st.st_mtim.tv_sec);
	memcpy(v, half, sizeof(half));
}

/* An empty file of another user is not opened by its times as the verifier, whatever call created
 * it, nor by its creator's verifier. */
Test(vfs_create, exclusive_takes_no_file_of_another_user)
{
	struct fixture f;
	struct vfs_ctx maker, other;
	uint8_t guess[8];

	fixture_open(&f, FIX_MAC);
	chmod(f.dir, 0777);
	maker = as_user(&f, 1000, 100);
	other = as_user(&f, 1001, 100);
	put_file(in_export(&f, "local"), "");
	chown(in_export(&f, "local"), 1000, 100);
	chmod(in_export(&f, "local"), 0600);
	cr_assert_eq(create(&maker, f.root, "excl", VFS_EXCLUSIVE, NULL, verf), 0);
	for (const char *const *name = (const char *const[]){ "local", "excl", NULL }; *name;
	     name++) {
		be_root(&f);
		verifier_by_times(in_export(&f, *name), guess);
		cr_expect_eq(create(&other, f.root, *name, VFS_EXCLUSIVE, NULL, guess), -EEXIST);
		cr_expect_eq(create(&maker, f.root, *name, VFS_EXCLUSIVE, NULL, guess), -EEXIST);
	}
	cr_expect_eq(create(&other, f.root, "excl", VFS_EXCLUSIVE, NULL, verf), -EEXIST);
	cr_expect_eq(create(&maker, f.root, "excl", VFS_EXCLUSIVE, NULL, verf), 0);
	fixture_close(&f);
}

/* A retry of the creating call after the file was given to another user: the mode decides. */
Test(vfs_create, exclusive_repeated_on_a_file_given_away)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = 0 };
	struct fixture f;
	struct vfs_ctx maker;

	fixture_open(&f, FIX_MAC);
	chmod(f.dir, 0777);
	maker = as_user(&f, 1000, 100);
	cr_assert_eq(create(&maker, f.root, "x", VFS_EXCLUSIVE, &sa, verf), 0);
	cr_expect_eq(create(&maker, f.root, "x", VFS_EXCLUSIVE, &sa, verf), 0, "still his");
	be_root(&f);
	chmod(f.dir, 0555);
	cr_expect_eq(create(&maker, f.root, "x", VFS_EXCLUSIVE, &sa, verf), 0,
		     "where he may make none now");
	be_root(&f);
	chmod(f.dir, 0777);
	cr_assert_eq(chown(in_export(&f, "x"), 1002, 1002), 0);
	cr_expect_eq(create(&maker, f.root, "x", VFS_EXCLUSIVE, &sa, verf), -EACCES);
	be_root(&f);
	cr_assert_eq(chmod(in_export(&f, "x"), 0666), 0);
	cr_expect_eq(create(&maker, f.root, "x", VFS_EXCLUSIVE, &sa, verf), 0);
	fixture_close(&f);
}

Test(vfs_create, made_tells_a_new_file_from_a_repeated_call)
{
	struct vfs_create cr = { .how = VFS_EXCLUSIVE, .verf = verf };
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, FIX_MAC);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(vfs_create(&f.ctx, f.root, "x", 1, &cr, &n), 0);
		cr_expect_eq(cr.made, i == 0);
		vfs_node_put(n);
	}
	fixture_close(&f);
}

Test(vfs_create, unchecked_takes_what_is_there)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	struct fixture f;
	struct stat st;

	fixture_open(&f, 0);
	put_file(in_export(&f, "a"), "text");
	cr_expect_eq(create(&f.ctx, f.root, "a", VFS_UNCHECKED, &sa, NULL), 0);
	stat(in_export(&f, "a"), &st);
	cr_expect_eq(st.st_size, 4);
	cr_expect_eq(st.st_mode & 07777, 0644, "nothing but the size is set");
	sa.set_size = true;
	sa.size = 2;
	cr_expect_eq(create(&f.ctx, f.root, "a", VFS_UNCHECKED, &sa, NULL), 0);
	stat(in_export(&f, "a"), &st);
	cr_expect_eq(st.st_size, 2);
	cr_expect_eq(create(&f.ctx, f.root, "a", VFS_GUARDED, &sa, NULL), -EEXIST);
	fixture_close(&f);
}

Test(vfs_create, unchecked_truncation_asks_for_permission)
{
	struct vfs_setattr cut = { .set_size = true };
	struct fixture f;
	struct vfs_ctx user;
	struct stat st;

	fixture_open(&f, 0);
	put_file(in_export(&f, "a"), "text");
	user = as_user(&f, 1000, 100);
	cr_expect_eq(create(&user, f.root, "a", VFS_UNCHECKED, &cut, NULL), -EACCES);
	stat(in_export(&f, "a"), &st);
	cr_expect_eq(st.st_size, 4);
	fixture_close(&f);
}

Test(vfs_create, never_opens_what_is_no_file)
{
	struct vfs_setattr sa = { .set_size = true };
	struct fixture f;

	fixture_open(&f, 0);
	cr_assert_eq(mkfifo(in_export(&f, "fifo"), 0666), 0);
	cr_assert_eq(symlink("/etc/passwd", in_export(&f, "link")), 0);
	cr_assert_eq(symlink("nowhere", in_export(&f, "dangling")), 0);
	cr_assert_eq(mkdir(in_export(&f, "dir"), 0755), 0);
	for (const char *const *n =
		     (const char *const[]){ "fifo", "link", "dangling", "dir", ".", "..", NULL };
	     *n; n++) {
		cr_expect_eq(create(&f.ctx, f.root, *n, VFS_UNCHECKED, &sa, NULL), -EEXIST, "%s",
			     *n);
		cr_expect_eq(create(&f.ctx, f.root, *n, VFS_GUARDED, &sa, NULL), -EEXIST);
		cr_expect_eq(create(&f.ctx, f.root, *n, VFS_EXCLUSIVE, NULL, verf), -EEXIST);
	}
	cr_expect_eq(access(in_export(&f, "nowhere"), F_OK), -1);
	fixture_close(&f);
}

Test(vfs_create, attributes_are_as_asked)
{
	struct vfs_setattr sa = { .set_mode = true,
				  .mode = 06751,
				  .set_uid = true,
				  .uid = 1000,
				  .set_gid = true,
				  .gid = 100,
				  .set_size = true,
				  .size = 12345,
				  .set_mtime = VFS_TIME_CLIENT,
				  .mtime = { 1000000000, 5 } };
	struct fixture f;
	struct vfs_node *n;
	struct vfs_attr a;
	struct vfs_create cr = { .how = VFS_GUARDED, .sa = &sa, .attr = &a };

	fixture_open(&f, 0);
	cr_assert_eq(vfs_create(&f.ctx, f.root, "a", 1, &cr, &n), 0);
	cr_expect_eq(a.mode, S_IFREG | 06751);
	cr_expect_eq(a.uid, 1000);
	cr_expect_eq(a.gid, 100);
	cr_expect_eq(a.size, 12345);
	cr_expect_eq(a.mtime.tv_sec, 1000000000);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_create, read_only_exports_stay_as_they_are)
{
	struct vfs_setattr sa = { 0 };
	struct vfs_mknod fifo = { .type = S_IFIFO };
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	put_file(in_export(&f, "a"), "");
	f.ctx.access.flags |= VFS_RO;
	cr_expect_eq(create(&f.ctx, f.root, "b", VFS_GUARDED, NULL, NULL), -EROFS);
	cr_expect_eq(vfs_mkdir(&f.ctx, &(struct vfs_make){ f.root, "b", 1, &sa, NULL, NULL }, &n),
		     -EROFS);
	cr_expect_eq(
		vfs_symlink(&f.ctx, &(struct vfs_make){ f.root, "b", 1, &sa, NULL, NULL }, "t", &n),
		-EROFS);
	cr_expect_eq(
		vfs_mknod(&f.ctx, &(struct vfs_make){ f.root, "b", 1, &sa, NULL, NULL }, &fifo, &n),
		-EROFS);
	cr_expect_eq(vfs_remove(&f.ctx, f.root, "a", 1, NULL), -EROFS);
	cr_expect_eq(vfs_rmdir(&f.ctx, f.root, "a", 1, NULL), -EROFS);
	cr_expect_eq(vfs_rename(&f.ctx,
				&(struct vfs_rename){ f.root, f.root, "a", "b", 1, 1, NULL, NULL }),
		     -EROFS);
	n = must_lookup(&f.ctx, f.root, "a");
	cr_expect_eq(vfs_link(&f.ctx, n, f.root, "b", 1, NULL), -EROFS);
	sa.set_mode = true;
	cr_expect_eq(vfs_setattr(&f.ctx, n, &sa, NULL), -EROFS);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_create, directories_keep_their_parents_group)
{
	struct fixture f;
	struct vfs_node *d, *n;
	struct vfs_setattr sa = { .set_mode = true, .mode = 0755, .set_uid = true, .uid = 7 };
	struct vfs_attr a;

	fixture_open(&f, 0);
	chown(f.dir, 0, 55);
	chmod(f.dir, 02777);
	cr_assert_eq(vfs_mkdir(&f.ctx, &(struct vfs_make){ f.root, "d", 1, &sa, &a, NULL }, &d), 0);
	cr_expect_eq(a.gid, 55);
	cr_expect_eq(a.uid, 7);
	cr_expect_eq(a.mode, S_IFDIR | 02755);
	cr_expect_eq(vfs_mkdir(&f.ctx, &(struct vfs_make){ f.root, "d", 1, &sa, &a, NULL }, &n),
		     -EEXIST);
	cr_expect_eq(vfs_mkdir(&f.ctx, &(struct vfs_make){ f.root, ".", 1, &sa, &a, NULL }, &n),
		     -EEXIST);
	cr_expect_eq(vfs_mkdir(&f.ctx, &(struct vfs_make){ f.root, "..", 2, &sa, &a, NULL }, &n),
		     -EEXIST);
	vfs_node_put(d);
	fixture_close(&f);
}

Test(vfs_create, symbolic_links_of_every_length)
{
	struct fixture f;
	struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	char target[VFS_PATH_MAX + 2], back[VFS_PATH_MAX + 1];
	const uint32_t lens[] = { 1, 59, 60, 61, 1024, 4094, 4095 };
	struct vfs_node *n;
	int rc;

	fixture_open(&f, 0);
	memset(target, 't', sizeof(target));
	for (unsigned i = 0; i < 7; i++) {
		target[lens[i]] = '\0';
		rc = vfs_symlink(&f.ctx, &(struct vfs_make){ f.root, "l", 1, &sa, NULL, NULL },
				 target, &n);
		if (rc == -ENAMETOOLONG && lens[i] >= 1024)
			break; /* xfs does that */
		cr_assert_eq(rc, 0);
		cr_expect_eq(vfs_readlink(&f.ctx, n, back, sizeof(back)), (int)lens[i]);
		cr_expect_eq(memcmp(back, target, lens[i]), 0);
		vfs_node_put(n);
		cr_assert_eq(vfs_remove(&f.ctx, f.root, "l", 1, NULL), 0);
		target[lens[i]] = 't';
	}
	target[4096] = '\0';
	cr_expect_eq(vfs_symlink(&f.ctx, &(struct vfs_make){ f.root, "l", 1, &sa, NULL, NULL },
				 target, &n),
		     -ENAMETOOLONG);
	cr_expect_eq(
		vfs_symlink(&f.ctx, &(struct vfs_make){ f.root, "l", 1, &sa, NULL, NULL }, "", &n),
		-EINVAL);
	fixture_close(&f);
}

Test(vfs_create, special_files)
{
	struct fixture f;
	struct vfs_setattr sa = { .set_mode = true, .mode = 0640 };
	struct vfs_mknod chr = { S_IFCHR, 1, 3 }, reg = { S_IFREG, 0, 0 },
			 sock = { S_IFSOCK, 0, 0 };
	struct vfs_ctx user;
	struct vfs_attr a;
	struct vfs_node *n;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	user = as_user(&f, 1000, 100);
	cr_expect_eq(
		vfs_mknod(&user, &(struct vfs_make){ f.root, "c", 1, &sa, &a, NULL }, &chr, &n),
		-EPERM);
	cr_expect_eq(
		vfs_mknod(&f.ctx, &(struct vfs_make){ f.root, "r", 1, &sa, &a, NULL }, &reg, &n),
		-EINVAL);
	cr_assert_eq(
		vfs_mknod(&user, &(struct vfs_make){ f.root, "s", 1, &sa, &a, NULL }, &sock, &n),
		0);
	cr_expect_eq(a.mode, S_IFSOCK | 0640);
	vfs_node_put(n);
	if (vfs_mknod(&f.ctx, &(struct vfs_make){ f.root, "c", 1, &sa, &a, NULL }, &chr, &n) == 0) {
		cr_expect_eq(a.mode, S_IFCHR | 0640);
		cr_expect_eq(a.rdev_major, 1);
		cr_expect_eq(a.rdev_minor, 3);
		vfs_node_put(n);
	}
	fixture_close(&f);
}

Test(vfs_create, in_a_removed_directory_is_stale)
{
	struct fixture f;
	struct vfs_node *d;

	fixture_open(&f, 0);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	cr_assert_eq(rmdir(in_export(&f, "d")), 0);
	cr_expect_eq(create(&f.ctx, d, "a", VFS_GUARDED, NULL, NULL), -ESTALE);
	cr_expect_eq(try_lookup(&f.ctx, d, "a"), -ESTALE);
	vfs_node_put(d);
	fixture_close(&f);
}

static mode_t mode_of_path(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0, "%s", path);
	return st.st_mode & 07777;
}

Test(vfs_create, exclusive_with_attributes)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = 0640, .set_uid = true, .uid = 1001 };
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(create(&f.ctx, f.root, "x", VFS_EXCLUSIVE, &sa, verf), 0);
	cr_expect_eq(mode_of_path(in_export(&f, "x")), 0640);
	fixture_close(&f);
}

/* user::rwx, group::rwx, other::r-x as a default ACL, in the kernel's format. */
static const uint8_t acl[] = { 2,    0,	   0, 0, 1,    0,    7,	   0,	 0xff, 0xff,
			       0xff, 0xff, 4, 0, 7,    0,    0xff, 0xff, 0xff, 0xff,
			       0x20, 0,	   5, 0, 0xff, 0xff, 0xff, 0xff };

Test(vfs_create, the_umask_gives_way_to_a_default_acl)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = 0777, .umask = 027 };
	const struct vfs_mknod fifo = { .type = S_IFIFO };
	struct vfs_node *dir, *n;
	struct fixture f;

	fixture_open(&f, FIX_MAC);
	cr_expect_eq(create(&f.ctx, f.root, "file", VFS_GUARDED, &sa, NULL), 0);
	cr_expect_eq(create(&f.ctx, f.root, "excl", VFS_EXCLUSIVE, &sa, verf), 0);
	cr_expect_eq(vfs_mknod(&f.ctx, &(struct vfs_make){ f.root, "fifo", 4, &sa, NULL, NULL },
			       &fifo, &n),
		     0);
	vfs_node_put(n);
	cr_assert_eq(
		vfs_mkdir(&f.ctx, &(struct vfs_make){ f.root, "dir", 3, &sa, NULL, NULL }, &dir),
		0);
	cr_expect_eq(mode_of_path(in_export(&f, "file")), 0750);
	cr_expect_eq(mode_of_path(in_export(&f, "excl")), 0750);
	cr_expect_eq(mode_of_path(in_export(&f, "fifo")), 0750);
	cr_expect_eq(mode_of_path(in_export(&f, "dir")), 0750);
	if (setxattr(in_export(&f, "dir"), "system.posix_acl_default", acl, sizeof(acl), 0) == 0) {
		cr_expect_eq(create(&f.ctx, dir, "file", VFS_GUARDED, &sa, NULL), 0);
		cr_expect_eq(mode_of_path(in_export(&f, "dir/file")), 0775);
	}
	vfs_node_put(dir);
	fixture_close(&f);
}
