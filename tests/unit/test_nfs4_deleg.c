/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations: recalled again and again, revoked when the time is up, taken with the client's state and with exports. */
#include <errno.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/kernel_can.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_deleg);

#define READ OPEN4_SHARE_ACCESS_READ
#define WRITE OPEN4_SHARE_ACCESS_WRITE
#define LEASE 90u

static struct op_client holder, other;
static struct op_owner owner, rival;
static struct op_file file, theirs;
static struct cb_call c;

static uint32_t open_as(struct op_owner *o, const char *name, uint32_t access, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = name, .access = access };

	return op_open(f, o, &how, out);
}

/* The holder, whose path is up, and another client. */
static void begin(void)
{
	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	cr_assert_eq(op_client_new(f, &other, 1, "other"), NFS4_OK);
	cbs_on(f);
	cr_assert_eq(op_client_new(f, &holder, 1, "holder"), NFS4_OK);
	if (cbs_take(&c)) /* RECLAIM_COMPLETE's SEQUENCE */
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	owner = (struct op_owner){ &holder, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
}

static void begin_delegated(void)
{
	begin();
	make_file("a", "text", 0666);
	cr_assert_eq(open_as(&owner, "a", READ, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
}

/* The other client's OPEN, which must wait, and the recall. */
static void recall(void)
{
	cr_assert_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_DELAY);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_RECALL);
	cr_expect_arr_eq(c.session, holder.session.id, sizeof(c.session));
	cr_expect_eq(c.nreferring, 1, "the holder may not have read the reply to its OPEN");
	cr_expect_arr_eq(c.ref_session, holder.session.id, sizeof(c.ref_session));
	cr_expect_eq(c.ref_slot, holder.session.slot);
	cr_expect_eq(c.stateid.seqid, file.deleg.seqid);
	cr_expect_arr_eq(c.stateid.other, file.deleg.other, NFS4_OTHER_SIZE);
	cr_expect_eq(c.fh.len, file.fh.len);
	cr_expect_arr_eq(c.fh.data, file.fh.data, c.fh.len);
}

/* Seconds go by in which both clients renew their leases. */
static void wait_seconds(unsigned seconds)
{
	for (unsigned left = seconds, step; left > 0; left -= step) {
		step = left > LEASE / 2 ? LEASE / 2 : left;
		nfs4_skip_lease_time(f->server4, step);
		cr_assert_neq(cbs_sequence(f, &holder.session), UINT32_MAX);
		cr_assert_neq(cbs_sequence(f, &other.session), UINT32_MAX);
	}
	nfs4_tick(f->server4);
}

static uint32_t delegations(void)
{
	struct nfs4_held held;

	nfs4_held(f->server4, &held);
	return (uint32_t)held.delegations;
}

Test(nfs4_deleg, returned)
{
	NEED_FIXTURE();
	begin_delegated();
	cr_expect_eq(delegations(), 1);
	recall();
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_DELAY);
	wait_seconds(2);
	cr_expect_eq(cbs_count(), 0, "the client knows");
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4_OK);
	cr_expect_eq(delegations(), 0);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4ERR_BAD_STATEID);
}

/* An OPEN that is refused in any case causes no recall. */
Test(nfs4_deleg, refused_without_a_recall)
{
	struct op_how how = { .fh = &f->root, .name = "a", .access = READ, .deny = WRITE };

	NEED_FIXTURE();
	begin();
	make_file("a", "text", 0644);
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_SHARE_DENIED);
	how.access = READ | WRITE;
	how.deny = READ;
	cr_expect_eq(op_open(f, &rival, &how, &theirs), NFS4ERR_SHARE_DENIED);
	how.access = READ;
	f->uid = f->gid = 1000;
	cr_expect_eq(op_open(f, &rival, &how, &theirs), NFS4ERR_ACCESS, "to deny needs to write");
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_ACCESS);
	f->uid = f->gid = 0;
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	recall();
}

/* Whatever the client answers but OK, it is told again, not at once. */
Test(nfs4_deleg, told_again)
{
	static const uint32_t answers[] = { NFS4ERR_DELAY, NFS4ERR_BAD_STATEID, NFS4ERR_BADHANDLE,
					    NFS4ERR_SERVERFAULT };

	NEED_FIXTURE();
	begin_delegated();
	recall();
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		cbs_answer(f, &c, NFS4_OK, answers[i]);
		nfs4_tick(f->server4);
		cr_expect_eq(cbs_count(), 0);
		nfs4_skip_lease_time(f->server4, 2);
		nfs4_tick(f->server4);
		cr_assert(cbs_take(&c), "after status %u", answers[i]);
		cr_expect_eq(c.op, OP_CB_RECALL);
	}
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	wait_seconds(2);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
}

/* Binds the connection to both channels of the holder's session. */
static uint32_t bind_conn(void)
{
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_BIND_CONN_TO_SESSION);
	xdr_put_fixed(&f->out, holder.session.id, sizeof(holder.session.id));
	xdr_put_u32(&f->out, 3);
	xdr_put_bool(&f->out, false);
	return fix4_send(f);
}

/* The path is lost before the recall, and comes back in time. */
Test(nfs4_deleg, told_when_it_is_back)
{
	NEED_FIXTURE();
	begin_delegated();
	cbs_refuse(-ENOTCONN);
	cr_assert_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_DELAY);
	cr_expect_eq(cbs_count(), 0);
	cbs_refuse(0);
	cbs_lose(f);
	cr_assert_eq(bind_conn(), NFS4_OK);
	nfs4_skip_lease_time(f->server4, 2);
	nfs4_tick(f->server4);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_RECALL);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
}

Test(nfs4_deleg, revoked_after_a_lease)
{
	NEED_FIXTURE();
	begin_delegated();
	recall();
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	wait_seconds(LEASE - 5);
	cr_expect_eq(cbs_sequence(f, &holder.session), 0);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_DELAY);
	wait_seconds(10);
	cr_expect_eq(cbs_sequence(f, &holder.session), SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
	cr_expect_eq(cbs_sequence(f, &other.session), 0);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &holder, &file.deleg), NFS4ERR_DELEG_REVOKED);
	cr_expect_eq(op_test_stateid(f, &holder, &file.sid), NFS4_OK, "the open stays");
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4ERR_DELEG_REVOKED);
	cr_expect_eq(op_free_stateid(f, &holder, &file.deleg), NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &holder.session), 0);
	cr_expect_eq(delegations(), 0);
}

/* A local process goes on earlier than after a lease. */
Test(nfs4_deleg, revoked_before_others_go_on)
{
	struct nfs4_client *cl;

	NEED_FIXTURE();
	begin_delegated();
	recall();
	cl = nfs4_client_by_number(f->server4, (uint32_t)holder.clientid);
	cr_assert(cl);
	TAILQ_FIRST(&cl->holdings->recalls.all)->vfs.within_s = 20;
	nfs4_client_put(cl);
	wait_seconds(15);
	cr_expect_eq(cbs_sequence(f, &holder.session), 0);
	wait_seconds(10);
	cr_expect_eq(cbs_sequence(f, &holder.session), SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
}

/* Several delegations whose time is up, behind several that have time left: each is looked at a few times,
 * however many others there are. */
Test(nfs4_deleg, many_are_revoked_in_one_walk)
{
	enum { MANY = 32 };
	static struct op_file files[MANY];
	struct nfs4_client *cl;
	struct nfs4_deleg *d;
	unsigned i = 0;

	NEED_FIXTURE();
	begin();
	for (i = 0; i < MANY; i++) {
		const char name[2] = { (char)('A' + i), '\0' };

		make_file(name, "text", 0666);
		cr_assert_eq(open_as(&owner, name, READ, &files[i]), NFS4_OK);
		cr_assert_eq(files[i].delegation, OPEN_DELEGATE_READ);
	}
	/* Now: the recall of one keeps delegations from files that share its slot. */
	for (i = 0; i < MANY; i++) {
		const char name[2] = { (char)('A' + i), '\0' };

		cr_assert_eq(open_as(&rival, name, WRITE, &theirs), NFS4ERR_DELAY);
		cr_assert(cbs_take(&c));
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	}
	cl = nfs4_client_by_number(f->server4, (uint32_t)holder.clientid);
	cr_assert(cl);
	i = 0;
	TAILQ_FOREACH (d, &cl->holdings->recalls.all, recall_link)
		d->vfs.within_s = i++ < MANY / 2 ? 0 : 20;
	cr_assert_eq(i, MANY);
	cl->holdings->recalls.looks = 0;
	wait_seconds(25);
	cr_expect_leq(cl->holdings->recalls.looks, 2 * MANY, "%u", cl->holdings->recalls.looks);
	for (i = 0; i < MANY; i++)
		cr_expect_eq(op_test_stateid(f, &holder, &files[i].deleg),
			     i < MANY / 2 ? NFS4_OK : NFS4ERR_DELEG_REVOKED, "%u", i);
	nfs4_client_put(cl);
}

/* The lease of the holder itself has run out: all its state goes as soon as it is in the way. */
Test(nfs4_deleg, of_a_client_that_is_away)
{
	NEED_FIXTURE();
	begin_delegated();
	for (unsigned i = 0; i < 3; i++) {
		nfs4_skip_lease_time(f->server4, 40);
		cr_assert_neq(cbs_sequence(f, &other.session), UINT32_MAX);
		nfs4_tick(f->server4);
	}
	cr_expect_eq(delegations(), 1);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4ERR_DELAY);
	nfs4_tick(f->server4);
	cr_expect_eq(delegations(), 0);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4_OK);
}

/* Revoked by the administrator, with the opens; and gone with the client. */
Test(nfs4_deleg, taken)
{
	const struct nfs4_revocation all = { .status = NFS4ERR_ADMIN_REVOKED };
	struct op_how how = { .access = READ, .claim = OP_DCUR_FH, .delegated = &file.deleg };
	struct nfs4_client *cl;

	NEED_FIXTURE();
	begin_delegated();
	cl = nfs4_client_by_number(f->server4, (uint32_t)holder.clientid);
	cr_assert(cl);
	cr_expect_eq(nfs4_holdings_revoke(cl, &all), 1, "one open");
	nfs4_client_put(cl);
	cr_expect_eq(op_test_stateid(f, &holder, &file.deleg), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4ERR_ADMIN_REVOKED);
	how.fh = &file.fh;
	cr_expect_eq(op_open(f, &owner, &how, &theirs), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(cbs_sequence(f, &holder.session), SEQ4_STATUS_ADMIN_STATE_REVOKED);
	cr_expect_eq(open_as(&rival, "a", WRITE, &theirs), NFS4_OK);
	cr_expect_eq(op_free_stateid(f, &holder, &file.deleg), NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &holder.session), SEQ4_STATUS_ADMIN_STATE_REVOKED, "the open");
	cr_expect_eq(delegations(), 0);
	cr_expect_eq(op_close(f, &rival, &theirs), NFS4_OK);
	make_file("b", "text", 0666);
	cr_assert_eq(open_as(&owner, "b", READ, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
	cr_expect_eq(nfs4_forget_client(f->server4, holder.clientid), 0);
	cr_expect_eq(delegations(), 0);
	cr_expect_eq(open_as(&rival, "b", WRITE, &theirs), NFS4_OK);
}

/* Others than the user of the OPEN read by the delegation as far as the file's mode allows. */
Test(nfs4_deleg, of_another_user)
{
	NEED_FIXTURE();
	begin();
	make_file("a", "text", 0600);
	cr_assert_eq(open_as(&owner, "a", READ, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
	cr_expect_eq(op_read(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(op_write(f, &holder, &file.fh, &file.deleg), NFS4ERR_OPENMODE);
	f->uid = f->gid = 1000;
	cr_expect_eq(op_read(f, &holder, &file.fh, &file.deleg), NFS4ERR_ACCESS);
}

/* Claims: of the holder, by name and by handle; of a delegation that is none. */
Test(nfs4_deleg, claimed)
{
	struct op_how how = { .access = READ, .claim = OP_DCUR_FH };
	struct nfs4_stateid old;
	struct op_file got;

	NEED_FIXTURE();
	begin_delegated();
	make_file("b", "text", 0666);
	how.fh = &file.fh;
	how.delegated = &file.deleg;
	recall();
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4_OK);
	cr_expect_eq(got.delegation, OPEN_DELEGATE_NONE);
	how.access = READ | WRITE; /* checked as any OPEN to write */
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4_OK);
	how = (struct op_how){ .fh = &f->root,
			       .name = "a",
			       .access = READ,
			       .claim = OP_DELEG_CUR,
			       .delegated = &file.deleg };
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4_OK);
	how.name = "b";
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4ERR_BAD_STATEID, "another file");
	how.name = "a";
	cr_expect_eq(op_open(f, &rival, &how, &got), NFS4ERR_BAD_STATEID, "another client's");
	how.delegated = &file.sid;
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4ERR_BAD_STATEID, "an open");
	old = file.deleg;
	old.seqid = UINT32_MAX;
	how.delegated = &old;
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4ERR_OLD_STATEID);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &old), NFS4ERR_OLD_STATEID);
	cr_expect_eq(op_delegreturn(f, &holder, &f->root, &file.deleg), NFS4ERR_BAD_STATEID);
	wait_seconds(LEASE + 5);
	how.delegated = &file.deleg;
	cr_expect_eq(op_open(f, &owner, &how, &got), NFS4ERR_DELEG_REVOKED);
}

/* An event thread's worker leaves an OPEN to another that may get a delegation, and only such. */
Test(nfs4_deleg, event_worker)
{
	NEED_FIXTURE();
	NEED_KERNEL_CAN(open_cached);
	begin();
	make_file("a", "text", 0666);
	f->on_event_thread = true;
	f->moved = 0;
	cr_assert_eq(open_as(&owner, "a", READ, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_READ);
	cr_expect_eq(f->moved, 1);
	cr_expect_eq(file.sid.seqid, 1);
	f->moved = 0;
	cr_assert_eq(open_as(&owner, "a", READ, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_NONE);
	cr_expect_eq(f->moved, 0);
	f->on_event_thread = false;
}

enum { CLAIM_PREVIOUS = 1, CLAIM_FH = 4, CLAIM_DELEG_PREV_FH = 6 };

static uint32_t want(struct fix4_session *s, const struct vfs_fh *fh, uint32_t bits, uint32_t claim)
{
	uint32_t status;

	fix4_begin(f, s);
	fix4_putfh(f, fh);
	fix4_op(f, OP_WANT_DELEGATION);
	xdr_put_u32(&f->out, bits);
	xdr_put_u32(&f->out, claim);
	if (claim == CLAIM_PREVIOUS)
		xdr_put_u32(&f->out, OPEN_DELEGATE_READ);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_WANT_DELEGATION);
	op_get_delegation(f, &theirs);
	return status;
}

Test(nfs4_deleg, wanted)
{
	static const uint32_t wrong[] = { 0, OPEN4_SHARE_ACCESS_READ,
					  OPEN4_SHARE_ACCESS_WANT_NO_DELEG, 0x600, 1u << 20 };
	const uint32_t bits = OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
	struct fix4_session *s = &holder.session, fresh;

	NEED_FIXTURE();
	begin();
	make_file("a", "text", 0666);
	cr_assert_eq(open_as(&owner, "a", READ | OPEN4_SHARE_ACCESS_WANT_NO_DELEG, &file), NFS4_OK);
	cr_expect_eq(file.why, WND4_NOT_WANTED);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(want(s, &file.fh, wrong[i], CLAIM_FH), NFS4ERR_INVAL, "%x", wrong[i]);
	cr_expect_eq(want(s, &file.fh, bits, CLAIM_PREVIOUS), NFS4ERR_NO_GRACE);
	cr_expect_eq(want(s, &file.fh, bits, CLAIM_DELEG_PREV_FH), NFS4ERR_NOTSUPP);
	cr_expect_eq(want(s, &file.fh, bits, 9), NFS4ERR_BADXDR);
	cr_expect_eq(want(s, &f->root, bits, CLAIM_FH), NFS4_OK);
	cr_expect_eq(theirs.why, WND4_IS_DIR);
	cr_assert_eq(fix4_session_new(f, &fresh, 1, "has not reclaimed", false), NFS4_OK);
	cr_expect_eq(want(&fresh, &file.fh, bits, CLAIM_FH), NFS4ERR_GRACE);
	cr_expect_eq(want(s, &file.fh, bits, CLAIM_FH), NFS4_OK);
	cr_expect_eq(theirs.delegation, OPEN_DELEGATE_READ);
	cr_expect_eq(op_read(f, &holder, &file.fh, &theirs.deleg), NFS4_OK);
	file.deleg = theirs.deleg;
	cr_expect_eq(want(s, &file.fh, bits, CLAIM_FH), NFS4_OK);
	cr_expect_eq(theirs.why, WND4_CONTENTION, "it has one");
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	f->uid = f->gid = 1000;
	make_file("b", "text", 0600);
	cr_expect_eq(want(s, &(struct vfs_fh){ 0 }, bits, CLAIM_FH), NFS4ERR_BADHANDLE);
}
