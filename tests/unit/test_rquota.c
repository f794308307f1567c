/* SPDX-License-Identifier: BSD-2-Clause */
/* RQUOTA: who may ask about whom and where, and the form of the answer. Quotas of a file system that has
 * some: tests/net/rquota.py. */
#include "lib/util.h"
#include "nfs3/quota/rquota.h"
#include "rpc/message.h"
#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(rquota);

/* Puts version 1's arguments, or version 2's with a kind. */
static struct xdr_out *quota_call(uint32_t vers, uint32_t proc, const char *path)
{
	struct xdr_out *c = fix_call(f, RQUOTA_PROGRAM, vers, proc);

	fix_put_name(c, path);
	return c;
}

static uint32_t ask(uint32_t kind, uint32_t id, const char *path)
{
	struct xdr_out *c = quota_call(2, RQUOTAPROC_GETQUOTA, path);
	uint32_t v1, v2;

	xdr_put_u32(c, kind);
	xdr_put_u32(c, id);
	v2 = status();
	if (v2 != UINT32_MAX && v2 != RQUOTA_OK)
		whole();
	if (kind != RQUOTA_USER)
		return v2;
	xdr_put_u32(quota_call(1, RQUOTAPROC_GETACTIVEQUOTA, path), id);
	v1 = status();
	cr_expect_eq(v1, v2, "version 1: %u, version 2: %u", v1, v2);
	return v2;
}

/* True if the file system below /tmp has quotas, so that answers are OK and not NOQUOTA. */
static bool is_answer(uint32_t status)
{
	return status == RQUOTA_OK || status == RQUOTA_NOQUOTA;
}

Test(rquota, null)
{
	NEED_FIXTURE();
	for (uint32_t vers = 1; vers <= 2; vers++) {
		fix_call(f, RQUOTA_PROGRAM, vers, RQUOTAPROC_NULL);
		fix_send(f);
		cr_expect(f->outcome == FIX_REPLY && f->accept_stat == RPC_SUCCESS);
	}
	fix_call(f, RQUOTA_PROGRAM, 3, RQUOTAPROC_NULL);
	fix_send(f);
	cr_expect(f->outcome == FIX_REPLY && f->accept_stat == RPC_PROG_MISMATCH);
	fix_call(f, RQUOTA_PROGRAM, 2, RQUOTAPROC_COUNT);
	fix_send(f);
	cr_expect(f->outcome == FIX_REPLY && f->accept_stat == RPC_PROC_UNAVAIL);
}

Test(rquota, about_whom)
{
	NEED_FIXTURE();
	f->uid = f->gid = 1005;
	cr_expect(is_answer(ask(RQUOTA_USER, 1005, f->dir[0])), "himself");
	cr_expect_eq(ask(RQUOTA_USER, 1006, f->dir[0]), RQUOTA_EPERM, "another");
	cr_expect_eq(ask(RQUOTA_USER, 0, f->dir[0]), RQUOTA_EPERM, "root");
	cr_expect(is_answer(ask(RQUOTA_GROUP, 1005, f->dir[0])), "his group");
	cr_expect_eq(ask(RQUOTA_GROUP, 1006, f->dir[0]), RQUOTA_EPERM, "another group");
	cr_expect_eq(ask(2, 1005, f->dir[0]), RQUOTA_NOQUOTA, "no kind of version 2");
	cr_expect_eq(ask(UINT32_MAX, 1005, f->dir[0]), RQUOTA_NOQUOTA, "nor this one");
	f->uid = f->gid = 0;
	cr_expect(is_answer(ask(RQUOTA_USER, 1006, f->dir[0])), "root about a user");
	cr_expect(is_answer(ask(RQUOTA_GROUP, 1006, f->dir[0])), "root about a group");
	f->access.flags |= VFS_ROOT_SQUASH;
	cr_expect(is_answer(ask(RQUOTA_USER, 1006, f->dir[0])), "root, though squashed");
}

/* Files of a squashed user are another one's, and so is the space that they take. */
Test(rquota, squashed)
{
	NEED_FIXTURE();
	f->uid = f->gid = 1005;
	f->access.flags |= VFS_ALL_SQUASH;
	f->access.anonuid = f->access.anongid = 4001;
	cr_expect(is_answer(ask(RQUOTA_USER, 4001, f->dir[0])));
	cr_expect(is_answer(ask(RQUOTA_GROUP, 4001, f->dir[0])));
	cr_expect(is_answer(ask(RQUOTA_USER, 1005, f->dir[0])));
	cr_expect_eq(ask(RQUOTA_USER, 4002, f->dir[0]), RQUOTA_EPERM);
}

Test(rquota, where)
{
	char path[1200];

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(mkdir(fix_path(f, "closed"), 0700), 0);
	snprintf(path, sizeof(path), "%s/closed/in", f->dir[0]);
	cr_assert_eq(mkdir(path, 0755), 0);
	f->uid = f->gid = 1005;
	cr_expect(is_answer(ask(RQUOTA_USER, 1005, fix_path(f, "dir"))));
	cr_expect_eq(ask(RQUOTA_USER, 1005, fix_path(f, "missing")), RQUOTA_NOQUOTA);
	cr_expect_eq(ask(RQUOTA_USER, 1005, path), RQUOTA_EPERM, "as the caller");
	cr_expect_eq(ask(RQUOTA_USER, 1005, "/etc"), RQUOTA_NOQUOTA, "no export");
	cr_expect_eq(ask(RQUOTA_USER, 1005, ""), RQUOTA_NOQUOTA);
	cr_expect_eq(ask(RQUOTA_USER, 1005, "tmp"), RQUOTA_NOQUOTA);
	f->deny = true;
	cr_expect_eq(ask(RQUOTA_USER, 1005, f->dir[0]), RQUOTA_EPERM, "not for this host");
	f->deny = false;
	f->undecided = true;
	xdr_put_u32(quota_call(1, RQUOTAPROC_GETQUOTA, f->dir[0]), 1005);
	cr_expect_eq(status(), UINT32_MAX);
	cr_expect_eq(f->accept_stat, RPC_SYSTEM_ERR, "it has to come again");
}

Test(rquota, needs_auth_sys)
{
	NEED_FIXTURE();
	vfs_access_accept(&f->access, VFS_SEC_NONE, 0);
	f->flavor = RPC_AUTH_NONE;
	xdr_put_u32(quota_call(1, RQUOTAPROC_GETQUOTA, f->dir[0]), 65534);
	fix_send(f);
	cr_expect_eq(f->outcome, FIX_REPLY);
	cr_expect_eq(f->auth_stat, RPC_AUTH_TOOWEAK);
}

Test(rquota, long_path)
{
	static char path[1026];

	NEED_FIXTURE();
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	cr_expect_eq(ask(RQUOTA_GROUP, 0, path), UINT32_MAX);
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);
	path[1024] = '\0';
	cr_expect_eq(ask(RQUOTA_GROUP, 0, path), RQUOTA_NOQUOTA);
}

/* Not even root sets a quota. */
Test(rquota, set)
{
	NEED_FIXTURE();
	for (uint32_t vers = 1; vers <= 2; vers++) {
		for (uint32_t proc = RQUOTAPROC_SETQUOTA; proc <= RQUOTAPROC_SETACTIVEQUOTA;
		     proc++) {
			struct xdr_out *c = fix_call(f, RQUOTA_PROGRAM, vers, proc);

			xdr_put_u32(c, 0x800006);
			fix_put_name(c, f->dir[0]);
			for (unsigned i = 0; i < 8 + vers; i++)
				xdr_put_u32(c, 0);
			cr_expect_eq(status(), RQUOTA_EPERM);
			whole();
		}
	}
}

#define KIB(n) ((uint64_t)(n) << 10)
#define NOW 1000000

/* One row, and the words of its encoding. */
static const struct {
	const char *what;
	struct vfs_quota_limit bytes, files;
	uint32_t block, words[8];
} rows[] = {
	{ "nothing", { 0 }, { 0 }, 1024, { 0 } },
	{ "kibibytes, rounded up",
	  { .hard = KIB(8192), .soft = KIB(4096), .used = 1025 },
	  { .hard = 20, .soft = 10, .used = 3 },
	  1024,
	  { 8192, 4096, 2, 20, 10, 3, 0, 0 } },
	{ "over the soft limits",
	  { .hard = KIB(8), .soft = KIB(4), .used = KIB(5), .until = NOW + 70 },
	  { .hard = 20, .soft = 10, .used = 11, .until = NOW + 80 },
	  1024,
	  { 8, 4, 5, 20, 10, 11, 70, 80 } },
	{ "for too long",
	  { .hard = KIB(8), .soft = KIB(4), .used = KIB(5), .until = NOW - 70 },
	  { .hard = 20, .soft = 10, .used = 11, .until = NOW },
	  1024,
	  { 8, 4, 5, 20, 10, 11, (uint32_t)-70, (uint32_t)-1 } },
	{ "a time that means nothing",
	  { .hard = KIB(8), .soft = KIB(4), .used = KIB(4), .until = NOW + 70 },
	  { .hard = 20, .soft = 0, .used = 11, .until = NOW + 80 },
	  1024,
	  { 8, 4, 4, 20, 0, 11, 0, 0 } },
	{ "times without end",
	  { .hard = KIB(8), .soft = KIB(4), .used = KIB(5), .until = INT64_MAX },
	  { .hard = 20, .soft = 10, .used = 11, .until = INT64_MIN },
	  1024,
	  { 8, 4, 5, 20, 10, 11, INT32_MAX, (uint32_t)-INT32_MAX } },
	{ "more than 32 bits of kibibytes",
	  { .hard = KIB(1) << 33, .soft = 1, .used = KIB(1) << 20 },
	  { .hard = UINT64_MAX, .used = 1ull << 33 },
	  1024 << 2,
	  { 1u << 31, 1, 1 << 18, UINT32_MAX, 0, UINT32_MAX, 0, 0 } },
	{ "more than can be said",
	  { .hard = UINT64_MAX, .used = UINT64_MAX },
	  { 0 },
	  1u << 30,
	  { UINT32_MAX, 0, UINT32_MAX, 0, 0, 0, 0, 0 } },
};

Test(rquota, encoding)
{
	for (unsigned i = 0; i < rn_array_size(rows); i++) {
		const struct vfs_quota_row row = { rows[i].bytes, rows[i].files };
		uint8_t buf[64];
		struct rpc_seg seg = { .base = buf };
		struct xdr_out x;
		struct xdr_in in;

		xdr_out_init(&x, buf, sizeof(buf));
		rquota_put(&x, &row, NOW);
		cr_assert_eq(x.used, RQUOTA_SIZE);
		seg.len = (uint32_t)x.used;
		xdr_in_init(&in, &seg, 1, NULL);
		cr_expect_eq(xdr_get_u32(&in), rows[i].block, "%s", rows[i].what);
		cr_expect(xdr_get_bool(&in), "active");
		for (unsigned j = 0; j < 8; j++) {
			const uint32_t word = xdr_get_u32(&in);

			cr_expect_eq(word, rows[i].words[j], "%s: word %u: %u", rows[i].what, j,
				     word);
		}
	}
}
