/* SPDX-License-Identifier: BSD-2-Clause */
/* The pseudo file system: the directories that lead to exports, the clients that see them, and the
 * effect of a reload. */
#include "nfs4/pseudo/pseudo.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include <arpa/inet.h>

#include "tests/unit/kernel_can.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_view.h"

static struct view v;

static void view_suite_start(void)
{
	suite_start();
	if (!why_not)
		why_not = view_start(&v, f);
}

static void view_suite_stop(void)
{
	if (f)
		view_stop(&v);
	suite_stop();
}

TestSuite(nfs4_pseudo, .init = view_suite_start, .fini = view_suite_stop, .timeout = 60);

static bool same(const struct vfs_fh *a, const struct vfs_fh *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static struct vfs_fh walk(const char *rel)
{
	struct vfs_fh fh = { 0 };

	cr_assert_eq(view_walk_tree(&v, rel, &fh), NFS4_OK, "%s", rel);
	return fh;
}

static struct vfs_fh parent_of(const struct vfs_fh *fh)
{
	struct vfs_fh up = { 0 };

	cr_assert_eq(view_parent(&v, fh, &up), NFS4_OK);
	return up;
}

static struct view_attr attr_of(const struct vfs_fh *fh)
{
	struct view_attr a = { 0 };

	cr_assert_eq(view_attr(&v, fh, &a), NFS4_OK);
	return a;
}

static uint64_t inode(const char *rel)
{
	struct stat st = { 0 };

	stat(view_path(&v, rel), &st);
	return st.st_ino;
}

static bool same_fsid(const struct view_attr *a, const struct view_attr *b)
{
	return a->fsid[0] == b->fsid[0] && a->fsid[1] == b->fsid[1];
}

/* Makes directories a, a/b, a/b/c and other, and exports the named ones under ids from 10 on. */
static void make_tree(const char *const *exported)
{
	static const char *const dirs[] = { "a", "a/b", "a/b/c", "other" };

	for (unsigned i = 0; i < 4; i++)
		view_mkdir(&v, dirs[i]);
	for (uint32_t i = 0; exported[i]; i++)
		cr_assert_geq(view_export(&v, exported[i], 10 + i), 0);
	cr_assert_eq(view_changed(&v), 0);
}
#define TREE(...) make_tree((const char *const[]){ __VA_ARGS__, NULL })

Test(nfs4_pseudo, an_empty_root)
{
	struct vfs_fh root, fh;

	NEED_FIXTURE();
	cr_assert_eq(view_walk(&v, "", &root), NFS4_OK);
	cr_expect_eq(attr_of(&root).type, NF4DIR);
	cr_expect_eq(view_walk(&v, "tmp", &fh), NFS4ERR_NOENT);
	cr_expect_eq(view_parent(&v, &root, &fh), NFS4ERR_NOENT);
}

Test(nfs4_pseudo, down_to_an_export_and_up_again)
{
	struct vfs_fh root, tmp, tree, a;
	struct view_attr top, between, below;

	NEED_FIXTURE();
	TREE("a");
	cr_assert_eq(view_walk(&v, "", &root), NFS4_OK);
	cr_assert_eq(view_walk(&v, "tmp", &tmp), NFS4_OK);
	tree = walk("");
	a = walk("a");
	top = attr_of(&root);
	between = attr_of(&tree);
	below = attr_of(&a);
	cr_expect(same_fsid(&top, &between));
	cr_expect(!same_fsid(&between, &below));
	cr_expect_neq(top.fileid, between.fileid);
	cr_expect_eq(below.fileid, inode("a"));
	cr_expect_neq(below.mounted_on, below.fileid, "a number of the pseudo file system");
	cr_expect_eq(between.mounted_on, between.fileid);
	tree = parent_of(&a);
	cr_expect_eq(attr_of(&tree).fileid, between.fileid);
	tree = parent_of(&tree);
	cr_expect(same(&tree, &tmp));
	tree = parent_of(&tree);
	cr_expect(same(&tree, &root));
}

Test(nfs4_pseudo, entries_of_the_server_are_not_shown)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	TREE("a/b");
	walk("a");
	walk("a/b/c");
	cr_expect_eq(view_walk_tree(&v, "other", &fh), NFS4ERR_NOENT);
	cr_expect_eq(view_walk(&v, "etc", &fh), NFS4ERR_NOENT);
}

Test(nfs4_pseudo, what_a_client_may_not_use_it_does_not_see)
{
	struct vfs_fh a, b, other, fh;

	NEED_FIXTURE();
	TREE("a/b", "other");
	a = walk("a");
	b = walk("a/b");
	other = walk("other");
	v.e[0].deny = true;
	cr_expect_eq(view_walk_tree(&v, "a", &fh), NFS4ERR_NOENT);
	cr_expect_eq(view_attr(&v, &a, &(struct view_attr){ 0 }), NFS4ERR_STALE);
	cr_expect_eq(view_attr(&v, &b, &(struct view_attr){ 0 }), NFS4ERR_STALE);
	cr_expect_eq(view_attr(&v, &other, &(struct view_attr){ 0 }), NFS4_OK);
	v.e[1].deny = true;
	cr_expect_eq(view_walk(&v, "tmp", &fh), NFS4ERR_NOENT);
	cr_expect_eq(view_walk(&v, "", &fh), NFS4_OK);
}

Test(nfs4_pseudo, an_export_in_an_export)
{
	struct vfs_fh a, b, c, up;
	struct view_attr outer, inner;

	NEED_FIXTURE();
	TREE("a", "a/b/c");
	a = walk("a");
	b = walk("a/b");
	c = walk("a/b/c");
	outer = attr_of(&b);
	inner = attr_of(&c);
	cr_expect(!same_fsid(&outer, &inner));
	cr_expect_eq(inner.fileid, inode("a/b/c"));
	cr_expect_eq(inner.mounted_on, inode("a/b/c"));
	up = parent_of(&c);
	cr_expect(same(&up, &b), "into the outer export");
	up = parent_of(&up);
	cr_expect(same(&up, &a));
}

Test(nfs4_pseudo, right_below_one_another)
{
	struct vfs_fh a, b, up;

	NEED_FIXTURE();
	TREE("a", "a/b");
	a = walk("a");
	b = walk("a/b");
	up = parent_of(&b);
	cr_expect(same(&up, &a));
}

Test(nfs4_pseudo, an_inner_export_that_is_not_for_this_client)
{
	struct vfs_fh b, c;
	struct view_attr outer, inner;

	NEED_FIXTURE();
	TREE("a", "a/b/c");
	v.e[1].deny = true;
	b = walk("a/b");
	c = walk("a/b/c");
	outer = attr_of(&b);
	inner = attr_of(&c);
	cr_expect(same_fsid(&outer, &inner), "the outer export's own directory");
}

Test(nfs4_pseudo, an_outer_export_that_is_not_for_this_client)
{
	struct vfs_fh a, b, c, up, fh;
	struct view_attr outer, inner;

	NEED_FIXTURE();
	TREE("a", "a/b/c");
	v.e[0].deny = true;
	a = walk("a");
	b = walk("a/b");
	c = walk("a/b/c");
	outer = attr_of(&b);
	inner = attr_of(&c);
	cr_expect(!same_fsid(&outer, &inner));
	cr_expect_neq(outer.fileid, inode("a/b"));
	up = parent_of(&c);
	cr_expect(same(&up, &b));
	up = parent_of(&up);
	cr_expect(same(&up, &a));
	cr_expect_eq(view_walk_tree(&v, "a/x", &fh), NFS4ERR_NOENT);
}

Test(nfs4_pseudo, the_covered_directory_may_change)
{
	struct vfs_fh c;
	struct view_attr inner, outer;

	NEED_FIXTURE();
	TREE("a", "a/b/c");
	walk("a/b/c");
	cr_assert_eq(rmdir(view_path(&v, "a/b/c")), 0);
	cr_expect_eq(view_walk_tree(&v, "a/b/c", &c), NFS4ERR_NOENT);
	view_mkdir(&v, "a/b/c");
	/* Until a reload, the export is the directory that was opened. */
	view_unexport(&v, 1);
	cr_assert_geq(view_export(&v, "a/b/c", 11), 0);
	cr_assert_eq(view_changed(&v), 0);
	c = walk("a/b/c");
	inner = attr_of(&c);
	cr_expect_eq(inner.fileid, inode("a/b/c"));
	c = walk("a");
	outer = attr_of(&c);
	cr_expect(!same_fsid(&inner, &outer));
}

Test(nfs4_pseudo, fsid_0_is_the_root)
{
	struct vfs_fh root, b, fh;
	struct view_attr outer, inner;
	int e;

	NEED_FIXTURE();
	TREE("a/b/c", "other");
	e = view_export(&v, "a", 0);
	cr_assert_geq(e, 0);
	cr_assert_eq(view_changed(&v), 0);
	cr_assert_eq(view_walk(&v, "", &root), NFS4_OK);
	cr_assert_eq(view_walk(&v, "b/c", &b), NFS4_OK);
	outer = attr_of(&root);
	inner = attr_of(&b);
	cr_expect_eq(outer.fileid, inode("a"));
	cr_expect_eq(outer.mounted_on, outer.fileid);
	cr_expect(!same_fsid(&outer, &inner));
	cr_expect_eq(view_parent(&v, &root, &fh), NFS4ERR_NOENT);
	cr_expect_eq(view_walk(&v, "tmp", &fh), NFS4ERR_NOENT);
	cr_expect_eq(view_walk(&v, "other", &fh), NFS4ERR_NOENT);
	/* A client without access to the export sees a pseudo directory in its place. */
	v.e[e].deny = true;
	cr_expect_eq(view_walk(&v, "b/c", &fh), NFS4_OK);
	cr_expect(same(&fh, &b));
	cr_expect_eq(view_walk(&v, "", &fh), NFS4_OK);
	cr_expect(!same(&fh, &root));
}

Test(nfs4_pseudo, a_file_is_exported)
{
	struct vfs_fh file, fh;
	struct view_attr at;
	FILE *fp;

	NEED_FIXTURE();
	view_mkdir(&v, "a");
	fp = fopen(view_path(&v, "a/file"), "w");
	cr_assert(fp);
	fclose(fp);
	cr_assert_geq(view_export(&v, "a/file", 10), 0);
	cr_assert_eq(view_changed(&v), 0);
	file = walk("a/file");
	at = attr_of(&file);
	cr_expect_eq(at.type, NF4REG);
	cr_expect_eq(view_parent(&v, &file, &fh), NFS4ERR_NOTDIR);
	cr_expect_eq(view_walk_tree(&v, "a/file/x", &fh), NFS4ERR_NOTDIR);
	cr_assert_geq(view_export(&v, "a", 11), 0);
	cr_assert_eq(view_changed(&v), 0);
	fh = walk("a/file");
	cr_expect(same(&fh, &file));
}

/* OPEN by the name of an export's root: in 4.1, without a delegation. */
static uint32_t open_name(struct fix4_session *session, const struct vfs_fh *dir, const char *name)
{
	fix4_begin(f, session);
	fix4_putfh(f, dir);
	fix4_op(f, OP_OPEN);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, session->clientid);
	fix4_name(f, "owner");
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0); /* CLAIM_NULL */
	fix4_name(f, name);
	return fix4_send(f);
}

Test(nfs4_pseudo, an_exported_file_is_not_opened_from_a_port_that_will_not_do)
{
	struct fix4_session session;
	struct vfs_fh dir;
	FILE *fp;
	int e;

	NEED_FIXTURE();
	view_mkdir(&v, "a");
	fp = fopen(view_path(&v, "a/file"), "w");
	cr_assert(fp);
	fclose(fp);
	cr_assert_eq(fix4_session_new(f, &session, 1, "port", true), NFS4_OK);
	e = view_export(&v, "a/file", 10);
	cr_assert_geq(e, 0);
	/* Below a pseudo directory, then below an export */
	for (int outer = 0; outer < 2; outer++) {
		if (outer)
			cr_assert_geq(view_export(&v, "a", 11), 0);
		cr_assert_eq(view_changed(&v), 0);
		dir = walk("a");
		v.e[e].access.flags &= ~(uint32_t)VFS_SECURE;
		cr_expect_eq(open_name(&session, &dir, "file"), NFS4_OK);
		v.e[e].access.flags |= VFS_SECURE;
		((struct sockaddr_in *)&f->conn.peer)->sin_port = htons(40000);
		cr_expect_eq(open_name(&session, &dir, "file"), NFS4ERR_ACCESS, "%d", outer);
	}
}

Test(nfs4_pseudo, reload)
{
	struct vfs_fh a, b, fh;
	struct view_attr before, after;

	NEED_FIXTURE();
	TREE("a/b", "other");
	a = walk("a");
	b = walk("a/b");
	before = attr_of(&a);
	cr_assert_eq(view_changed(&v), 0);
	after = attr_of(&a);
	cr_expect_eq(after.fileid, before.fileid);
	cr_expect_gt(after.change, before.change);
	fh = walk("a");
	cr_expect(same(&fh, &a));

	view_unexport(&v, 0);
	cr_assert_eq(view_changed(&v), 0);
	cr_expect_eq(view_attr(&v, &a, &after), NFS4ERR_STALE);
	cr_expect_eq(view_attr(&v, &b, &after), NFS4ERR_STALE);
	cr_expect_eq(view_walk_tree(&v, "a", &fh), NFS4ERR_NOENT);

	cr_assert_geq(view_export(&v, "a/b", 10), 0);
	cr_assert_eq(view_changed(&v), 0);
	cr_expect_eq(view_attr(&v, &a, &after), NFS4_OK);
	cr_expect_eq(view_attr(&v, &b, &after), NFS4_OK);
	cr_expect_eq(after.fileid, inode("a/b"));
}

Test(nfs4_pseudo, exports_go_before_the_pseudo_file_system_knows)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	TREE("a/b");
	walk("a/b");
	view_unexport(&v, 0);
	cr_expect_eq(view_walk_tree(&v, "a/b", &fh), NFS4ERR_NOENT);
}

Test(nfs4_pseudo, handles_that_are_none)
{
	struct vfs_fh root, fh;
	struct view_attr at;

	NEED_FIXTURE();
	TREE("a");
	cr_assert_eq(view_walk(&v, "", &root), NFS4_OK);
	cr_expect(nfs4_pseudo_is_fh(&root));
	for (unsigned i = 1; i < root.len; i++) {
		fh = root;
		fh.data[i] ^= 0x40;
		cr_expect_eq(view_attr(&v, &fh, &at), i < 4 ? NFS4ERR_BADHANDLE : NFS4ERR_STALE);
		fh = root;
		fh.len = i;
		cr_expect_eq(view_attr(&v, &fh, &at), NFS4ERR_BADHANDLE);
	}
	fh = root;
	fh.len += 4;
	cr_expect_eq(view_attr(&v, &fh, &at), NFS4ERR_BADHANDLE);
	fh.len = 0;
	cr_expect_eq(view_attr(&v, &fh, &at), NFS4ERR_BADHANDLE);
}

/* Mounts another file system on a/b; returns the inode number of the covered directory. */
static uint64_t mount_on_b(void)
{
	uint64_t covered;

	NEED_KERNEL_CAN(clone_mounts);
	view_mkdir(&v, "a");
	view_mkdir(&v, "a/b");
	covered = inode("a/b");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", view_path(&v, "a/b"), "tmpfs", 0, NULL) < 0)
		cr_skip_test("cannot mount here");
	view_mkdir(&v, "a/b/c");
	cr_expect_neq(inode("a/b"), covered);
	return covered;
}

static void unmount_b(void)
{
	vfs_forget_export(f->vfs, 10);
	vfs_forget_export(f->vfs, 11);
	umount2(view_path(&v, "a/b"), MNT_DETACH);
}

Test(nfs4_pseudo, a_mount_below_an_export)
{
	struct vfs_fh a, b, c, up;
	struct view_attr outer, inner, below;
	uint64_t covered;

	NEED_FIXTURE();
	covered = mount_on_b();
	v.crossmnt = true;
	TREE("a");
	a = walk("a");
	b = walk("a/b");
	c = walk("a/b/c");
	outer = attr_of(&a);
	inner = attr_of(&b);
	below = attr_of(&c);
	cr_expect(!same_fsid(&outer, &inner));
	cr_expect(same_fsid(&inner, &below));
	cr_expect_eq(inner.fileid, inode("a/b"));
	cr_expect_eq(inner.mounted_on, covered);
	cr_expect_eq(below.mounted_on, below.fileid);
	up = parent_of(&b);
	cr_expect(same(&up, &a));
	unmount_b();
}

Test(nfs4_pseudo, a_mount_that_is_not_shown)
{
	struct vfs_fh a, b, fh;
	struct view_attr outer, inner;
	uint64_t covered;

	NEED_FIXTURE();
	covered = mount_on_b();
	TREE("a");
	a = walk("a");
	b = walk("a/b");
	outer = attr_of(&a);
	inner = attr_of(&b);
	cr_expect(same_fsid(&outer, &inner));
	cr_expect_eq(inner.fileid, covered);
	cr_expect_eq(view_walk_tree(&v, "a/b/c", &fh), NFS4ERR_ACCESS);
	unmount_b();
}

Test(nfs4_pseudo, a_mount_that_is_an_export)
{
	struct vfs_fh a, b, up;
	struct view_attr inner;
	uint64_t covered;

	NEED_FIXTURE();
	covered = mount_on_b();
	for (unsigned crossmnt = 0; crossmnt < 2; crossmnt++) {
		v.crossmnt = crossmnt;
		TREE("a", "a/b");
		a = walk("a");
		b = walk("a/b");
		inner = attr_of(&b);
		cr_expect_eq(inner.fileid, inode("a/b"));
		cr_expect_eq(inner.mounted_on, covered);
		up = parent_of(&b);
		cr_expect(same(&up, &a));
		v.e[1].deny = true;
		b = walk("a/b");
		cr_expect_eq(attr_of(&b).fileid, crossmnt ? inode("a/b") : covered);
		view_unexport(&v, 0);
		view_unexport(&v, 1);
	}
	unmount_b();
}

Test(nfs4_pseudo, many_exports)
{
	struct vfs_fh fh, up;
	char name[32];

	NEED_FIXTURE();
	for (unsigned i = 0; i < VIEW_EXPORTS; i++) {
		snprintf(name, sizeof(name), "%c%u", i % 2 ? 'x' : '-', i);
		view_mkdir(&v, name);
		cr_assert_geq(view_export(&v, name, 10 + i), 0);
	}
	cr_assert_eq(view_changed(&v), 0);
	for (unsigned i = 0; i < VIEW_EXPORTS; i++) {
		snprintf(name, sizeof(name), "%c%u", i % 2 ? 'x' : '-', i);
		fh = walk(name);
		cr_expect_eq(attr_of(&fh).fileid, inode(name));
		up = parent_of(&fh);
		fh = walk("");
		cr_expect(same(&up, &fh));
	}
}

/* Gets the names of a directory in one READDIR, in order. */
static unsigned list(const struct vfs_fh *dir, uint64_t cookie, char names[][64],
		     uint64_t cookies[], unsigned max)
{
	struct xdr_in *r = &f->in;
	const uint8_t *p;
	uint32_t len;
	unsigned n = 0;

	fix4_begin(f, NULL);
	fix4_putfh(f, dir);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(&f->out, cookie);
	xdr_put_u64(&f->out, 0); /* verifier */
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 0); /* no attributes */
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_READDIR);
	xdr_get_u64(r);
	while (xdr_get_bool(r) && n < max) {
		cookies[n] = xdr_get_u64(r);
		p = xdr_get_opaque(r, 63, &len);
		cr_assert(p);
		memcpy(names[n], p, len);
		names[n++][len] = '\0';
		xdr_get_u32(r);
		xdr_get_u32(r);
	}
	cr_expect(xdr_get_bool(r), "end of the directory");
	return n;
}

Test(nfs4_pseudo, readdir)
{
	char names[8][64];
	uint64_t cookies[8], rest[8];
	struct vfs_fh tree;

	NEED_FIXTURE();
	TREE("a/b", "other", "a");
	tree = walk("");
	cr_assert_eq(list(&tree, 0, names, cookies, 8), 2);
	cr_expect_lt(cookies[0], cookies[1]);
	cr_expect_gt(cookies[0], 2);
	cr_expect_eq(list(&tree, cookies[0], names, rest, 8), 1);
	cr_expect_eq(rest[0], cookies[1]);
	v.e[1].deny = true;
	cr_assert_eq(list(&tree, 0, names, rest, 8), 1);
	cr_expect_str_eq(names[0], "a");
}
