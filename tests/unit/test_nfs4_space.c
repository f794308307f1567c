/* SPDX-License-Identifier: BSD-2-Clause */
/* ALLOCATE, DEALLOCATE, SEEK and IO_ADVISE of minor version 2. */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"

#define K64 65536u
#define CONTENT_DATA 0u
#define CONTENT_HOLE 1u

static const struct nfs4_stateid anonymous;
static struct fix4_session session;

NFS3_SUITE(nfs4_space);

/* A file of four blocks of 64 KiB. */
static struct vfs_fh start(void)
{
	static uint8_t ones[4 * K64];
	struct vfs_fh fh;
	int fd;

	cr_assert_eq(fix4_session_new(f, &session, 2, "space", true), NFS4_OK);
	memset(ones, 1, sizeof(ones));
	fd = open(fix_path(f, "x"), O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(write(fd, ones, sizeof(ones)), (ssize_t)sizeof(ones));
	close(fd);
	cr_assert_eq(fix4_handle(f, &session, &f->root, "x", &fh), NFS4_OK);
	return fh;
}

static void put_range(const struct vfs_fh *fh, uint32_t op, uint64_t offset, uint64_t length)
{
	fix4_begin(f, &session);
	fix4_putfh(f, fh);
	fix4_op(f, op);
	fix4_stateid(f, &anonymous);
	xdr_put_u64(&f->out, offset);
	xdr_put_u64(&f->out, length);
}

static uint32_t outcome(uint32_t op)
{
	uint32_t status = fix4_send(f);

	cr_assert_eq(f->answers, 1);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, op), status);
	return status;
}

static uint32_t range(const struct vfs_fh *fh, uint32_t op, uint64_t offset, uint64_t length)
{
	put_range(fh, op, offset, length);
	return outcome(op);
}

static uint32_t seek(const struct vfs_fh *fh, uint64_t offset, uint32_t what)
{
	fix4_begin(f, &session);
	fix4_putfh(f, fh);
	fix4_op(f, OP_SEEK);
	fix4_stateid(f, &anonymous);
	xdr_put_u64(&f->out, offset);
	xdr_put_u32(&f->out, what);
	return outcome(OP_SEEK);
}

static void finds(const struct vfs_fh *fh, uint64_t offset, uint32_t what, bool eof, uint64_t pos)
{
	cr_assert_eq(seek(fh, offset, what), NFS4_OK);
	cr_expect_eq(xdr_get_bool(&f->in), eof);
	uint64_t got = xdr_get_u64(&f->in);
	cr_expect_eq(got, pos, "%lu", got);
	whole();
}

static off_t size_of(const char *name)
{
	struct stat st;

	cr_assert_eq(stat(fix_path(f, name), &st), 0);
	return st.st_size;
}

Test(nfs4_space, allocate_deallocate_seek)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	uint32_t status = range(&fh, OP_ALLOCATE, 4 * K64, K64);
	if (status == NFS4ERR_NOTSUPP)
		cr_skip_test("this file system does not reserve space");
	cr_assert_eq(status, NFS4_OK);
	cr_expect_eq(size_of("x"), 5 * K64);
	cr_assert_eq(range(&fh, OP_DEALLOCATE, K64, K64), NFS4_OK);
	finds(&fh, 0, CONTENT_HOLE, false, K64);
	finds(&fh, K64, CONTENT_DATA, false, 2 * K64);
	finds(&fh, 0, CONTENT_DATA, false, 0);
	cr_assert_eq(range(&fh, OP_DEALLOCATE, 3 * K64, UINT64_MAX), NFS4_OK);
	cr_expect_eq(size_of("x"), 5 * K64, "the size stays");
	finds(&fh, 2 * K64, CONTENT_HOLE, false, 3 * K64);
	finds(&fh, 3 * K64, CONTENT_DATA, true, 5 * K64);
	cr_expect_eq(seek(&fh, 5 * K64, CONTENT_HOLE), NFS4ERR_NXIO);
	cr_expect_eq(seek(&fh, UINT64_MAX, CONTENT_DATA), NFS4ERR_NXIO);
	cr_expect_eq(seek(&fh, 0, 2), NFS4ERR_UNION_NOTSUPP);
}

Test(nfs4_space, ranges_that_cannot_be)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	for (uint32_t op = OP_ALLOCATE; op <= OP_DEALLOCATE; op += OP_DEALLOCATE - OP_ALLOCATE) {
		cr_expect_eq(range(&fh, op, 0, 0), NFS4ERR_INVAL);
		cr_expect_eq(range(&fh, op, UINT64_MAX, 1), NFS4ERR_FBIG);
	}
	cr_expect_eq(range(&fh, OP_ALLOCATE, 1, UINT64_MAX), NFS4ERR_FBIG);
	cr_expect_eq(size_of("x"), 4 * K64);
}

Test(nfs4_space, statuses)
{
	struct vfs_fh fh, fifo;

	NEED_FIXTURE();
	fh = start();
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0600), 0);
	cr_assert_eq(fix4_handle(f, &session, &f->root, "fifo", &fifo), NFS4_OK);
	for (uint32_t op = OP_ALLOCATE; op <= OP_DEALLOCATE; op += OP_DEALLOCATE - OP_ALLOCATE) {
		cr_expect_eq(range(&f->root, op, 0, 1), NFS4ERR_WRONG_TYPE);
		cr_expect_eq(range(&fifo, op, 0, 1), NFS4ERR_WRONG_TYPE);
	}
	cr_expect_eq(seek(&f->root, 0, CONTENT_DATA), NFS4ERR_ISDIR);
	cr_expect_eq(seek(&fifo, 0, CONTENT_DATA), NFS4ERR_WRONG_TYPE);
	f->uid = f->gid = 1000;
	cr_expect_eq(range(&fh, OP_ALLOCATE, 0, 1), NFS4ERR_ACCESS);
	cr_expect_eq(seek(&fh, 0, CONTENT_DATA), NFS4ERR_ACCESS);
	f->uid = f->gid = 0;
	f->access.flags |= VFS_RO;
	cr_expect_eq(range(&fh, OP_DEALLOCATE, 0, 1), NFS4ERR_ROFS);
	cr_expect_eq(seek(&fh, 0, CONTENT_DATA), NFS4_OK);
}

Test(nfs4_space, advice_is_taken_or_not_but_never_refused)
{
	static const uint32_t hints[][2] = {
		{ 0, 1 },
		{ 1u << 1, 1u << 1 },
		{ 1u << 3, 1u << 3 },
		{ 1u << 4, 1u << 4 },
		{ 1u << 6, 1u << 6 },
		{ 1u << 1 | 1u << 4, 1u << 1 | 1u << 4 },
		{ 0x7ff & ~(1u << 3 | 1u << 6), 1u << 1 | 1u << 4 },
		{ 0x7ff, 1 }, /* contradictory */
		{ 1u << 1 | 1u << 3, 1 },
		{ 1u << 4 | 1u << 6, 1 },
		{ 1u << 31, 1 },
	};
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	f->conn.id = 1; /* the pattern of a connection without a number is not followed */
	for (unsigned i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
		put_range(&fh, OP_IO_ADVISE, 0, 0);
		xdr_put_u32(&f->out, 2);
		xdr_put_u32(&f->out, hints[i][0]);
		xdr_put_u32(&f->out, UINT32_MAX);
		cr_assert_eq(outcome(OP_IO_ADVISE), NFS4_OK);
		cr_expect_eq(xdr_get_u32(&f->in), 1);
		cr_expect_eq(xdr_get_u32(&f->in), hints[i][1], "hints %#x", hints[i][0]);
		whole();
	}
}
