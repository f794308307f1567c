/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE, RMDIR, RENAME, LINK. */
#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_names);

Test(nfs3_names, remove)
{
	struct fix_attr after;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	call_name(NFSPROC3_REMOVE, "x");
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, &after));
	cr_expect_eq(after.type, NF3DIR);
	whole();
	cr_expect_not(exists("x"));
	call_name(NFSPROC3_REMOVE, "x");
	cr_expect_eq(status(), NFS3ERR_NOENT);
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0700), 0);
	call_name(NFSPROC3_REMOVE, "d");
	cr_expect_eq(status(), NFS3ERR_ISDIR);
	call_name(NFSPROC3_REMOVE, "a/b");
	cr_expect_eq(status(), NFS3ERR_ACCES);
}

Test(nfs3_names, remove_in_a_sticky_directory)
{
	NEED_FIXTURE();
	cr_assert_eq(chmod(f->dir[0], 01777), 0);
	make_file("x", "", 0666);
	f->uid = f->gid = 4000;
	call_name(NFSPROC3_REMOVE, "x");
	cr_expect_eq(status(), NFS3ERR_PERM);
	cr_expect(exists("x"));
}

Test(nfs3_names, rmdir)
{
	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0700), 0);
	make_file("d/x", "", 0600);
	call_name(NFSPROC3_RMDIR, "d");
	cr_expect_eq(status(), NFS3ERR_NOTEMPTY);
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
	unlink(fix_path(f, "d/x"));
	call_name(NFSPROC3_RMDIR, "d");
	cr_expect_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, NULL));
	cr_expect_not(exists("d"));
	make_file("x", "", 0600);
	call_name(NFSPROC3_RMDIR, "x");
	cr_expect_eq(status(), NFS3ERR_NOTDIR);
	call_name(NFSPROC3_RMDIR, ".");
	cr_expect_eq(status(), NFS3ERR_INVAL);
}

static uint32_t do_rename(const struct vfs_fh *from_dir, const char *from,
			  const struct vfs_fh *to_dir, const char *to)
{
	struct xdr_out *c = call(NFSPROC3_RENAME);
	uint32_t st;

	fix_put_fh(c, from_dir);
	fix_put_name(c, from);
	fix_put_fh(c, to_dir);
	fix_put_name(c, to);
	st = status();
	if (st == NFS3_OK) {
		cr_expect(fix_get_wcc(&f->in, NULL));
		cr_expect(fix_get_wcc(&f->in, NULL));
		whole();
	}
	return st;
}

Test(nfs3_names, rename)
{
	struct vfs_fh d, x, again;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0700), 0);
	make_file("x", "new", 0600);
	make_file("d/y", "old", 0600);
	d = handle("d");
	x = handle("x");
	cr_expect_eq(do_rename(&f->root, "x", &d, "y"), NFS3_OK);
	cr_expect_not(exists("x"));
	cr_assert_eq(fix_lookup(f, &d, "y", &again), NFS3_OK);
	cr_expect_eq(memcmp(x.data, again.data, x.len), 0, "a handle must survive a rename");
	cr_expect_eq(do_rename(&d, "y", &d, "z"), NFS3_OK);
	cr_expect_eq(do_rename(&d, "nothing", &d, "z"), NFS3ERR_NOENT);
	cr_expect_eq(do_rename(&f->root, "d", &d, "inside"), NFS3ERR_INVAL);
	cr_assert_eq(mkdir(fix_path(f, "e"), 0700), 0);
	cr_expect_eq(do_rename(&f->root, "e", &f->root, "d"), NFS3ERR_NOTEMPTY);
	cr_expect_eq(do_rename(&d, "z", &f->root, "e"), NFS3ERR_ISDIR);
	cr_expect_eq(do_rename(&f->root, "e", &d, "z"), NFS3ERR_NOTDIR);
	cr_expect_eq(do_rename(&d, "z", &d, "a/b"), NFS3ERR_ACCES);
}

/* The root of the other export, from MNT. */
static struct vfs_fh other_root(void)
{
	struct xdr_out *c = fix_call(f, MOUNT_PROGRAM, 3, 1);
	struct vfs_fh fh = { 0 };

	fix_put_name(c, f->dir[1]);
	cr_assert_eq(status(), MNT3_OK);
	fix_get_fh(&f->in, &fh);
	return fh;
}

Test(nfs3_names, nothing_crosses_exports)
{
	struct vfs_fh other, x;
	struct xdr_out *c;

	NEED_FIXTURE();
	other = other_root();
	make_file("x", "", 0600);
	x = handle("x");
	cr_expect_eq(do_rename(&f->root, "x", &other, "x"), NFS3ERR_XDEV);
	cr_expect(fix_get_wcc(&f->in, NULL));
	cr_expect_not(fix_get_wcc(&f->in, NULL));
	whole();
	c = call(NFSPROC3_LINK);
	fix_put_fh(c, &x);
	fix_put_fh(c, &other);
	fix_put_name(c, "y");
	cr_expect_eq(status(), NFS3ERR_XDEV);
	cr_expect(fix_get_post_attr(&f->in, NULL));
	cr_expect_not(fix_get_wcc(&f->in, NULL));
	whole();
}

Test(nfs3_names, link)
{
	struct fix_attr a = { 0 };
	struct vfs_fh x;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	x = handle("x");
	for (int i = 0; i < 2; i++) {
		c = call(NFSPROC3_LINK);
		fix_put_fh(c, &x);
		fix_put_fh(c, &f->root);
		fix_put_name(c, "y");
		cr_expect_eq(status(), i == 0 ? NFS3_OK : NFS3ERR_EXIST);
		cr_expect(fix_get_post_attr(&f->in, &a));
		cr_expect_eq(a.nlink, 2);
		cr_expect(fix_get_wcc(&f->in, NULL));
		whole();
	}
}

Test(nfs3_names, a_retransmitted_remove_gets_the_first_answer)
{
	NEED_FIXTURE();
	f->rpc.drc = drc_new(16, 16384);
	make_file("x", "", 0600);
	call_name(NFSPROC3_REMOVE, "x");
	cr_assert_eq(status(), NFS3_OK);
	cr_expect_eq(status(), NFS3_OK);
}
