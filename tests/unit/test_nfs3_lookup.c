/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP and READLINK. */
#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_lookup);

Test(nfs3_lookup, gives_handle_and_attributes)
{
	struct fix_attr obj, dir;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "abc", 0640);
	call_name(NFSPROC3_LOOKUP, "x");
	cr_assert_eq(status(), NFS3_OK);
	fix_get_fh(&f->in, &fh);
	cr_expect_gt(fh.len, 0);
	cr_expect(fix_get_post_attr(&f->in, &obj));
	cr_expect(fix_get_post_attr(&f->in, &dir));
	whole();
	cr_expect_eq(obj.size, 3);
	cr_expect_eq(dir.type, NF3DIR);
}

Test(nfs3_lookup, missing_name_has_directory_attributes)
{
	NEED_FIXTURE();
	call_name(NFSPROC3_LOOKUP, "nothing");
	cr_assert_eq(status(), NFS3ERR_NOENT);
	cr_expect(fix_get_post_attr(&f->in, NULL));
	whole();
}

Test(nfs3_lookup, names)
{
	char name[400];
	struct xdr_out *c;
	struct vfs_fh fh;

	NEED_FIXTURE();
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	call_name(NFSPROC3_LOOKUP, name);
	cr_expect_eq(status(), NFS3ERR_NAMETOOLONG);
	cr_expect(fix_get_post_attr(&f->in, NULL));
	name[255] = '\0';
	make_file(name, "", 0600);
	handle(name);
	call_name(NFSPROC3_LOOKUP, "a/b");
	cr_expect_eq(status(), NFS3ERR_ACCES);
	call_name(NFSPROC3_LOOKUP, "");
	cr_expect_eq(status(), NFS3ERR_ACCES);
	c = call(NFSPROC3_LOOKUP);
	fix_put_fh(c, &f->root);
	xdr_put_opaque(c, "a\0b", 3);
	cr_expect_eq(status(), NFS3ERR_ACCES);
	make_file("\xff\x01 \n", "", 0600);
	fh = handle("\xff\x01 \n");
	cr_expect_gt(fh.len, 0);
}

static bool same(const struct vfs_fh *a, const struct vfs_fh *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

Test(nfs3_lookup, dots_stay_within_the_export)
{
	struct vfs_fh d, got;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0755), 0);
	d = handle("d");
	cr_assert_eq(fix_lookup(f, &d, "..", &got), NFS3_OK);
	cr_expect(same(&got, &f->root));
	cr_assert_eq(fix_lookup(f, &f->root, "..", &got), NFS3_OK);
	cr_expect(same(&got, &f->root));
	cr_assert_eq(fix_lookup(f, &d, ".", &got), NFS3_OK);
	cr_expect(same(&got, &d));
}

Test(nfs3_lookup, in_what_is_no_directory)
{
	struct vfs_fh fh, got;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	cr_assert_eq(symlink("/etc", fix_path(f, "l")), 0);
	fh = handle("x");
	cr_expect_eq(fix_lookup(f, &fh, "y", &got), NFS3ERR_NOTDIR);
	fh = handle("l");
	cr_expect_eq(fix_lookup(f, &fh, "passwd", &got), NFS3ERR_NOTDIR);
}

Test(nfs3_lookup, needs_search_permission)
{
	struct vfs_fh d, got;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0700), 0);
	make_file("d/x", "", 0666);
	d = handle("d");
	f->uid = f->gid = 4000;
	cr_expect_eq(fix_lookup(f, &d, "x", &got), NFS3ERR_ACCES);
}

Test(nfs3_lookup, readlink)
{
	char target[4096];
	const uint8_t *p;
	struct vfs_fh fh;
	uint32_t len = 0;

	NEED_FIXTURE();
	memset(target, 't', 4095);
	target[4095] = '\0';
	cr_assert_eq(symlink(target, fix_path(f, "l")), 0);
	fh = handle("l");
	fix_put_fh(call(NFSPROC3_READLINK), &fh);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_post_attr(&f->in, NULL));
	p = xdr_get_opaque(&f->in, 4095, &len);
	cr_assert_eq(len, 4095);
	cr_expect_eq(memcmp(p, target, 4095), 0);
	whole();
	cr_expect(f->had_bulk, "READLINK text is eligible for direct placement");
}

Test(nfs3_lookup, readlink_of_a_file)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	fix_put_fh(call(NFSPROC3_READLINK), &fh);
	cr_expect_eq(status(), NFS3ERR_INVAL);
	cr_expect(fix_get_post_attr(&f->in, NULL));
	whole();
}
