/* SPDX-License-Identifier: BSD-2-Clause */
/* NULL, GETATTR, SETATTR, ACCESS. */
#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_attr);

Test(nfs3_attr, null_needs_no_credential)
{
	NEED_FIXTURE();
	f->flavor = RPC_AUTH_NONE;
	call(NFSPROC3_NULL);
	fix_send(f);
	cr_expect_eq(f->accept_stat, RPC_SUCCESS);
	cr_expect_eq(f->in.left, 0);
}

Test(nfs3_attr, getattr)
{
	struct fix_attr a;
	struct vfs_fh fh;
	struct stat st;

	NEED_FIXTURE();
	make_file("x", "12345", 04751);
	cr_assert_eq(chown(fix_path(f, "x"), 7, 8), 0);
	cr_assert_eq(chmod(fix_path(f, "x"), 04751), 0);
	fh = handle("x");
	fix_put_fh(call(NFSPROC3_GETATTR), &fh);
	cr_assert_eq(status(), NFS3_OK);
	fix_get_attr(&f->in, &a);
	whole();
	cr_assert_eq(stat(fix_path(f, "x"), &st), 0);
	cr_expect_eq(a.type, NF3REG);
	cr_expect_eq(a.mode, 04751);
	cr_expect_eq(a.nlink, 1);
	cr_expect_eq(a.uid, 7);
	cr_expect_eq(a.gid, 8);
	cr_expect_eq(a.size, 5);
	cr_expect_eq(a.used, (uint64_t)st.st_blocks * 512);
	cr_expect_eq(a.fileid, st.st_ino);
	cr_expect_eq(a.mtime[0], (uint32_t)st.st_mtim.tv_sec);
	cr_expect_eq(a.mtime[1], (uint32_t)st.st_mtim.tv_nsec);
	cr_expect_eq(a.ctime[1], (uint32_t)st.st_ctim.tv_nsec);
}

Test(nfs3_attr, getattr_of_every_type)
{
	static const struct {
		mode_t mode;
		uint32_t type;
	} kinds[] = { { S_IFIFO, NF3FIFO },
		      { S_IFSOCK, NF3SOCK },
		      { S_IFCHR, NF3CHR },
		      { S_IFBLK, NF3BLK } };
	struct fix_attr a;

	NEED_FIXTURE();
	for (unsigned i = 0; i < 4; i++) {
		char name[] = { 'n', (char)('0' + i), 0 };
		struct vfs_fh fh;

		if (mknod(fix_path(f, name), kinds[i].mode | 0600, 0x0102) < 0)
			continue; /* device files cannot be made here */
		fh = handle(name);
		fix_put_fh(call(NFSPROC3_GETATTR), &fh);
		cr_assert_eq(status(), NFS3_OK);
		fix_get_attr(&f->in, &a);
		cr_expect_eq(a.type, kinds[i].type);
		if (kinds[i].mode == S_IFCHR) {
			cr_expect_eq(a.major, 1);
			cr_expect_eq(a.minor, 2);
		}
	}
}

Test(nfs3_attr, getattr_of_removed_is_stale)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	unlink(fix_path(f, "x"));
	fix_put_fh(call(NFSPROC3_GETATTR), &fh);
	cr_expect_eq(status(), NFS3ERR_STALE);
	whole();
}

static void put_guard(struct xdr_out *c, const uint32_t *ctime)
{
	xdr_put_bool(c, ctime != NULL);
	if (ctime) {
		xdr_put_u32(c, ctime[0]);
		xdr_put_u32(c, ctime[1]);
	}
}

Test(nfs3_attr, setattr_mode_with_wcc)
{
	struct fix_attr after = { 0 };
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "abc", 0600);
	fh = handle("x");
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	fix_put_sattr_mode(c, 0640);
	put_guard(c, NULL);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, &after));
	whole();
	cr_expect_eq(after.mode, 0640);
}

static void put_sattr_size(struct xdr_out *c, uint64_t size)
{
	for (int i = 0; i < 3; i++)
		xdr_put_bool(c, false);
	xdr_put_bool(c, true);
	xdr_put_u64(c, size);
	xdr_put_u32(c, NFS3_DONT_CHANGE);
	xdr_put_u32(c, NFS3_DONT_CHANGE);
}

Test(nfs3_attr, setattr_size)
{
	struct fix_attr after = { 0 };
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	put_sattr_size(c, 5ull << 30);
	put_guard(c, NULL);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, &after));
	cr_expect_eq(after.size, 5ull << 30);

	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	put_sattr_size(c, UINT64_MAX);
	put_guard(c, NULL);
	cr_expect_eq(status(), NFS3ERR_INVAL);

	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &f->root);
	put_sattr_size(c, 0);
	put_guard(c, NULL);
	cr_expect_eq(status(), NFS3ERR_INVAL);
}

Test(nfs3_attr, setattr_times)
{
	struct fix_attr after = { 0 };
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	for (int i = 0; i < 4; i++)
		xdr_put_bool(c, false);
	xdr_put_u32(c, NFS3_SET_TO_CLIENT_TIME);
	xdr_put_u32(c, 1000000001);
	xdr_put_u32(c, 999999999);
	xdr_put_u32(c, NFS3_SET_TO_CLIENT_TIME);
	xdr_put_u32(c, 1000000002);
	xdr_put_u32(c, 3);
	put_guard(c, NULL);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, &after));
	cr_expect_eq(after.atime[0], 1000000001);
	cr_expect_eq(after.atime[1], 999999999);
	cr_expect_eq(after.mtime[0], 1000000002);
	cr_expect_eq(after.mtime[1], 3);
}

Test(nfs3_attr, setattr_refuses_impossible_nanoseconds)
{
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	for (int i = 0; i < 4; i++)
		xdr_put_bool(c, false);
	xdr_put_u32(c, NFS3_SET_TO_CLIENT_TIME);
	xdr_put_u32(c, 1);
	xdr_put_u32(c, 1000000000);
	xdr_put_u32(c, NFS3_DONT_CHANGE);
	put_guard(c, NULL);
	cr_expect_eq(status(), NFS3ERR_INVAL);
}

Test(nfs3_attr, setattr_guard)
{
	struct fix_attr a;
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	fix_put_fh(call(NFSPROC3_GETATTR), &fh);
	cr_assert_eq(status(), NFS3_OK);
	fix_get_attr(&f->in, &a);

	a.ctime[1] ^= 1;
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	fix_put_sattr_mode(c, 0644);
	put_guard(c, a.ctime);
	cr_expect_eq(status(), NFS3ERR_NOT_SYNC);
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();

	a.ctime[1] ^= 1;
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	fix_put_sattr_mode(c, 0644);
	put_guard(c, a.ctime);
	cr_expect_eq(status(), NFS3_OK);
}

Test(nfs3_attr, setattr_by_another_user)
{
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "", 0666);
	fh = handle("x");
	f->uid = f->gid = 4000;
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &fh);
	fix_put_sattr_mode(c, 0777);
	put_guard(c, NULL);
	cr_expect_eq(status(), NFS3ERR_PERM);
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
}

static uint32_t ask_access(const struct vfs_fh *fh, uint32_t want)
{
	struct xdr_out *c = call(NFSPROC3_ACCESS);
	uint32_t got;

	fix_put_fh(c, fh);
	xdr_put_u32(c, want);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_post_attr(&f->in, NULL));
	got = xdr_get_u32(&f->in);
	whole();
	return got;
}

Test(nfs3_attr, access_of_a_file)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0744);
	cr_assert_eq(chown(fix_path(f, "x"), 4000, 4000), 0);
	fh = handle("x");
	f->uid = f->gid = 4000;
	cr_expect_eq(ask_access(&fh, 0x3f),
		     ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_EXECUTE);
	cr_expect_eq(ask_access(&fh, ACCESS3_MODIFY), ACCESS3_MODIFY);
	f->uid = f->gid = 4001;
	cr_expect_eq(ask_access(&fh, 0x3f), ACCESS3_READ);
	cr_expect_eq(ask_access(&fh, 0), 0);
	cr_expect_eq(ask_access(&fh, 0xffffffc0), 0);
}

Test(nfs3_attr, access_of_a_directory)
{
	const uint32_t change = ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE;
	struct vfs_fh fh, no_search;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0755), 0);
	cr_assert_eq(mkdir(fix_path(f, "e"), 0700), 0);
	cr_assert_eq(chmod(fix_path(f, "e"), 0772), 0);
	fh = handle("d");
	no_search = handle("e");
	cr_expect_eq(ask_access(&fh, 0x3f), ACCESS3_READ | ACCESS3_LOOKUP | change);
	f->uid = f->gid = 4000;
	cr_expect_eq(ask_access(&fh, 0x3f), ACCESS3_READ | ACCESS3_LOOKUP);
	/* write permission without search permission allows no change */
	cr_expect_eq(ask_access(&no_search, 0x3f), 0);
}
