/* SPDX-License-Identifier: BSD-2-Clause */
/* No path leads out of an export, and a directory that cannot be exported gives the reason. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/kernel_can.h"
#include "vfs/fs/handle.h"
#include "vfs_fixture.h"

/* A handle with this export's id for any path of the file system, as an attacker could forge
 * without a MAC. */
static struct vfs_fh forge(const char *path)
{
	struct vfs_handle h;
	struct vfs_fh fh;
	uint64_t mnt_id;
	int fd = open(path, O_PATH | O_NOFOLLOW);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(vfs_handle_of(fd, "", &h, &mnt_id), 0);
	close(fd);
	h.export_id = 7;
	h.submount_id = 0;
	cr_assert_eq(vfs_handle_encode(&h, NULL, &fh), 0);
	return fh;
}

static void directories_outside(unsigned flags)
{
	struct fixture f;
	struct vfs_fh fh;

	fixture_open(&f, flags);
	cr_assert_eq(mkdir(in_base(&f, "outside"), 0755), 0);
	cr_assert_eq(mkdir(in_base(&f, "export2"), 0755), 0);
	cr_assert_eq(mkdir(in_export(&f, "inside"), 0755), 0);
	cr_assert_eq(mkdir(in_export(&f, "inside/deep"), 0755), 0);

	fh = forge(in_export(&f, "inside/deep"));
	cr_expect_eq(try_open(&f.ctx, &fh), 0);
	fh = forge(f.dir);
	cr_expect_eq(try_open(&f.ctx, &fh), 0);
	fh = forge(in_base(&f, "outside"));
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	fh = forge(in_base(&f, "export2"));
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	fh = forge(f.base);
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	fixture_close(&f);
}

Test(vfs_boundary, directories_outside_the_subtree_are_stale)
{
	directories_outside(0);
}

Test(vfs_boundary, directories_outside_are_stale_without_a_clone)
{
	directories_outside(FIX_CROSSMNT);
}

static void dotdot(unsigned flags)
{
	struct fixture f;
	struct vfs_node *d, *up;

	fixture_open(&f, flags);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	up = must_lookup(&f.ctx, d, "..");
	cr_expect_eq(up, f.root);
	vfs_node_put(up);
	up = must_lookup(&f.ctx, f.root, "..");
	cr_expect_eq(up, f.root);
	vfs_node_put(up);
	up = must_lookup(&f.ctx, d, ".");
	cr_expect_eq(up, d);
	vfs_node_put(up);
	vfs_node_put(d);
	fixture_close(&f);
}

Test(vfs_boundary, dotdot_stays_at_the_root)
{
	dotdot(0);
}

Test(vfs_boundary, dotdot_stays_at_the_root_without_a_clone)
{
	dotdot(FIX_CROSSMNT);
}

static void moved_out(unsigned flags)
{
	struct fixture f;
	struct vfs_node *d;
	int rc;

	fixture_open(&f, flags);
	d = must_mkdir(&f.ctx, f.root, "d", 0755);
	cr_assert_eq(rename(in_export(&f, "d"), in_base(&f, "d")), 0);
	rc = try_lookup(&f.ctx, d, "..");
	cr_expect(rc == -ESTALE || rc == -ENOENT, "%d",
		  rc); /* the result for a clone depends on the kernel */
	vfs_node_put(d);
	fixture_close(&f);
}

Test(vfs_boundary, dotdot_of_a_directory_moved_outside)
{
	moved_out(0);
}

Test(vfs_boundary, dotdot_of_a_directory_moved_outside_without_a_clone)
{
	moved_out(FIX_CROSSMNT);
}

Test(vfs_boundary, symbolic_links_are_not_followed)
{
	struct fixture f;
	struct vfs_node *n;
	char buf[64];

	fixture_open(&f, 0);
	cr_assert_eq(symlink("/etc", in_export(&f, "l")), 0);
	n = must_lookup(&f.ctx, f.root, "l");
	cr_expect(S_ISLNK(must_getattr(&f.ctx, n).mode));
	cr_expect_eq(try_lookup(&f.ctx, n, "passwd"), -ENOTDIR);
	cr_expect_eq(vfs_readlink(&f.ctx, n, buf, sizeof(buf)), 4);
	cr_expect_eq(memcmp(buf, "/etc", 4), 0);
	cr_expect_eq(vfs_readlink(&f.ctx, n, buf, 2), 2);
	cr_expect_eq(vfs_readlink(&f.ctx, f.root, buf, sizeof(buf)), -EINVAL);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_boundary, bad_names)
{
	struct fixture f;
	struct vfs_node *n;
	char longest[257];

	fixture_open(&f, 0);
	memset(longest, 'x', sizeof(longest));
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, "", 0, &n, NULL), -EINVAL);
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, "a/b", 3, &n, NULL), -EINVAL);
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, "/", 1, &n, NULL), -EINVAL);
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, "a\0b", 3, &n, NULL), -EINVAL);
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, longest, 256, &n, NULL), -ENAMETOOLONG);
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, longest, UINT32_MAX, &n, NULL), -ENAMETOOLONG);
	cr_expect_eq(vfs_lookup(&f.ctx, f.root, longest, 255, &n, NULL), -ENOENT);
	cr_expect_eq(vfs_remove(&f.ctx, f.root, "../outside", 10, NULL), -EINVAL);
	/* The name ends at len, whatever bytes follow. */
	put_file(in_export(&f, "ab"), "");
	cr_expect_eq(vfs_remove(&f.ctx, f.root, "abc", 2, NULL), 0);
	fixture_close(&f);
}

static bool can_mount(const struct fixture *f)
{
	cr_assert_eq(mkdir(in_export(f, "m"), 0755), 0);
	put_file(in_export(f, "m/below"), "");
	return mount("none", in_export(f, "m"), "tmpfs", 0, "size=1m") == 0;
}

Test(vfs_boundary, mounts_below_are_hidden)
{
	struct fixture f;
	struct vfs_node *m;

	NEED_KERNEL_CAN(clone_mounts);
	fixture_open(&f, 0);
	if (!can_mount(&f))
		cr_skip_test("may not mount: %s", strerror(errno));
	put_file(in_export(&f, "m/above"), "");
	m = must_lookup(&f.ctx, f.root, "m");
	cr_expect_eq(try_lookup(&f.ctx, m, "below"), -EACCES);
	cr_expect_eq(try_lookup(&f.ctx, m, "above"), -EACCES);
	cr_expect_eq(vfs_remove(&f.ctx, m, "below", 5, NULL), -EACCES);
	cr_expect_eq(must_getattr(&f.ctx, m).fsid, must_getattr(&f.ctx, f.root).fsid);
	vfs_node_put(m);
	umount2(in_export(&f, "m"), MNT_DETACH);
	fixture_close(&f);
}

Test(vfs_boundary, mounts_below_are_seen_with_crossmnt)
{
	struct fixture f;
	struct vfs_node *m, *above, *up;
	struct vfs_fh fh;
	uint64_t fsid;

	fixture_open(&f, FIX_CROSSMNT);
	f.ctx.access.flags |= VFS_CROSSMNT;
	if (!can_mount(&f))
		cr_skip_test("may not mount: %s", strerror(errno));
	put_file(in_export(&f, "m/above"), "");
	m = must_lookup(&f.ctx, f.root, "m");
	above = must_lookup(&f.ctx, m, "above");
	fsid = must_getattr(&f.ctx, m).fsid;
	cr_expect_eq(fsid, must_getattr(&f.ctx, above).fsid);
	cr_expect_neq(fsid, must_getattr(&f.ctx, f.root).fsid);
	cr_expect_eq(try_lookup(&f.ctx, m, "below"), -ENOENT);
	up = must_lookup(&f.ctx, m, "..");
	cr_expect_eq(up, f.root);
	vfs_node_put(up);
	fh = *vfs_node_fh(above);
	vfs_node_put(m);
	vfs_node_put(above);

	/* After a restart the mount is found again from the handle. */
	fixture_restart(&f);
	f.ctx.access.flags |= VFS_CROSSMNT;
	cr_assert_eq(vfs_fh_open(&f.ctx, &fh, &above), 0);
	cr_expect_eq(must_getattr(&f.ctx, above).fsid, fsid);
	cr_expect_eq(vfs_link(&f.ctx, above, f.root, "l", 1, NULL), -EXDEV);
	vfs_node_put(above);

	/* An unused mount can be unmounted. */
	vfs_forget_export(f.vfs, 7);
	cr_expect_eq(umount(in_export(&f, "m")), -1);
	f.cfg.idle_seconds = 1;
	fixture_restart(&f);
	f.ctx.access.flags |= VFS_CROSSMNT;
	cr_expect_eq(try_open(&f.ctx, &fh), 0);
	for (unsigned i = 0; i < 4; i++) {
		sleep(1);
		vfs_reap(f.vfs);
	}
	cr_expect_eq(umount(in_export(&f, "m")), 0, "%s", strerror(errno));
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	fixture_close(&f);
}

Test(vfs_boundary, a_file_can_be_exported_alone)
{
	struct fixture f;
	struct vfs_export *file;
	struct vfs_node *n;
	struct vfs_ctx ctx;
	struct vfs_fh fh;
	const char *why;

	fixture_open(&f, 0);
	put_file(in_export(&f, "a"), "text");
	put_file(in_export(&f, "b"), "");
	cr_assert_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ in_export(&f, "a"), 7,
								  VFS_IO_BUFFERED, false },
				     &file, &why),
		     0, "%s", why);
	ctx = f.ctx;
	ctx.exp = file;
	cr_assert_eq(vfs_root(&ctx, &n), 0);
	cr_expect_eq(must_getattr(&ctx, n).size, 4);
	vfs_node_put(n);
	fh = forge(in_export(&f, "b"));
	cr_expect_eq(try_open(&ctx, &fh), -ESTALE);
	fh = forge(f.dir);
	cr_expect_eq(try_open(&ctx, &fh), -ESTALE);
	vfs_forget_export(f.vfs, 7);
	vfs_export_put(file);
	fixture_close(&f);
}

Test(vfs_boundary, a_mount_point_can_be_exported)
{
	struct fixture f;
	struct vfs_export *exp;
	struct vfs_ctx ctx;
	struct vfs_node *n;
	const char *why;

	fixture_open(&f, 0);
	if (!can_mount(&f))
		cr_skip_test("may not mount: %s", strerror(errno));
	put_file(in_export(&f, "m/above"), "");
	cr_assert_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ in_export(&f, "m"), 9,
								  VFS_IO_BUFFERED, false },
				     &exp, &why),
		     0, "%s", why);
	ctx = f.ctx;
	ctx.exp = exp;
	cr_assert_eq(vfs_root(&ctx, &n), 0);
	cr_expect_eq(try_lookup(&ctx, n, "above"), 0);
	vfs_node_put(n);
	vfs_forget_export(f.vfs, 9);
	vfs_export_put(exp);
	umount2(in_export(&f, "m"), MNT_DETACH);
	fixture_close(&f);
}

Test(vfs_boundary, what_cannot_be_exported_says_why)
{
	struct fixture f;
	struct vfs_export *exp;
	const char *why;

	fixture_open(&f, 0);
	cr_expect_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ in_base(&f, "none"), 9,
								  VFS_IO_BUFFERED, false },
				     &exp, &why),
		     -ENOENT);
	cr_expect_neq(strlen(why), 0);
	cr_expect_eq(vfs_export_open(
			     f.vfs,
			     &(struct vfs_export_config){ "/dev/null", 9, VFS_IO_BUFFERED, false },
			     &exp, &why),
		     -ENOTDIR);
	cr_expect_neq(strlen(why), 0);
	cr_expect_eq(
		vfs_export_open(f.vfs,
				&(struct vfs_export_config){ "/proc", 9, VFS_IO_BUFFERED, false },
				&exp, &why),
		-EOPNOTSUPP);
	cr_expect_not_null(strstr(why, "/proc"), "%s", why);
	fixture_close(&f);
}

Test(vfs_boundary, overlayfs_says_what_would_help)
{
	struct fixture f;
	struct vfs_export *exp;
	char opts[600];
	const char *why;

	fixture_open(&f, 0);
	for (const char *const *d = (const char *const[]){ "l", "u", "w", "o", NULL }; *d; d++)
		cr_assert_eq(mkdir(in_base(&f, *d), 0755), 0);
	snprintf(opts, sizeof(opts), "lowerdir=%s,upperdir=%s,workdir=%s,nfs_export=off",
		 in_base(&f, "l"), in_base(&f, "u"), in_base(&f, "w"));
	if (mount("overlay", in_base(&f, "o"), "overlay", 0, opts) != 0)
		cr_skip_test("no overlayfs: %s", strerror(errno));
	cr_expect_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ in_base(&f, "o"), 9,
								  VFS_IO_BUFFERED, false },
				     &exp, &why),
		     -EOPNOTSUPP);
	cr_expect_not_null(strstr(why, "nfs_export=on"), "%s", why);
	umount(in_base(&f, "o"));
	fixture_close(&f);
}
