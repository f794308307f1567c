/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity of calls: squashing, switching, and the permissions that the kernel then grants. */
#include "vfs/worker/worker_state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs_fixture.h"

static const struct vfs_access squash_root = { .flags = VFS_ROOT_SQUASH,
					       .anonuid = 65534,
					       .anongid = 65533 };

Test(vfs_identity, root_squash_maps_every_zero)
{
	struct vfs_cred c = { .uid = 0, .gid = 0, .ngroups = 3, .groups = { 5, 0, 6 } };

	vfs_cred_squash(&c, &squash_root, false);
	cr_expect_eq(c.uid, 65534);
	cr_expect_eq(c.gid, 65533);
	cr_expect_eq(c.ngroups, 3);
	cr_expect_eq(c.groups[0], 5);
	cr_expect_eq(c.groups[1], 65533);
	cr_expect_eq(c.groups[2], 6);
}

Test(vfs_identity, root_squash_leaves_others)
{
	struct vfs_cred c = { .uid = 1000, .gid = 0, .ngroups = 1, .groups = { 100 } };

	vfs_cred_squash(&c, &squash_root, false);
	cr_expect_eq(c.uid, 1000);
	cr_expect_eq(c.gid, 65533, "group 0 is squashed for users too");
	cr_expect_eq(c.groups[0], 100);
}

Test(vfs_identity, all_squash_and_auth_none_leave_nothing)
{
	struct vfs_access all = { .flags = VFS_ALL_SQUASH, .anonuid = 1234, .anongid = 1235 };
	struct vfs_access none = { .anonuid = 1234, .anongid = 1235 };

	for (unsigned i = 0; i < 2; i++) {
		struct vfs_cred c = { .uid = 1000, .gid = 100, .ngroups = 1, .groups = { 100 } };

		vfs_cred_squash(&c, i ? &none : &all, i);
		cr_expect_eq(c.uid, 1234);
		cr_expect_eq(c.gid, 1235);
		cr_expect_eq(c.ngroups, 0);
	}
}

Test(vfs_identity, no_root_squash_keeps_root_but_not_minus_one)
{
	struct vfs_access no = { .anonuid = 65534, .anongid = 65534 };
	struct vfs_cred root = { 0 };
	struct vfs_cred odd = { .uid = -1, .gid = -1, .ngroups = 1, .groups = { -1 } };

	vfs_cred_squash(&root, &no, false);
	cr_expect_eq(root.uid, 0);
	cr_expect_eq(root.gid, 0);
	vfs_cred_squash(&odd, &no, false);
	cr_expect_eq(odd.uid, 65534);
	cr_expect_eq(odd.gid, 65534);
	cr_expect_eq(odd.groups[0], 65534);
}

static void needs_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

static bool thread_has_groups(const uint32_t *want, int n)
{
	gid_t have[VFS_GROUPS_MAX];

	return syscall(SYS_getgroups, VFS_GROUPS_MAX, have) == n &&
	       memcmp(have, want, (size_t)n * sizeof(*want)) == 0;
}

struct bystander {
	pthread_barrier_t started, switched;
	bool changed;
};

static void *stand_by(void *arg)
{
	struct bystander *b = arg;

	pthread_barrier_wait(&b->started);
	pthread_barrier_wait(&b->switched);
	b->changed = thread_has_groups((uint32_t[]){ 77, 78 }, 2) ||
		     syscall(SYS_setfsuid, -1) != 0 || syscall(SYS_setfsgid, -1) != 0;
	return NULL;
}

Test(vfs_identity, switches_one_thread_only)
{
	struct vfs_cred c = { .uid = 1000, .gid = 100, .ngroups = 2, .groups = { 77, 78 } };
	struct vfs_identity id = { 0 };
	struct bystander b = { .changed = true };
	pthread_t t;

	needs_root();
	pthread_barrier_init(&b.started, NULL, 2);
	pthread_barrier_init(&b.switched, NULL, 2);
	pthread_create(&t, NULL, stand_by, &b);
	pthread_barrier_wait(&b.started);
	cr_assert_eq(vfs_identity_become(&id, &c), 0);
	cr_expect_eq(syscall(SYS_setfsuid, -1), 1000);
	cr_expect_eq(syscall(SYS_setfsgid, -1), 100);
	cr_expect(thread_has_groups(c.groups, 2));
	cr_assert_eq(vfs_identity_root(&id), 0);
	cr_expect_eq(syscall(SYS_setfsuid, -1), 0);
	pthread_barrier_wait(&b.switched);
	pthread_join(t, NULL);
	cr_expect_not(b.changed);
}

Test(vfs_identity, comes_back_from_root_to_the_same_user)
{
	struct vfs_cred c = { .uid = 1000, .gid = 100 }, d = { .uid = 1000, .gid = 101 };
	struct vfs_identity id = { 0 };

	needs_root();
	cr_assert_eq(vfs_identity_become(&id, &c), 0);
	cr_assert_eq(vfs_identity_root(&id), 0);
	cr_assert_eq(vfs_identity_become(&id, &c), 0);
	cr_expect_eq(syscall(SYS_setfsuid, -1), 1000);
	cr_assert_eq(vfs_identity_become(&id, &d), 0);
	cr_expect_eq(syscall(SYS_setfsgid, -1), 101);
	cr_assert_eq(vfs_identity_root(&id), 0);
}

Test(vfs_identity, what_cannot_be_is_refused)
{
	struct vfs_cred c = { .uid = (uint32_t)-1 };
	struct vfs_identity id = { 0 };

	needs_root();
	cr_expect_eq(vfs_identity_become(&id, &c), -EPERM);
	c = (struct vfs_cred){ .ngroups = VFS_GROUPS_MAX + 1 };
	cr_expect_eq(vfs_identity_become(&id, &c), -EPERM);
	/* Without the capability the switch fails, and reports the failure. */
	cr_assert_eq(setresuid(1000, 1000, 1000), 0);
	c = (struct vfs_cred){ .uid = 1001, .gid = 1000 };
	cr_expect_eq(vfs_identity_become(&id, &c), -EPERM);
	cr_expect_not(id.known);
}

/* Access of several users to a file of 1000:100, mode 0640, in a directory open to all. */
Test(vfs_identity, the_kernel_decides_for_each_user)
{
	struct fixture f;
	struct vfs_ctx owner, member, stranger, root;
	struct vfs_node *n;
	unsigned got;

	fixture_open(&f, FIX_MAC);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	n = must_create(&owner, f.root, "f", 0640);
	cr_expect_eq(must_getattr(&owner, n).uid, 1000);
	cr_expect_eq(must_getattr(&owner, n).gid, 100);

	member = as_user(&f, 1001, 200);
	member.cred.ngroups = 2;
	member.cred.groups[0] = 300;
	member.cred.groups[1] = 100;
	stranger = as_user(&f, 1001, 200);
	root = f.ctx;

	cr_assert_eq(vfs_access(&owner, n, 7, &got, NULL), 0);
	cr_expect_eq(got, VFS_MAY_READ | VFS_MAY_WRITE);
	cr_assert_eq(vfs_access(&member, n, 7, &got, NULL), 0);
	cr_expect_eq(got, VFS_MAY_READ);
	cr_assert_eq(vfs_access(&stranger, n, 7, &got, NULL), 0);
	cr_expect_eq(got, 0);
	cr_assert_eq(vfs_access(&root, n, 7, &got, NULL), 0);
	cr_expect_eq(got, VFS_MAY_READ | VFS_MAY_WRITE);
	owner.access.flags = VFS_RO;
	cr_assert_eq(vfs_access(&owner, n, 7, &got, NULL), 0);
	cr_expect_eq(got, VFS_MAY_READ);
	cr_expect_eq(vfs_may_write(&owner, n), -EROFS);

	cr_expect_eq(vfs_may_read(&member, n), 0);
	cr_expect_eq(vfs_may_write(&member, n), -EACCES);
	cr_expect_eq(vfs_may_read(&stranger, n), -EACCES);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_identity, squashed_root_is_nobody)
{
	struct fixture f;
	struct vfs_ctx ctx;
	struct vfs_node *n = NULL;
	struct vfs_setattr sa = { 0 };
	struct vfs_create cr = { .how = VFS_GUARDED, .sa = &sa };

	fixture_open(&f, FIX_MAC);
	ctx = f.ctx;
	vfs_cred_squash(&ctx.cred, &squash_root, false);
	cr_expect_eq(vfs_create(&ctx, f.root, "f", 1, &cr, &n), -EACCES);
	be_root(&f);
	chmod(f.dir, 0777);
	n = must_create(&ctx, f.root, "f", 0600);
	cr_expect_eq(must_getattr(&ctx, n).uid, 65534);
	cr_expect_eq(must_getattr(&ctx, n).gid, 65533);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_identity, owner_reads_and_writes_whatever_the_mode)
{
	struct fixture f;
	struct vfs_ctx owner, other;
	struct vfs_node *n, *x;

	fixture_open(&f, 0);
	chmod(f.dir, 0777);
	owner = as_user(&f, 1000, 100);
	other = as_user(&f, 1001, 100);
	n = must_create(&owner, f.root, "f", 0);
	cr_expect_eq(vfs_may_read(&owner, n), 0);
	cr_expect_eq(vfs_may_write(&owner, n), 0);
	cr_expect_eq(vfs_may_read(&other, n), -EACCES);
	x = must_create(&owner, f.root, "x", 0711);
	cr_expect_eq(vfs_may_read(&other, x), 0, "who may execute may read");
	cr_expect_eq(vfs_may_write(&other, x), -EACCES);
	cr_expect_eq(vfs_may_read(&owner, f.root), -EISDIR);
	vfs_node_put(x);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_identity, a_closed_directory_hides_what_is_below)
{
	struct fixture f;
	struct vfs_ctx user;
	struct vfs_node *d, *n;
	struct vfs_fh fh;

	fixture_open(&f, FIX_MAC);
	user = as_user(&f, 1000, 100);
	d = must_mkdir(&f.ctx, f.root, "d", 0700);
	n = must_create(&f.ctx, d, "f", 0644);
	fh = *vfs_node_fh(n);
	cr_expect_eq(try_lookup(&user, d, "f"), -EACCES, "cached or not");
	cr_expect_eq(try_lookup(&user, d, "."), -EACCES);
	cr_expect_eq(try_lookup(&user, d, ".."), -EACCES);
	cr_expect_eq(vfs_remove(&user, d, "f", 1, NULL), -EACCES);
	cr_expect_eq(try_open(&user, &fh), 0, "a handle needs no path");
	vfs_node_put(n);
	vfs_node_put(d);
	fixture_close(&f);
}
