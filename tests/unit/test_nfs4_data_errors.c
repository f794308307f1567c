/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of the data operations, in each minor version that has them. fix4_result() checks every
 * status against the RFCs' tables. */
#include <errno.h>

#include "lib/util.h"
#include "nfs4/state/stateid_check.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"
#include "tests/unit/nfs4_minors.h"
#include "tests/unit/nfs4_text.h"
#include "tests/unit/nfs4_valid_errors.h"

NFS3_SUITE(nfs4_data_errors);

static void put_stateid(void)
{
	static const struct nfs4_stateid anonymous;

	fix4_stateid(f, &anonymous);
}

static void put_range64(void)
{
	put_stateid();
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 4096);
}

static void put_read(void)
{
	put_stateid();
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1);
}

static void put_write(void)
{
	put_stateid();
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 2);
	xdr_put_opaque(&f->out, "x", 1);
}

static void put_commit(void)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

static void put_advise(void)
{
	put_range64();
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1);
}

static void put_clone(void)
{
	put_stateid();
	put_range64();
	xdr_put_u64(&f->out, 1);
}

static void put_copy(void)
{
	put_clone();
	xdr_put_bool(&f->out, true);
	xdr_put_bool(&f->out, false);
	xdr_put_u32(&f->out, 0);
}

static void put_write_same(void)
{
	put_stateid();
	xdr_put_u32(&f->out, 2);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 512);
	xdr_put_u64(&f->out, 1);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 7);
	xdr_put_u64(&f->out, 8);
	xdr_put_opaque(&f->out, "pattern", 7);
}

static void put_nothing(void)
{
}

#define ANY UINT32_MAX /* any error that the tables allow */

static const struct op {
	uint32_t num, first_minor;
	void (*put)(void);
	bool changes, needs_right;
	/* Status for a directory, a symbolic link, a FIFO: in minor version 0, and later. */
	uint32_t dir[2], link[2], fifo[2];
} ops[] = {
	{ OP_READ,
	  0,
	  put_read,
	  false,
	  true,
	  { NFS4ERR_ISDIR, NFS4ERR_ISDIR },
	  { ANY, NFS4ERR_SYMLINK },
	  { NFS4ERR_INVAL, NFS4ERR_WRONG_TYPE } },
	{ OP_WRITE,
	  0,
	  put_write,
	  true,
	  true,
	  { NFS4ERR_ISDIR, NFS4ERR_ISDIR },
	  { ANY, NFS4ERR_SYMLINK },
	  { NFS4ERR_INVAL, NFS4ERR_WRONG_TYPE } },
	{ OP_COMMIT,
	  0,
	  put_commit,
	  false,
	  false,
	  { NFS4ERR_ISDIR, NFS4ERR_ISDIR },
	  { ANY, NFS4ERR_SYMLINK },
	  { NFS4ERR_INVAL, NFS4ERR_WRONG_TYPE } },
	{ OP_READLINK,
	  0,
	  put_nothing,
	  false,
	  false,
	  { ANY, NFS4ERR_WRONG_TYPE },
	  { NFS4_OK, NFS4_OK },
	  { NFS4ERR_INVAL, NFS4ERR_WRONG_TYPE } },
	{ OP_SEEK,
	  2,
	  put_read,
	  false,
	  true,
	  { 0, NFS4ERR_ISDIR },
	  { 0, NFS4ERR_SYMLINK },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_READ_PLUS,
	  2,
	  put_read,
	  false,
	  true,
	  { 0, NFS4ERR_ISDIR },
	  { 0, NFS4ERR_SYMLINK },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_WRITE_SAME,
	  2,
	  put_write_same,
	  true,
	  true,
	  { 0, NFS4ERR_ISDIR },
	  { 0, NFS4ERR_SYMLINK },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_ALLOCATE,
	  2,
	  put_range64,
	  true,
	  true,
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_DEALLOCATE,
	  2,
	  put_range64,
	  true,
	  true,
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_IO_ADVISE,
	  2,
	  put_advise,
	  false,
	  false,
	  { 0, NFS4ERR_ISDIR },
	  { 0, NFS4ERR_SYMLINK },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_COPY,
	  2,
	  put_copy,
	  true,
	  true,
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE } },
	{ OP_CLONE,
	  2,
	  put_clone,
	  true,
	  true,
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE },
	  { 0, NFS4ERR_WRONG_TYPE } },
};

static bool saves(const struct op *op)
{
	return op->num == OP_COPY || op->num == OP_CLONE;
}

/* Puts PUTFH, and SAVEFH if the operation needs both filehandles. */
static void put_places(const struct vfs_fh *fh, const struct op *op)
{
	fix4_putfh(f, fh);
	if (saves(op))
		fix4_op(f, OP_SAVEFH);
}

/* Returns the status of PUTFH, and expects SAVEFH to succeed behind it. */
static uint32_t places_result(const struct op *op)
{
	uint32_t status = fix4_result(f, OP_PUTFH);

	if (status == NFS4_OK && saves(op))
		cr_assert_eq(fix4_result(f, OP_SAVEFH), NFS4_OK);
	return status;
}

/* Sends PUTFH of fh, unless NULL, and the operation; returns its status. */
static uint32_t run(struct fix4_session *s, const struct vfs_fh *fh, const struct op *op)
{
	uint32_t status;

	fix4_begin(f, s);
	if (fh)
		put_places(fh, op);
	fix4_op(f, op->num);
	op->put();
	status = fix4_send(f);
	if (fh)
		cr_assert_eq(places_result(op), NFS4_OK);
	cr_assert_eq(fix4_result(f, op->num), status);
	cr_expect(status == NFS4_OK || f->in.left == 0, "nothing behind a failure");
	return status;
}

static void is(uint32_t minor, const struct op *op, const char *what, uint32_t got, uint32_t want)
{
	if (want == ANY)
		cr_expect_neq(got, NFS4_OK, "minor %u, %s, %s", minor, nfs4_op_text(op->num), what);
	else
		cr_expect_eq(got, want, "minor %u, %s, %s: %u", minor, nfs4_op_text(op->num), what,
			     got);
}

#define EACH_OP(op, minor)                                                                         \
	for (const struct op *op = ops; op < ops + rn_array_size(ops); op++)                       \
		if (minor >= op->first_minor)

static void of_types(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh link, fifo;

	cr_assert_eq(fix4_handle(f, s, &f->root, "link", &link), NFS4_OK);
	cr_assert_eq(fix4_handle(f, s, &f->root, "fifo", &fifo), NFS4_OK);
	EACH_OP (op, minor) {
		is(minor, op, "no filehandle", run(s, NULL, op), NFS4ERR_NOFILEHANDLE);
		is(minor, op, "directory", run(s, &f->root, op), op->dir[minor > 0]);
		is(minor, op, "link", run(s, &link, op), op->link[minor > 0]);
		is(minor, op, "FIFO", run(s, &fifo, op), op->fifo[minor > 0]);
	}
}

Test(nfs4_data_errors, types)
{
	NEED_FIXTURE();
	cr_assert_eq(symlink("to", fix_path(f, "link")), 0);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0666), 0);
	FOR_MINORS(of_types);
}

static void of_permission(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	cr_assert_eq(fix4_handle(f, s, &f->root, "x", &fh), NFS4_OK);
	EACH_OP (op, minor) {
		if (op->num == OP_READLINK)
			continue;
		f->uid = f->gid = 1000;
		if (op->needs_right)
			is(minor, op, "no right", run(s, &fh, op), NFS4ERR_ACCESS);
		f->uid = f->gid = 0;
		f->access.flags |= VFS_RO;
		if (op->changes)
			is(minor, op, "read-only", run(s, &fh, op), NFS4ERR_ROFS);
		else
			run(s, &fh, op);
		f->access.flags &= ~(unsigned)VFS_RO;
	}
}

Test(nfs4_data_errors, permission)
{
	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	FOR_MINORS(of_permission);
}

static void of_removed(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	EACH_OP (op, minor) {
		uint32_t status;

		make_file("x", "0123456789", 0600);
		cr_assert_eq(fix4_handle(f, s, &f->root, "x", &fh), NFS4_OK);
		cr_assert_eq(unlink(fix_path(f, "x")), 0);
		fix4_begin(f, s);
		put_places(&fh, op);
		fix4_op(f, op->num);
		op->put();
		status = fix4_send(f);
		/* Either PUTFH or the operation fails. */
		if (places_result(op) == NFS4_OK)
			fix4_result(f, op->num);
		if (op->num != OP_READLINK && op->num != OP_COMMIT && op->num != OP_IO_ADVISE)
			is(minor, op, "removed", status, NFS4ERR_STALE);
	}
}

Test(nfs4_data_errors, removed_files)
{
	NEED_FIXTURE();
	FOR_MINORS(of_removed);
}

/* The call ends at each word of the arguments. */
static void of_cut(struct fix4_session *s, uint32_t minor)
{
	struct vfs_fh fh;

	cr_assert_eq(fix4_handle(f, s, &f->root, "x", &fh), NFS4_OK);
	EACH_OP (op, minor) {
		size_t len = 0;

		for (size_t cut = 0; op->num != OP_READLINK && (cut == 0 || cut < len); cut += 4) {
			fix4_begin(f, s);
			put_places(&fh, op);
			fix4_op(f, op->num);
			size_t from = f->out.used;
			op->put();
			len = f->out.used - from;
			f->out.used = from + cut;
			is(minor, op, "cut", fix4_send(f), NFS4ERR_BADXDR);
			places_result(op);
			cr_expect_eq(fix4_result(f, op->num), NFS4ERR_BADXDR);
		}
	}
}

Test(nfs4_data_errors, arguments_that_are_cut)
{
	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	FOR_MINORS(of_cut);
}

/* PUTROOTFH gives a directory of no export. */
static void of_pseudo(struct fix4_session *s, uint32_t minor)
{
	EACH_OP (op, minor) {
		uint32_t status;

		fix4_begin(f, s);
		fix4_op(f, OP_PUTROOTFH);
		if (saves(op))
			fix4_op(f, OP_SAVEFH);
		fix4_op(f, op->num);
		op->put();
		status = fix4_send(f);
		cr_assert_eq(fix4_result(f, OP_PUTROOTFH), NFS4_OK);
		if (saves(op))
			cr_assert_eq(fix4_result(f, OP_SAVEFH), NFS4_OK);
		cr_expect_eq(fix4_result(f, op->num), status);
		is(minor, op, "pseudo", status, ANY);
	}
}

Test(nfs4_data_errors, directories_of_no_export)
{
	NEED_FIXTURE();
	FOR_MINORS(of_pseudo);
}

Test(nfs4_data_errors, a_session_bounds_what_is_read)
{
	struct fix4_session s;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	cr_assert_eq(truncate(fix_path(f, "x"), 1 << 20), 0);
	cr_assert_eq(fix4_session_new(f, &s, 1, "bounds", true), NFS4_OK);
	cr_assert_eq(fix4_handle(f, &s, &f->root, "x", &fh), NFS4_OK);
	/* The fixture's session caches 8 KiB: the data of a cached READ must fit there. */
	for (int cache = 0; cache < 2; cache++) {
		s.cache_this = cache;
		fix4_begin(f, &s);
		fix4_putfh(f, &fh);
		fix4_op(f, OP_READ);
		put_stateid();
		xdr_put_u64(&f->out, 0);
		xdr_put_u32(&f->out, 100000);
		uint32_t status = fix4_send(f);
		fix4_result(f, OP_PUTFH);
		cr_assert_eq(fix4_result(f, OP_READ), status);
		cr_assert_eq(status, NFS4_OK);
		xdr_get_bool(&f->in);
		uint32_t len = xdr_get_u32(&f->in);
		cr_expect(cache ? len > 0 && f->reply_len <= 8192 : len == 100000, "%u", len);
	}
	/* The whole reply, with the results before READ, must stay within the session's maximum. */
	s.cache_this = false;
	fix4_begin(f, &s);
	fix4_putfh(f, &fh);
	for (int i = 0; i < 3; i++) {
		fix4_op(f, OP_READ);
		put_stateid();
		xdr_put_u64(&f->out, 0);
		xdr_put_u32(&f->out, 1u << 20);
	}
	uint32_t status = fix4_send(f);
	cr_expect(status == NFS4_OK || status == NFS4ERR_REP_TOO_BIG, "%u", status);
	cr_expect_leq(f->reply_len, 1100u << 10);
}

/* Every errno of a file system maps to an allowed status. */
Test(nfs4_data_errors, every_errno_has_a_status_that_is_allowed)
{
	struct nfs4_compound c = { .minor = 0 };

	for (c.minor = 0; c.minor <= 2; c.minor++) {
		EACH_OP (op, c.minor) {
			c.opnum = op->num;
			for (int e = 0; e < 200; e++) {
				int status = nfs4_doubt(&c, nfs4_data_status(&c, -e));

				status = nfs4_status_for(nfs4_op_find(op->num, c.minor), c.minor,
							 status);
				cr_expect_eq(status == NFS4_OK, e == 0);
				cr_expect(nfs4_error_is_valid(op->num, c.minor, (uint32_t)status),
					  "minor %u, %s, errno %d: %d", c.minor,
					  nfs4_op_text(op->num), e, status);
			}
		}
	}
	c.minor = 2;
	c.opnum = OP_WRITE;
	cr_expect_eq(nfs4_data_status(&c, -ENOSPC), NFS4ERR_NOSPC);
	cr_expect_eq(nfs4_data_status(&c, -EDQUOT), NFS4ERR_DQUOT);
	cr_expect_eq(nfs4_data_status(&c, -ETXTBSY), NFS4ERR_ACCESS);
	cr_expect_eq(nfs4_status_for(&nfs4_op_commit, 2, nfs4_data_status(&c, -ENOSPC)),
		     NFS4ERR_IO);
}
