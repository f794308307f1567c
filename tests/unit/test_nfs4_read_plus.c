/* SPDX-License-Identifier: BSD-2-Clause */
/* READ_PLUS: its elements, what the reply has room for, chunks, where it runs, and files that change
 * under it. */
#include <errno.h>

#include "lib/util.h"
#include "tests/unit/kernel_can.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/data/operation.h"
#include "vfs/space.h"
#include "vfs/worker/worker_state.h"

NFS3_SUITE(nfs4_read_plus);

#define K64 65536u
#define MIB (1u << 20)
#define OF_FILE 7 /* each byte of the files' data */

static const struct nfs4_stateid anonymous;
static struct fix4_session session;
static int fd;

/* ---- failures of vfs_parts and vfs_read ------------------------------------------------------- */

static int (*after_parts)(void);     /* NULL: nothing happens; returns the result instead */
static unsigned reads, fail_read_at; /* number of the call of vfs_read that fails; 0: none */

int __real_vfs_parts(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_parts *p);
int __wrap_vfs_parts(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_parts *p);
int __wrap_vfs_parts(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_parts *p)
{
	const int rc = __real_vfs_parts(ctx, n, p);

	return rc == 0 && after_parts ? after_parts() : rc;
}

int64_t __real_vfs_read(struct vfs_io *io);
int64_t __wrap_vfs_read(struct vfs_io *io);
int64_t __wrap_vfs_read(struct vfs_io *io)
{
	return ++reads != fail_read_at ? __real_vfs_read(io) : -EIO;
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Makes a file of size bytes, with data in each 64 KiB block that has a D. */
static struct vfs_fh sparse(const char *name, off_t size, const char *blocks)
{
	static uint8_t data[K64];
	struct vfs_fh fh;

	memset(data, OF_FILE, sizeof(data));
	fd = open(fix_path(f, name), O_CREAT | O_RDWR | O_TRUNC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, size), 0);
	for (unsigned i = 0; blocks[i]; i++) {
		if (blocks[i] == 'D')
			cr_assert_eq(pwrite(fd, data, K64, (off_t)i * K64), (ssize_t)K64);
	}
	cr_assert_eq(fix4_handle(f, &session, &f->root, name, &fh), NFS4_OK);
	return fh;
}

static bool has_holes(void)
{
	return lseek(fd, 0, SEEK_HOLE) == K64;
}

static struct vfs_fh start(void)
{
	cr_assert_eq(fix4_session_new(f, &session, 2, "plus", true), NFS4_OK);
	session.cache_this = false;
	return sparse("x", 16 * K64, "D      DD      ");
}

static void put(uint32_t op, uint64_t offset, uint32_t count)
{
	fix4_op(f, op);
	fix4_stateid(f, &anonymous);
	xdr_put_u64(&f->out, offset);
	xdr_put_u32(&f->out, count);
}

static void begin(const struct vfs_fh *fh)
{
	fix4_begin(f, &session);
	fix4_putfh(f, fh);
}

static uint32_t outcome(void)
{
	uint32_t status = fix4_send(f);

	cr_assert_eq(f->answers, 1);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_READ_PLUS), status);
	return status;
}

static uint32_t plus(const struct vfs_fh *fh, uint64_t offset, uint32_t count)
{
	begin(fh);
	put(OP_READ_PLUS, offset, count);
	return outcome();
}

/* The elements as text, as the test of vfs_parts has it; a $ if eof is true. Asserts that they are
 * contiguous, and that data and holes are the file's. */
static const char *elements(uint64_t offset)
{
	static char out[400];
	const bool eof = xdr_get_bool(&f->in);
	const uint32_t n = xdr_get_u32(&f->in);
	size_t len = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < n && !f->in.err; i++) {
		const bool hole = xdr_get_u32(&f->in) == NFS4_CONTENT_HOLE;
		const uint64_t at = xdr_get_u64(&f->in);
		uint64_t bytes;

		cr_expect_eq(at, offset, "element %u at %lu, not %lu", i, at, offset);
		if (hole) {
			bytes = xdr_get_u64(&f->in);
		} else {
			uint32_t got = 0;
			const uint8_t *p = xdr_get_opaque(&f->in, 2 * MIB, &got);
			static uint8_t want[2 * MIB];

			cr_assert_not_null(p);
			bytes = got;
			cr_assert_eq(pread(fd, want, got, (off_t)at), (ssize_t)got);
			cr_expect_eq(memcmp(p, want, got), 0, "other data at %lu", at);
		}
		cr_expect_gt(bytes, 0, "an empty element");
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%c%lu%s", hole ? 'H' : 'D',
					bytes / K64, bytes % K64 ? "." : "");
		offset += bytes;
	}
	return eof ? strcat(out, "$") : out;
}

#define IS(want, fh, offset, count)                                                                \
	do {                                                                                       \
		cr_assert_eq(plus(fh, offset, count), NFS4_OK);                                    \
		const char *got_ = elements(offset);                                               \
		cr_expect_str_eq(got_, want, "%s, not %s", got_, want);                            \
		whole();                                                                           \
	} while (0)

#define NEED_HOLES()                                                                               \
	do {                                                                                       \
		if (!has_holes())                                                                  \
			cr_skip_test("this file system keeps no holes");                           \
	} while (0)

/* ---- elements --------------------------------------------------------------------------------- */

Test(nfs4_read_plus, data_and_holes)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	IS("D1H6D2H7$", &fh, 0, 16 * K64);
	IS("D1H6D2H7$", &fh, 0, UINT32_MAX);
	IS("D1H6D2H6", &fh, 0, 15 * K64);
	IS("H3", &fh, 2 * K64, 3 * K64);
	IS("H0.D0.", &fh, 7 * K64 - 40000, 40001);
	IS("D0.", &fh, 7 * K64, 5);
	IS("D0.", &fh, 3 * K64, 5); /* a short range is not searched */
	IS("H7$", &fh, 9 * K64, 16 * K64);
}

Test(nfs4_read_plus, the_end_of_the_file)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	IS("$", &fh, 16 * K64, K64);
	IS("$", &fh, 16 * K64, 0);
	IS("", &fh, 0, 0);
	IS("$", &fh, UINT64_MAX, UINT32_MAX);
	IS("$", &fh, (uint64_t)INT64_MAX - 1, UINT32_MAX);
	IS("D0.$", &fh, 16 * K64 - 9, 10);
	IS("D0.$", &fh, 16 * K64 - 9, 9);
	IS("D0.", &fh, 16 * K64 - 9, 8);
	fh = sparse("empty", 0, "");
	IS("$", &fh, 0, MIB);
	IS("$", &fh, 0, 0);
	fh = sparse("full", 2 * K64, "DD");
	IS("D2$", &fh, 0, MIB);
	IS("D2$", &fh, 0, 2 * K64);
	IS("D1", &fh, 0, K64);
	/* One byte more than whole blocks, so that there is padding. */
	cr_assert_eq(pwrite(fd, "x", 1, 2 * K64), 1);
	IS("D2.$", &fh, 0, MIB);
}

Test(nfs4_read_plus, there_are_not_too_many)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	start();
	fh = sparse("many", 16 * K64, "D D D D D D D D ");
	NEED_HOLES();
	IS("D1H1D1H1D1H1D10$", &fh, 0, 16 * K64);
	IS("H1D1H1D1H1D1H1D1", &fh, K64, 8 * K64);
}

/* ---- room ------------------------------------------------------------------------------------- */

/* The reply, with padding, must stay within the session's limits; the data are cut. */
Test(nfs4_read_plus, what_a_session_allows)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	session.cache_this = true; /* at most 8 KiB */
	IS("D0.", &fh, 0, MIB);
	cr_expect(f->reply_len <= 8192 && f->reply_len > 8000, "%zu", f->reply_len);
	IS("H6D0.", &fh, K64, MIB);
	cr_expect(f->reply_len <= 8192 && f->reply_len > 8000, "%zu", f->reply_len);
	IS("H7$", &fh, 9 * K64, MIB);
}

static struct rpc_conn_ops rdma;

static void as_rdma(size_t reply_max)
{
	rdma = *f->conn.ops;
	rdma.says_too_long = true;
	f->conn.ops = &rdma;
	f->reply_max = reply_max;
}

/* Shorter and shorter replies: as much as fits, and at last none. */
Test(nfs4_read_plus, what_the_transport_allows)
{
	struct vfs_fh fh;
	size_t least = 0;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	as_rdma(2 * MIB);
	for (size_t room = 400; room >= 100; room -= 4) {
		f->reply_max = room;
		begin(&fh);
		put(OP_READ_PLUS, 7 * K64 - 40000, MIB);
		fix4_send(f);
		if (f->outcome == FIX_TOO_LONG)
			break;
		cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
		cr_assert_eq(fix4_result(f, OP_READ_PLUS), NFS4_OK);
		const char *got = elements(7 * K64 - 40000);
		cr_expect(!strcmp(got, "H0.D0.") || !strcmp(got, "H0."), "%s", got);
		cr_expect_leq(f->reply_len, room);
		least = room;
	}
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
	cr_expect_gt(least, 0);
	/* The slot goes on. */
	f->reply_max = 2 * MIB;
	IS("D16$", &fh, 0, 16 * K64);
}

/* Over RDMA there are two elements at most, and all of the range all the same. */
Test(nfs4_read_plus, two_elements_over_rdma)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	as_rdma(2 * MIB);
	IS("D16$", &fh, 0, 16 * K64);
	IS("H6D9$", &fh, K64, 16 * K64);
	IS("D2H7$", &fh, 7 * K64, 16 * K64);
	IS("H7$", &fh, 9 * K64, 16 * K64);
}

/* ---- chunks ----------------------------------------------------------------------------------- */

static void is_read(uint32_t want)
{
	uint32_t len;

	cr_assert_eq(fix4_result(f, OP_READ), NFS4_OK);
	xdr_get_bool(&f->in);
	cr_assert_not_null(xdr_get_opaque(&f->in, 2 * MIB, &len));
	cr_expect_eq(len, want);
}

/* The data are not eligible: they are in the stream, and the chunk is left to READ. */
static void beside_a_chunk(uint32_t chunk)
{
	const struct vfs_fh fh = start();

	as_rdma(2 * MIB);
	f->nbulk_spaces = 1;
	f->bulk_space[0] = chunk;
	IS("D2", &fh, 7 * K64, 2 * K64);
	cr_expect_eq(f->nbulks, 0);
	begin(&fh);
	put(OP_READ_PLUS, 7 * K64, K64 + 1);
	put(OP_READ, 0, 10);
	put(OP_READ_PLUS, 8 * K64, K64);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_expect_eq(f->nbulks, 2);
	cr_expect_eq(f->bulk_len[0], 10, "READ has the chunk");
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_READ_PLUS), NFS4_OK);
	cr_expect_str_eq(elements(7 * K64), "D1.");
	is_read(10);
	cr_assert_eq(fix4_result(f, OP_READ_PLUS), NFS4_OK);
	cr_expect_str_eq(elements(8 * K64), "D1");
	whole();
}

Test(nfs4_read_plus, beside_a_write_chunk)
{
	NEED_FIXTURE();
	beside_a_chunk(MIB);
}

Test(nfs4_read_plus, beside_an_empty_write_chunk)
{
	NEED_FIXTURE();
	beside_a_chunk(0);
}

/* Without a chunk nothing is copied. */
Test(nfs4_read_plus, data_are_not_copied)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	IS("D1H6D2H7$", &fh, 0, 16 * K64);
	cr_expect_eq(f->nbulks, 2);
}

/* More of them than a reply can have bulk items. */
Test(nfs4_read_plus, many_in_one_compound)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	begin(&fh);
	for (unsigned i = 0; i < XDR_BULKS_MAX + 4; i++)
		put(OP_READ_PLUS, 7 * K64 + i, 1000 + i);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	for (unsigned i = 0; i < XDR_BULKS_MAX + 4; i++) {
		cr_assert_eq(fix4_result(f, OP_READ_PLUS), NFS4_OK);
		cr_expect_str_eq(elements(7 * K64 + i), "D0.");
	}
	whole();
}

/* ---- failures, and files that change ---------------------------------------------------------- */

static int cut_file(void)
{
	cr_assert_eq(ftruncate(fd, 7 * K64 + 100), 0);
	return 0;
}

static int cut_all(void)
{
	cr_assert_eq(ftruncate(fd, 0), 0);
	return 0;
}

static int fill_hole(void)
{
	static uint8_t data[6 * K64];

	memset(data, 9, sizeof(data));
	cr_assert_eq(pwrite(fd, data, sizeof(data), K64), (ssize_t)sizeof(data));
	return 0;
}

/* Between the search and the data the file is cut, or written. */
Test(nfs4_read_plus, a_file_that_changes)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	after_parts = cut_file;
	IS("D1H6D0.$", &fh, 0, 16 * K64);
	after_parts = NULL;
	fh = sparse("x", 16 * K64, "D      DD      ");
	after_parts = cut_all;
	IS("$", &fh, 0, 16 * K64);
	after_parts = NULL;
	fh = sparse("x", 16 * K64, "D      DD      ");
	after_parts = fill_hole;
	IS("D1H6D2H7$", &fh, 0, 16 * K64); /* it was a hole when it was looked for */
	after_parts = NULL;
	IS("D9H7$", &fh, 0, 16 * K64);
}

static int no_parts(void)
{
	return -EIO;
}

Test(nfs4_read_plus, failures)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	after_parts = no_parts;
	cr_expect_eq(plus(&fh, 0, MIB), NFS4ERR_IO);
	cr_expect_eq(f->in.left, 0, "nothing behind a failure");
	after_parts = NULL;
	reads = 0;
	fail_read_at = 1;
	cr_expect_eq(plus(&fh, 0, MIB), NFS4ERR_IO);
	/* The list ends before the element that failed, and the end of the file is not told. */
	reads = 0;
	IS("H6", &fh, K64, MIB);
	reads = 0;
	fail_read_at = 2;
	IS("D1H6", &fh, 0, MIB);
	fail_read_at = 0;
	IS("D1H6D2H7$", &fh, 0, 16 * K64);
}

static struct rn_payload *held[200];
static unsigned nheld;

/* All memory but one buffer of 64 KiB is in use. */
static int take_all_memory(void)
{
	struct rn_payload *spare = rn_payload_get(f->pool, K64);

	cr_assert_not_null(spare);
	while (nheld < 200 && (held[nheld] = rn_payload_get(f->pool, RN_PAYLOAD_MAX)))
		nheld++;
	cr_assert_lt(nheld, 200);
	rn_payload_put(spare);
	return 0;
}

/* No memory for the second element of data: the list ends before it. */
Test(nfs4_read_plus, memory_for_a_part_only)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	fh = start();
	NEED_HOLES();
	after_parts = take_all_memory;
	cr_assert_eq(plus(&fh, 0, 16 * K64), NFS4_OK);
	after_parts = NULL;
	const char *got = elements(0);
	cr_expect_str_eq(got, "D1H6", "%s", got);
	while (nheld > 0)
		rn_payload_put(held[--nheld]);
	IS("D1H6D2H7$", &fh, 0, 16 * K64);
}

/* ---- where it runs ---------------------------------------------------------------------------- */

/* A short one, and one of a file without holes, runs where it arrives; a search for holes may wait. */
Test(nfs4_read_plus, where_it_runs)
{
	struct vfs_fh fh, full;

	NEED_FIXTURE();
	NEED_KERNEL_CAN(read_cached);
	fh = start();
	NEED_HOLES();
	full = sparse("full", 2 * K64, "DD");
	IS("D1", &full, 0, K64); /* the file is opened, and in memory */
	f->on_event_thread = true;
	IS("D1", &full, 0, K64);
	cr_expect_eq(f->moved, 0);
	fd = open(fix_path(f, "x"), O_RDONLY);
	IS("D0.", &fh, 0, VFS_HOLE_LEAST - 1);
	IS("D0.", &fh, 7 * K64, VFS_HOLE_LEAST - 1);
	cr_expect_eq(f->moved, 0);
	IS("D1H6D2H7$", &fh, 0, 16 * K64);
	cr_expect_eq(f->moved, 1);
}

/* ---- stateids and shares ---------------------------------------------------------------------- */

Test(nfs4_read_plus, shares_and_permission)
{
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
				     .fh = &f->root, .name = "x", .deny = OPEN4_SHARE_DENY_READ },
			     &file),
		     NFS4_OK);
	cr_expect_eq(plus(&fh, 0, MIB), NFS4ERR_LOCKED);
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	f->uid = f->gid = 1000;
	cr_expect_eq(plus(&fh, 0, MIB), NFS4ERR_ACCESS);
	cr_expect_eq(plus(&fh, 3 * K64, 1), NFS4ERR_ACCESS);
	cr_expect_eq(plus(&fh, 3 * K64, 0), NFS4ERR_ACCESS);
}
