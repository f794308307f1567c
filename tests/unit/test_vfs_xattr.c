/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes: the namespace, who may do what, limits, what is told of the change, and that
 * changes are on disk, of ext4 and XFS. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/unit/vfs_disk.h"
#include "tests/unit/vfs_fixture.h"
#include "vfs/xattr.h"

TestSuite(vfs_xattr, .timeout = 120);

static struct vfs_xattr_name name_of(const char *s)
{
	return (struct vfs_xattr_name){ s, (uint32_t)strlen(s) };
}

static int set_how(struct vfs_ctx *ctx, struct vfs_node *n, const char *name, const char *value,
		   enum vfs_xattr_how how)
{
	struct vfs_xattr_change c = { .how = how,
				      .name = name_of(name),
				      .value = value,
				      .size = value ? (uint32_t)strlen(value) : 0 };

	return vfs_xattr_change(ctx, n, &c);
}

static int set(struct vfs_ctx *ctx, struct vfs_node *n, const char *name, const char *value)
{
	return set_how(ctx, n, name, value, VFS_XATTR_EITHER);
}

static int take(struct vfs_ctx *ctx, struct vfs_node *n, const char *name)
{
	return set_how(ctx, n, name, NULL, VFS_XATTR_REMOVE);
}

/* The value, NUL-terminated in a static buffer; *len is its length or -errno. */
static const char *get(struct vfs_ctx *ctx, struct vfs_node *n, const char *name, int *len)
{
	const struct vfs_xattr_name nm = name_of(name);
	static char buf[256];

	*len = vfs_xattr_get(ctx, n, &nm, buf, sizeof(buf) - 1);
	buf[*len > 0 ? *len : 0] = '\0';
	return buf;
}

static int get_error(struct vfs_ctx *ctx, struct vfs_node *n, const char *name)
{
	int len;

	get(ctx, n, name, &len);
	return len;
}

static void open_with_xattrs(struct fixture *f)
{
	fixture_open(f, 0);
	if (!vfs_xattr_supported(&f->ctx, f->root)) {
		fixture_close(f);
		cr_skip_test("no extended attributes of users on this file system");
	}
}

Test(vfs_xattr, set_get_list_remove)
{
	static const char want[] = "one\0two";
	char names[64], on_disk[16];
	struct fixture f;
	struct vfs_node *n;
	int len;

	open_with_xattrs(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_expect_eq(get_error(&f.ctx, n, "one"), -ENODATA);
	cr_expect_eq(vfs_xattr_list(&f.ctx, n, names, sizeof(names)), 0);
	cr_assert_eq(set(&f.ctx, n, "one", "first"), 0);
	cr_assert_eq(set(&f.ctx, n, "two", ""), 0);
	cr_expect_str_eq(get(&f.ctx, n, "one", &len), "first");
	cr_expect_eq(len, 5);
	cr_expect_eq(get_error(&f.ctx, n, "two"), 0);
	cr_expect_eq(getxattr(in_export(&f, "a"), "user.one", on_disk, sizeof(on_disk)), 5);
	cr_expect_eq(vfs_xattr_list(&f.ctx, n, names, sizeof(names)), (int)sizeof(want));
	cr_expect_arr_eq(names, want, sizeof(want));
	cr_expect_eq(vfs_xattr_list(&f.ctx, n, names, 3), -ERANGE);
	cr_expect_eq(take(&f.ctx, n, "one"), 0);
	cr_expect_eq(take(&f.ctx, n, "one"), -ENODATA);
	cr_expect_eq(getxattr(in_export(&f, "a"), "user.one", on_disk, sizeof(on_disk)), -1);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_xattr, create_and_replace)
{
	struct fixture f;
	struct vfs_node *n;
	int len;

	open_with_xattrs(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_expect_eq(set_how(&f.ctx, n, "k", "x", VFS_XATTR_REPLACE), -ENODATA);
	cr_expect_eq(set_how(&f.ctx, n, "k", "x", VFS_XATTR_CREATE), 0);
	cr_expect_eq(set_how(&f.ctx, n, "k", "y", VFS_XATTR_CREATE), -EEXIST);
	cr_expect_str_eq(get(&f.ctx, n, "k", &len), "x");
	cr_expect_eq(set_how(&f.ctx, n, "k", "z", VFS_XATTR_REPLACE), 0);
	cr_expect_str_eq(get(&f.ctx, n, "k", &len), "z");
	vfs_node_put(n);
	fixture_close(&f);
}

/* A name is one of this namespace whatever it looks like, and others are not listed. */
Test(vfs_xattr, no_other_namespace)
{
	static const char *const others[] = { "trusted.t", "security.s", "system.posix_acl_access",
					      "user.u", "" };
	struct fixture f;
	struct vfs_node *n;
	char names[256], path[256];
	int len;

	open_with_xattrs(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	snprintf(path, sizeof(path), "%s", in_export(&f, "a"));
	cr_assert_eq(setxattr(path, "trusted.t", "secret", 6, 0), 0);
	cr_assert_eq(setxattr(path, "security.s", "secret", 6, 0), 0);
	cr_expect_eq(vfs_xattr_list(&f.ctx, n, names, sizeof(names)), 0);
	for (unsigned i = 0; *others[i]; i++) {
		cr_expect_eq(get_error(&f.ctx, n, others[i]), -ENODATA, "%s", others[i]);
		cr_expect_eq(take(&f.ctx, n, others[i]), -ENODATA, "%s", others[i]);
	}
	cr_expect_eq(set(&f.ctx, n, "trusted.t", "mine"), 0);
	cr_expect_str_eq(get(&f.ctx, n, "trusted.t", &len), "mine");
	cr_expect_eq(getxattr(path, "trusted.t", names, sizeof(names)), 6);
	cr_expect_eq(getxattr(path, "user.trusted.t", names, sizeof(names)), 4);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_xattr, names_and_sizes)
{
	static char big[VFS_XATTR_SIZE_MAX + 1];
	char longest[VFS_XATTR_NAME_MAX + 2];
	struct vfs_xattr_change c = { .name = { "nu\0l", 4 }, .value = "", .size = 0 };
	struct fixture f;
	struct vfs_node *n;

	open_with_xattrs(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	memset(longest, 'n', sizeof(longest));
	longest[VFS_XATTR_NAME_MAX + 1] = '\0';
	cr_expect_eq(set(&f.ctx, n, longest, "x"), -ENAMETOOLONG);
	cr_expect_eq(get_error(&f.ctx, n, longest), -ENAMETOOLONG);
	longest[VFS_XATTR_NAME_MAX] = '\0';
	cr_expect_eq(set(&f.ctx, n, longest, "x"), 0);
	cr_expect_eq(get_error(&f.ctx, n, longest), 1);
	cr_expect_eq(set(&f.ctx, n, "", "x"), -EINVAL);
	cr_expect_eq(vfs_xattr_change(&f.ctx, n, &c), -EINVAL);
	cr_expect_eq(set(&f.ctx, n, "with/slash", "x"), 0);
	c = (struct vfs_xattr_change){ .name = { "big", 3 }, .value = big, .size = sizeof(big) };
	cr_expect_eq(vfs_xattr_change(&f.ctx, n, &c), -E2BIG);
	c.name = (struct vfs_xattr_name){ "one", 3 };
	c.size = 1;
	cr_expect_eq(vfs_xattr_change(&f.ctx, n, &c), 0);
	cr_expect_eq(vfs_xattr_get(&f.ctx, n, &c.name, NULL, 0), 1);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_xattr, permission_is_that_of_the_object)
{
	struct fixture f;
	struct vfs_ctx owner, other;
	struct vfs_node *n;
	char names[64];

	open_with_xattrs(&f);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	other = as_user(&f, 1001, 101);
	n = must_create(&owner, f.root, "a", 0644);
	cr_assert_eq(set(&owner, n, "k", "v"), 0);
	cr_expect_eq(get_error(&other, n, "k"), 1);
	cr_expect_eq(vfs_xattr_list(&other, n, names, sizeof(names)), 2);
	cr_expect_eq(set(&other, n, "k", "w"), -EACCES);
	cr_expect_eq(take(&other, n, "k"), -EACCES);
	be_root(&f);
	cr_assert_eq(chmod(in_export(&f, "a"), 0620), 0);
	cr_expect_eq(get_error(&other, n, "k"), -EACCES);
	cr_expect_eq(vfs_xattr_list(&other, n, names, sizeof(names)), -EACCES);
	other.cred.gid = 100;
	cr_expect_eq(get_error(&other, n, "k"), -EACCES);
	cr_expect_eq(set(&other, n, "k", "w"), 0);
	/* The owner's own bits count for him, too, as with local processes. */
	be_root(&f);
	cr_assert_eq(chmod(in_export(&f, "a"), 0), 0);
	cr_expect_eq(get_error(&owner, n, "k"), -EACCES);
	cr_expect_eq(set(&owner, n, "k", "x"), -EACCES);
	cr_expect_eq(set(&f.ctx, n, "k", "x"), 0);
	vfs_node_put(n);
	be_root(&f);
	fixture_close(&f);
}

Test(vfs_xattr, sticky_directories_are_the_owners)
{
	struct fixture f;
	struct vfs_ctx other;
	struct vfs_node *n;

	open_with_xattrs(&f);
	n = must_mkdir(&f.ctx, f.root, "d", 0777);
	be_root(&f);
	cr_assert_eq(chmod(in_export(&f, "d"), 0777), 0);
	other = as_user(&f, 1001, 101);
	cr_expect_eq(set(&other, n, "k", "v"), 0);
	be_root(&f);
	cr_assert_eq(chmod(in_export(&f, "d"), 01777), 0);
	cr_expect_eq(set(&other, n, "k", "w"), -EPERM);
	cr_expect_eq(take(&other, n, "k"), -EPERM);
	cr_expect_eq(get_error(&other, n, "k"), 1);
	cr_expect_eq(set(&f.ctx, n, "k", "w"), 0);
	vfs_node_put(n);
	be_root(&f);
	fixture_close(&f);
}

Test(vfs_xattr, other_types_have_none)
{
	static const char *const names[] = { "fifo", "link" };
	struct fixture f;
	char list[64];

	open_with_xattrs(&f);
	cr_assert_eq(mkfifo(in_export(&f, "fifo"), 0666), 0);
	cr_assert_eq(symlink("fifo", in_export(&f, "link")), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct vfs_node *n = must_lookup(&f.ctx, f.root, names[i]);

		cr_expect_eq(set(&f.ctx, n, "k", "v"), -EPERM, "%s", names[i]);
		cr_expect_eq(take(&f.ctx, n, "k"), -EPERM, "%s", names[i]);
		cr_expect_eq(get_error(&f.ctx, n, "k"), -ENODATA, "%s", names[i]);
		cr_expect_eq(vfs_xattr_list(&f.ctx, n, list, sizeof(list)), 0, "%s", names[i]);
		vfs_node_put(n);
	}
	fixture_close(&f);
}

static int set_flags(const char *path, int flags)
{
	int fd = open(path, O_RDONLY);
	int rc = ioctl(fd, FS_IOC_SETFLAGS, &flags);

	close(fd);
	return rc;
}

Test(vfs_xattr, read_only_and_immutable)
{
	struct fixture f;
	struct vfs_node *n;
	char path[256];

	open_with_xattrs(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_assert_eq(set(&f.ctx, n, "k", "v"), 0);
	f.ctx.access.flags |= VFS_RO;
	cr_expect_eq(set(&f.ctx, n, "k", "w"), -EROFS);
	cr_expect_eq(take(&f.ctx, n, "k"), -EROFS);
	cr_expect_eq(get_error(&f.ctx, n, "k"), 1);
	f.ctx.access.flags &= ~(unsigned)VFS_RO;
	snprintf(path, sizeof(path), "%s", in_export(&f, "a"));
	if (set_flags(path, FS_IMMUTABLE_FL) == 0) {
		cr_expect_eq(set(&f.ctx, n, "k", "w"), -EPERM);
		cr_expect_eq(take(&f.ctx, n, "k"), -EPERM);
		cr_expect_eq(get_error(&f.ctx, n, "k"), 1);
		cr_assert_eq(set_flags(path, 0), 0);
	}
	cr_assert_eq(unlink(path), 0);
	cr_expect_eq(set(&f.ctx, n, "k", "w"), -ESTALE);
	cr_expect_eq(get_error(&f.ctx, n, "k"), -ESTALE);
	vfs_node_put(n);
	fixture_close(&f);
}

/* Both states are there, and differ; atomic only where nobody else can have been at work. */
Test(vfs_xattr, states_before_and_after)
{
	struct fixture f;
	struct vfs_node *n;
	struct vfs_xattr_change c = { .name = { "k", 1 }, .value = "v", .size = 1 };
	uint64_t last;

	open_with_xattrs(&f);
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_assert_eq(vfs_xattr_change(&f.ctx, n, &c), 0);
	cr_expect(c.states.known && !c.states.atomic);
	cr_expect_lt(c.states.before.change, c.states.after.change);
	last = c.states.after.change;
	c.how = VFS_XATTR_REMOVE;
	cr_assert_eq(vfs_xattr_change(&f.ctx, n, &c), 0);
	cr_expect_leq(last, c.states.before.change);
	cr_expect_lt(c.states.before.change, c.states.after.change);
	cr_expect_eq(vfs_xattr_change(&f.ctx, n, &c), -ENODATA);
	cr_expect(!c.states.known && !c.states.atomic);
	vfs_export_set_nfs_only(f.exp, true);
	c.how = VFS_XATTR_EITHER;
	cr_assert_eq(vfs_xattr_change(&f.ctx, n, &c), 0);
	cr_expect(c.states.known && !c.states.atomic, "writes are not counted");
	cr_assert_eq(vfs_xattr_change(&f.ctx, f.root, &c), 0);
	cr_expect(c.states.known && c.states.atomic);
	cr_expect_lt(c.states.before.change, c.states.after.change);
	vfs_node_put(n);
	fixture_close(&f);
}

/* On disk after a power failure, if they are synced as SETATTR is. */
static void durable(const char *fs, const char *mkfs_options)
{
	static const char *const names[] = { "file", "dir" };
	struct disk d;
	char path[128], value[16];

	disk_open(&d, fs, mkfs_options);
	vfs_node_put(fx_file(&d.f, "file", "hello", 5));
	cr_assert_eq(mkdir(fx_path(&d.f, "dir"), 0755), 0);
	disk_settle(&d);
	for (unsigned i = 0; i < 2; i++) {
		struct vfs_node *n = fx_lookup(&d.f, names[i]);

		cr_assert(vfs_xattr_supported(&d.f.ctx, n));
		cr_assert_eq(set(&d.f.ctx, n, "kept", "value"), 0);
		cr_assert_eq(set(&d.f.ctx, n, "gone", "value"), 0);
		cr_assert_eq(fx_sync_metadata(&d.f, n), 0);
		cr_assert_eq(take(&d.f.ctx, n, "gone"), 0);
		cr_assert_eq(fx_sync_metadata(&d.f, n), 0);
		vfs_node_put(n);
	}
	disk_copy_open(&d);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", d.copy, names[i]);
		cr_expect_eq(getxattr(path, "user.kept", value, sizeof(value)), 5, "%s, %s: lost",
			     fs, names[i]);
		cr_expect_eq(getxattr(path, "user.gone", value, sizeof(value)), -1,
			     "%s, %s: removed, and back", fs, names[i]);
	}
	disk_copy_close(&d);
	disk_close(&d);
}

Test(vfs_xattr, durable_on_ext4)
{
	durable("ext4", "");
}

Test(vfs_xattr, durable_on_xfs)
{
	durable("xfs", "");
}

static int set_big(struct disk *d, struct vfs_node *n, uint32_t size)
{
	static char big[VFS_XATTR_SIZE_MAX];
	struct vfs_xattr_change c = { .name = { "big", 3 }, .value = big, .size = size };

	return vfs_xattr_change(&d->f.ctx, n, &c);
}

/* ext4 holds a block of them, XFS as many as the kernel takes. */
static void big_values(const char *fs, const char *mkfs_options, int want)
{
	const struct vfs_xattr_name name = { "big", 3 };
	struct vfs_node *n;
	struct disk d;

	disk_open(&d, fs, mkfs_options);
	n = fx_file(&d.f, "file", "", 0);
	cr_expect_eq(set_big(&d, n, 3000), 0);
	cr_expect_eq(set_big(&d, n, VFS_XATTR_SIZE_MAX), want);
	cr_expect_eq(vfs_xattr_get(&d.f.ctx, n, &name, NULL, 0),
		     want == 0 ? (int)VFS_XATTR_SIZE_MAX : 3000);
	vfs_node_put(n);
	disk_close(&d);
}

Test(vfs_xattr, big_values_on_ext4)
{
	big_values("ext4", "-b 4096", -ENOSPC);
}

Test(vfs_xattr, big_values_on_ext4_with_inodes_for_them)
{
	big_values("ext4", "-b 4096 -O ea_inode", 0);
}

Test(vfs_xattr, big_values_on_xfs)
{
	big_values("xfs", "", 0);
}

/* XFS takes more names than the kernel can list. */
Test(vfs_xattr, more_names_than_can_be_listed)
{
	static char list[VFS_XATTR_LIST_MAX];
	struct vfs_node *n;
	struct disk d;
	char name[VFS_XATTR_NAME_MAX + 1];
	int len;

	disk_open(&d, "xfs", "");
	n = fx_file(&d.f, "file", "", 0);
	for (unsigned i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "%0*u", (int)VFS_XATTR_NAME_MAX, i);
		cr_assert_eq(set(&d.f.ctx, n, name, ""), 0);
	}
	len = vfs_xattr_list(&d.f.ctx, n, list, sizeof(list));
	cr_expect_eq(len, 256 * (int)(VFS_XATTR_NAME_MAX + 1), "%d", len);
	cr_assert_eq(set(&d.f.ctx, n, "one more", ""), 0);
	cr_expect_eq(vfs_xattr_list(&d.f.ctx, n, list, sizeof(list)), -E2BIG);
	vfs_node_put(n);
	disk_close(&d);
}
