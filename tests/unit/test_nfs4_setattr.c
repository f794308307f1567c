/* SPDX-License-Identifier: BSD-2-Clause */
/* SETATTR, VERIFY and NVERIFY in each minor version. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "lib/error.h"
#include "nfs4/nfs4_private.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_minors.h"
#include "tests/unit/nfs4_text.h"

NFS3_SUITE(nfs4_setattr);

static const struct nfs4_stateid anonymous;
static size_t len_at;

/* Makes the test's thread root again: it acts as the last call's user, and this call is root's. */
static void as_root(void)
{
	struct vfs_fh fh;

	f->uid = f->gid = 0;
	fix_lookup(f, &f->root, "nothing", &fh);
}

/* Puts PUTFH and an operation up to its attribute values. */
static void begin(struct fix4_session *s, const struct vfs_fh *fh, uint32_t op, const int *bits)
{
	fix4_begin(f, s);
	fix4_putfh(f, fh);
	fix4_op(f, op);
	if (op == OP_SETATTR)
		fix4_stateid(f, &anonymous);
	fix4_put_bits(f, bits);
	len_at = xdr_out_pos(&f->out);
	xdr_put_u32(&f->out, 0);
}
#define BEGIN(s, fh, op, ...) begin(s, fh, op, (const int[]){ __VA_ARGS__, -1 })

static uint32_t send_values(uint32_t op)
{
	uint32_t status;

	xdr_patch_u32(&f->out, len_at, (uint32_t)(xdr_out_pos(&f->out) - len_at - 4));
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, op), status);
	return status;
}

/* Sends the call and returns its status. Checks that the result's bitmap has all requested
 * attributes, or none after a failure. */
static uint32_t set(uint32_t words)
{
	struct nfs4_bitmap done;
	uint32_t status = send_values(OP_SETATTR);

	cr_expect(nfs4_get_bitmap(&f->in, &done));
	whole();
	cr_expect_eq(nfs4_bitmap_empty(&done), status != NFS4_OK || words == 0);
	return status;
}

static uint32_t set_u32(struct fix4_session *s, const char *name, int bit, uint32_t v)
{
	struct vfs_fh fh = handle(name);

	BEGIN(s, &fh, OP_SETATTR, bit);
	xdr_put_u32(&f->out, v);
	return set(1);
}

static uint32_t set_size(struct fix4_session *s, const char *name, uint64_t size)
{
	struct vfs_fh fh = handle(name);

	BEGIN(s, &fh, OP_SETATTR, FATTR4_SIZE);
	xdr_put_u64(&f->out, size);
	return set(1);
}

static uint32_t set_text(struct fix4_session *s, const char *name, int bit, const char *text)
{
	struct vfs_fh fh = handle(name);

	BEGIN(s, &fh, OP_SETATTR, bit);
	fix_put_name(&f->out, text);
	return set(1);
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	cr_assert_eq(lstat(fix_path(f, name), &st), 0);
	return st;
}

static void check_each(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	make_file("file", "hello", 0644);
	fh = handle("file");
	cr_expect_eq(set_u32(s, "file", FATTR4_MODE, 0755), NFS4_OK);
	cr_expect_eq(stat_of("file").st_mode & 07777, 0755);
	cr_expect_eq(set_size(s, "file", 100), NFS4_OK);
	cr_expect_eq(stat_of("file").st_size, 100);
	cr_expect_eq(set_size(s, "file", 0), NFS4_OK);
	cr_expect_eq(stat_of("file").st_size, 0);
	cr_expect_eq(set_text(s, "file", FATTR4_OWNER, "1001"), NFS4_OK);
	cr_expect_eq(stat_of("file").st_uid, 1001);
	cr_expect_eq(set_text(s, "file", FATTR4_OWNER_GROUP, "1002"), NFS4_OK);
	cr_expect_eq(stat_of("file").st_gid, 1002);
	BEGIN(s, &fh, OP_SETATTR, FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET);
	xdr_put_u32(&f->out, 1);
	xdr_put_u64(&f->out, 1000);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1);
	xdr_put_u64(&f->out, 2000);
	xdr_put_u32(&f->out, 2);
	cr_expect_eq(set(1), NFS4_OK);
	cr_expect(stat_of("file").st_atim.tv_sec == 1000 && stat_of("file").st_atim.tv_nsec == 1);
	cr_expect(stat_of("file").st_mtim.tv_sec == 2000 && stat_of("file").st_mtim.tv_nsec == 2);
	cr_expect_eq(set_u32(s, "file", FATTR4_TIME_MODIFY_SET, 0), NFS4_OK);
	cr_expect_gt(stat_of("file").st_mtim.tv_sec, 2000);
	cr_expect_eq(stat_of("file").st_atim.tv_sec, 1000);
	fix4_begin(f, s);
	fix4_putfh(f, &fh);
	(void)minor;
}

Test(nfs4_setattr, each_attribute)
{
	NEED_FIXTURE();
	FOR_MINORS(check_each);
}

/* A time of birth that a client sends changes nothing, and attrsset says so. */
static void check_birth(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;
	struct statx before, after;

	(void)minor;
	make_file("file", "hello", 0644);
	fh = handle("file");
	cr_assert_eq(statx(AT_FDCWD, fix_path(f, "file"), 0, STATX_BTIME | STATX_SIZE, &before), 0);
	BEGIN(s, &fh, OP_SETATTR, FATTR4_TIME_CREATE);
	xdr_put_u64(&f->out, 1000);
	xdr_put_u32(&f->out, 1);
	cr_expect_eq(set(0), NFS4_OK);
	BEGIN(s, &fh, OP_SETATTR, FATTR4_SIZE, FATTR4_TIME_CREATE);
	xdr_put_u64(&f->out, 2);
	xdr_put_u64(&f->out, 1000);
	xdr_put_u32(&f->out, 1);
	cr_expect_eq(set(1), NFS4_OK);
	cr_assert_eq(statx(AT_FDCWD, fix_path(f, "file"), 0, STATX_BTIME | STATX_SIZE, &after), 0);
	cr_expect_eq(after.stx_size, 2);
	cr_expect_eq(after.stx_btime.tv_sec, before.stx_btime.tv_sec);
	cr_assert_eq(unlink(fix_path(f, "file")), 0);
}

Test(nfs4_setattr, the_time_of_birth_stays)
{
	NEED_FIXTURE();
	FOR_MINORS(check_birth);
}

static void check_together(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	(void)minor;
	make_file("file", "hello", 0644);
	fh = handle("file");
	BEGIN(s, &fh, OP_SETATTR, FATTR4_SIZE, FATTR4_MODE, FATTR4_OWNER, FATTR4_TIME_MODIFY_SET);
	xdr_put_u64(&f->out, 3);
	xdr_put_u32(&f->out, 04711);
	fix_put_name(&f->out, "1001");
	xdr_put_u32(&f->out, 1);
	xdr_put_u64(&f->out, 77);
	xdr_put_u32(&f->out, 0);
	cr_expect_eq(set(1), NFS4_OK);
	cr_expect_eq(stat_of("file").st_size, 3);
	cr_expect_eq(stat_of("file").st_mode & 07777, 04711);
	cr_expect_eq(stat_of("file").st_uid, 1001);
	cr_expect_eq(stat_of("file").st_mtim.tv_sec, 77);
	/* An empty set of attributes is valid. */
	BEGIN(s, &fh, OP_SETATTR, -1);
	cr_expect_eq(set(0), NFS4_OK);
	cr_assert_eq(unlink(fix_path(f, "file")), 0);
}

Test(nfs4_setattr, all_in_one_operation)
{
	NEED_FIXTURE();
	FOR_MINORS(check_together);
}

/* The owner may not give the file away: the whole SETATTR fails, and the size must not change,
 * either. */
static void check_nothing_of_it(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	(void)minor;
	make_file("file", "hello", 0644);
	cr_assert_eq(chown(fix_path(f, "file"), 1001, 1001), 0);
	fh = handle("file");
	f->uid = f->gid = 1001;
	BEGIN(s, &fh, OP_SETATTR, FATTR4_SIZE, FATTR4_OWNER);
	xdr_put_u64(&f->out, 0);
	fix_put_name(&f->out, "1002");
	cr_expect_eq(set(1), NFS4ERR_PERM);
	/* Setting the present owner is allowed. */
	BEGIN(s, &fh, OP_SETATTR, FATTR4_OWNER);
	fix_put_name(&f->out, "1001");
	cr_expect_eq(set(1), NFS4_OK);
	as_root();
	cr_expect_eq(stat_of("file").st_size, 5);
}

Test(nfs4_setattr, all_or_nothing)
{
	NEED_FIXTURE();
	FOR_MINORS(check_nothing_of_it);
}

static void check_errors(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh dir, fh;

	make_file("file", "hello", 0644);
	fh = handle("file");
	dir = f->root;
	cr_expect_eq(set_text(s, "file", FATTR4_OWNER, "nobody@nowhere"), NFS4ERR_BADOWNER);
	cr_expect_eq(set_text(s, "file", FATTR4_OWNER_GROUP, ""), NFS4ERR_INVAL);
	cr_expect_eq(set_text(s, "file", FATTR4_OWNER, ""), NFS4ERR_INVAL);
	cr_expect_eq(set_text(s, "file", FATTR4_OWNER, "\xff"), NFS4ERR_INVAL);
	cr_expect_eq(set_u32(s, "file", FATTR4_MODE, 0xffffffff), NFS4ERR_INVAL);
	cr_expect_eq(set_u32(s, "file", FATTR4_TYPE, NF4DIR), NFS4ERR_INVAL);
	cr_expect_eq(set_u32(s, "file", FATTR4_ARCHIVE, 1), NFS4ERR_ATTRNOTSUPP);
	cr_expect_eq(set_size(s, "file", UINT64_MAX), NFS4ERR_FBIG);
	BEGIN(s, &dir, OP_SETATTR, FATTR4_SIZE);
	xdr_put_u64(&f->out, 0);
	cr_expect_eq(set(1), minor == 0 ? NFS4ERR_ISDIR : NFS4ERR_WRONG_TYPE);
	/* VERIFY with an empty name is an error. */
	for (uint32_t op = OP_NVERIFY; op <= OP_VERIFY; op += OP_VERIFY - OP_NVERIFY) {
		fix4_begin(f, s);
		fix4_putfh(f, &fh);
		fix4_op(f, op);
		FIX4_BITS(f, FATTR4_OWNER);
		xdr_put_u32(&f->out, 4);
		xdr_put_u32(&f->out, 0);
		cr_expect_eq(fix4_send(f), NFS4ERR_INVAL, "%s", nfs4_op_text(op));
	}
	/* The stateid is unknown. */
	fix4_begin(f, s);
	fix4_putfh(f, &fh);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &(struct nfs4_stateid){ .seqid = 5, .other = "?" });
	FIX4_BITS(f, FATTR4_SIZE);
	xdr_put_u32(&f->out, 8);
	xdr_put_u64(&f->out, 0);
	cr_expect_neq(fix4_send(f), NFS4_OK);
	cr_expect_eq(stat_of("file").st_size, 5);
	f->access.flags |= VFS_RO;
	cr_expect_eq(set_u32(s, "file", FATTR4_MODE, 0600), NFS4ERR_ROFS);
	f->access.flags &= ~(unsigned)VFS_RO;
	f->uid = 1003;
	cr_expect_eq(set_u32(s, "file", FATTR4_MODE, 0600), NFS4ERR_PERM);
	cr_expect_eq(set_size(s, "file", 0), NFS4ERR_ACCESS);
	as_root();
	cr_expect_eq(stat_of("file").st_size, 5);
}

Test(nfs4_setattr, errors)
{
	NEED_FIXTURE();
	FOR_MINORS(check_errors);
}

/* The result holds a bitmap whatever the status is. */
static void check_body(struct fix4_session *s, uint32_t minor)
{
	struct nfs4_bitmap done;

	(void)minor;
	fix4_begin(f, s);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	FIX4_BITS(f, FATTR4_MODE);
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, 0600);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
	cr_expect_eq(fix4_result(f, OP_SETATTR), NFS4ERR_NOFILEHANDLE);
	cr_expect(nfs4_get_bitmap(&f->in, &done) && nfs4_bitmap_empty(&done));
	whole();
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	FIX4_BITS(f, FATTR4_MODE);
	xdr_put_u32(&f->out, 12);
	xdr_put_u32(&f->out, 0600);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_SETATTR), NFS4ERR_BADXDR);
	cr_expect(nfs4_get_bitmap(&f->in, &done) && nfs4_bitmap_empty(&done));
	whole();
}

Test(nfs4_setattr, a_result_always_has_its_bitmap)
{
	NEED_FIXTURE();
	FOR_MINORS(check_body);
}

static void check_pseudo(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	fix4_begin(f, s);
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	FIX4_BITS(f, FATTR4_MODE);
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, 0777);
	cr_expect_eq(fix4_send(f), NFS4ERR_ROFS);
}

Test(nfs4_setattr, the_pseudo_file_system)
{
	NEED_FIXTURE();
	FOR_MINORS(check_pseudo);
}

static void check_masked(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	make_file("file", "x", 0644);
	fh = handle("file");
	BEGIN(s, &fh, OP_SETATTR, FATTR4_MODE_SET_MASKED);
	xdr_put_u32(&f->out, 04777);
	xdr_put_u32(&f->out, 06111);
	cr_expect_eq(set(1), minor == 0 ? NFS4ERR_ATTRNOTSUPP : NFS4_OK);
	cr_expect_eq(stat_of("file").st_mode & 07777, minor == 0 ? 0644 : 04755);
}

Test(nfs4_setattr, some_bits_of_the_mode)
{
	NEED_FIXTURE();
	FOR_MINORS(check_masked);
}

/* A write by a user clears the set-id bits; a truncation must do so, too. */
static void check_set_id(struct fix4_session *s, uint32_t minor)
{
	(void)minor;
	make_file("file", "hello", 0755);
	cr_assert_eq(chown(fix_path(f, "file"), 1001, 1001), 0);
	cr_assert_eq(chmod(fix_path(f, "file"), 06777), 0);
	f->uid = f->gid = 1003;
	cr_expect_eq(set_size(s, "file", 1), NFS4_OK);
	as_root();
	cr_expect_eq(stat_of("file").st_mode & 07777, 0777);
}

Test(nfs4_setattr, a_new_size_clears_set_id_bits)
{
	NEED_FIXTURE();
	FOR_MINORS(check_set_id);
}

/* Sends VERIFY and NVERIFY of the same values, and checks both statuses. */
static void expect_both(struct fix4_session *s, uint32_t verify, uint32_t nverify,
			void (*put)(void), const int *bits)
{
	for (int i = 0; i < 2; i++) {
		uint32_t op = i ? OP_NVERIFY : OP_VERIFY;

		begin(s, &f->root, op, bits);
		put();
		cr_expect_eq(send_values(op), i ? nverify : verify, "%s", i ? "NVERIFY" : "VERIFY");
		whole();
	}
}

static struct stat root_st;

static void put_right(void)
{
	xdr_put_u32(&f->out, NF4DIR);
	xdr_put_u32(&f->out, root_st.st_mode & 07777);
	fix_put_name(&f->out, "0");
}

static void put_other(void)
{
	xdr_put_u32(&f->out, NF4DIR);
	xdr_put_u32(&f->out, 0100);
	fix_put_name(&f->out, "0");
}

static void put_other_owner(void)
{
	xdr_put_u32(&f->out, NF4DIR);
	xdr_put_u32(&f->out, root_st.st_mode & 07777);
	fix_put_name(&f->out, "nobody@nowhere");
}

static void put_bad_mode(void)
{
	xdr_put_u32(&f->out, NF4DIR);
	xdr_put_u32(&f->out, 040755);
	fix_put_name(&f->out, "0");
}

static void put_too_much(void)
{
	put_right();
	xdr_put_u32(&f->out, 0);
}

static void put_too_little(void)
{
	xdr_put_u32(&f->out, NF4DIR);
}

static void put_nothing(void)
{
}

static void check_verify(struct fix4_session *s, uint32_t minor)
{
	static const int bits[] = { FATTR4_TYPE, FATTR4_MODE, FATTR4_OWNER, -1 };
	static const int unsupported[] = { FATTR4_TYPE, FATTR4_HIDDEN, -1 };
	static const int set_only[] = { FATTR4_TYPE, FATTR4_TIME_ACCESS_SET, -1 };
	static const int error[] = { FATTR4_RDATTR_ERROR, -1 };
	static const int none[] = { -1 };

	(void)minor;
	cr_assert_eq(stat(f->dir[0], &root_st), 0);
	expect_both(s, NFS4_OK, NFS4ERR_SAME, put_right, bits);
	expect_both(s, NFS4ERR_NOT_SAME, NFS4_OK, put_other, bits);
	expect_both(s, NFS4ERR_NOT_SAME, NFS4_OK, put_other_owner, bits);
	expect_both(s, NFS4ERR_INVAL, NFS4ERR_INVAL, put_bad_mode, bits);
	expect_both(s, NFS4ERR_BADXDR, NFS4ERR_BADXDR, put_too_much, bits);
	expect_both(s, NFS4ERR_BADXDR, NFS4ERR_BADXDR, put_too_little, bits);
	expect_both(s, NFS4ERR_ATTRNOTSUPP, NFS4ERR_ATTRNOTSUPP, put_right, unsupported);
	expect_both(s, NFS4ERR_INVAL, NFS4ERR_INVAL, put_right, set_only);
	expect_both(s, NFS4ERR_INVAL, NFS4ERR_INVAL, put_too_little, error);
	expect_both(s, NFS4_OK, NFS4ERR_SAME, put_nothing, none);
}

Test(nfs4_setattr, verify_and_nverify)
{
	NEED_FIXTURE();
	FOR_MINORS(check_verify);
}

/* VERIFY accepts every attribute as GETATTR returns it. */
static void check_verify_all(struct fix4_session *s, uint32_t minor)
{
	static uint8_t attrs[4096];
	struct nfs4_bitmap b;
	uint32_t len;
	const uint8_t *p;

	(void)minor;
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_GETATTR);
	/* Without rdattr_error, and without space, which other processes change. */
	FIX4_BITS(f, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 15, 16, 17, 18, 19, 20, 26, 27, 28, 29,
		  30, 31, 33, 34, 35, 36, 37, 41, 45, 47, 50, 51, 52, 53, 55, 75, 76, 79, 86);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_GETATTR);
	cr_assert(nfs4_get_bitmap(&f->in, &b));
	p = xdr_get_opaque(&f->in, sizeof(attrs), &len);
	cr_assert(p);
	memcpy(attrs, p, len);
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_VERIFY);
	nfs4_put_bitmap(&f->out, &b);
	xdr_put_opaque(&f->out, attrs, len);
	cr_expect_eq(fix4_send(f), NFS4_OK);
}

Test(nfs4_setattr, verify_takes_what_getattr_gives)
{
	NEED_FIXTURE();
	FOR_MINORS(check_verify_all);
}

/* SETATTR must not take data of an operation before it in the COMPOUND for its own. */
static void check_after_write(struct fix4_session *s, uint32_t minor)
{
	struct nfs4_bitmap done;
	struct vfs_fh fh;

	make_file("file", "hello", 0644);
	fh = handle("file");
	fix4_begin(f, s);
	fix4_putfh(f, &fh);
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, &anonymous);
	xdr_put_u64(&f->out, 4096); /* read as an address, it would be invalid */
	xdr_put_u32(&f->out, 2);
	xdr_put_opaque(&f->out, "text", 4);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	fix4_put_bits(f, (const int[]){ FATTR4_MODE, -1 });
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, 0600);
	cr_expect_eq(fix4_send(f), NFS4_OK, "minor %u", minor);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_WRITE);
	xdr_skip(&f->in, 8 + NFS4_VERIFIER_SIZE);
	cr_expect_eq(fix4_result(f, OP_SETATTR), NFS4_OK);
	cr_expect(nfs4_get_bitmap(&f->in, &done));
	whole();
	cr_expect_eq(stat_of("file").st_mode & 07777, 0600);
}

Test(nfs4_setattr, after_a_write)
{
	NEED_FIXTURE();
	FOR_MINORS(check_after_write);
}

static int busy(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
		uint32_t *id)
{
	(void)ctx;
	(void)peer;
	(void)name;
	(void)len;
	(void)id;
	return -RN_EUNNAMED;
}

/* While the name service is busy, VERIFY of an owner's name must wait. */
static void check_busy_names(struct fix4_session *s, uint32_t minor)
{
	static const int bits[] = { FATTR4_OWNER, FATTR4_OWNER_GROUP };
	static const uint32_t ops[] = { OP_VERIFY, OP_NVERIFY };

	for (int i = 0; i < 4; i++) {
		BEGIN(s, &f->root, ops[i / 2], bits[i % 2]);
		fix_put_name(&f->out, "somebody@somewhere");
		cr_expect_eq(send_values(ops[i / 2]), NFS4ERR_DELAY, "minor %u", minor);
	}
}

Test(nfs4_setattr, verify_waits_for_names)
{
	NEED_FIXTURE();
	f->server4->cfg.idmap.name_to_uid = busy;
	f->server4->cfg.idmap.name_to_gid = busy;
	FOR_MINORS(check_busy_names);
}
