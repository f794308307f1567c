/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that COMPOUND accepts from a host, by the host's admission (struct rpc_server). */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_admission);

static enum rpc_admission admission;

static enum rpc_admission tell(void *ctx, struct rpc_conn *conn)
{
	(void)ctx;
	(void)conn;
	return admission;
}

static void stand(enum rpc_admission s)
{
	admission = s;
	f->rpc.admission = tell;
}

/* Sends a COMPOUND of one operation without arguments, valid or not; returns its status. */
static uint32_t lone(uint32_t minor, uint32_t opnum)
{
	fix4_begin_bare(f, minor, "");
	fix4_op(f, opnum);
	return fix4_send(f);
}

static uint32_t exchange_id(void)
{
	const struct eid_args e = { .owner = "host", .verifier = "verf0001" };
	struct eid_result er;

	return call_exchange_id(f, NULL, &e, &er);
}

Test(nfs4_admission, while_it_is_not_known_a_client_is_told_to_come_again)
{
	NEED_FIXTURE();
	stand(RPC_UNKNOWN);
	cr_expect_eq(exchange_id(), NFS4ERR_DELAY);
	cr_expect_eq(lone(0, OP_PUTROOTFH), NFS4ERR_DELAY);
	cr_expect_eq(lone(0, OP_PUTPUBFH), NFS4ERR_DELAY);
	fix4_begin(f, NULL);
	fix4_putfh(f, &f->root);
	cr_expect_eq(fix4_send(f), NFS4_OK, "the export is asked for, and known");
	stand(RPC_ADMITTED);
	cr_expect_eq(exchange_id(), NFS4_OK);
	cr_expect_eq(lone(0, OP_PUTROOTFH), NFS4_OK);
}

/* No export is asked about the root of the pseudo file system, whose handle anybody may keep or
 * guess. So the admission must be. */
Test(nfs4_admission, while_it_is_not_known_the_pseudo_root_waits_too)
{
	struct fix4_session s;
	struct vfs_fh root;

	NEED_FIXTURE();
	cr_assert_eq(fix4_session_new(f, &s, 1, "host", true), NFS4_OK);
	fix4_begin(f, &s);
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_GETFH);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTROOTFH);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &root);
	stand(RPC_UNKNOWN);
	f->deny = true;
	fix4_begin(f, &s);
	fix4_putfh(f, &root);
	cr_expect_eq(fix4_send(f), NFS4ERR_DELAY);
	stand(RPC_ADMITTED);
	fix4_begin(f, &s);
	fix4_putfh(f, &root);
	cr_expect_eq(fix4_send(f), NFS4_OK);
}

Test(nfs4_admission, strangers_are_denied_everything)
{
	NEED_FIXTURE();
	stand(RPC_STRANGER);
	cr_expect_eq(lone(1, OP_EXCHANGE_ID), FIX4_NO_STATUS);
	cr_expect_eq(lone(0, OP_PUTROOTFH), FIX4_NO_STATUS);
	cr_expect_eq(lone(1, OP_SEQUENCE), FIX4_NO_STATUS);
	cr_expect_eq(lone(9, OP_ILLEGAL), FIX4_NO_STATUS);
	fix4_begin_bare(f, 1, "");
	cr_expect_eq(fix4_send(f), FIX4_NO_STATUS, "not even an empty one");
}

/* Sends one operation behind SEQUENCE. */
static uint32_t in_session(struct fix4_session *s, uint32_t opnum, uint32_t word)
{
	fix4_begin(f, s);
	fix4_op(f, opnum);
	xdr_put_u32(&f->out, word);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

Test(nfs4_admission, who_was_admitted_may_give_back_what_it_holds)
{
	struct fix4_session s;

	NEED_FIXTURE();
	cr_assert_eq(fix4_session_new(f, &s, 1, "host", true), NFS4_OK);
	stand(RPC_RECENT);
	cr_expect_eq(lone(1, OP_EXCHANGE_ID), FIX4_NO_STATUS);
	cr_expect_eq(lone(1, OP_CREATE_SESSION), FIX4_NO_STATUS);
	cr_expect_eq(lone(0, OP_SETCLIENTID), FIX4_NO_STATUS);
	cr_expect_eq(lone(0, OP_PUTROOTFH), FIX4_NO_STATUS);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	cr_expect_eq(in_session(&s, OP_TEST_STATEID, 0), NFS4_OK);
	cr_expect_eq(in_session(&s, OP_BACKCHANNEL_CTL, 0), NFS4ERR_SERVERFAULT);
	/* The export refuses every operation that needs it. */
	f->deny = true;
	fix4_begin(f, &s);
	fix4_putfh(f, &f->root);
	cr_expect_eq(fix4_send(f), NFS4ERR_STALE);
}
