/* SPDX-License-Identifier: BSD-2-Clause */
/* Setting attributes: permission, order, the guard, and all or nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "vfs/hold/file_change.h"
#include "vfs_fixture.h"

static struct vfs_setattr size_to(uint64_t size)
{
	return (struct vfs_setattr){ .set_size = true, .size = size };
}

static int set(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_setattr sa)
{
	return vfs_setattr(ctx, n, &sa, NULL);
}

Test(vfs_setattr, sizes)
{
	struct fixture f;
	struct vfs_node *n, *l;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_expect_eq(set(&f.ctx, n, size_to(5ull << 32)), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).size, 5ull << 32);
	cr_expect_eq(must_getattr(&f.ctx, n).used, 0, "a hole");
	cr_expect_eq(set(&f.ctx, n, size_to(0)), 0);
	cr_expect_eq(set(&f.ctx, n, size_to(1ull << 63)), -EFBIG);
	cr_expect_eq(set(&f.ctx, n, size_to(UINT64_MAX)), -EFBIG);
	cr_expect_eq(set(&f.ctx, f.root, size_to(0)), -EISDIR);
	cr_assert_eq(mkfifo(in_export(&f, "p"), 0666), 0);
	l = must_lookup(&f.ctx, f.root, "p");
	cr_expect_eq(set(&f.ctx, l, size_to(0)), -EINVAL);
	vfs_node_put(l);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, owner_may_truncate_what_it_may_not_write)
{
	struct fixture f;
	struct vfs_ctx owner, other;
	struct vfs_node *n;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	other = as_user(&f, 1001, 100);
	n = must_create(&owner, f.root, "a", 0444);
	cr_expect_eq(set(&owner, n, size_to(10)), 0);
	cr_expect_eq(set(&other, n, size_to(0)), -EACCES);
	cr_expect_eq(must_getattr(&owner, n).size, 10);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, truncation_by_a_user_clears_set_id_bits)
{
	struct fixture f;
	struct vfs_ctx user;
	struct vfs_node *n;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 06777);
	cr_assert_eq(set(&f.ctx, n, size_to(10)), 0);
	user = as_user(&f, 1000, 100);
	cr_assert_eq(set(&user, n, size_to(5)), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).mode & 07777, 0777);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, nothing_is_done_when_something_is_not_allowed)
{
	struct vfs_setattr sa = { .set_size = true,
				  .size = 1,
				  .set_mode = true,
				  .mode = 0600,
				  .set_uid = true,
				  .uid = 1001 };
	struct fixture f;
	struct vfs_ctx user;
	struct vfs_node *n;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	user = as_user(&f, 1000, 100);
	n = must_create(&user, f.root, "a", 0644);
	cr_assert_eq(set(&user, n, size_to(10)), 0);
	cr_expect_eq(set(&user, n, sa), -EPERM, "giving a file away");
	cr_expect_eq(must_getattr(&user, n).size, 10);
	cr_expect_eq(must_getattr(&user, n).mode & 07777, 0644);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, who_may_change_owner_group_and_mode)
{
	struct vfs_setattr to_200 = { .set_gid = true, .gid = 200 };
	struct vfs_setattr to_300 = { .set_gid = true, .gid = 300 };
	struct vfs_setattr same = { .set_uid = true, .uid = 1000 };
	struct vfs_setattr mode = { .set_mode = true, .mode = 04711 };
	struct fixture f;
	struct vfs_ctx owner, other;
	struct vfs_node *n;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	owner.cred.ngroups = 1;
	owner.cred.groups[0] = 200;
	other = as_user(&f, 1001, 200);
	n = must_create(&owner, f.root, "a", 0644);
	cr_expect_eq(set(&owner, n, to_200), 0);
	cr_expect_eq(must_getattr(&owner, n).gid, 200);
	cr_expect_eq(set(&owner, n, to_300), -EPERM);
	cr_expect_eq(set(&owner, n, same), 0);
	cr_expect_eq(set(&owner, n, mode), 0);
	cr_expect_eq(must_getattr(&owner, n).mode & 07777, 04711);
	cr_expect_eq(set(&other, n, mode), -EPERM);
	cr_expect_eq(set(&other, n, to_200), -EPERM);
	cr_expect_eq(set(&f.ctx, n, to_300), 0);
	cr_expect_eq(must_getattr(&owner, n).gid, 300);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, chown_and_mode_at_once_keep_the_mode)
{
	struct vfs_setattr sa = { .set_uid = true,
				  .uid = 1000,
				  .set_gid = true,
				  .gid = 100,
				  .set_mode = true,
				  .mode = 06755 };
	struct fixture f;
	struct vfs_node *n;
	struct vfs_attr a;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0644);
	cr_expect_eq(set(&f.ctx, n, sa), 0);
	a = must_getattr(&f.ctx, n);
	cr_expect_eq(a.mode & 07777, 06755);
	cr_expect_eq(a.uid, 1000);
	cr_expect_eq(a.gid, 100);
	sa = (struct vfs_setattr){ .set_uid = true, .uid = (uint32_t)-1 };
	cr_expect_eq(set(&f.ctx, n, sa), -EINVAL);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, times)
{
	struct vfs_setattr client = { .set_atime = VFS_TIME_CLIENT,
				      .atime = { 100, 1 },
				      .set_mtime = VFS_TIME_CLIENT,
				      .mtime = { 4000000000, 999999999 } };
	struct vfs_setattr now = { .set_atime = VFS_TIME_SERVER, .set_mtime = VFS_TIME_SERVER };
	struct vfs_setattr one = { .set_mtime = VFS_TIME_CLIENT, .mtime = { 200, 0 } };
	struct vfs_setattr magic = { .set_mtime = VFS_TIME_CLIENT, .mtime = { 0, UTIME_NOW } };
	struct fixture f;
	struct vfs_ctx owner, writer, reader;
	struct vfs_node *n;
	struct vfs_attr a;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	writer = as_user(&f, 1001, 100);
	reader = as_user(&f, 1001, 101);
	n = must_create(&owner, f.root, "a", 0664);
	cr_expect_eq(set(&owner, n, client), 0);
	a = must_getattr(&owner, n);
	cr_expect_eq(a.atime.tv_sec, 100);
	cr_expect_eq(a.mtime.tv_sec, 4000000000);
	cr_expect_eq(a.mtime.tv_nsec, 999999999);
	cr_expect_eq(set(&owner, n, one), 0);
	a = must_getattr(&owner, n);
	cr_expect_eq(a.atime.tv_sec, 100);
	cr_expect_eq(a.mtime.tv_sec, 200);
	cr_expect_eq(set(&owner, n, magic), -EINVAL);
	cr_expect_eq(set(&writer, n, one), -EPERM);
	cr_expect_eq(set(&reader, n, now), -EACCES);
	cr_expect_eq(set(&writer, n, now), 0);
	cr_expect_gt(must_getattr(&owner, n).mtime.tv_sec, 1000000000);
	vfs_node_put(n);
	fixture_close(&f);
}

/* Linux's client sends {size, mtime = now} in one call. A user with write permission may do that,
 * as with the kernel's server, and set either time alone to "now". */
Test(vfs_setattr, writers_set_times_to_now)
{
	const struct vfs_setattr cut = { .set_size = true, .set_mtime = VFS_TIME_SERVER };
	const struct vfs_setattr each[] = {
		{ .set_mtime = VFS_TIME_SERVER },
		{ .set_atime = VFS_TIME_SERVER },
		{ .set_size = true, .size = 3, .set_atime = VFS_TIME_SERVER },
		cut,
	};
	struct vfs_setattr opened = cut,
			   mixed = { .set_atime = VFS_TIME_CLIENT, .set_mtime = VFS_TIME_SERVER };
	struct vfs_setattr old = { .set_atime = VFS_TIME_CLIENT, .set_mtime = VFS_TIME_CLIENT };
	struct fixture f;
	struct vfs_ctx owner, writer, reader;
	struct vfs_node *n;
	struct vfs_attr a;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	writer = as_user(&f, 1001, 100);
	reader = as_user(&f, 1001, 101);
	n = must_create(&owner, f.root, "a", 0664);
	for (unsigned i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		cr_assert_eq(set(&owner, n, old), 0);
		cr_expect_eq(set(&reader, n, each[i]), -EACCES, "%u", i);
		cr_expect_eq(must_getattr(&owner, n).mtime.tv_sec, 0);
		cr_expect_eq(set(&writer, n, each[i]), 0, "%u", i);
		a = must_getattr(&owner, n);
		cr_expect_eq(a.mtime.tv_sec > 0,
			     each[i].set_mtime == VFS_TIME_SERVER || each[i].set_size, "%u", i);
		cr_expect_eq(a.atime.tv_sec > 0, each[i].set_atime == VFS_TIME_SERVER, "%u", i);
	}
	cr_expect_eq(set(&writer, n, mixed), -EPERM);
	/* The file was opened for writing before its mode was taken away. */
	opened.opened = true;
	cr_expect_eq(set(&reader, n, opened), 0);
	opened.set_atime = VFS_TIME_SERVER;
	cr_expect_eq(set(&reader, n, opened), 0);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, the_guard_compares_ctime)
{
	struct vfs_setattr mode = { .set_mode = true, .mode = 0600 };
	struct fixture f;
	struct vfs_node *n;
	struct vfs_attr a;
	struct timespec off;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0644);
	a = must_getattr(&f.ctx, n);
	off = a.ctime;
	off.tv_nsec ^= 1;
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &off), -EDOM);
	off = a.ctime;
	off.tv_sec--;
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &off), -EDOM);
	cr_expect_eq(must_getattr(&f.ctx, n).mode & 07777, 0644);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &a.ctime), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).mode & 07777, 0600);
	vfs_node_put(n);
	fixture_close(&f);
}

/* Each change of the file meets the guarded one that is under way. */
Test(vfs_setattr, nothing_comes_between_the_guard_and_the_change)
{
	struct vfs_setattr mode = { .set_mode = true, .mode = 0600 };
	const struct vfs_setattr cut = { .set_size = true };
	struct vfs_create truncation = { .how = VFS_UNCHECKED, .sa = &cut };
	struct vfs_node *n, *again;
	struct vfs_file_change other;
	struct timespec ctime;
	struct fixture f;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0644);
	ctime = must_getattr(&f.ctx, n).ctime;
	cr_assert_eq(vfs_file_change_begin(&f.ctx, n, &other), 0);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &ctime), -RN_ESOON, "a change is under way");
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, NULL), 0);
	vfs_file_change_end(&other);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &ctime), -EDOM);

	ctime = must_getattr(&f.ctx, n).ctime;
	cr_assert_eq(vfs_file_change_begin_alone(&f.ctx, n, &other), 0);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &ctime), -RN_ESOON);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, NULL), -RN_ESOON);
	cr_expect_eq(vfs_create(&f.ctx, f.root, "a", 1, &truncation, &again), -RN_ESOON);
	cr_expect_eq(vfs_link(&f.ctx, n, f.root, "b", 1, NULL), -RN_ESOON);
	cr_expect_eq(vfs_remove(&f.ctx, f.root, "a", 1, NULL), -RN_ESOON);
	vfs_file_change_end(&other);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &mode, &ctime), 0, "none was made");
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, symbolic_links)
{
	struct vfs_setattr sa = { .set_mode = true,
				  .mode = 0600,
				  .set_uid = true,
				  .uid = 5,
				  .set_mtime = VFS_TIME_CLIENT };
	struct fixture f;
	struct vfs_node *n;
	struct stat st;

	fixture_open(&f, 0);
	put_file(in_export(&f, "a"), "");
	cr_assert_eq(symlink("a", in_export(&f, "l")), 0);
	n = must_lookup(&f.ctx, f.root, "l");
	cr_expect_eq(set(&f.ctx, n, sa), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).uid, 5);
	cr_expect_eq(must_getattr(&f.ctx, n).mtime.tv_sec, 0);
	stat(in_export(&f, "a"), &st);
	cr_expect_eq(st.st_uid, 0, "what it points to is untouched");
	cr_expect_eq(st.st_mode & 07777, 0644);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, change_follows_every_change)
{
	struct vfs_setattr mode = { .set_mode = true, .mode = 0600 };
	struct fixture f;
	struct vfs_node *n;
	uint64_t before;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "a", 0644);
	before = must_getattr(&f.ctx, n).change;
	usleep(20000);
	cr_assert_eq(set(&f.ctx, n, mode), 0);
	cr_expect_neq(must_getattr(&f.ctx, n).change, before);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_setattr, statfs_is_sane)
{
	struct fixture f;
	struct vfs_statfs s;

	fixture_open(&f, 0);
	cr_assert_eq(vfs_statfs(&f.ctx, f.root, &s), 0);
	cr_expect_geq(s.total_bytes, s.free_bytes);
	cr_expect_geq(s.free_bytes, s.avail_bytes);
	cr_expect_gt(s.total_bytes, 0);
	cr_expect_eq(s.name_max, 255);
	cr_expect_geq(s.link_max, 1000);
	fixture_close(&f);
}
