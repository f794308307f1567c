/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker that must not wait and never changes its identity: it decides as the kernel does, or
 * moves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/kernel_can.h"
#include "tests/unit/mover.h"
#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/node/node.h"
#include "vfs_fixture.h"

#define ALL_RIGHTS (VFS_MAY_READ | VFS_MAY_WRITE | VFS_MAY_EXEC | VFS_MAY_DELETE)

struct event {
	struct fixture f;
	struct vfs_worker *w;
	struct mover mover;
};

static void open_event(struct event *p)
{
	NEED_KERNEL_CAN(open_cached);
	fixture_open(&p->f, FIX_MAC);
	cr_assert_eq(vfs_worker_new_event(p->f.vfs, &p->w), 0);
	mover_init(&p->mover, p->w, p->f.w);
}

static void close_event(struct event *p)
{
	vfs_worker_free(p->w);
	fixture_close(&p->f);
}

/* The event thread's worker's context for the same caller. */
static struct vfs_ctx event_ctx(struct event *p, const struct vfs_ctx *ctx)
{
	struct vfs_ctx same = *ctx;

	same.fiber = &p->mover.fiber;
	return same;
}

static const struct vfs_cred callers[] = {
	{ .uid = 0, .gid = 0 },
	{ .uid = 1000, .gid = 100 }, /* the owner */
	{ .uid = 1001, .gid = 100 }, /* of its group */
	{ .uid = 1002,
	  .gid = 5,
	  .ngroups = 2,
	  .groups = { 7, 100 } },				     /* the same, by another way */
	{ .uid = 1003, .gid = 5, .ngroups = 1, .groups = { 1000 } }, /* another */
};

/* The event thread's worker and the usual one grant the same rights. *moved: the event thread's did not decide. */
static void expect_same_access(struct event *p, const struct vfs_cred *cred, struct vfs_node *n,
			       unsigned mode, bool *moved)
{
	struct vfs_ctx ctx = p->f.ctx, event;
	unsigned kernel = 0, ours = 0;
	int rc;

	ctx.cred = *cred;
	event = event_ctx(p, &ctx);
	cr_assert_eq(vfs_access(&ctx, n, ALL_RIGHTS, &kernel, NULL), 0);
	be_root(&p->f);
	rc = vfs_access(&event, n, ALL_RIGHTS, &ours, NULL);
	*moved = mover_has_moved(&p->mover);
	cr_expect_eq(rc, 0);
	cr_expect_eq(ours, kernel, "uid %u, mode %o: %x, not %x", cred->uid, mode, ours, kernel);
	if (!*moved)
		cr_expect_eq(setfsuid((uid_t)-1), 0, "the thread became somebody else");
	be_root(&p->f);
}

static void check_modes(struct event *p, const char *name, struct vfs_node *n)
{
	bool moved;

	for (unsigned mode = 0; mode <= 0777; mode++) {
		cr_assert_eq(chmod(in_export(&p->f, name), mode), 0);
		for (size_t i = 0; i < rn_array_size(callers); i++) {
			expect_same_access(p, &callers[i], n, mode, &moved);
			cr_expect_not(moved, "uid %u, mode %o", callers[i].uid, mode);
		}
	}
}

Test(vfs_event, decides_by_the_mode_as_the_kernel, .timeout = 120)
{
	struct event p;
	struct vfs_node *file, *dir;

	open_event(&p);
	put_file(in_export(&p.f, "file"), "text");
	cr_assert_eq(mkdir(in_export(&p.f, "dir"), 0777), 0);
	cr_assert_eq(chown(in_export(&p.f, "file"), 1000, 100), 0);
	cr_assert_eq(chown(in_export(&p.f, "dir"), 1000, 100), 0);
	file = must_lookup(&p.f.ctx, p.f.root, "file");
	dir = must_lookup(&p.f.ctx, p.f.root, "dir");
	check_modes(&p, "file", file);
	check_modes(&p, "dir", dir);
	vfs_node_put(file);
	vfs_node_put(dir);
	close_event(&p);
}

/* An ACL with an entry for user 1003, who is denied, and the mask rwx. */
static const struct {
	uint32_t version;
	struct {
		uint16_t tag, perm;
		uint32_t id;
	} entry[5];
} acl = { 2,
	  { { 0x01, 7, UINT32_MAX },
	    { 0x02, 0, 1003 },
	    { 0x04, 5, UINT32_MAX },
	    { 0x10, 7, UINT32_MAX },
	    { 0x20, 7, UINT32_MAX } } };

Test(vfs_event, an_acl_is_left_to_the_kernel_but_for_the_owner)
{
	struct vfs_node *file;
	struct event p;
	bool moved;

	open_event(&p);
	put_file(in_export(&p.f, "file"), "text");
	cr_assert_eq(chown(in_export(&p.f, "file"), 1000, 100), 0);
	if (setxattr(in_export(&p.f, "file"), "system.posix_acl_access", &acl, sizeof(acl), 0) != 0)
		cr_skip_test("no ACLs here");
	file = must_lookup(&p.f.ctx, p.f.root, "file");
	for (size_t i = 0; i < rn_array_size(callers); i++) {
		expect_same_access(&p, &callers[i], file, 0777, &moved);
		cr_expect_eq(moved, i >= 2, "uid %u", callers[i].uid);
	}
	vfs_node_put(file);
	close_event(&p);
}

/* That a file has no ACL is remembered with its ctime. */
Test(vfs_event, an_acl_that_comes_later_is_seen)
{
	const struct timespec settled = { .tv_nsec = 50 * 1000 * 1000 };
	struct vfs_node *file;
	struct event p;
	bool moved;

	open_event(&p);
	put_file(in_export(&p.f, "file"), "text");
	cr_assert_eq(chown(in_export(&p.f, "file"), 1000, 100), 0);
	cr_assert_eq(chmod(in_export(&p.f, "file"), 0777), 0);
	file = must_lookup(&p.f.ctx, p.f.root, "file");
	nanosleep(&settled, NULL);
	for (unsigned round = 0; round < 2; round++) {
		cr_expect_eq(atomic_load(&file->without_acl) != 0, round > 0);
		expect_same_access(&p, &callers[4], file, 0777, &moved);
		cr_expect_not(moved);
	}
	if (setxattr(in_export(&p.f, "file"), "system.posix_acl_access", &acl, sizeof(acl), 0) != 0)
		cr_skip_test("no ACLs here");
	expect_same_access(&p, &callers[4], file, 0777, &moved);
	cr_expect(moved, "user 1003 is denied");
	vfs_node_put(file);
	close_event(&p);
}

static int lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
		  struct vfs_node **out)
{
	return vfs_lookup(ctx, dir, name, (uint32_t)strlen(name), out, NULL);
}

Test(vfs_event, finds_only_what_is_in_memory)
{
	struct vfs_ctx event, user;
	struct vfs_node *n, *again;
	struct vfs_fh fh;
	struct event p;

	open_event(&p);
	event = event_ctx(&p, &p.f.ctx);
	put_file(in_export(&p.f, "file"), "text");
	cr_assert_eq(lookup(&event, p.f.root, "file", &n), 0);
	cr_expect(mover_has_moved(&p.mover), "its node is not cached");
	cr_assert_eq(lookup(&event, p.f.root, "file", &again), 0);
	cr_expect_eq(again, n);
	vfs_node_put(again);
	cr_expect_eq(lookup(&event, p.f.root, "file/x", &again),
		     lookup(&p.f.ctx, p.f.root, "file/x", &again));
	fh = *vfs_node_fh(n);
	cr_assert_eq(vfs_fh_open(&event, &fh, &again), 0);
	vfs_node_put(again);
	cr_expect_not(mover_has_moved(&p.mover));

	user = as_user(&p.f, 1000, 100);
	user = event_ctx(&p, &user);
	cr_assert_eq(chmod(p.f.dir, 0700), 0);
	cr_expect_eq(lookup(&user, p.f.root, "file", &again), -EACCES);
	cr_assert_eq(chmod(p.f.dir, 0711), 0);
	cr_assert_eq(lookup(&user, p.f.root, "file", &again), 0);
	vfs_node_put(again);
	cr_expect_not(mover_has_moved(&p.mover));
	vfs_node_put(n);

	fixture_restart(&p.f); /* no node is cached */
	event.vfs = p.f.vfs;
	event.exp = p.f.exp;
	mover_init(&p.mover, p.w, p.f.w);
	cr_assert_eq(vfs_fh_open(&event, &fh, &again), 0);
	cr_expect(mover_has_moved(&p.mover));
	vfs_node_put(again);
	close_event(&p);
}

/* A lookup on an event thread shows the object that the name leads to now, with its attributes of now. */
static void expect_named(struct event *p, const char *name, const struct vfs_node *n)
{
	struct vfs_ctx event = event_ctx(p, &p->f.ctx);
	struct vfs_attr of_name, of_node;
	struct vfs_node *found;

	cr_assert_eq(vfs_lookup(&event, p->f.root, name, (uint32_t)strlen(name), &found, &of_name),
		     0, "%s", name);
	cr_expect_eq(found, n, "%s", name);
	cr_assert_eq(vfs_getattr(&p->f.ctx, found, &of_node), 0);
	cr_expect_eq(of_name.fileid, of_node.fileid);
	cr_expect_eq(of_name.size, of_node.size);
	cr_expect_eq(of_name.mode, of_node.mode);
	cr_expect_eq(of_name.change, of_node.change);
	vfs_node_put(found);
}

static void swap(struct event *p, const char *one, const char *two)
{
	cr_assert_eq(syscall(SYS_renameat2, AT_FDCWD, in_export(&p->f, one), AT_FDCWD,
			     in_export(&p->f, two), RENAME_EXCHANGE),
		     0);
}

Test(vfs_event, a_name_is_what_it_is_now)
{
	struct vfs_stats before, after;
	struct vfs_node *one, *two, *found;
	struct vfs_ctx event;
	struct event p;

	open_event(&p);
	put_file(in_export(&p.f, "one"), "text");
	put_file(in_export(&p.f, "two"), "longer text");
	one = must_lookup(&p.f.ctx, p.f.root, "one");
	two = must_lookup(&p.f.ctx, p.f.root, "two");
	for (unsigned i = 0; i < 3; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 60 * 1000 * 1000 }, NULL);
		vfs_stats(p.f.vfs, &before);
		expect_named(&p, "one", i % 2 ? two : one);
		expect_named(&p, "two", i % 2 ? one : two);
		expect_named(&p, "one", i % 2 ? two : one);
		vfs_stats(p.f.vfs, &after);
		if (p.f.exp->root_mnt->fs.handles_by_inode)
			cr_expect_gt(after.handles_known, before.handles_known);
		swap(&p, "one", "two");
	}
	put_file(in_export(&p.f, "three"), "another");
	cr_assert_eq(rename(in_export(&p.f, "three"), in_export(&p.f, "one")), 0);
	event = event_ctx(&p, &p.f.ctx);
	cr_assert_eq(lookup(&event, p.f.root, "one", &found), 0);
	cr_expect_not(mover_has_moved(&p.mover), "its node is not cached, and is made");
	expect_named(&p, "one", found);
	vfs_node_put(found);
	vfs_node_put(one);
	vfs_node_put(two);
	close_event(&p);
}

/* A node is made where no descriptor must be closed for it. */
Test(vfs_event, evicts_nothing)
{
	const int all = 1 << 30;
	struct vfs_node *found;
	struct vfs_ctx event;
	struct event p;

	open_event(&p);
	put_file(in_export(&p.f, "file"), "text");
	event = event_ctx(&p, &p.f.ctx);
	vfs_fd_set_aside(p.f.vfs, -all);
	cr_assert_eq(lookup(&event, p.f.root, "file", &found), 0);
	cr_expect(mover_has_moved(&p.mover));
	vfs_fd_set_aside(p.f.vfs, all);
	vfs_node_put(found);
	close_event(&p);
}

/* Changes by a user are made on a thread that can be that user. */
Test(vfs_event, does_nothing_under_another_identity)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	struct vfs_ctx user;
	struct vfs_node *n;
	struct event p;
	struct stat st;

	open_event(&p);
	put_file(in_export(&p.f, "file"), "text");
	cr_assert_eq(chown(in_export(&p.f, "file"), 1000, 100), 0);
	cr_assert_eq(chmod(in_export(&p.f, "file"), 0644), 0);
	n = must_lookup(&p.f.ctx, p.f.root, "file");
	user = as_user(&p.f, 1000, 100);
	user = event_ctx(&p, &user);
	cr_expect_eq(vfs_setattr(&user, n, &sa, NULL), 0);
	cr_expect(mover_has_moved(&p.mover));
	be_root(&p.f);
	cr_assert_eq(chmod(p.f.dir, 0755), 0);
	cr_expect_eq(vfs_remove(&user, p.f.root, "file", 4, NULL), -EACCES);
	cr_expect(mover_has_moved(&p.mover));
	be_root(&p.f);
	cr_assert_eq(stat(in_export(&p.f, "file"), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600u);
	vfs_node_put(n);
	close_event(&p);
}
