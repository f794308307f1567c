/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases: renewal, expiry, courtesy and what follows (RFC 7530 section 9.6.3, RFC 8881 section 8.3
 * and 8.4). */
#include "nfs4/client/client_table.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_lease);

#define LEASE 90u
#define OVER (LEASE + 4u) /* margin for rounding, and the wheel's two seconds */

static struct nfs4_server *srv(void)
{
	return f->server4;
}

static void pass(uint64_t seconds)
{
	nfs4_clients_skip_time(srv(), seconds);
	nfs4_tick(srv());
}

static struct nfs4_held held(void)
{
	struct nfs4_held h;

	nfs4_held(srv(), &h);
	return h;
}

static enum nfs4_client_status status_of(uint64_t clientid)
{
	struct nfs4_client *cl = nfs4_client_get(srv()->clients, clientid);
	enum nfs4_client_status status = cl ? nfs4_client_status(cl) : NFS4_CLIENT_GONE;

	nfs4_client_put(cl);
	return status;
}

static enum nfs4_expire conflict(uint64_t clientid)
{
	struct nfs4_client *cl = nfs4_client_get(srv()->clients, clientid);
	enum nfs4_expire what;

	cr_assert_not_null(cl);
	what = nfs4_client_expire_courtesy(srv(), cl);
	nfs4_client_put(cl);
	return what;
}

static uint64_t old_client(const char *owner)
{
	const struct scid_args a = { .owner = owner, .verifier = "verf0001" };
	struct scid_result r;

	cr_assert_eq(call_setclientid(f, &a, &r), NFS4_OK);
	cr_assert_eq(call_setclientid_confirm(f, &r), NFS4_OK);
	return r.clientid;
}

Test(nfs4_lease, renewing_keeps_it)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	id = old_client("two");
	for (unsigned i = 0; i < 5; i++) {
		pass(LEASE - 10);
		cr_expect_eq(status_of(s.clientid), NFS4_CLIENT_ACTIVE);
		cr_expect_eq(status_of(id), NFS4_CLIENT_ACTIVE);
		cr_expect_eq(call_sequence(f, &s), NFS4_OK);
		cr_expect_eq(call_renew(f, id), NFS4_OK);
	}
	/* A SEQUENCE that fails does not renew the lease. */
	pass(LEASE - 10);
	s.seqid += 5;
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_SEQ_MISORDERED);
	pass(20);
	cr_expect_eq(status_of(s.clientid), NFS4_CLIENT_COURTESY);
}

Test(nfs4_lease, by_courtesy_nothing_is_lost)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	id = old_client("two");
	pass(OVER);
	cr_expect_eq(status_of(s.clientid), NFS4_CLIENT_COURTESY);
	cr_expect_eq(status_of(id), NFS4_CLIENT_COURTESY);
	cr_expect_eq(held().clients, 2);
	cr_expect_eq(held().courtesy_clients, 2);
	cr_expect_eq(held().sessions, 1);
	pass(20000);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	cr_expect_eq(s.status_flags, 0);
	cr_expect_eq(call_renew(f, id), NFS4_OK);
	cr_expect_eq(held().courtesy_clients, 0);
	cr_expect_eq(conflict(s.clientid), NFS4_HOLDS);
	/* The lease runs again. */
	pass(OVER);
	cr_expect_eq(held().courtesy_clients, 2);
}

Test(nfs4_lease, until_somebody_conflicts)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	id = old_client("two");
	cr_expect_eq(conflict(s.clientid), NFS4_HOLDS);
	cr_expect_eq(conflict(id), NFS4_HOLDS);
	pass(OVER);
	cr_expect_eq(conflict(s.clientid), NFS4_DROPPED);
	cr_expect_eq(conflict(id), NFS4_DROPPED);
	cr_expect_eq(conflict(id), NFS4_DROPPED);
	/* SEQUENCE's flags report the loss. */
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(call_sequence(f, &s), NFS4_OK);
		cr_expect_eq(s.status_flags, SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED);
		cr_expect_eq(call_renew(f, id), NFS4ERR_EXPIRED);
	}
	/* Later the clients are forgotten. */
	pass(4 * LEASE + 1);
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
	cr_expect_eq(call_renew(f, id), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(held().clients, 0);
	cr_expect_eq(held().sessions, 0);
}

/* The lease has ended, but the wheel's tick has not yet come. */
Test(nfs4_lease, a_conflict_just_after_its_end)
{
	uint64_t id;

	NEED_FIXTURE();
	id = old_client("two");
	nfs4_clients_skip_time(srv(), LEASE - 1);
	cr_expect_eq(conflict(id), NFS4_HOLDS);
	nfs4_clients_skip_time(srv(), 3);
	cr_expect_eq(conflict(id), NFS4_DROPPED);
	pass(3);
	cr_expect_eq(call_renew(f, id), NFS4ERR_EXPIRED);
}

Test(nfs4_lease, an_expired_client_starts_anew)
{
	struct fix4_session s, t;
	const struct eid_args e = { .owner = "one", .verifier = "verf0001" };
	struct eid_result er;
	uint64_t id;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	id = old_client("two");
	pass(OVER);
	conflict(s.clientid);
	conflict(id);
	/* EXCHANGE_ID with the same owner and verifier makes a new client. */
	cr_expect_eq(call_exchange_id(f, NULL, &e, &er), NFS4_OK);
	cr_expect_eq(er.flags, EXCHGID4_FLAG_USE_NON_PNFS);
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &t), 0);
	cr_expect_neq(t.clientid, s.clientid);
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
	cr_expect_eq(call_sequence(f, &t), NFS4_OK);
	cr_expect_eq(t.status_flags, 0);
	cr_expect_neq(old_client("two"), id);
	cr_expect_eq(call_renew(f, id), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(held().clients, 2);
}

Test(nfs4_lease, a_day_is_enough)
{
	struct fix4_session s;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	pass(OVER);
	pass(COURTESY_SECONDS - 10);
	cr_expect_eq(status_of(s.clientid), NFS4_CLIENT_COURTESY);
	pass(20);
	cr_expect_eq(status_of(s.clientid), NFS4_CLIENT_GONE);
	cr_expect_eq(held().sessions, 0);
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
}

static void outlast_a_call(uint64_t clientid)
{
	static struct nfs4_compound c;
	struct nfs4_client *cl = nfs4_client_get(srv()->clients, clientid);

	cr_assert_not_null(cl);
	nfs4_client_call_begins(cl, &c);
	pass(OVER);
	cr_expect_eq(status_of(clientid), NFS4_CLIENT_ACTIVE);
	cr_expect_eq(conflict(clientid), NFS4_HOLDS);
	nfs4_client_call_ends(&c);
	cr_expect_null(c.client);
	pass(LEASE - 4);
	cr_expect_eq(status_of(clientid), NFS4_CLIENT_ACTIVE, "renewed as the call ended");
	pass(OVER);
	cr_expect_eq(status_of(clientid), NFS4_CLIENT_COURTESY);
}

Test(nfs4_lease, it_does_not_run_out_within_a_compound)
{
	struct fix4_session s;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	outlast_a_call(s.clientid);
}

Test(nfs4_lease, nor_within_one_of_minor_version_0)
{
	NEED_FIXTURE();
	outlast_a_call(old_client("one"));
}

Test(nfs4_lease, unconfirmed_ones_have_a_lease_to_confirm)
{
	const struct eid_args e = { .owner = "one", .verifier = "verf0001" };
	struct cs_args a = { .fore = usual_channel, .back = usual_channel };
	struct eid_result er;
	struct cs_result cr;
	size_t used;

	NEED_FIXTURE();
	used = f->budget.used;
	cr_assert_eq(call_exchange_id(f, NULL, &e, &er), NFS4_OK);
	cr_expect_gt(f->budget.used, used);
	pass(LEASE - 5);
	cr_expect_gt(f->budget.used, used);
	pass(10);
	cr_expect_eq(f->budget.used, used);
	a.clientid = er.clientid;
	a.seqid = er.seqid;
	cr_expect_eq(call_create_session(f, NULL, &a, &cr), NFS4ERR_STALE_CLIENTID);
}

/* A host that needs memory gets that of courtesy clients, the oldest first. */
Test(nfs4_lease, courtesy_ends_when_memory_does)
{
	struct fix4_session old, young, s;
	size_t max, each;

	NEED_FIXTURE();
	each = f->budget.used;
	cr_assert_neq(confirmed_client(f, "old", "verf0001", &old), 0);
	each = f->budget.used - each;
	pass(OVER);
	cr_assert_neq(confirmed_client(f, "young", "verf0001", &young), 0);
	pass(OVER);
	cr_expect_eq(held().courtesy_clients, 2);
	max = f->budget.max;
	/* The budget has half of what a client needs; the rest must come from courtesy clients. */
	f->budget.max = f->budget.used + each / 2;
	fix_from(f, 2);
	cr_expect_neq(confirmed_client(f, "new", "verf0001", &s), 0);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	f->budget.max = max;
	cr_expect_eq(status_of(old.clientid), NFS4_CLIENT_GONE);
	cr_expect_eq(status_of(young.clientid), NFS4_CLIENT_COURTESY);
	cr_expect_eq(call_sequence(f, &young), NFS4_OK);
}

/* The name's new client has another principal. */
Test(nfs4_lease, its_name_is_free_when_it_is_over)
{
	struct fix4_session s, t;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	pass(OVER);
	f->uid = 1000;
	cr_expect_neq(confirmed_client(f, "one", "verf0001", &t), 0);
	cr_expect_eq(status_of(s.clientid), NFS4_CLIENT_GONE);
	cr_expect_eq(call_sequence(f, &t), NFS4_OK);
}

/* After a restart ids of the old run are unknown, and answered as stale. */
Test(nfs4_lease, another_run)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	cr_assert_neq(confirmed_client(f, "one", "verf0001", &s), 0);
	id = old_client("two");
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
	cr_expect_eq(call_renew(f, id), NFS4ERR_STALE_CLIENTID);
}
