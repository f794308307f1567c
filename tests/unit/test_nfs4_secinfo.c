/* SPDX-License-Identifier: BSD-2-Clause */
/* Security flavours that an export does not accept (RFC 8881 section 2.6.3.1): operations that
 * answer NFS4ERR_WRONGSEC, and SECINFO, which lists accepted flavours. */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_text.h"
#include "tests/unit/nfs4_view.h"

static struct view v;
static struct fix4_session session;
static struct vfs_fh top, sys, none; /* the pseudo root, and an export for each flavour */

static void start(void)
{
	suite_start();
	if (!why_not)
		why_not = view_start(&v, f);
	if (why_not)
		return;
	view_mkdir(&v, "sys");
	view_mkdir(&v, "none");
	view_mkdir(&v, "none/dir");
	view_mkdir(&v, "none/dir/sys");
	view_export(&v, "sys", 10);
	view_export(&v, "none", 11);
	view_export(&v, "none/dir/sys", 12);
	view_changed(&v);
	view_walk(&v, "", &top);
	view_walk_tree(&v, "sys", &sys);
	view_walk_tree(&v, "none", &none);
	fix_accept(&v.e[1].access, VFS_SEC_NONE);
	fix4_session_new(f, &session, 1, "test", true);
}

static void stop(void)
{
	if (f)
		view_stop(&v);
	suite_stop();
}

TestSuite(nfs4_secinfo, .init = start, .fini = stop, .timeout = 60);

enum { STYLE_CURRENT, STYLE_PARENT };

static void begin(uint32_t minor)
{
	fix4_begin(f, minor > 0 ? &session : NULL);
}

static void put_getattr(void)
{
	fix4_op(f, OP_GETATTR);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_TYPE);
}

static void put_open(uint32_t claim)
{
	fix4_op(f, OP_OPEN);
	xdr_put_u32(&f->out, 1); /* seqid */
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
	xdr_put_u32(&f->out, OPEN4_SHARE_DENY_NONE);
	xdr_put_u64(&f->out, session.clientid);
	fix4_name(f, "owner");
	xdr_put_u32(&f->out, 0); /* OPEN4_NOCREATE */
	xdr_put_u32(&f->out, claim);
	if (claim == 0)
		fix4_name(f, "dir");
}

/* Reads all results. Returns the status of the last one; *op: its operation. */
static uint32_t last(uint32_t *op)
{
	uint32_t n, status = 0;
	struct xdr_in *r = &f->in;

	n = fix4_results_left(f);
	for (uint32_t i = 0; i < n; i++) {
		*op = xdr_get_u32(r);
		status = xdr_get_u32(r);
		if (status == NFS4_OK && i + 1 < n && *op == OP_GETFH)
			xdr_get_opaque(r, 128, &(uint32_t){ 0 });
	}
	return status;
}

#define EXPECT(op, status)                                                                         \
	do {                                                                                       \
		uint32_t at = 0, got;                                                              \
		fix4_send(f);                                                                      \
		got = last(&at);                                                                   \
		cr_expect_eq(at, op, "ended at %s", nfs4_op_text(at));                             \
		cr_expect_eq(got, status, "status %u", got);                                       \
	} while (0)

Test(nfs4_secinfo, what_follows_decides)
{
	NEED_FIXTURE();
	for (uint32_t minor = 0; minor < 2; minor++) {
		begin(minor);
		fix4_putfh(f, &none);
		EXPECT(OP_PUTFH, NFS4_OK);
		begin(minor);
		fix4_putfh(f, &none);
		put_getattr();
		EXPECT(OP_PUTFH, NFS4ERR_WRONGSEC);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_op(f, OP_SAVEFH);
		EXPECT(OP_SAVEFH, NFS4_OK);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_op(f, OP_SAVEFH);
		put_getattr();
		EXPECT(OP_PUTFH, NFS4ERR_WRONGSEC);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_putfh(f, &sys);
		put_getattr();
		EXPECT(OP_GETATTR, NFS4_OK);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_lookup(f, "dir");
		EXPECT(OP_LOOKUP, NFS4ERR_WRONGSEC);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_op(f, OP_LOOKUPP);
		put_getattr();
		EXPECT(OP_GETATTR, NFS4_OK);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_op(f, OP_GETFH);
		EXPECT(OP_PUTFH, NFS4ERR_WRONGSEC);
	}
}

Test(nfs4_secinfo, open_by_name_and_by_filehandle)
{
	NEED_FIXTURE();
	begin(1);
	fix4_putfh(f, &none);
	put_open(0);
	EXPECT(OP_OPEN, NFS4ERR_WRONGSEC);
	begin(1);
	fix4_putfh(f, &none);
	put_open(4);
	EXPECT(OP_PUTFH, NFS4ERR_WRONGSEC);
}

Test(nfs4_secinfo, a_filehandle_that_comes_back)
{
	NEED_FIXTURE();
	for (uint32_t minor = 0; minor < 2; minor++) {
		begin(minor);
		fix4_putfh(f, &none);
		fix4_op(f, OP_SAVEFH);
		fix4_op(f, OP_PUTROOTFH);
		fix4_op(f, OP_RESTOREFH);
		put_getattr();
		EXPECT(OP_RESTOREFH, NFS4ERR_WRONGSEC);
		begin(minor);
		fix4_putfh(f, &none);
		fix4_op(f, OP_SAVEFH);
		fix4_op(f, OP_PUTROOTFH);
		fix4_op(f, OP_RESTOREFH);
		EXPECT(OP_RESTOREFH, NFS4_OK);
	}
}

Test(nfs4_secinfo, into_an_export)
{
	NEED_FIXTURE();
	begin(1);
	fix4_op(f, OP_PUTROOTFH);
	fix4_lookup(f, "tmp");
	fix4_lookup(f, v.dir + strlen("/tmp/"));
	fix4_lookup(f, "none");
	EXPECT(OP_LOOKUP, NFS4ERR_WRONGSEC);
	f->flavor = RPC_AUTH_NONE;
	begin(1);
	fix4_op(f, OP_PUTROOTFH);
	fix4_lookup(f, "tmp");
	fix4_lookup(f, v.dir + strlen("/tmp/"));
	fix4_lookup(f, "none");
	put_getattr();
	EXPECT(OP_GETATTR, NFS4_OK);
	begin(1);
	fix4_op(f, OP_PUTROOTFH);
	fix4_lookup(f, "tmp");
	fix4_lookup(f, v.dir + strlen("/tmp/"));
	fix4_lookup(f, "sys");
	EXPECT(OP_LOOKUP, NFS4ERR_WRONGSEC);
}

/* LOOKUPP out of an export of another flavour, then a name in an export of the call's flavour. */
Test(nfs4_secinfo, through_a_parent_of_another_flavour)
{
	struct vfs_fh dir;

	NEED_FIXTURE();
	f->flavor = RPC_AUTH_NONE;
	cr_assert_eq(view_walk_tree(&v, "none/dir", &dir), NFS4_OK);
	f->flavor = RPC_AUTH_SYS;
	begin(1);
	fix4_putfh(f, &dir);
	fix4_lookup(f, "sys");
	put_getattr();
	EXPECT(OP_GETATTR, NFS4_OK);
}

static unsigned flavors(uint32_t *first)
{
	unsigned n = xdr_get_u32(&f->in);

	for (unsigned i = 0; i < n; i++) {
		uint32_t flavor = xdr_get_u32(&f->in);

		if (i == 0)
			*first = flavor;
	}
	whole();
	return n;
}

Test(nfs4_secinfo, by_name)
{
	static const struct {
		const char *name;
		unsigned n;
		uint32_t first;
	} rows[] = { { "sys", 1, RPC_AUTH_SYS }, { "none", 1, RPC_AUTH_NONE } };
	struct vfs_fh tree;
	uint32_t first = 77;

	NEED_FIXTURE();
	cr_assert_eq(view_walk_tree(&v, "", &tree), NFS4_OK);
	for (uint32_t i = 0; i < 4; i++) {
		begin(i / 2);
		fix4_putfh(f, &tree);
		fix4_op(f, OP_SECINFO);
		fix4_name(f, rows[i % 2].name);
		cr_assert_eq(fix4_send(f), NFS4_OK);
		fix4_result(f, OP_PUTFH);
		fix4_result(f, OP_SECINFO);
		cr_expect_eq(flavors(&first), rows[i % 2].n);
		cr_expect_eq(first, rows[i % 2].first);
	}
	begin(1);
	fix4_putfh(f, &tree);
	fix4_op(f, OP_SECINFO);
	fix4_name(f, "nothing");
	EXPECT(OP_SECINFO, NFS4ERR_NOENT);
	begin(1);
	fix4_putfh(f, &top);
	fix4_op(f, OP_SECINFO);
	fix4_name(f, "tmp");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SECINFO);
	cr_expect_eq(flavors(&first), 2);
	cr_expect_eq(first, RPC_AUTH_SYS);
}

/* rpcsec_gss_info (RFC 8881 section 18.29): the OID of Kerberos V5 in DER, the default quality, the service. */
Test(nfs4_secinfo, kerberos)
{
	static const uint8_t oid[] = { 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02 };
	struct vfs_fh tree;
	uint32_t len;

	NEED_FIXTURE();
	cr_assert_eq(view_walk_tree(&v, "", &tree), NFS4_OK);
	fix_accept(&v.e[1].access, VFS_SEC_KRB5I);
	vfs_access_accept(&v.e[1].access, VFS_SEC_KRB5P, 0);
	vfs_access_accept(&v.e[1].access, VFS_SEC_SYS, 0);
	begin(1);
	fix4_putfh(f, &tree);
	fix4_op(f, OP_SECINFO);
	fix4_name(f, "none");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SECINFO);
	cr_assert_eq(xdr_get_u32(&f->in), 3);
	for (uint32_t service = 2; service <= 3; service++) {
		cr_expect_eq(xdr_get_u32(&f->in), RPC_RPCSEC_GSS);
		const uint8_t *got = xdr_get_opaque(&f->in, 32, &len);
		cr_assert_eq(len, sizeof(oid));
		cr_expect_arr_eq(got, oid, sizeof(oid));
		cr_expect_eq(xdr_get_u32(&f->in), 0);
		cr_expect_eq(xdr_get_u32(&f->in), service);
	}
	cr_expect_eq(xdr_get_u32(&f->in), RPC_AUTH_SYS);
	whole();
}

/* A directory above exports lists each of their flavours once. */
Test(nfs4_secinfo, above_exports)
{
	uint32_t first = 77;

	NEED_FIXTURE();
	fix_accept(&v.e[0].access, VFS_SEC_NONE);
	fix_accept(&v.e[2].access, VFS_SEC_NONE);
	begin(1);
	fix4_putfh(f, &top);
	fix4_op(f, OP_SECINFO);
	fix4_name(f, "tmp");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SECINFO);
	cr_expect_eq(flavors(&first), 1);
	cr_expect_eq(first, RPC_AUTH_NONE);
}

Test(nfs4_secinfo, the_filehandle_is_consumed)
{
	NEED_FIXTURE();
	begin(1);
	fix4_putfh(f, &top);
	fix4_op(f, OP_SECINFO);
	fix4_name(f, "tmp");
	put_getattr();
	cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
	begin(0);
	fix4_putfh(f, &top);
	fix4_op(f, OP_SECINFO);
	fix4_name(f, "tmp");
	put_getattr();
	cr_expect_eq(fix4_send(f), NFS4_OK);
}

static uint32_t no_name(const struct vfs_fh *fh, uint32_t style)
{
	uint32_t status;

	begin(1);
	fix4_putfh(f, fh);
	fix4_op(f, OP_SECINFO_NO_NAME);
	xdr_put_u32(&f->out, style);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SECINFO_NO_NAME);
	return status;
}

Test(nfs4_secinfo, without_a_name)
{
	uint32_t first = 77;
	struct vfs_fh dir;

	NEED_FIXTURE();
	cr_assert_eq(no_name(&none, STYLE_CURRENT), NFS4_OK);
	cr_expect_eq(flavors(&first), 1);
	cr_expect_eq(first, RPC_AUTH_NONE);
	cr_assert_eq(no_name(&none, STYLE_PARENT), NFS4_OK);
	cr_expect_eq(flavors(&first), 2);
	cr_expect_eq(no_name(&top, STYLE_PARENT), NFS4ERR_NOENT);
	cr_expect_eq(no_name(&top, 2), NFS4ERR_BADXDR);
	f->flavor = RPC_AUTH_NONE;
	cr_assert_eq(view_walk_tree(&v, "none/dir", &dir), NFS4_OK);
	f->flavor = RPC_AUTH_SYS;
	cr_assert_eq(no_name(&dir, STYLE_PARENT), NFS4_OK);
	cr_expect_eq(flavors(&first), 1);
	cr_expect_eq(first, RPC_AUTH_NONE);
}

/* READDIR reports entries of another flavour by rdattr_error. */
Test(nfs4_secinfo, entries)
{
	struct vfs_fh tree;
	struct xdr_in *r = &f->in;
	uint32_t len, wrong = 0, right = 0;

	NEED_FIXTURE();
	cr_assert_eq(view_walk_tree(&v, "", &tree), NFS4_OK);
	begin(0);
	fix4_putfh(f, &tree);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_TYPE | 1u << FATTR4_RDATTR_ERROR);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	r = &f->in;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_READDIR);
	xdr_get_u64(r);
	while (xdr_get_bool(r)) {
		uint32_t error, word;

		xdr_get_u64(r);
		xdr_get_opaque(r, 255, &len);
		cr_assert_eq(xdr_get_u32(r), 1);
		word = xdr_get_u32(r);
		xdr_get_u32(r);
		if (word & 1u << FATTR4_TYPE)
			xdr_get_u32(r);
		error = xdr_get_u32(r);
		wrong += error == NFS4ERR_WRONGSEC;
		right += error == NFS4_OK;
	}
	cr_expect_eq(wrong, 1);
	cr_expect_eq(right, 1);
}
