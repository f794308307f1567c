/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSACL beside NFSv3: GETACL and SETACL, their errors, and what they change on disk. */
#include <endian.h>
#include <errno.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#include "lib/util.h"
#include "nfs3/acl/nfsacl.h"
#include "rpc/message.h"
#include "tests/unit/nfs3_suite.h"
#include "vfs/xattr.h"

NFS3_SUITE(nfsacl);

#define ACCESS_ACL "system.posix_acl_access"
#define DEFAULT_ACL "system.posix_acl_default"

struct entry {
	uint32_t tag, id, perm;
};

#define USER_OBJ(p)                                                                                \
	{                                                                                          \
		VFS_ACL_USER_OBJ, 0, p                                                             \
	}
#define USER(id, p)                                                                                \
	{                                                                                          \
		VFS_ACL_USER, id, p                                                                \
	}
#define GROUP_OBJ(p)                                                                               \
	{                                                                                          \
		VFS_ACL_GROUP_OBJ, 0, p                                                            \
	}
#define GROUP(id, p)                                                                               \
	{                                                                                          \
		VFS_ACL_GROUP, id, p                                                               \
	}
#define MASK(p)                                                                                    \
	{                                                                                          \
		VFS_ACL_MASK, 0, p                                                                 \
	}
#define OTHER(p)                                                                                   \
	{                                                                                          \
		VFS_ACL_OTHER, 0, p                                                                \
	}

static const struct entry named[] = { USER_OBJ(6),    USER(1005, 6), GROUP_OBJ(4),
				      GROUP(2005, 4), MASK(6),	     OTHER(0) };
static const struct entry plain[] = { USER_OBJ(7), GROUP_OBJ(5), MASK(5), OTHER(1) };

/* False: the file system below /tmp has no ACLs. */
static bool has_acls(void)
{
	return getxattr(f->dir[0], ACCESS_ACL, NULL, 0) >= 0 || errno == ENODATA;
}

#define NEED_ACLS()                                                                                \
	do {                                                                                       \
		NEED_FIXTURE();                                                                    \
		if (!has_acls())                                                                   \
			cr_skip_test("%s: no ACLs there", f->dir[0]);                              \
	} while (0)

static struct xdr_out *acl_call(uint32_t proc, const struct vfs_fh *fh, uint32_t mask)
{
	struct xdr_out *c = fix_call(f, NFSACL_PROGRAM, NFSACL_VERSION, proc);

	fix_put_fh(c, fh);
	xdr_put_u32(c, mask);
	return c;
}

static void put_list(struct xdr_out *c, const struct entry *e, uint32_t n, uint32_t flag)
{
	xdr_put_u32(c, n);
	xdr_put_u32(c, n);
	for (uint32_t i = 0; i < n; i++) {
		xdr_put_u32(c, e[i].tag | flag);
		xdr_put_u32(c, e[i].id);
		xdr_put_u32(c, e[i].perm);
	}
}

/* Sends a call of SETACL; UINT32_MAX: garbage. */
static uint32_t set_acl(const char *name, uint32_t mask, const struct entry *e, uint32_t n)
{
	const struct vfs_fh fh = handle(name);
	struct xdr_out *c = acl_call(NFSACLPROC3_SETACL, &fh, mask);
	struct fix_attr a;
	uint32_t stat;

	put_list(c, e, mask & NA_ACL ? n : 0, 0);
	put_list(c, e, mask & NA_DFACL ? n : 0, NA_ACL_DEFAULT);
	stat = status();
	if (stat == UINT32_MAX)
		return stat;
	fix_get_post_attr(&f->in, &a);
	whole();
	return stat;
}

/* A decoded list of GETACL's result. */
struct list {
	uint32_t count, n;
	struct entry e[NFSACL_ENTRIES_MAX];
};

struct acls {
	struct fix_attr attr;
	uint32_t mask;
	struct list access, inherited;
};

static void get_list(struct xdr_in *r, struct list *l, uint32_t flag)
{
	l->count = xdr_get_u32(r);
	l->n = xdr_get_u32(r);
	cr_assert_leq(l->n, NFSACL_ENTRIES_MAX);
	for (uint32_t i = 0; i < l->n; i++) {
		const uint32_t type = xdr_get_u32(r);

		cr_expect_eq(type & NA_ACL_DEFAULT, flag, "%#x", type);
		l->e[i] = (struct entry){ .tag = type & ~NA_ACL_DEFAULT };
		l->e[i].id = xdr_get_u32(r);
		l->e[i].perm = xdr_get_u32(r);
	}
}

static uint32_t get_acl(const char *name, uint32_t mask, struct acls *out)
{
	const struct vfs_fh fh = handle(name);
	uint32_t stat;

	memset(out, 0, sizeof(*out));
	acl_call(NFSACLPROC3_GETACL, &fh, mask);
	stat = status();
	if (stat == UINT32_MAX)
		return stat;
	cr_expect(fix_get_post_attr(&f->in, &out->attr), "attributes");
	if (stat == NFS3_OK) {
		out->mask = xdr_get_u32(&f->in);
		get_list(&f->in, &out->access, 0);
		get_list(&f->in, &out->inherited, NA_ACL_DEFAULT);
	}
	whole();
	return stat;
}

/* Entries of the owner and the group have the ids of the file. */
static void expect_list(const struct acls *a, const struct list *l, const struct entry *e,
			uint32_t n)
{
	cr_expect_eq(l->count, n, "%u", l->count);
	cr_assert_eq(l->n, n, "%u", l->n);
	for (uint32_t i = 0; i < n; i++) {
		cr_expect_eq(l->e[i].tag, e[i].tag, "entry %u: tag %#x", i, l->e[i].tag);
		cr_expect_eq(l->e[i].perm, e[i].perm, "entry %u: %o", i, l->e[i].perm);
		cr_expect_eq(l->e[i].id,
			     e[i].tag == VFS_ACL_USER_OBJ    ? a->attr.uid
			     : e[i].tag == VFS_ACL_GROUP_OBJ ? a->attr.gid
							     : e[i].id,
			     "entry %u: id %u", i, l->e[i].id);
	}
}

/* Entries of an ACL on disk; -1: there is none. */
static int kernel_count(const char *name, const char *which)
{
	const ssize_t len = lgetxattr(fix_path(f, name), which, NULL, 0);

	return len < 0 ? -1 : (int)(((size_t)len - 4) / sizeof(struct posix_acl_xattr_entry));
}

static unsigned mode_of(const char *name)
{
	struct stat st;

	cr_assert_eq(lstat(fix_path(f, name), &st), 0);
	return st.st_mode & 07777;
}

Test(nfsacl, null)
{
	NEED_FIXTURE();
	fix_call(f, NFSACL_PROGRAM, NFSACL_VERSION, NFSACLPROC3_NULL);
	fix_send(f);
	cr_expect(f->outcome == FIX_REPLY && f->accept_stat == RPC_SUCCESS);
	fix_call(f, NFSACL_PROGRAM, 2, NFSACLPROC3_NULL);
	fix_send(f);
	cr_expect(f->outcome == FIX_REPLY && f->accept_stat == RPC_PROG_MISMATCH);
}

/* Permission bits are an ACL of three entries, which is shown with a fourth, the mask. */
Test(nfsacl, mode_bits)
{
	static const struct entry want[] = {
		{ VFS_ACL_USER_OBJ, 1005, 6 }, { VFS_ACL_GROUP_OBJ, 2005, 4 }, MASK(4), OTHER(1)
	};
	struct acls a;

	NEED_FIXTURE();
	make_file("file", "x", 0641);
	cr_assert_eq(chown(fix_path(f, "file"), 1005, 2005), 0);
	cr_assert_eq(get_acl("file", NA_MASK, &a), NFS3_OK);
	cr_expect_eq(a.mask, NA_MASK);
	cr_expect(a.attr.uid == 1005 && a.attr.gid == 2005 && a.attr.mode == 0641);
	expect_list(&a, &a.access, want, 4);
	expect_list(&a, &a.inherited, NULL, 0);
}

Test(nfsacl, only_what_is_asked_for)
{
	struct acls a;

	NEED_ACLS();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(set_acl("dir", NA_ACL | NA_DFACL, named, 6), NFS3_OK);
	for (uint32_t mask = 0; mask <= NA_MASK; mask++) {
		cr_assert_eq(get_acl("dir", mask, &a), NFS3_OK);
		cr_expect_eq(a.mask, mask);
		cr_expect_eq(a.access.count, mask & (NA_ACL | NA_ACLCNT) ? 6 : 0, "%#x", mask);
		cr_expect_eq(a.access.n, mask & NA_ACL ? 6 : 0, "%#x", mask);
		cr_expect_eq(a.inherited.count, mask & (NA_DFACL | NA_DFACLCNT) ? 6 : 0, "%#x",
			     mask);
		cr_expect_eq(a.inherited.n, mask & NA_DFACL ? 6 : 0, "%#x", mask);
	}
	cr_expect_eq(get_acl("dir", NA_MASK + 1, &a), NFS3ERR_INVAL);
	cr_expect_eq(get_acl("dir", UINT32_MAX, &a), NFS3ERR_INVAL);
}

Test(nfsacl, set_and_shown)
{
	struct acls a;

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, named, 6), NFS3_OK);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), 6);
	cr_expect_eq(mode_of("file"), 0660, "the mask is the group's part");
	cr_assert_eq(get_acl("file", NA_MASK, &a), NFS3_OK);
	expect_list(&a, &a.access, named, 6);
	cr_expect_eq(a.attr.mode, 0660);
}

/* Some clients send entries in an order of their own. */
Test(nfsacl, any_order)
{
	static const struct entry mixed[] = { OTHER(0),	    MASK(6),	   GROUP(2005, 4),
					      GROUP_OBJ(4), USER(1005, 6), USER_OBJ(6) };
	static const struct entry ids[] = { USER_OBJ(6),  USER(9, 1), USER(3, 2),
					    GROUP_OBJ(4), MASK(6),    OTHER(0) };
	struct acls a;

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, mixed, 6), NFS3_OK);
	cr_assert_eq(get_acl("file", NA_ACL, &a), NFS3_OK);
	expect_list(&a, &a.access, named, 6);
	cr_assert_eq(set_acl("file", NA_ACL, ids, 6), NFS3_OK);
	cr_assert_eq(get_acl("file", NA_ACL, &a), NFS3_OK);
	cr_expect(a.access.e[1].id == 3 && a.access.e[1].perm == 2);
	cr_expect(a.access.e[2].id == 9 && a.access.e[2].perm == 1);
}

/* A mask that repeats the group's entry stands for none; one that differs is meant. */
Test(nfsacl, minimal)
{
	static const struct entry three[] = { USER_OBJ(7), GROUP_OBJ(0), OTHER(0) };
	static const struct entry meant[] = { USER_OBJ(7), GROUP_OBJ(7), MASK(5), OTHER(1) };

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, plain, 4), NFS3_OK);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), -1);
	cr_expect_eq(mode_of("file"), 0751);
	cr_assert_eq(set_acl("file", NA_ACL, three, 3), NFS3_OK);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), -1);
	cr_expect_eq(mode_of("file"), 0700);
	cr_assert_eq(set_acl("file", NA_ACL, meant, 4), NFS3_OK);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), 4);
	cr_expect_eq(mode_of("file"), 0751);
}

/* A client of Solaris may set more bits in a mask. */
Test(nfsacl, bits_of_a_mask)
{
	static const struct entry more[] = { USER_OBJ(6), USER(1005, 6), GROUP_OBJ(4),
					     MASK(0xfffffffe), OTHER(0) };
	struct acls a;

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, more, 5), NFS3_OK);
	cr_assert_eq(get_acl("file", NA_ACL, &a), NFS3_OK);
	cr_assert_eq(a.access.n, 5);
	cr_expect_eq(a.access.e[3].perm, 6);
}

Test(nfsacl, default_acl)
{
	struct acls a;

	NEED_ACLS();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(set_acl("dir", NA_ACL | NA_DFACL, named, 6), NFS3_OK);
	cr_expect_eq(kernel_count("dir", ACCESS_ACL), 6);
	cr_expect_eq(kernel_count("dir", DEFAULT_ACL), 6);
	cr_assert_eq(get_acl("dir", NA_MASK, &a), NFS3_OK);
	expect_list(&a, &a.access, named, 6);
	expect_list(&a, &a.inherited, named, 6);
	/* A minimal one gets a mask on the wire, and stays minimal on disk. */
	cr_assert_eq(set_acl("dir", NA_DFACL, plain, 4), NFS3_OK);
	cr_expect_eq(kernel_count("dir", DEFAULT_ACL), 3);
	cr_expect_eq(kernel_count("dir", ACCESS_ACL), 6, "not named, so it stays");
	cr_assert_eq(get_acl("dir", NA_MASK, &a), NFS3_OK);
	expect_list(&a, &a.inherited, plain, 4);
	/* The other way round. */
	cr_assert_eq(set_acl("dir", NA_ACL, plain, 4), NFS3_OK);
	cr_expect_eq(kernel_count("dir", DEFAULT_ACL), 3, "not named, so it stays");
	cr_expect_eq(kernel_count("dir", ACCESS_ACL), -1);
	/* Without entries it is removed. */
	cr_assert_eq(set_acl("dir", NA_DFACL, NULL, 0), NFS3_OK);
	cr_expect_eq(kernel_count("dir", DEFAULT_ACL), -1);
	cr_assert_eq(set_acl("dir", NA_DFACL, NULL, 0), NFS3_OK, "and again");
	cr_expect_eq(mode_of("dir"), 0751);
}

/* Without entries an access ACL is removed; the mode stays. */
Test(nfsacl, removal)
{
	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, named, 6), NFS3_OK);
	cr_assert_eq(set_acl("file", 0, NULL, 0), NFS3_OK);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), 6, "nothing was named");
	cr_assert_eq(set_acl("file", NA_ACL, NULL, 0), NFS3_OK);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), -1);
	cr_expect_eq(mode_of("file"), 0660);
}

/* Both, or none: here the kernel refuses the access ACL. */
Test(nfsacl, both_or_none)
{
	const struct entry bad[] = { USER_OBJ(7), USER(5, 6), GROUP_OBJ(5), OTHER(0) };
	struct xdr_out *c;
	struct vfs_fh fh;

	NEED_ACLS();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(set_acl("dir", NA_DFACL, plain, 4), NFS3_OK);
	fh = handle("dir");
	c = acl_call(NFSACLPROC3_SETACL, &fh, NA_ACL | NA_DFACL);
	put_list(c, bad, 4, 0);
	put_list(c, named, 6, NA_ACL_DEFAULT);
	cr_expect_eq(status(), NFS3ERR_INVAL);
	cr_expect_eq(kernel_count("dir", DEFAULT_ACL), 3);
	cr_expect_eq(mode_of("dir"), 0755);
}

Test(nfsacl, refused)
{
	static const struct entry bits[] = { USER_OBJ(6), USER(1005, 8), GROUP_OBJ(4), MASK(4),
					     OTHER(0) };
	static const struct entry many_bits[] = { USER_OBJ(6), USER(1005, 0x10000), GROUP_OBJ(4),
						  MASK(4), OTHER(0) };
	static const struct entry twice[] = { USER_OBJ(6), USER_OBJ(6), GROUP_OBJ(4), OTHER(0) };
	static const struct entry no_owner[] = { GROUP_OBJ(4), OTHER(0) };

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_expect_eq(set_acl("file", NA_ACL, bits, 5), NFS3ERR_INVAL);
	cr_expect_eq(set_acl("file", NA_ACL, many_bits, 5), NFS3ERR_INVAL);
	cr_expect_eq(set_acl("file", NA_ACL, twice, 4), NFS3ERR_INVAL);
	cr_expect_eq(set_acl("file", NA_ACL, no_owner, 2), NFS3ERR_INVAL);
	cr_expect_eq(set_acl("file", NA_ACL | NA_DFACL, plain, 4), NFS3ERR_ACCES,
		     "a file inherits to nobody");
	cr_expect_eq(set_acl("file", NA_DFACL, NULL, 0), NFS3_OK, "but it may be told so");
	cr_expect_eq(kernel_count("file", ACCESS_ACL), -1);
	cr_expect_eq(mode_of("file"), 0600);
}

Test(nfsacl, permission)
{
	struct acls a;

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(chown(fix_path(f, "file"), 1005, 1005), 0);
	f->uid = f->gid = 1006;
	cr_expect_eq(set_acl("file", NA_ACL, named, 6), NFS3ERR_PERM);
	cr_expect_eq(get_acl("file", NA_MASK, &a), NFS3_OK, "like attributes");
	f->uid = f->gid = 1005;
	cr_expect_eq(set_acl("file", NA_ACL, named, 6), NFS3_OK);
	f->access.flags |= VFS_RO;
	cr_expect_eq(set_acl("file", NA_ACL, plain, 4), NFS3ERR_ROFS);
	cr_expect_eq(get_acl("file", NA_MASK, &a), NFS3_OK);
	f->access.flags &= ~(uint32_t)VFS_RO;
	f->uid = f->gid = 0;
	f->access.flags |= VFS_ROOT_SQUASH;
	cr_expect_eq(set_acl("file", NA_ACL, plain, 4), NFS3ERR_PERM);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), 6);
}

Test(nfsacl, symbolic_link)
{
	struct acls a;

	NEED_FIXTURE();
	cr_assert_eq(symlink("nowhere", fix_path(f, "link")), 0);
	cr_expect_eq(set_acl("link", NA_ACL, plain, 4), NFS3ERR_NOTSUPP);
	cr_assert_eq(get_acl("link", NA_MASK, &a), NFS3_OK);
	cr_assert_eq(a.access.n, 4);
	cr_expect(a.access.e[0].perm == 7 && a.access.e[3].perm == 7);
}

/* exports(5) no_acl: they decide, and are not shown. */
Test(nfsacl, no_acl)
{
	struct acls a;

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, named, 6), NFS3_OK);
	f->access.flags |= VFS_NO_ACL;
	cr_expect_eq(get_acl("file", NA_MASK, &a), NFS3ERR_NOTSUPP);
	cr_expect_eq(set_acl("file", NA_ACL, plain, 4), NFS3ERR_NOTSUPP);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), 6);
}

Test(nfsacl, handles)
{
	struct vfs_fh fh = { .len = 5 };
	struct fix_attr a;

	NEED_FIXTURE();
	acl_call(NFSACLPROC3_GETACL, &fh, NA_MASK);
	cr_expect_eq(status(), NFS3ERR_BADHANDLE);
	cr_expect_not(fix_get_post_attr(&f->in, &a));
	whole();
	put_list(acl_call(NFSACLPROC3_SETACL, &fh, 0), NULL, 0, 0);
	put_list(&f->out, NULL, 0, 0);
	cr_expect_eq(status(), NFS3ERR_BADHANDLE);
	make_file("file", "x", 0600);
	fh = handle("file");
	cr_assert_eq(unlink(fix_path(f, "file")), 0);
	acl_call(NFSACLPROC3_GETACL, &fh, NA_MASK);
	cr_expect_eq(status(), NFS3ERR_STALE);
	f->deny = true;
	acl_call(NFSACLPROC3_GETACL, &f->root, NA_MASK);
	cr_expect_eq(status(), NFS3ERR_ACCES);
}

/* Lists that break the protocol's rules. */
static const struct {
	const char *what;
	uint32_t mask, count, n;
	struct entry e;
} garbage[] = {
	{ "unknown bit of the mask", 0x10, 0, 0, USER_OBJ(0) },
	{ "more than 1024 entries", NA_ACLCNT, 1025, 0, USER_OBJ(0) },
	{ "fewer entries than announced", NA_ACL, 2, 1, USER_OBJ(6) },
	{ "more entries than announced", NA_ACL, 0, 1, USER_OBJ(6) },
	{ "entries that are not meant", NA_ACLCNT, 1, 1, USER_OBJ(6) },
	{ "an endless array", NA_ACL, UINT32_MAX, UINT32_MAX, USER_OBJ(6) },
	{ "a tag of no kind", NA_ACL, 1, 1, { 0x40, 0, 6 } },
	{ "no tag", NA_ACL, 1, 1, { 0, 0, 6 } },
	{ "two tags", NA_ACL, 1, 1, { VFS_ACL_USER | VFS_ACL_GROUP, 0, 6 } },
	{ "a user that cannot be", NA_ACL, 1, 1, USER(UINT32_MAX, 6) },
	{ "a group that cannot be", NA_ACL, 1, 1, GROUP(UINT32_MAX, 6) },
	{ "bits that the owner cannot have", NA_ACL, 1, 1, USER_OBJ(8) },
	{ "bits that the group cannot have", NA_ACL, 1, 1, GROUP_OBJ(0x80000000) },
	{ "bits that others cannot have", NA_ACL, 1, 1, OTHER(0x16) },
};

Test(nfsacl, garbage)
{
	NEED_FIXTURE();
	make_file("file", "x", 0600);
	for (unsigned i = 0; i < rn_array_size(garbage); i++) {
		const struct vfs_fh fh = handle("file");
		struct xdr_out *c = acl_call(NFSACLPROC3_SETACL, &fh, garbage[i].mask);

		xdr_put_u32(c, garbage[i].count);
		xdr_put_u32(c, garbage[i].n);
		for (uint32_t j = 0; j < rn_min(garbage[i].n, 3u); j++) {
			xdr_put_u32(c, garbage[i].e.tag);
			xdr_put_u32(c, garbage[i].e.id);
			xdr_put_u32(c, garbage[i].e.perm);
		}
		put_list(c, NULL, 0, 0);
		cr_expect_eq(status(), UINT32_MAX, "%s", garbage[i].what);
		cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS, "%s", garbage[i].what);
	}
	cr_expect_eq(mode_of("file"), 0600);
}

/* As many entries as one ACL may have, and the file system takes. */
static void put_many(struct xdr_out *c, uint32_t n, uint32_t flag)
{
	static struct entry e[NFSACL_ENTRIES_MAX];

	e[0] = (struct entry)USER_OBJ(7);
	e[1] = (struct entry)GROUP_OBJ(7);
	e[2] = (struct entry)MASK(7);
	e[3] = (struct entry)OTHER(7);
	for (uint32_t i = 4; i < n; i++)
		e[i] = (struct entry)USER(5000 - i, i % 8);
	put_list(c, e, n, flag);
}

static uint32_t set_many(const char *name, uint32_t n)
{
	const struct vfs_fh fh = handle(name);
	struct xdr_out *c = acl_call(NFSACLPROC3_SETACL, &fh, NA_ACL | NA_DFACL);

	put_many(c, n, 0);
	put_many(c, n, NA_ACL_DEFAULT);
	return status();
}

/* ext4 has one block for both; what does not fit is NOSPC. */
Test(nfsacl, many)
{
	static struct acls a;
	uint32_t n = NFSACL_ENTRIES_MAX, stat;

	NEED_ACLS();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	while ((stat = set_many("dir", n)) == NFS3ERR_NOSPC && n > 64) {
		cr_expect_eq(kernel_count("dir", DEFAULT_ACL), -1, "%u: all or nothing", n);
		n = n * 3 / 4;
	}
	cr_assert_eq(stat, NFS3_OK, "%u entries", n);
	cr_assert_eq(get_acl("dir", NA_MASK, &a), NFS3_OK);
	cr_expect_eq(a.access.n, n);
	cr_expect_eq(a.inherited.n, n);
	cr_expect_eq(a.access.e[1].id, 5000 - (n - 1));
	/* The client has to offer as much room as it needs. */
	f->reply_max = f->reply_len;
	cr_expect_eq(get_acl("dir", NA_MASK, &a), NFS3_OK);
}

Test(nfsacl, no_room_for_the_reply)
{
	struct vfs_fh fh;

	NEED_ACLS();
	make_file("file", "x", 0600);
	cr_assert_eq(set_acl("file", NA_ACL, named, 6), NFS3_OK);
	fh = handle("file");
	f->reply_max = 200; /* enough for everything but six entries */
	acl_call(NFSACLPROC3_GETACL, &fh, NA_MASK);
	fix_send(f);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
	acl_call(NFSACLPROC3_GETACL, &fh, NA_ACLCNT | NA_DFACLCNT);
	cr_expect_eq(status(), NFS3_OK);
	f->reply_max = 100; /* not even SETACL's */
	put_list(acl_call(NFSACLPROC3_SETACL, &fh, NA_ACL), plain, 4, 0);
	put_list(&f->out, NULL, 0, 0);
	fix_send(f);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
	cr_expect_eq(kernel_count("file", ACCESS_ACL), 6);
}
