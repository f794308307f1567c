/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR of every attribute and type of object, and ACCESS, in each minor version. */
#include <errno.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "nfs4/attr/attr_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_minors.h"

NFS3_SUITE(nfs4_getattr);

static struct fix4_attrs attrs_of(const char *name, struct fix4_session *s)
{
	struct vfs_fh fh = *name ? handle(name) : f->root;
	struct fix4_attrs a;

	cr_assert_eq(fix4_getattr(f, s, &fh, &a), NFS4_OK, "GETATTR %s", name);
	whole();
	return a;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void check_file(struct fix4_session *s, uint32_t minor)
{
	static const unsigned optional[] = { FATTR4_TIME_CREATE,      FATTR4_ACL,
					     FATTR4_QUOTA_AVAIL_HARD, FATTR4_QUOTA_AVAIL_SOFT,
					     FATTR4_QUOTA_USED,	      FATTR4_SEC_LABEL,
					     FATTR4_FS_LAYOUT_TYPES,  FATTR4_LAYOUT_TYPES,
					     FATTR4_LAYOUT_BLKSIZE };
	struct fix4_attrs a = attrs_of("file", s);
	struct vfs_fh fh = handle("file");
	struct nfs4_bitmap want;
	struct stat st;

	cr_assert_eq(stat(fix_path(f, "file"), &st), 0);
	cr_expect_eq(a.type, NF4REG);
	cr_expect_eq(a.mode, 04644);
	cr_expect_eq(a.size, 5);
	cr_expect_eq(a.used, (uint64_t)st.st_blocks * 512);
	cr_expect_eq(a.nlink, 2);
	cr_expect_eq(nfs4_bitmap_has(&a.have, FATTR4_SPACE_FREED), minor > 1);
	cr_expect_eq(a.freed, 0, "as long as it has another name");
	if (minor > 1)
		cr_expect_eq(attrs_of("only", s).freed, attrs_of("only", s).used);
	cr_expect_eq(a.fileid, st.st_ino);
	cr_expect_eq(a.mounted_on, st.st_ino);
	cr_expect_str_eq(a.owner, "1001");
	cr_expect_str_eq(a.group, "1002");
	cr_expect(same_time(&a.mtime, &st.st_mtim));
	cr_expect(same_time(&a.ctime, &st.st_ctim));
	cr_expect(same_time(&a.atime, &st.st_atim));
	cr_expect_neq(a.change, 0);
	cr_expect_eq(a.rdattr_error, NFS4_OK);
	cr_expect(a.fh.len == fh.len && memcmp(a.fh.data, fh.data, fh.len) == 0);
	/* All supported attributes are returned, except those that can only be set. */
	want = a.supported;
	nfs4_attr_supported(minor, &a.supported);
	/* Support of these depends on the file system. */
	for (unsigned i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		if (!nfs4_bitmap_has(&want, optional[i]))
			nfs4_bitmap_remove(&a.supported, optional[i]);
	}
	cr_expect_arr_eq(&want, &a.supported, sizeof(want));
	nfs4_bitmap_remove(&want, FATTR4_TIME_ACCESS_SET);
	nfs4_bitmap_remove(&want, FATTR4_TIME_MODIFY_SET);
	nfs4_bitmap_remove(&want, FATTR4_MODE_SET_MASKED);
	nfs4_bitmap_remove(&want, FATTR4_MODE_UMASK);
	cr_expect_arr_eq(&want, &a.have, sizeof(want), "4.%u", minor);
}

Test(nfs4_getattr, a_file)
{
	NEED_FIXTURE();
	make_file("file", "hello", 0644);
	make_file("only", "its only name", 0644);
	cr_assert_eq(chown(fix_path(f, "file"), 1001, 1002), 0);
	cr_assert_eq(chmod(fix_path(f, "file"), 04644), 0);
	char path[128];
	snprintf(path, sizeof(path), "%s/second", f->dir[0]);
	cr_assert_eq(link(fix_path(f, "file"), path), 0);
	FOR_MINORS(check_file);
}

static bool has_xattrs(void)
{
	return getxattr(f->dir[0], "user.none", NULL, 0) < 0 && errno == ENODATA;
}

static void check_fs(struct fix4_session *s, uint32_t minor)
{
	struct fix4_attrs a = attrs_of("", s);
	struct statvfs st;

	cr_assert_eq(statvfs(f->dir[0], &st), 0);
	cr_expect_eq(a.type, NF4DIR);
	cr_expect_eq(a.fh_expire, FH4_PERSISTENT);
	cr_expect(a.links && a.symlinks && a.unique && a.cansettime && a.case_preserving);
	cr_expect(a.chown_restricted && a.homogeneous && a.no_trunc);
	cr_expect_not(a.named_attr || a.case_insensitive);
	cr_expect_eq(a.space[2], (uint64_t)st.f_blocks * st.f_frsize);
	cr_expect_leq(a.space[0], a.space[1]);
	cr_expect_leq(a.files[1], a.files[2]);
	cr_expect_eq(a.maxname, 255);
	cr_expect_geq(a.maxlink, 2);
	cr_expect_geq(a.maxfilesize, UINT32_MAX);
	cr_expect_eq(a.maxread, a.maxwrite);
	cr_expect_geq(a.maxread, 65536);
	cr_expect_gt(a.lease, 0);
	cr_expect(a.delta.tv_sec == 0 && a.delta.tv_nsec == 1);
	cr_expect_eq(nfs4_bitmap_has(&a.have, FATTR4_SUPPATTR_EXCLCREAT), minor > 0);
	cr_expect_eq(nfs4_bitmap_has(&a.have, FATTR4_CHANGE_ATTR_TYPE), minor > 1);
	cr_expect_eq(nfs4_bitmap_has(&a.have, FATTR4_XATTR_SUPPORT), minor > 1);
	if (minor > 1) {
		cr_expect_eq(a.change_type, 4);
		cr_expect_eq(a.xattrs, has_xattrs());
		cr_expect_eq(a.clone_size, st.f_bsize);
	}
	cr_expect_eq(nfs4_bitmap_has(&a.have, FATTR4_CLONE_BLKSIZE), minor > 1);
}

Test(nfs4_getattr, the_file_system)
{
	NEED_FIXTURE();
	FOR_MINORS(check_fs);
}

static void check_types(struct fix4_session *s, uint32_t minor)
{
	struct fix4_attrs a = attrs_of("device", s);

	(void)minor;
	cr_expect_eq(a.type, NF4CHR);
	cr_expect(a.rawdev[0] == 5 && a.rawdev[1] == 6);
	cr_expect_eq(attrs_of("fifo", s).type, NF4FIFO);
	cr_expect_eq(attrs_of("socket", s).type, NF4SOCK);
	cr_expect_eq(attrs_of("disk", s).type, NF4BLK);
	a = attrs_of("link", s);
	cr_expect_eq(a.type, NF4LNK);
	cr_expect_eq(a.size, 7);
}

Test(nfs4_getattr, types_of_objects)
{
	NEED_FIXTURE();
	cr_assert_eq(mknod(fix_path(f, "device"), S_IFCHR | 0600, makedev(5, 6)), 0);
	cr_assert_eq(mknod(fix_path(f, "disk"), S_IFBLK | 0600, makedev(5, 6)), 0);
	cr_assert_eq(mknod(fix_path(f, "fifo"), S_IFIFO | 0600, 0), 0);
	cr_assert_eq(mknod(fix_path(f, "socket"), S_IFSOCK | 0600, 0), 0);
	cr_assert_eq(symlink("nowhere", fix_path(f, "link")), 0);
	FOR_MINORS(check_types);
}

static uint32_t getattr_bits(struct fix4_session *s, const int *bits)
{
	uint32_t status;

	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_GETATTR);
	fix4_put_bits(f, bits);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_GETATTR);
	return status;
}

static void check_bits(struct fix4_session *s, uint32_t minor)
{
	static const int set_only[] = { FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET };
	struct fix4_attrs a;

	for (unsigned i = 0; i < 2; i++) {
		const int bits[] = { FATTR4_SIZE, set_only[i], -1 };

		cr_expect_eq(getattr_bits(s, bits), NFS4ERR_INVAL);
		whole();
	}
	/* Unknown attributes are left out. */
	const int unknown[] = { FATTR4_TYPE, FATTR4_HIDDEN, FATTR4_SEC_LABEL, 95, -1 };
	cr_expect_eq(getattr_bits(s, unknown), NFS4_OK);
	cr_expect(fix4_get_attrs(&f->in, &a));
	cr_expect_eq(a.have.word[0], 1u << FATTR4_TYPE);
	cr_expect_eq(a.have.word[1] | a.have.word[2], 0);
	whole();
	const int masked[] = { FATTR4_MODE_SET_MASKED, -1 };
	cr_expect_eq(getattr_bits(s, masked), minor == 0 ? NFS4_OK : NFS4ERR_INVAL);
}

Test(nfs4_getattr, bits_that_cannot_be_had)
{
	NEED_FIXTURE();
	FOR_MINORS(check_bits);
}

Test(nfs4_getattr, each_attribute_alone_takes_what_its_row_says)
{
	NEED_FIXTURE();
	for (int i = 0; i < (int)NFS4_ATTR_WORDS * 32; i++) {
		const struct nfs4_attr_row *row = nfs4_attr_find((unsigned)i, 0);
		const int bits[] = { i, -1 };
		struct fix4_attrs a;

		if (!row || !row->get)
			continue;
		cr_expect_eq(getattr_bits(NULL, bits), NFS4_OK, "%s", row->name);
		cr_expect(fix4_get_attrs(&f->in, &a), "%s", row->name);
		whole();
	}
}

static void check_without_fh(struct fix4_session *s, uint32_t minor)
{
	static const uint32_t ops[] = { OP_GETATTR, OP_ACCESS };

	(void)minor;
	for (unsigned i = 0; i < 2; i++) {
		fix4_begin(f, s);
		fix4_op(f, ops[i]);
		xdr_put_u32(&f->out, 0);
		cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
		cr_expect_eq(fix4_result(f, ops[i]), NFS4ERR_NOFILEHANDLE);
	}
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_GETATTR);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
}

Test(nfs4_getattr, no_filehandle_and_no_arguments)
{
	NEED_FIXTURE();
	FOR_MINORS(check_without_fh);
}

static void check_stale(struct fix4_session *s, uint32_t minor)
{
	struct fix4_attrs a;
	struct vfs_fh fh;

	(void)minor;
	make_file("gone", "x", 0644);
	fh = handle("gone");
	unlink(fix_path(f, "gone"));
	cr_expect_eq(fix4_getattr(f, s, &fh, &a), NFS4ERR_STALE);
}

Test(nfs4_getattr, a_file_that_is_gone)
{
	NEED_FIXTURE();
	FOR_MINORS(check_stale);
}

static void check_pseudo(struct fix4_session *s, uint32_t minor)
{
	struct fix4_attrs a;

	(void)minor;
	fix4_begin(f, s);
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_GETATTR);
	fix4_put_all_bits(f);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTROOTFH);
	fix4_result(f, OP_GETATTR);
	cr_assert(fix4_get_attrs(&f->in, &a));
	whole();
	cr_expect_eq(a.type, NF4DIR);
	cr_expect_eq(a.fileid, a.mounted_on);
	cr_expect_neq(a.mode & 0111, 0);
	cr_expect_eq(a.mode & 0222, 0);
	cr_expect_gt(a.fh.len, 0);
	cr_expect(a.fsid[0] != attrs_of("", s).fsid[0] || a.fsid[1] != attrs_of("", s).fsid[1]);
}

Test(nfs4_getattr, the_pseudo_root)
{
	NEED_FIXTURE();
	FOR_MINORS(check_pseudo);
}

static uint32_t ask_access(struct fix4_session *s, const struct vfs_fh *fh, uint32_t want,
			   uint32_t *supported, uint32_t *granted)
{
	uint32_t status;

	fix4_begin(f, s);
	fix4_putfh(f, fh);
	fix4_op(f, OP_ACCESS);
	xdr_put_u32(&f->out, want);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_ACCESS);
	if (status == NFS4_OK) {
		*supported = xdr_get_u32(&f->in);
		*granted = xdr_get_u32(&f->in);
		whole();
	}
	return status;
}

static void check_access(struct fix4_session *s, uint32_t minor)
{
	static const struct {
		const char *name;
		uint32_t uid, want, supported, granted;
	} rows[] = {
		{ "file", 1001, 0x3f, 0x2d, 0x0d }, { "file", 1003, 0x3f, 0x2d, 0x01 },
		{ "file", 1003, 0x04, 0x04, 0x00 }, { "run", 1003, 0x3f, 0x2d, 0x21 },
		{ "dir", 1001, 0x3f, 0x1f, 0x1f },  { "dir", 1003, 0x3f, 0x1f, 0x03 },
		{ "dir", 1003, 0x02, 0x02, 0x02 },  { "secret", 1003, 0x3f, 0x1f, 0 },
		{ "secret", 1003, 0, 0, 0 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vfs_fh fh;
		uint32_t supported, granted;

		f->uid = f->gid = 0;
		fh = handle(rows[i].name);
		f->uid = f->gid = rows[i].uid;
		cr_expect_eq(ask_access(s, &fh, rows[i].want, &supported, &granted), NFS4_OK);
		cr_expect_eq(supported, rows[i].supported, "row %u: %#x", i, supported);
		cr_expect_eq(granted, rows[i].granted, "row %u: %#x", i, granted);
	}
	f->uid = f->gid = 0;
	(void)minor;
}

static void make_own(const char *name, mode_t mode)
{
	if (S_ISDIR(mode))
		cr_assert_eq(mkdir(fix_path(f, name), 0700), 0);
	else
		make_file(name, "x", 0600);
	cr_assert_eq(chown(fix_path(f, name), 1001, 1001), 0);
	cr_assert_eq(chmod(fix_path(f, name), mode & 07777), 0);
}

Test(nfs4_getattr, access_as_the_kernel_decides)
{
	NEED_FIXTURE();
	make_own("file", 0644);
	make_own("run", 0755);
	make_own("dir", S_IFDIR | 0755);
	make_own("secret", S_IFDIR | 0700);
	FOR_MINORS(check_access);
}

static void check_access_bits(struct fix4_session *s, uint32_t minor)
{
	uint32_t supported, granted;

	cr_expect_eq(ask_access(s, &f->root, 0x8000, &supported, &granted), NFS4ERR_INVAL);
	/* RFC 8276's access bits for extended attributes */
	cr_expect_eq(ask_access(s, &f->root, 0x1c1, &supported, &granted),
		     minor < 2 ? NFS4ERR_INVAL : NFS4_OK);
	if (minor == 2)
		cr_expect(supported == 0x1c1 && granted == 0x1c1);
}

Test(nfs4_getattr, access_of_bits_that_there_are_not)
{
	NEED_FIXTURE();
	FOR_MINORS(check_access_bits);
}

/* For extended attributes one must be able to read or write the object; a sticky directory's are
 * its owner's to change. Other objects have none. */
Test(nfs4_getattr, access_to_extended_attributes)
{
	static const struct {
		const char *name;
		uint32_t uid, supported, granted;
	} rows[] = {
		{ "file", 1001, 0x1c0, 0x1c0 },	  { "file", 1003, 0x1c0, 0x140 },
		{ "dir", 1001, 0x1c0, 0x1c0 },	  { "dir", 1003, 0x1c0, 0x140 },
		{ "sticky", 1001, 0x1c0, 0x1c0 }, { "sticky", 1003, 0x1c0, 0x140 },
		{ "sticky", 0, 0x1c0, 0x1c0 },	  { "secret", 1003, 0x1c0, 0 },
		{ "link", 1001, 0, 0 },		  { "fifo", 1001, 0, 0 },
	};
	struct fix4_session s;
	uint32_t supported, granted;

	NEED_FIXTURE();
	make_own("file", 0644);
	make_own("dir", S_IFDIR | 0755);
	make_own("sticky", S_IFDIR | 01777);
	make_own("secret", 0600);
	cr_assert_eq(symlink("file", fix_path(f, "link")), 0);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0666), 0);
	cr_assert_eq(fix4_session_new(f, &s, 2, "xattrs", true), NFS4_OK);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vfs_fh fh = handle(rows[i].name);

		f->uid = f->gid = rows[i].uid;
		cr_expect_eq(ask_access(&s, &fh, 0x1c0, &supported, &granted), NFS4_OK);
		cr_expect_eq(supported, rows[i].supported, "row %u: %#x", i, supported);
		cr_expect_eq(granted, rows[i].granted, "row %u: %#x", i, granted);
		f->uid = f->gid = 0;
	}
}

static void check_read_only(struct fix4_session *s, uint32_t minor)
{
	uint32_t supported, granted;

	(void)minor;
	f->access.flags |= VFS_RO;
	cr_expect_eq(ask_access(s, &f->root, 0x3f, &supported, &granted), NFS4_OK);
	cr_expect(supported == 0x1f && granted == 3);
	f->access.flags &= ~(unsigned)VFS_RO;
}

Test(nfs4_getattr, access_of_a_read_only_export)
{
	NEED_FIXTURE();
	FOR_MINORS(check_read_only);
}

/* GETATTR of the fileid and the size. */
static void put_small_getattr(void)
{
	fix4_op(f, OP_GETATTR);
	FIX4_BITS(f, FATTR4_SIZE, FATTR4_FILEID);
}

static void expect_getattr(const char *name, uint64_t size)
{
	struct fix4_attrs a;
	struct stat st;

	cr_assert_eq(stat(fix_path(f, name), &st), 0);
	cr_assert_eq(fix4_result(f, OP_GETATTR), NFS4_OK);
	cr_assert(fix4_get_attrs(&f->in, &a));
	cr_expect_eq(a.fileid, st.st_ino, "%s", name);
	cr_expect_eq(a.size, size, "%s: %lu", name, (unsigned long)a.size);
}

/* Reads the results of these operations. */
static void skip_to_getattr(const uint32_t *ops, unsigned n)
{
	struct vfs_fh fh;

	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(fix4_result(f, ops[i]), NFS4_OK);
		if (ops[i] == OP_GETFH)
			fix4_get_fh(f, &fh);
		else if (ops[i] == OP_ACCESS)
			xdr_get_u64(&f->in);
		else if (ops[i] == OP_SETATTR)
			xdr_skip(&f->in, 4 * xdr_get_u32(&f->in));
	}
}

static void put_size(uint64_t size)
{
	static const struct nfs4_stateid anonymous;

	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	FIX4_BITS(f, FATTR4_SIZE);
	xdr_put_u32(&f->out, 8);
	xdr_put_u64(&f->out, size);
}

/* Attributes that LOOKUP and ACCESS have read are used for that object only, and not after a
 * change. */
static void check_seen(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	make_file("one", "1", 0666);
	make_file("two", "22", 0666);
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_lookup(f, "one");
	fix4_op(f, OP_SAVEFH);
	put_small_getattr();
	fix4_putfh(f, &f->root);
	fix4_lookup(f, "two");
	fix4_op(f, OP_GETFH);
	put_small_getattr();
	fix4_op(f, OP_ACCESS);
	xdr_put_u32(&f->out, 1);
	put_size(5);
	put_small_getattr();
	fix4_op(f, OP_ACCESS);
	xdr_put_u32(&f->out, 1);
	fix4_op(f, OP_RESTOREFH);
	put_small_getattr();
	cr_assert_eq(fix4_send(f), NFS4_OK);
	skip_to_getattr((const uint32_t[]){ OP_PUTFH, OP_LOOKUP, OP_SAVEFH }, 3);
	expect_getattr("one", 1);
	skip_to_getattr((const uint32_t[]){ OP_PUTFH, OP_LOOKUP, OP_GETFH }, 3);
	expect_getattr("two", 2);
	skip_to_getattr((const uint32_t[]){ OP_ACCESS, OP_SETATTR }, 2);
	expect_getattr("two", 5);
	skip_to_getattr((const uint32_t[]){ OP_ACCESS, OP_RESTOREFH }, 2);
	expect_getattr("one", 1);
}

Test(nfs4_getattr, what_was_seen_is_of_that_object)
{
	NEED_FIXTURE();
	FOR_MINORS(check_seen);
}
