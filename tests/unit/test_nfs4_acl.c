/* SPDX-License-Identifier: BSD-2-Clause */
/* The attribute acl, aclsupport and the quota attributes. Skipped on a file system without ACLs. */
#include <errno.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "nfs4/attr/nfs4_acl.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_minors.h"

NFS3_SUITE(nfs4_acl);

#define ALLOW ACE4_ACCESS_ALLOWED_ACE_TYPE
#define DENY ACE4_ACCESS_DENIED_ACE_TYPE
#define R ACE4_READ_DATA
#define W (ACE4_WRITE_DATA | ACE4_APPEND_DATA)
#define X ACE4_EXECUTE
#define FD (ACE4_FILE_INHERIT_ACE | ACE4_DIRECTORY_INHERIT_ACE)

static bool has_acls(void)
{
	return getxattr(f->dir[0], "system.posix_acl_access", NULL, 0) >= 0 || errno == ENODATA;
}

#define NEED_ACLS()                                                                                \
	do {                                                                                       \
		NEED_FIXTURE();                                                                    \
		if (!has_acls()) {                                                                 \
			cr_log_warn("%s has no ACLs", f->dir[0]);                                  \
			return;                                                                    \
		}                                                                                  \
	} while (0)

struct ace {
	uint32_t type, flag, mask;
	const char *who; /* NULL ends the list */
};

static const struct ace some[] = {
	{ ALLOW, 0, R | W, "OWNER@" },
	{ ALLOW, 0, R | W, "1005" },
	{ ALLOW, ACE4_IDENTIFIER_GROUP, R, "2005" },
	{ 0 },
};
static const struct ace inherited[] = {
	{ ALLOW, 0, R | W | X, "OWNER@" },
	{ ALLOW, FD | ACE4_INHERIT_ONLY_ACE, R, "1005" },
	{ 0 },
};
static const struct ace audit[] = { { ACE4_SYSTEM_AUDIT_ACE_TYPE, 0, R, "OWNER@" }, { 0 } };
static const struct ace nobody[] = { { ALLOW, 0, R, "nobody@nowhere" }, { 0 } };

static void put_aces(struct xdr_out *x, const struct ace *a)
{
	size_t at = xdr_out_pos(x);
	uint32_t n = 0;

	xdr_put_u32(x, 0);
	for (; a->who; a++, n++) {
		xdr_put_u32(x, a->type);
		xdr_put_u32(x, a->flag);
		xdr_put_u32(x, a->mask);
		fix_put_name(x, a->who);
	}
	xdr_patch_u32(x, at, n);
}

/* Encodes a fattr4 with an ACL, and with a mode if it is not NULL. */
static void put_attrs(const struct ace *a, const uint32_t *mode)
{
	size_t at;

	if (mode)
		FIX4_BITS(f, FATTR4_ACL, FATTR4_MODE);
	else
		FIX4_BITS(f, FATTR4_ACL);
	at = xdr_out_pos(&f->out);
	xdr_put_u32(&f->out, 0);
	put_aces(&f->out, a);
	if (mode)
		xdr_put_u32(&f->out, *mode);
	xdr_patch_u32(&f->out, at, (uint32_t)(xdr_out_pos(&f->out) - at - 4));
}

static uint32_t set(struct fix4_session *s, const char *name, const struct ace *a,
		    const uint32_t *mode)
{
	struct vfs_fh fh = handle(name);

	fix4_begin(f, s);
	fix4_putfh(f, &fh);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &(struct nfs4_stateid){ 0 });
	put_attrs(a, mode);
	return fix4_send(f);
}

/* Makes the test's thread root again: it acts as the user of the last call. */
static void as_root(void)
{
	struct vfs_fh fh;

	f->uid = f->gid = 0;
	fix_lookup(f, &f->root, "nothing", &fh);
}

/* Permissions of an entry in the kernel's ACL; -1: no such entry. */
static int kernel_perm(const char *name, const char *which, uint16_t tag, uint32_t id)
{
	uint8_t raw[1024];
	ssize_t len = getxattr(fix_path(f, name), which, raw, sizeof(raw));

	for (ssize_t at = 4; at + 8 <= len; at += 8) {
		uint16_t t, perm;
		uint32_t who;

		memcpy(&t, raw + at, 2);
		memcpy(&perm, raw + at + 2, 2);
		memcpy(&who, raw + at + 4, 4);
		if (t == tag && (who == id || id == VFS_ACL_NO_ID))
			return perm;
	}
	return -1;
}
#define ACCESS_ACL "system.posix_acl_access"
#define DEFAULT_ACL "system.posix_acl_default"

static mode_t mode_of(const char *name)
{
	struct stat st;

	cr_assert_eq(lstat(fix_path(f, name), &st), 0);
	return st.st_mode & 07777;
}

static struct fix4_attrs attrs_of(struct fix4_session *s, const char *name)
{
	struct vfs_fh fh = *name ? handle(name) : f->root;
	struct fix4_attrs a;

	cr_assert_eq(fix4_getattr(f, s, &fh, &a), NFS4_OK);
	return a;
}

static void check_support(struct fix4_session *s, uint32_t minor)
{
	struct fix4_attrs a = attrs_of(s, "");

	cr_expect(nfs4_bitmap_has(&a.supported, FATTR4_ACL));
	cr_expect_eq(a.aclsupport, ACL4_SUPPORT_ALLOW_ACL | ACL4_SUPPORT_DENY_ACL);
	cr_expect_eq(nfs4_bitmap_has(&a.exclusive, FATTR4_ACL), minor > 0);
	a = attrs_of(s, "link");
	cr_expect(nfs4_bitmap_has(&a.supported, FATTR4_ACL), "it is the file system's");
	cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_ACL));
	cr_expect_eq(set(s, "link", some, NULL), NFS4ERR_ATTRNOTSUPP);
	/* The pseudo file system has no ACLs. */
	fix4_begin(f, s);
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_GETATTR);
	FIX4_BITS(f, FATTR4_SUPPORTED_ATTRS, FATTR4_ACL, FATTR4_ACLSUPPORT);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTROOTFH);
	fix4_result(f, OP_GETATTR);
	cr_assert(fix4_get_attrs(&f->in, &a));
	cr_expect_not(nfs4_bitmap_has(&a.supported, FATTR4_ACL));
	cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_ACL));
	cr_expect_eq(a.aclsupport, 0);
}

Test(nfs4_acl, where_it_is_supported)
{
	NEED_ACLS();
	cr_assert_eq(symlink("target", fix_path(f, "link")), 0);
	FOR_MINORS(check_support);
}

static void check_set(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	make_file("file", "x", 0644);
	cr_expect_eq(set(s, "file", some, NULL), NFS4_OK);
	cr_expect_eq(mode_of("file"), 0660, "the group's bits are the mask's");
	cr_expect_eq(kernel_perm("file", ACCESS_ACL, VFS_ACL_USER, 1005), 6);
	cr_expect_eq(kernel_perm("file", ACCESS_ACL, VFS_ACL_GROUP, 2005), 4);
	cr_expect_eq(kernel_perm("file", ACCESS_ACL, VFS_ACL_GROUP_OBJ, VFS_ACL_NO_ID), 0);
	/* With both given, the ACL sets the permissions and the mode the set-id bits. */
	cr_expect_eq(set(s, "file", some, &(uint32_t){ 04777 }), NFS4_OK);
	cr_expect_eq(mode_of("file"), 04660);
	/* The ACL has no entries beyond the mode's three. */
	cr_expect_eq(set(s, "file", inherited + 2, NULL), NFS4_OK);
	cr_expect_eq(mode_of("file"), 04000);
	cr_expect_eq(kernel_perm("file", ACCESS_ACL, VFS_ACL_OTHER, VFS_ACL_NO_ID), -1);
}

Test(nfs4_acl, set)
{
	NEED_ACLS();
	FOR_MINORS(check_set);
}

static void check_directory(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	cr_expect_eq(set(s, "dir", inherited, NULL), NFS4_OK);
	cr_expect_eq(mode_of("dir"), 0700);
	cr_expect_eq(kernel_perm("dir", DEFAULT_ACL, VFS_ACL_USER, 1005), 4);
	cr_expect_eq(kernel_perm("dir", DEFAULT_ACL, VFS_ACL_USER_OBJ, VFS_ACL_NO_ID), 7);
	cr_expect_eq(set(s, "dir", some, NULL), NFS4_OK);
	cr_expect_eq(kernel_perm("dir", DEFAULT_ACL, VFS_ACL_OTHER, VFS_ACL_NO_ID), -1, "gone");
	cr_expect_eq(kernel_perm("dir", ACCESS_ACL, VFS_ACL_USER, 1005), 6);
}

Test(nfs4_acl, of_a_directory)
{
	NEED_ACLS();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	FOR_MINORS(check_directory);
}

static void check_refused(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	make_file("file", "x", 0644);
	cr_assert_eq(chown(fix_path(f, "file"), 1001, 1001), 0);
	cr_expect_eq(set(s, "file", audit, NULL), NFS4ERR_ATTRNOTSUPP);
	cr_expect_eq(set(s, "file", nobody, NULL), NFS4ERR_BADOWNER);
	cr_expect_eq(set(s, "file", inherited, NULL), NFS4ERR_ATTRNOTSUPP, "no directory");
	f->access.flags |= VFS_RO;
	cr_expect_eq(set(s, "file", some, NULL), NFS4ERR_ROFS);
	f->access.flags &= ~(unsigned)VFS_RO;
	f->uid = f->gid = 1005;
	cr_expect_eq(set(s, "file", some, NULL), NFS4ERR_PERM);
	as_root();
	cr_expect_eq(mode_of("file"), 0644);
	f->uid = f->gid = 1001;
	cr_expect_eq(set(s, "file", some, NULL), NFS4_OK, "the owner may");
	as_root();
	cr_expect_eq(mode_of("file"), 0660);
}

Test(nfs4_acl, refused)
{
	NEED_ACLS();
	FOR_MINORS(check_refused);
}

/* VERIFY of the encoded bytes of an ACL. */
static uint32_t verify(struct fix4_session *s, const char *name, const uint8_t *acl, size_t size)
{
	struct vfs_fh fh = handle(name);

	fix4_begin(f, s);
	fix4_putfh(f, &fh);
	fix4_op(f, OP_VERIFY);
	FIX4_BITS(f, FATTR4_ACL);
	xdr_put_u32(&f->out, (uint32_t)size);
	xdr_put_fixed(&f->out, acl, (uint32_t)size);
	return fix4_send(f);
}

static void check_verify(struct fix4_session *s, uint32_t minor)
{
	static uint8_t acl[4096];
	struct fix4_attrs a;

	(void)minor;
	make_file("file", "x", 0644);
	cr_assert_eq(set(s, "file", some, NULL), NFS4_OK);
	a = attrs_of(s, "file");
	cr_assert(nfs4_bitmap_has(&a.have, FATTR4_ACL) && a.acl_size <= sizeof(acl));
	memcpy(acl, f->in.seg[0].base + a.acl_at, a.acl_size);
	cr_expect_eq(verify(s, "file", acl, a.acl_size), NFS4_OK);
	acl[15] ^= ACE4_EXECUTE; /* a byte of the first mask */
	cr_expect_eq(verify(s, "file", acl, a.acl_size), NFS4ERR_NOT_SAME);
	acl[15] ^= ACE4_EXECUTE;
	cr_expect_eq(verify(s, "file", acl, 4), NFS4ERR_BADXDR);
	acl[3] = 0;
	cr_expect_eq(verify(s, "file", acl, 4), NFS4ERR_NOT_SAME);
}

Test(nfs4_acl, verify)
{
	NEED_ACLS();
	FOR_MINORS(check_verify);
}

static uint32_t make(struct fix4_session *s, const struct vfs_fh *dir, const char *name,
		     uint32_t type, const struct ace *a, const uint32_t *mode)
{
	fix4_begin(f, s);
	fix4_putfh(f, dir);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, type);
	if (type == NF4LNK)
		fix_put_name(&f->out, "target");
	fix4_name(f, name);
	put_attrs(a, mode);
	return fix4_send(f);
}

/* An object created with an ACL does not inherit one. */
static void check_create(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh dir;

	(void)minor;
	cr_assert_eq(mkdir(fix_path(f, "parent"), 0755), 0);
	cr_assert_eq(set(s, "parent", inherited, NULL), NFS4_OK);
	dir = handle("parent");
	cr_expect_eq(make(s, &dir, "dir", NF4DIR, some, &(uint32_t){ 01777 }), NFS4_OK);
	cr_expect_eq(mode_of("parent/dir"), 01660);
	cr_expect_eq(kernel_perm("parent/dir", ACCESS_ACL, VFS_ACL_USER, 1005), 6);
	cr_expect_eq(kernel_perm("parent/dir", DEFAULT_ACL, VFS_ACL_OTHER, VFS_ACL_NO_ID), -1);
	cr_expect_eq(make(s, &dir, "both", NF4DIR, inherited, NULL), NFS4_OK);
	cr_expect_eq(mode_of("parent/both"), 0700);
	cr_expect_eq(kernel_perm("parent/both", DEFAULT_ACL, VFS_ACL_USER, 1005), 4);
	cr_expect_eq(make(s, &dir, "fifo", NF4FIFO, some, NULL), NFS4_OK);
	cr_expect_eq(mode_of("parent/fifo"), 0660);
	cr_expect_eq(make(s, &dir, "link", NF4LNK, some, NULL), NFS4ERR_ATTRNOTSUPP);
	cr_expect_eq(make(s, &dir, "fifo2", NF4FIFO, inherited, NULL), NFS4ERR_ATTRNOTSUPP);
	cr_expect_not(exists("parent/link") || exists("parent/fifo2"));
	cr_assert_eq(rmdir(fix_path(f, "parent/dir")), 0);
	cr_assert_eq(rmdir(fix_path(f, "parent/both")), 0);
	cr_assert_eq(unlink(fix_path(f, "parent/fifo")), 0);
	cr_assert_eq(rmdir(fix_path(f, "parent")), 0);
}

Test(nfs4_acl, create)
{
	NEED_ACLS();
	FOR_MINORS(check_create);
}

/* OPEN with an ACL; how: GUARDED4 or EXCLUSIVE4_1. */
static uint32_t open_new(struct fix4_session *s, const char *name, uint32_t how, uint64_t clientid)
{
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_OPEN);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_BOTH);
	xdr_put_u32(&f->out, OPEN4_SHARE_DENY_NONE);
	xdr_put_u64(&f->out, clientid);
	fix_put_name(&f->out, "owner");
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, how);
	if (how == 3)
		xdr_put_fixed(&f->out, "verifier", 8);
	put_attrs(some, NULL);
	xdr_put_u32(&f->out, 0);
	fix4_name(f, name);
	return fix4_send(f);
}

Test(nfs4_acl, open)
{
	struct fix4_session s;
	struct nfs4_bitmap set_attrs;
	struct nfs4_stateid sid;

	NEED_ACLS();
	cr_assert_eq(fix4_session_new(f, &s, 1, "opener", true), NFS4_OK);
	for (uint32_t how = 1; how <= 3; how += 2) {
		const char *name = how == 1 ? "guarded" : "exclusive";
		bool atomic;
		uint64_t change;

		cr_assert_eq(open_new(&s, name, how, s.clientid), NFS4_OK);
		fix4_result(f, OP_PUTFH);
		fix4_result(f, OP_OPEN);
		fix4_get_stateid(f, &sid);
		fix4_get_cinfo(f, &atomic, &change, &change);
		xdr_get_u32(&f->in);
		cr_expect(nfs4_get_bitmap(&f->in, &set_attrs));
		cr_expect(nfs4_bitmap_has(&set_attrs, FATTR4_ACL));
		cr_expect_eq(mode_of(name), 0660);
		cr_expect_eq(kernel_perm(name, ACCESS_ACL, VFS_ACL_USER, 1005), 6);
	}
	cr_expect_eq(open_new(&s, "guarded", 1, s.clientid), NFS4ERR_EXIST);
	cr_expect_eq(open_new(&s, "exclusive", 3, s.clientid), NFS4_OK, "the same call again");
}

static uint32_t access_of(struct fix4_session *s, const char *name, uint32_t uid, uint32_t gid)
{
	struct vfs_fh fh = handle(name);
	uint32_t granted = 0;

	f->uid = uid;
	f->gid = gid;
	fix4_begin(f, s);
	fix4_putfh(f, &fh);
	fix4_op(f, OP_ACCESS);
	xdr_put_u32(&f->out, ACCESS4_READ | ACCESS4_MODIFY | ACCESS4_EXECUTE);
	if (fix4_send(f) == NFS4_OK) {
		fix4_result(f, OP_PUTFH);
		fix4_result(f, OP_ACCESS);
		xdr_get_u32(&f->in);
		granted = xdr_get_u32(&f->in);
	}
	as_root();
	return granted;
}

static void check_access(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	make_file("file", "x", 0644);
	cr_assert_eq(set(s, "file", some, NULL), NFS4_OK);
	cr_expect_eq(access_of(s, "file", 1005, 100), ACCESS4_READ | ACCESS4_MODIFY);
	cr_expect_eq(access_of(s, "file", 1006, 2005), ACCESS4_READ);
	cr_expect_eq(access_of(s, "file", 1006, 100), 0);
}

Test(nfs4_acl, access_agrees)
{
	NEED_ACLS();
	FOR_MINORS(check_access);
}

/* READDIR returns the ACL of each entry; the symbolic link has none. */
static void check_readdir(struct fix4_session *s, uint32_t minor)
{
	unsigned with = 0, entries = 0;
	struct fix4_attrs a;
	uint32_t len;

	(void)minor;
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 32768);
	FIX4_BITS(f, FATTR4_TYPE, FATTR4_ACL, FATTR4_SUPPORTED_ATTRS);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_READDIR), NFS4_OK);
	xdr_get_u64(&f->in);
	while (xdr_get_bool(&f->in)) {
		xdr_get_u64(&f->in);
		xdr_get_opaque(&f->in, 255, &len);
		cr_assert(fix4_get_attrs(&f->in, &a));
		cr_expect_eq(nfs4_bitmap_has(&a.have, FATTR4_ACL), a.type != NF4LNK);
		with += nfs4_bitmap_has(&a.have, FATTR4_ACL);
		entries++;
	}
	cr_expect(xdr_get_bool(&f->in), "the end");
	cr_expect(entries == 3 && with == 2, "%u entries, %u with", entries, with);
}

Test(nfs4_acl, in_a_listing)
{
	NEED_ACLS();
	make_file("file", "x", 0640);
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(symlink("target", fix_path(f, "link")), 0);
	FOR_MINORS(check_readdir);
}

/* exports(5) no_acl: as on a file system without ACLs. */
Test(nfs4_acl, hidden)
{
	struct fix4_attrs a;

	NEED_ACLS();
	make_file("file", "x", 0640);
	f->access.flags |= VFS_NO_ACL;
	a = attrs_of(NULL, "file");
	cr_expect_not(nfs4_bitmap_has(&a.supported, FATTR4_ACL));
	cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_ACL));
	cr_expect_eq(set(NULL, "file", inherited, NULL), NFS4ERR_ATTRNOTSUPP);
	f->access.flags &= ~(uint32_t)VFS_NO_ACL;
	a = attrs_of(NULL, "file");
	cr_expect(nfs4_bitmap_has(&a.supported, FATTR4_ACL));
}

/* If the kernel refuses the second of two ACLs, neither is set. */
Test(nfs4_acl, both_or_none)
{
	static const struct vfs_acl_entry bad[] = { { VFS_ACL_OTHER, 7, VFS_ACL_NO_ID } };
	static const struct vfs_acl_entry good[] = { { VFS_ACL_USER_OBJ, 6, VFS_ACL_NO_ID },
						     { VFS_ACL_GROUP_OBJ, 0, VFS_ACL_NO_ID },
						     { VFS_ACL_OTHER, 0, VFS_ACL_NO_ID } };
	const struct vfs_acls acls = { .access = { 1, bad }, .inherited = { 3, good } };
	const struct vfs_setattr sa = { .acls = &acls };
	struct vfs_ctx ctx;
	struct vfs_node *n;
	struct vfs_fh fh;

	NEED_ACLS();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(set(NULL, "dir", inherited, NULL), NFS4_OK);
	fh = handle("dir");
	ctx = (struct vfs_ctx){ .vfs = f->vfs, .fiber = &f->fiber, .exp = f->exp[0] };
	cr_assert_eq(vfs_fh_open(&ctx, &fh, &n), 0);
	cr_expect_eq(vfs_setattr(&ctx, n, &sa, NULL), -EINVAL);
	vfs_node_put(n);
	cr_expect_eq(mode_of("dir"), 0700);
	cr_expect_eq(kernel_perm("dir", DEFAULT_ACL, VFS_ACL_USER, 1005), 4, "as before");
}

/* Runs if /tmp is on a file system with quotas (tests/vm/t/v4_acl.sh makes one). */
Test(nfs4_acl, quota)
{
	static char text[65536];
	struct fix4_attrs a;

	NEED_FIXTURE();
	memset(text, 'x', sizeof(text) - 1);
	make_file("file", text, 0644);
	cr_assert_eq(chown(fix_path(f, "file"), 1005, 1005), 0);
	a = attrs_of(NULL, "file");
	if (!nfs4_bitmap_has(&a.supported, FATTR4_QUOTA_USED)) {
		cr_expect_not(nfs4_bitmap_has(&a.have, FATTR4_QUOTA_USED));
		cr_expect_null(getenv("QUOTA_HARD"), "%s has no quotas", f->dir[0]);
		return;
	}
	cr_expect_geq(a.quota[2], sizeof(text), "used");
	cr_expect_leq(a.quota[1], a.quota[0]);
	cr_expect_leq(a.quota[0], a.space[0]);
	if (getenv("QUOTA_HARD") && getenv("QUOTA_SOFT")) {
		cr_expect_eq(a.quota[0] + a.quota[2], strtoull(getenv("QUOTA_HARD"), NULL, 10));
		cr_expect_eq(a.quota[1] + a.quota[2], strtoull(getenv("QUOTA_SOFT"), NULL, 10));
	}
}
