/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE_SAME: the blocks that it writes, blocks that cannot be, long calls, and failures in the
 * middle. */
#include <errno.h>
#include <sys/wait.h>

#include "lib/util.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/data/operation.h"
#include "vfs/worker/worker_state.h"

NFS3_SUITE(nfs4_write_same);

#define MIB (1u << 20)
#define NONE UINT64_MAX
#define UNSTABLE4 0u
#define FILE_SYNC4 2u

static const struct nfs4_stateid anonymous;
static struct fix4_session session;

/* Writes of vfs_write so far, the bytes of the longest, and what happens to the one with that number
 * (0: none): it moves so many bytes only, or fails. */
static unsigned writes, odd_at;
static uint32_t longest;
static int odd_result;
static enum vfs_stable last_stable;

int64_t __real_vfs_write(struct vfs_io *io);
int64_t __wrap_vfs_write(struct vfs_io *io);
int64_t __wrap_vfs_write(struct vfs_io *io)
{
	longest = (uint32_t)rn_max(longest, io->count);
	last_stable = io->stable;
	return ++writes != odd_at ? __real_vfs_write(io) : odd_result;
}

struct adb {
	uint64_t offset, size, count, number_at;
	uint32_t number;
	uint64_t pattern_at;
	const char *pattern;
};

static void put_same(const struct nfs4_stateid *sid, uint32_t stable, const struct adb *b)
{
	const char *pattern = b->pattern ? b->pattern : "";

	fix4_op(f, OP_WRITE_SAME);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, stable);
	xdr_put_u64(&f->out, b->offset);
	xdr_put_u64(&f->out, b->size);
	xdr_put_u64(&f->out, b->count);
	xdr_put_u64(&f->out, b->number_at);
	xdr_put_u32(&f->out, b->number);
	xdr_put_u64(&f->out, b->pattern_at);
	xdr_put_opaque(&f->out, pattern, (uint32_t)strlen(pattern));
}

static uint32_t outcome(void)
{
	uint32_t status = fix4_send(f);

	cr_assert_eq(f->answers, 1);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_WRITE_SAME), status);
	cr_expect(status == NFS4_OK || f->in.left == 0, "nothing behind a failure");
	return status;
}

static uint32_t same(const struct vfs_fh *fh, uint32_t stable, struct adb b)
{
	fix4_begin(f, &session);
	fix4_putfh(f, fh);
	put_same(&anonymous, stable, &b);
	writes = 0;
	longest = 0;
	return outcome();
}

static void wrote(uint64_t count, uint32_t stable)
{
	cr_expect_eq(xdr_get_u32(&f->in), 0, "no stateid: it is synchronous");
	const uint64_t got = xdr_get_u64(&f->in);
	cr_expect_eq(got, count, "%lu", got);
	cr_expect_eq(xdr_get_u32(&f->in), stable);
	cr_expect_eq(xdr_get_u64(&f->in), vfs_write_verifier(f->exp[0]));
	whole();
}

static struct vfs_fh start(void)
{
	struct vfs_fh fh;

	odd_at = 0;
	if (session.clientid == 0)
		cr_assert_eq(fix4_session_new(f, &session, 2, "same", true), NFS4_OK);
	make_file("x", "", 0600);
	cr_assert_eq(fix4_handle(f, &session, &f->root, "x", &fh), NFS4_OK);
	return fh;
}

/* Asserts that x consists of these blocks from b's offset on, and ends there. */
static void has_blocks(const struct adb *b)
{
	static uint8_t got[MIB], want[MIB];
	int fd = open(fix_path(f, "x"), O_RDONLY);
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq((uint64_t)st.st_size, b->offset + b->size * b->count, "%ld", st.st_size);
	for (uint64_t i = 0; i < b->count; i++) {
		memset(want, 0, b->size);
		if (b->pattern && b->pattern_at != NONE)
			memcpy(want + b->pattern_at, b->pattern, strlen(b->pattern));
		for (unsigned k = 0; b->number_at != NONE && k < 4; k++)
			want[b->number_at + k] = (uint8_t)((b->number + i) >> (24 - 8 * k));
		cr_assert_eq(pread(fd, got, b->size, (off_t)(b->offset + i * b->size)),
			     (ssize_t)b->size);
		cr_assert_eq(memcmp(got, want, b->size), 0, "block %lu", i);
	}
	close(fd);
}

Test(nfs4_write_same, blocks)
{
	static const struct adb rows[] = {
		{ 0, 4096, 100, 0, 0, 8, "\xfe\xed\xfa\xce" }, /* RFC 7862 section 8.3 */
		{ 0, 1024, 1000, NONE, 0, NONE, NULL },	       /* section 8.4 */
		{ 7, 512, 3, 508, 0xfffffff0u, 0, "pattern of a block" },
		{ 0, 1, 5000, NONE, 0, 0, "x" },
		{ 0, 4, 300000, 0, 7, NONE, NULL }, /* its last numbers are of another buffer */
		{ 4096, 999, 3000, 4, 1u << 24, 100, "odd" },
		{ 3, 5, 1, 1, 0x01020304, 0, "a" },
		{ 3, 5, 1, 0, 0x01020304, 4, "a" },
		{ 0, 100, 2, NONE, 9, NONE, "ignored" },
		{ 0, 100, 2, 0, 9, NONE, "ignored" },
		{ 0, 100, 2, NONE, 9, 100, "" },
		{ 0, MIB, 2, MIB - 4, 1, 0, "x" },
		{ 0, MIB / 2 + 1, 3, 0, 1, MIB / 2, "y" },
	};

	NEED_FIXTURE();
	for (unsigned i = 0; i < rn_array_size(rows); i++) {
		const struct vfs_fh fh = start();

		cr_assert_eq(same(&fh, UNSTABLE4, rows[i]), NFS4_OK, "row %u", i);
		wrote(rows[i].size * rows[i].count, UNSTABLE4);
		has_blocks(&rows[i]);
		cr_expect_leq(longest, MIB);
	}
}

/* The bytes before and behind the blocks stay. */
Test(nfs4_write_same, nothing_else_is_changed)
{
	char got[40] = { 0 };
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	make_file("x", "0123456789012345678901234567890", 0600);
	cr_assert_eq(same(&fh, FILE_SYNC4, (struct adb){ 5, 4, 3, NONE, 0, 1, "ab" }), NFS4_OK);
	wrote(12, FILE_SYNC4);
	int fd = open(fix_path(f, "x"), O_RDONLY);
	cr_assert_eq(read(fd, got, sizeof(got)), 31);
	close(fd);
	cr_expect_eq(memcmp(got,
			    "01234\0ab\0\0ab\0\0ab\0"
			    "78901234567890",
			    31),
		     0);
}

Test(nfs4_write_same, as_stable_as_was_asked_for)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	for (uint32_t stable = UNSTABLE4; stable <= FILE_SYNC4; stable++) {
		cr_assert_eq(same(&fh, stable, (struct adb){ 0, 512, 4, NONE, 0, 0, "x" }),
			     NFS4_OK);
		wrote(2048, stable);
		cr_expect_eq((uint32_t)last_stable, stable);
	}
	cr_expect_eq(same(&fh, FILE_SYNC4 + 1, (struct adb){ 0, 512, 4, NONE, 0, 0, "x" }),
		     NFS4ERR_BADXDR);
}

Test(nfs4_write_same, no_blocks)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	cr_assert_eq(same(&fh, FILE_SYNC4, (struct adb){ 100, 512, 0, 0, UINT32_MAX, 4, "x" }),
		     NFS4_OK);
	wrote(0, FILE_SYNC4);
	has_blocks(&(struct adb){ 0, 1, 0, NONE, 0, NONE, NULL });
}

Test(nfs4_write_same, blocks_that_cannot_be)
{
	static const struct {
		struct adb b;
		uint32_t status;
	} rows[] = {
		{ { 0, 0, 1, NONE, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 0, 0, NONE, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, MIB + 1, 1, NONE, 0, NONE, NULL }, NFS4ERR_INVAL }, /* this server's limit */
		{ { 0, NONE, 1, NONE, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 512, 1, 509, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 512, 1, 512, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 512, 1, NONE - 1, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 3, 1, 0, 0, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 512, 1, NONE, 0, 511, "ab" }, NFS4ERR_INVAL },
		{ { 0, 512, 1, NONE, 0, NONE - 1, "ab" }, NFS4ERR_INVAL },
		{ { 0, 1, 1, NONE, 0, 0, "ab" }, NFS4ERR_INVAL },
		/* One would hide the other. */
		{ { 0, 512, 1, 8, 0, 8, "ab" }, NFS4ERR_INVAL },
		{ { 0, 512, 1, 8, 0, 7, "ab" }, NFS4ERR_INVAL },
		{ { 0, 512, 1, 8, 0, 11, "ab" }, NFS4ERR_INVAL },
		/* Numbers that would begin again from 0 */
		{ { 0, 512, 2, 0, UINT32_MAX, NONE, NULL }, NFS4ERR_INVAL },
		{ { 0, 512, NONE, 0, 0, NONE, NULL }, NFS4ERR_INVAL },
		/* Beyond what a file can have, and products that overflow */
		{ { NONE, 512, 1, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
		{ { INT64_MAX, 512, 1, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
		{ { INT64_MAX - 511, 512, 1, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
		{ { 0, 512, NONE, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
		{ { 0, 512, 1ull << 55, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
		{ { 0, MIB, 1ull << 44, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
		{ { 0, MIB, (1ull << 44) + 1, NONE, 0, NONE, NULL }, NFS4ERR_FBIG },
	};
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	for (unsigned i = 0; i < rn_array_size(rows); i++) {
		const uint32_t got = same(&fh, UNSTABLE4, rows[i].b);

		cr_expect_eq(got, rows[i].status, "row %u: %u", i, got);
		cr_expect_eq(writes, 0, "row %u", i);
	}
	has_blocks(&(struct adb){ 0, 1, 0, NONE, 0, NONE, NULL });
}

/* A long call ends after whole blocks; the client goes on with those that are left. */
Test(nfs4_write_same, a_long_call_in_pieces)
{
	struct adb b = { 10, 3000, 20000, 0, 1000, 2000, "long" }, left = b;
	unsigned calls = 0;
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	while (left.count > 0) {
		cr_assert_eq(same(&fh, UNSTABLE4, left), NFS4_OK);
		xdr_get_u32(&f->in);
		const uint64_t done = xdr_get_u64(&f->in);
		cr_assert(done > 0 && done <= 16 * MIB && done % b.size == 0, "%lu", done);
		left.offset += done;
		left.count -= done / b.size;
		left.number += (uint32_t)(done / b.size);
		calls++;
	}
	cr_expect_eq(calls, 4);
	has_blocks(&b);
	left = (struct adb){ 0, 512, 1ull << 50, NONE, 0, NONE, NULL };
	cr_assert_eq(same(&fh, UNSTABLE4, left), NFS4_OK);
	wrote(16 * MIB, UNSTABLE4);
}

/* Blocks that were written before a failure are counted in a short result, like those of WRITE. */
Test(nfs4_write_same, failures_in_the_middle)
{
	const struct adb b = { 0, 4096, 1024, 0, 0, 4, "x" };
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	odd_at = 1;
	odd_result = -ENOSPC;
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_NOSPC);
	odd_result = -EDQUOT;
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_DQUOT);
	odd_result = -EFBIG;
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_FBIG);
	odd_at = 3;
	cr_assert_eq(same(&fh, UNSTABLE4, b), NFS4_OK);
	wrote(2 * MIB, UNSTABLE4);
	cr_expect_eq(writes, 3);
	odd_result = 5000;
	cr_assert_eq(same(&fh, UNSTABLE4, b), NFS4_OK);
	wrote(2 * MIB + 5000, UNSTABLE4);
	cr_expect_eq(writes, 3);
	odd_at = 0;
	cr_assert_eq(same(&fh, UNSTABLE4, b), NFS4_OK);
	wrote(4 * MIB, UNSTABLE4);
	has_blocks(&b);
}

/* The pattern of a call that is in several pieces of memory, and one with a Read chunk of its own. */
Test(nfs4_write_same, long_patterns)
{
	static char pattern[100001];
	const struct adb b = { 0, 110000, 12, 5000, 1, 6001, pattern };
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	for (unsigned i = 0; i < sizeof(pattern) - 1; i++)
		pattern[i] = (char)('a' + i % 23);
	for (unsigned split = 1; split <= 8; split++) {
		f->split = split;
		cr_assert_eq(same(&fh, UNSTABLE4, b), NFS4_OK, "%u", split);
		wrote(b.size * b.count, UNSTABLE4);
		has_blocks(&b);
	}
	f->split = 1;
	fix4_begin(f, &session);
	fix4_putfh(f, &fh);
	put_same(&anonymous, UNSTABLE4, &b);
	f->nreduced = 1;
	f->reduced[0].len = sizeof(pattern) - 1;
	f->reduced[0].at = f->out.used - sizeof(pattern) + 1;
	cr_expect_eq(outcome(), NFS4ERR_BADXDR, "it is not eligible (RFC 8267 section 6.1)");
}

static struct rn_payload *held[200];
static unsigned nheld;

Test(nfs4_write_same, no_memory)
{
	const struct adb b = { 0, 4096, 1024, 0, 0, 4, "x" };
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	while (nheld < 200 && (held[nheld] = rn_payload_get(f->pool, RN_PAYLOAD_MAX)))
		nheld++;
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_DELAY);
	while (nheld > 0)
		rn_payload_put(held[--nheld]);
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4_OK);
}

Test(nfs4_write_same, shares_and_permission)
{
	const struct adb b = { 0, 512, 1, NONE, 0, NONE, NULL };
	struct op_owner owner;
	struct op_client client;
	struct op_file file;
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	cr_assert_eq(op_client_new(f, &client, 2, "denies"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	cr_assert_eq(op_open(f, &owner,
			     &(struct op_how){
				     .fh = &f->root, .name = "x", .deny = OPEN4_SHARE_DENY_WRITE },
			     &file),
		     NFS4_OK);
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_LOCKED);
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	f->uid = f->gid = 1000;
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_ACCESS);
	f->uid = f->gid = 0;
	f->access.flags |= VFS_RO;
	cr_expect_eq(same(&fh, UNSTABLE4, b), NFS4ERR_ROFS);
}

/* A user's WRITE_SAME clears the set-uid bit, as WRITE does. */
Test(nfs4_write_same, set_uid_bits_go)
{
	struct vfs_fh fh;
	struct stat st;

	NEED_FIXTURE();
	fh = start();
	cr_assert_eq(chown(fix_path(f, "x"), 1000, 1000), 0);
	cr_assert_eq(chmod(fix_path(f, "x"), 04755), 0);
	f->uid = f->gid = 1000;
	cr_assert_eq(same(&fh, UNSTABLE4, (struct adb){ 0, 512, 1, NONE, 0, 0, "x" }), NFS4_OK);
	cr_assert_eq(stat(fix_path(f, "x"), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0755);
}
