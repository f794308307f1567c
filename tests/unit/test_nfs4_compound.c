/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop over a COMPOUND: versions, tags, positions, failures in the middle, and arguments that
 * do not decode. */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"
#include "tests/unit/nfs4_text.h"

NFS3_SUITE(nfs4_compound);

/* Returns the COMPOUND's status; *tag and *results get the reply's tag and number of results. */
static uint32_t send_raw_compound(char *tag, size_t size, uint32_t *results)
{
	const uint8_t *p;
	uint32_t len, status;

	fix_send(f);
	cr_assert_eq(f->outcome, FIX_REPLY);
	cr_assert_eq(f->accept_stat, RPC_SUCCESS);
	status = xdr_get_u32(&f->in);
	p = xdr_get_opaque(&f->in, 1024, &len);
	cr_assert_lt(len, size);
	memcpy(tag, p, len);
	tag[len] = '\0';
	*results = xdr_get_u32(&f->in);
	return status;
}

Test(nfs4_compound, null)
{
	NEED_FIXTURE();
	fix_call(f, NFS4_PROGRAM, NFS4_VERSION, NFSPROC4_NULL);
	fix_send(f);
	cr_expect_eq(f->outcome, FIX_REPLY);
	cr_expect_eq(f->accept_stat, RPC_SUCCESS);
	whole();
}

Test(nfs4_compound, no_operations_and_the_tag_comes_back)
{
	char tag[64];
	uint32_t n;

	NEED_FIXTURE();
	fix4_begin_bare(f, 0, "a tag");
	cr_expect_eq(send_raw_compound(tag, sizeof(tag), &n), NFS4_OK);
	cr_expect_str_eq(tag, "a tag");
	cr_expect_eq(n, 0);
	whole();
}

Test(nfs4_compound, minor_version_mismatch)
{
	char tag[64];
	uint32_t n;

	NEED_FIXTURE();
	fix4_begin_bare(f, 3, "x");
	fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(send_raw_compound(tag, sizeof(tag), &n), NFS4ERR_MINOR_VERS_MISMATCH);
	cr_expect_str_eq(tag, "x");
	cr_expect_eq(n, 0);
	whole();
}

Test(nfs4_compound, illegal_and_unsupported_are_told_apart)
{
	NEED_FIXTURE();
	static const struct {
		uint32_t op, minor, result, status;
	} rows[] = {
		{ 0, 0, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ 2, 0, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ OP_BACKCHANNEL_CTL, 0, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ OP_SEQUENCE, 0, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ 76, 2, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ 76, 2, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ UINT32_MAX, 0, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ OP_ALLOCATE, 1, OP_ILLEGAL, NFS4ERR_OP_ILLEGAL },
		{ OP_SETCLIENTID, 1, OP_SETCLIENTID, NFS4ERR_NOTSUPP },
		{ OP_OPEN_CONFIRM, 2, OP_OPEN_CONFIRM, NFS4ERR_NOTSUPP },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fix4_begin_bare(f, rows[i].minor, "");
		fix4_op(f, rows[i].op);
		cr_expect_eq(fix4_send(f), rows[i].status, "%s of 4.%u", nfs4_op_text(rows[i].op),
			     rows[i].minor);
		cr_expect_eq(fix4_result(f, rows[i].result), rows[i].status);
		whole();
	}
}

Test(nfs4_compound, positions_outside_of_a_session)
{
	NEED_FIXTURE();
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_OP_NOT_IN_SESSION);
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_DESTROY_CLIENTID);
	xdr_put_u64(&f->out, 1);
	fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOT_ONLY_OP);
}

Test(nfs4_compound, results_so_far_stay_when_one_fails)
{
	NEED_FIXTURE();
	fix4_begin(f, NULL);
	fix4_putfh(f, &f->root);
	fix4_lookup(f, "nothing");
	fix4_op(f, OP_GETFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOENT);
	cr_expect_eq(fix4_results_left(f), 2);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_LOOKUP), NFS4ERR_NOENT);
	whole();
}

Test(nfs4_compound, no_filehandle)
{
	static const uint32_t ops[] = { OP_GETFH, OP_SAVEFH, OP_LOOKUPP, OP_READLINK };

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		fix4_begin(f, NULL);
		fix4_op(f, ops[i]);
		cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE, "%s", nfs4_op_text(ops[i]));
	}
	fix4_begin(f, NULL);
	fix4_op(f, OP_RESTOREFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_RESTOREFH);
}

Test(nfs4_compound, arguments_that_do_not_decode)
{
	NEED_FIXTURE();
	fix4_begin(f, NULL);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_LOOKUP);
	xdr_put_u32(&f->out, 1000); /* length of a name whose bytes are missing */
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_LOOKUP), NFS4ERR_BADXDR);
	whole();
}

Test(nfs4_compound, more_operations_said_than_there_are)
{
	NEED_FIXTURE();
	fix4_begin_bare(f, 0, "");
	xdr_out_rewind(&f->out, xdr_out_pos(&f->out) - 4);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, OP_PUTROOTFH);
	fix4_resend(f);
	cr_expect_eq(f->outcome, FIX_REPLY);
	cr_expect_eq(fix4_result(f, OP_PUTROOTFH), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_ILLEGAL), NFS4ERR_BADXDR);
}

Test(nfs4_compound, too_many_operations)
{
	NEED_FIXTURE();
	fix4_begin(f, NULL);
	for (int i = 0; i < 129; i++)
		fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_RESOURCE);
	cr_expect_eq(fix4_results_left(f), 0);
	fix4_begin(f, NULL);
	for (int i = 0; i < 128; i++)
		fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	cr_expect_eq(fix4_results_left(f), 128);
}

Test(nfs4_compound, a_reply_that_does_not_fit_stops_before_the_change)
{
	struct xdr_out *c = &f->out;

	NEED_FIXTURE();
	/* Room for headers and PUTFH's result, and not for REMOVE's */
	f->reply_max = 24 + 12 + 8 + 20;
	make_file("x", "", 0600);
	fix4_begin(f, NULL);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_REMOVE);
	xdr_put_opaque(c, "x", 1);
	cr_expect_eq(fix4_send(f), NFS4ERR_RESOURCE);
	cr_expect(exists("x"));
}

Test(nfs4_compound, long_replies_grow)
{
	struct vfs_fh fh;
	char name[256];

	NEED_FIXTURE();
	memset(name, 'n', 255);
	name[255] = '\0';
	make_file(name, "", 0600);
	fix4_begin(f, NULL);
	for (int i = 0; i < 40; i++) {
		fix4_putfh(f, &f->root);
		fix4_lookup(f, name);
		fix4_op(f, OP_GETFH);
	}
	/* 120 operations, 40 handles */
	cr_assert_eq(fix4_send(f), NFS4_OK);
	for (int i = 0; i < 40; i++) {
		fix4_result(f, OP_PUTFH);
		fix4_result(f, OP_LOOKUP);
		cr_assert_eq(fix4_result(f, OP_GETFH), NFS4_OK);
		fix4_get_fh(f, &fh);
		cr_expect_gt(fh.len, 0);
	}
	whole();
}

/* A COMPOUND leaves the event thread for a long READ, after operations that it has run there. */
Test(nfs4_compound, a_long_read_moves_behind_others)
{
	static const struct nfs4_stateid anonymous;
	static char text[100001];
	struct vfs_fh fh;

	NEED_FIXTURE();
	memset(text, 'x', sizeof(text) - 1);
	make_file("x", text, 0600);
	fh = handle("x");
	f->on_event_thread = true;
	for (int i = 0; i < 2; i++) {
		fix4_begin(f, NULL);
		fix4_putfh(f, &fh);
		fix4_op(f, OP_READ);
		fix4_stateid(f, &anonymous);
		xdr_put_u64(&f->out, 0);
		xdr_put_u32(&f->out, sizeof(text));
		cr_expect_eq(fix4_send(f), NFS4_OK);
		cr_expect_eq(f->moved, 1);
		fix4_result(f, OP_PUTFH);
		cr_expect_eq(fix4_result(f, OP_READ), NFS4_OK);
		cr_expect(xdr_get_bool(&f->in));
		cr_expect_eq(xdr_get_u32(&f->in), sizeof(text) - 1);
	}
}
