/* SPDX-License-Identifier: BSD-2-Clause */
/* The attribute sec_label of minor version 2 (RFC 7862 sections 9 and 12.2.4). */
#include <errno.h>
#include <sys/xattr.h>

#include "lib/util.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "vfs/xattr.h"

#define XATTR "security.selinux"
/* Two labels with their terminating NUL, which Linux stores and sends as part of them. */
#define ONE "system_u:object_r:etc_t:s0"
#define TWO "system_u:object_r:tmp_t:s0"
#define LABEL_LEN sizeof(ONE)
#define OWNER 1001u

static struct fix4_session session;

NFS3_SUITE(nfs4_label);

static void start(void)
{
	cr_assert_eq(fix4_session_new(f, &session, 2, "label", true), NFS4_OK);
	make_file("x", "text", 0644);
	if (setxattr(fix_path(f, "x"), XATTR, ONE, LABEL_LEN, 0) != 0)
		cr_skip_test("no labels on this file system");
	f->access.flags |= VFS_SECURITY_LABEL;
}

/* Makes the test's thread root again: it acts as the last call's user, and this call is root's. */
static void as_root(void)
{
	struct vfs_fh fh;

	f->uid = f->gid = 0;
	fix_lookup(f, &f->root, "nothing", &fh);
}

static struct vfs_fh fh_of(const char *name)
{
	struct vfs_fh fh = f->root;

	if (*name)
		cr_assert_eq(fix4_handle(f, &session, &f->root, name, &fh), NFS4_OK, "%s", name);
	return fh;
}

static struct fix4_attrs attrs_of(const char *name)
{
	struct vfs_fh fh = fh_of(name);
	struct fix4_attrs a;

	cr_assert_eq(fix4_getattr(f, &session, &fh, &a), NFS4_OK, "%s", name);
	whole();
	return a;
}

static bool shows(const char *name, const char *label)
{
	struct fix4_attrs a = attrs_of(name);

	return nfs4_bitmap_has(&a.have, FATTR4_SEC_LABEL) && a.label_format == 0 &&
	       a.label_policy == 0 && a.label_len == LABEL_LEN &&
	       memcmp(a.label, label, LABEL_LEN) == 0;
}

static bool on_disk(const char *name, const char *label)
{
	char value[LABEL_LEN + 1];

	return lgetxattr(fix_path(f, name), XATTR, value, sizeof(value)) == (ssize_t)LABEL_LEN &&
	       memcmp(value, label, LABEL_LEN) == 0;
}

struct label {
	uint32_t format, policy, len;
	const char *bytes;
};

static struct label label_of(const char *text)
{
	return (struct label){ .len = LABEL_LEN, .bytes = text };
}

/* A fattr4 with a label as its only value. */
static void put_label(struct label l)
{
	FIX4_BITS(f, FATTR4_SEC_LABEL);
	xdr_put_u32(&f->out, 12 + l.len + rn_xdr_pad(l.len));
	xdr_put_u32(&f->out, l.format);
	xdr_put_u32(&f->out, l.policy);
	xdr_put_opaque(&f->out, l.bytes, l.len);
}

/* SETATTR; a success says that the label was set. */
static uint32_t set(const char *name, struct label l)
{
	static const struct nfs4_stateid anonymous;
	struct vfs_fh fh = fh_of(name);
	struct nfs4_bitmap done;
	uint32_t status;

	fix4_begin(f, &session);
	fix4_putfh(f, &fh);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	put_label(l);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_SETATTR), status);
	cr_expect(nfs4_get_bitmap(&f->in, &done));
	cr_expect_eq(nfs4_bitmap_has(&done, FATTR4_SEC_LABEL), status == NFS4_OK);
	return status;
}

/* VERIFY or NVERIFY. */
static uint32_t compare(uint32_t op, const char *name, struct label l)
{
	struct vfs_fh fh = fh_of(name);

	fix4_begin(f, &session);
	fix4_putfh(f, &fh);
	fix4_op(f, op);
	put_label(l);
	return fix4_send(f);
}

Test(nfs4_label, absent_without_the_option)
{
	struct fix4_attrs a;

	NEED_FIXTURE();
	start();
	f->access.flags &= ~(unsigned)VFS_SECURITY_LABEL;
	a = attrs_of("x");
	cr_expect_not(nfs4_bitmap_has(&a.supported, FATTR4_SEC_LABEL));
	cr_expect_not(nfs4_bitmap_has(&a.exclusive, FATTR4_SEC_LABEL));
	cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_SEC_LABEL));
	cr_expect_eq(set("x", label_of(TWO)), NFS4ERR_ATTRNOTSUPP);
	cr_expect_eq(compare(OP_VERIFY, "x", label_of(ONE)), NFS4ERR_ATTRNOTSUPP);
	cr_expect(on_disk("x", ONE));
}

Test(nfs4_label, labels_are_those_on_disk)
{
	struct fix4_attrs a;

	NEED_FIXTURE();
	start();
	a = attrs_of("x");
	cr_expect(nfs4_bitmap_has(&a.supported, FATTR4_SEC_LABEL));
	cr_expect(nfs4_bitmap_has(&a.exclusive, FATTR4_SEC_LABEL));
	cr_expect(shows("x", ONE));
	cr_assert_eq(symlink("x", fix_path(f, "link")), 0);
	cr_assert_eq(lsetxattr(fix_path(f, "link"), XATTR, TWO, LABEL_LEN, 0), 0);
	cr_expect(shows("link", TWO), "the link's own");
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0700), 0);
	a = attrs_of("dir");
	cr_expect(nfs4_bitmap_has(&a.supported, FATTR4_SEC_LABEL));
	cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_SEC_LABEL), "an object without a label");
	cr_expect_eq(set("dir", label_of(TWO)), NFS4_OK);
	cr_expect(on_disk("dir", TWO) && shows("dir", TWO));
}

Test(nfs4_label, no_other_minor_version_has_it)
{
	struct fix4_session old;
	struct fix4_attrs a;
	struct vfs_fh fh;

	NEED_FIXTURE();
	start();
	fh = fh_of("x");
	cr_assert_eq(fix4_session_new(f, &old, 1, "old", true), NFS4_OK);
	cr_assert_eq(fix4_getattr(f, &old, &fh, &a), NFS4_OK);
	cr_expect_not(nfs4_bitmap_has(&a.supported, FATTR4_SEC_LABEL));
	cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_SEC_LABEL));
}

Test(nfs4_label, every_change_changes_the_change_attribute)
{
	uint64_t change;

	NEED_FIXTURE();
	start();
	change = attrs_of("x").change;
	cr_assert_eq(set("x", label_of(TWO)), NFS4_OK);
	cr_expect(on_disk("x", TWO) && shows("x", TWO));
	cr_expect_neq(attrs_of("x").change, change);
	change = attrs_of("x").change;
	usleep(20000); /* the next tick of the clock that ctime goes by */
	cr_assert_eq(setxattr(fix_path(f, "x"), XATTR, ONE, LABEL_LEN, 0), 0);
	cr_expect(shows("x", ONE));
	cr_expect_neq(attrs_of("x").change, change, "by a local process");
}

Test(nfs4_label, only_the_owner_and_root_set_it)
{
	NEED_FIXTURE();
	start();
	cr_assert_eq(chown(fix_path(f, "x"), OWNER, OWNER), 0);
	cr_assert_eq(chmod(fix_path(f, "x"), 0666), 0);
	f->uid = f->gid = OWNER + 1;
	cr_expect_eq(set("x", label_of(TWO)), NFS4ERR_PERM);
	cr_expect(shows("x", ONE), "all may see it");
	f->uid = f->gid = OWNER;
	cr_expect_eq(set("x", label_of(TWO)), NFS4_OK);
	f->uid = f->gid = 0;
	cr_expect_eq(set("x", label_of(ONE)), NFS4_OK);
	f->access.flags |= VFS_RO;
	cr_expect_eq(set("x", label_of(TWO)), NFS4ERR_ROFS);
	as_root();
	cr_expect(on_disk("x", ONE));
}

Test(nfs4_label, what_is_no_label)
{
	static char big[VFS_LABEL_MAX + 1];
	uint32_t status;

	NEED_FIXTURE();
	start();
	memset(big, 'b', sizeof(big));
	cr_expect_eq(set("x", (struct label){ 1, 0, LABEL_LEN, TWO }), NFS4ERR_WRONG_LFS);
	cr_expect_eq(set("x", (struct label){ 0, 1, LABEL_LEN, TWO }), NFS4ERR_WRONG_LFS);
	cr_expect_eq(set("x", (struct label){ .bytes = "" }), NFS4ERR_BADLABEL);
	cr_expect_eq(set("x", (struct label){ .len = sizeof(big), .bytes = big }),
		     NFS4ERR_BADLABEL);
	cr_expect(on_disk("x", ONE));
	/* ext4 has less room. */
	status = set("x", (struct label){ .len = VFS_LABEL_MAX, .bytes = big });
	cr_expect(status == NFS4_OK || status == NFS4ERR_NOSPC, "%u", status);
	if (status == NFS4_OK)
		cr_expect_eq(attrs_of("x").label_len, VFS_LABEL_MAX);
}

static uint32_t make(const char *name, uint32_t type)
{
	fix4_begin(f, &session);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, type);
	if (type == NF4LNK)
		fix4_name(f, "target");
	fix4_name(f, name);
	put_label(label_of(TWO));
	return fix4_send(f);
}

/* OPEN; how: UNCHECKED4, GUARDED4 or EXCLUSIVE4_1. Returns whether attrset has the label. */
static bool open_new(const char *name, uint32_t how)
{
	struct nfs4_bitmap done;
	struct nfs4_stateid sid;
	uint64_t change;
	bool atomic;

	fix4_begin(f, &session);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_OPEN);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_BOTH);
	xdr_put_u32(&f->out, OPEN4_SHARE_DENY_NONE);
	xdr_put_u64(&f->out, session.clientid);
	fix_put_name(&f->out, "owner");
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, how);
	if (how == 3)
		xdr_put_fixed(&f->out, "verifier", 8);
	put_label(label_of(TWO));
	xdr_put_u32(&f->out, 0);
	fix4_name(f, name);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_OPEN);
	fix4_get_stateid(f, &sid);
	fix4_get_cinfo(f, &atomic, &change, &change);
	xdr_get_u32(&f->in);
	cr_expect(nfs4_get_bitmap(&f->in, &done));
	return nfs4_bitmap_has(&done, FATTR4_SEC_LABEL);
}

Test(nfs4_label, what_is_made_has_it_at_once)
{
	static const struct {
		const char *name;
		uint32_t type;
	} rows[] = { { "dir", NF4DIR }, { "link", NF4LNK }, { "fifo", NF4FIFO } };

	NEED_FIXTURE();
	start();
	cr_assert_eq(chmod(f->dir[0], 0777), 0);
	for (uint32_t uid = 0; uid <= OWNER; uid += OWNER) {
		f->uid = f->gid = uid;
		for (unsigned i = 0; i < rn_array_size(rows); i++)
			cr_expect_eq(make(rows[i].name, rows[i].type), NFS4_OK, "%s by %u",
				     rows[i].name, uid);
		cr_expect(open_new("guarded", 1));
		cr_expect(open_new("exclusive", 3));
		cr_expect_not(open_new("x", 0), "an existing file keeps its label");
		as_root();
		for (unsigned i = 0; i < rn_array_size(rows); i++) {
			cr_expect(on_disk(rows[i].name, TWO), "%s by %u", rows[i].name, uid);
			cr_assert_eq(remove(fix_path(f, rows[i].name)), 0);
		}
		cr_expect(on_disk("guarded", TWO) && on_disk("exclusive", TWO));
		cr_expect(on_disk("x", ONE));
		cr_assert_eq(unlink(fix_path(f, "guarded")), 0);
		cr_assert_eq(unlink(fix_path(f, "exclusive")), 0);
		cr_assert_eq(chmod(fix_path(f, "x"), 0666), 0);
	}
}

Test(nfs4_label, verify)
{
	struct label other = label_of(ONE);

	NEED_FIXTURE();
	start();
	cr_expect_eq(compare(OP_VERIFY, "x", label_of(ONE)), NFS4_OK);
	cr_expect_eq(compare(OP_NVERIFY, "x", label_of(ONE)), NFS4ERR_SAME);
	cr_expect_eq(compare(OP_VERIFY, "x", label_of(TWO)), NFS4ERR_NOT_SAME);
	cr_expect_eq(compare(OP_NVERIFY, "x", label_of(TWO)), NFS4_OK);
	other.len--;
	cr_expect_eq(compare(OP_VERIFY, "x", other), NFS4ERR_NOT_SAME);
	other = label_of(ONE);
	other.format = 1;
	cr_expect_eq(compare(OP_VERIFY, "x", other), NFS4ERR_NOT_SAME);
}

/* Names with their labels in a listing; an object without a label is listed without. */
Test(nfs4_label, listings)
{
	unsigned with = 0, without = 0;

	NEED_FIXTURE();
	start();
	make_file("none", "", 0644);
	fix4_begin(f, &session);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 4096);
	FIX4_BITS(f, FATTR4_FILEID, FATTR4_SEC_LABEL);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_READDIR);
	xdr_get_u64(&f->in);
	while (xdr_get_bool(&f->in)) {
		struct fix4_attrs a;
		uint32_t len;

		xdr_get_u64(&f->in);
		xdr_get_opaque(&f->in, 255, &len);
		cr_assert(fix4_get_attrs(&f->in, &a));
		if (nfs4_bitmap_has(&a.have, FATTR4_SEC_LABEL) && len == 1 &&
		    memcmp(a.label, ONE, LABEL_LEN) == 0)
			with++;
		else
			without++;
	}
	cr_expect(xdr_get_bool(&f->in), "the end");
	whole();
	cr_expect(with == 1 && without == 1, "%u, %u", with, without);
}
