/* SPDX-License-Identifier: BSD-2-Clause */
/* Loss of state: leases that run out, memory that is short, a server that has restarted. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_lost);

#define READ OPEN4_SHARE_ACCESS_READ
#define BOTH OPEN4_SHARE_ACCESS_BOTH
#define WRITE_LT 2

static struct op_client client, other;
static struct op_owner owner, rival, locker, rivals;
static struct op_file file, theirs;
static struct nfs4_stateid lock;
static const struct op_range ten = { .type = WRITE_LT, .length = 10 };
static uint32_t minor;

static uint32_t open_a(struct op_owner *o, uint32_t deny, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .deny = deny };

	return op_open(f, o, &how, out);
}

/* One client has the file open and locked, and falls silent. */
static void begin(uint32_t deny)
{
	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	fix_from(f, 2);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	fix_from(f, 1);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	locker = (struct op_owner){ &client, "locker", 1 };
	rivals = (struct op_owner){ &other, "rival's", 1 };
	make_file("a", "text", 0666);
	cr_assert_eq(open_a(&owner, deny, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
}

static void lease_runs_out(void)
{
	for (int i = 0; i < 2; i++) {
		nfs4_clients_skip_time(f->server4, 60);
		cr_assert_eq(op_lockt(f, &rivals, &file.fh,
				      &(struct op_range){ .type = 1, .offset = 100, .length = 1 },
				      NULL),
			     NFS4_OK);
	}
	nfs4_tick(f->server4);
}

OP_MINORS_TEST(nfs4_lost, nobody_wants_it_so_it_stays)
{
	begin(OPEN4_SHARE_DENY_WRITE);
	lease_runs_out();
	cr_expect_eq(op_write(f, &client, &file.fh, &lock), NFS4_OK);
	cr_expect_eq(open_a(&rival, 0, &theirs), NFS4ERR_SHARE_DENIED);
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

static void expect_lost(void)
{
	const uint32_t want = NFS4ERR_EXPIRED;

	cr_expect_eq(op_write(f, &client, &file.fh, &lock), want);
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), want);
	cr_expect_eq(op_close(f, &owner, &file), want);
	cr_expect_eq(open_a(&owner, 0, &file), want);
}

OP_MINORS_TEST(nfs4_lost, an_open_gives_way)
{
	begin(OPEN4_SHARE_DENY_WRITE);
	lease_runs_out();
	cr_expect_eq(open_a(&rival, 0, &theirs), NFS4_OK);
	expect_lost();
}

OP_MINORS_TEST(nfs4_lost, a_lock_gives_way)
{
	struct nfs4_stateid sid;

	begin(0);
	cr_assert_eq(open_a(&rival, 0, &theirs), NFS4_OK);
	lease_runs_out();
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &sid, NULL), NFS4_OK);
	expect_lost();
}

OP_MINORS_TEST(nfs4_lost, a_tested_lock_gives_way)
{
	begin(0);
	lease_runs_out();
	cr_expect_eq(op_lockt(f, &rivals, &file.fh, &ten, NULL), NFS4_OK);
	expect_lost();
}

OP_MINORS_TEST(nfs4_lost, an_anonymous_write_takes_it)
{
	static const struct nfs4_stateid anonymous;

	begin(OPEN4_SHARE_DENY_WRITE);
	cr_expect_eq(op_write(f, &other, &file.fh, &anonymous), NFS4ERR_LOCKED);
	lease_runs_out();
	cr_expect_eq(op_write(f, &other, &file.fh, &anonymous), NFS4_OK);
	expect_lost();
}

OP_MINORS_TEST(nfs4_lost, after_a_restart_it_is_told)
{
	begin(0);
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
	if (minor == 0) {
		cr_expect_eq(op_write(f, &client, &file.fh, &lock), NFS4ERR_STALE_STATEID);
		cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_STALE_STATEID);
		cr_expect_eq(open_a(&owner, 0, &file), NFS4ERR_STALE_CLIENTID);
		cr_expect_eq(op_lockt(f, &locker, &file.fh, &ten, NULL), NFS4ERR_STALE_CLIENTID);
	} else {
		cr_expect_eq(op_write(f, &client, &file.fh, &lock), NFS4ERR_BADSESSION);
	}
}

/*
 * State is revoked, by the administrator for example. The client stays, and frees the lost state.
 */
static void revoked(void)
{
	const struct nfs4_revocation all = { .status = NFS4ERR_ADMIN_REVOKED };
	struct nfs4_client *cl;

	begin(OPEN4_SHARE_DENY_WRITE);
	cl = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
	cr_assert(cl);
	cr_expect_eq(nfs4_holdings_revoke(cl, &all), 1);
	cr_expect(nfs4_holdings_have_revoked(cl->holdings, all.status));
	cr_expect_eq(op_write(f, &client, &file.fh, &lock), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_test_stateid(f, &client, &file.sid), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(open_a(&rival, 0, &theirs), NFS4_OK);
	/* A new open of the file gets another stateid. */
	cr_expect_eq(open_a(&owner, 0, &theirs), NFS4_OK);
	cr_expect_arr_neq(theirs.sid.other, file.sid.other, NFS4_OTHER_SIZE);
	cr_expect_eq(op_free_stateid(f, &client, &lock), NFS4_OK);
	cr_expect(nfs4_holdings_have_revoked(cl->holdings, all.status));
	cr_expect_eq(op_free_stateid(f, &client, &file.sid), NFS4_OK);
	cr_expect_not(nfs4_holdings_have_revoked(cl->holdings, all.status));
	cr_expect_eq(op_test_stateid(f, &client, &lock), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_close(f, &owner, &theirs), NFS4_OK);
	nfs4_client_put(cl);
}

Test(nfs4_lost, revoked_stateids_are_freed_v41)
{
	NEED_FIXTURE();
	minor = 1;
	revoked();
}

Test(nfs4_lost, revoked_stateids_are_freed_v42)
{
	NEED_FIXTURE();
	minor = 2;
	revoked();
}

/* One host cannot take all memory; other hosts can still open files. */
OP_MINORS_TEST(nfs4_lost, a_machine_gets_half_of_the_memory)
{
	const struct op_range odd = { .type = WRITE_LT, .length = 1 };
	struct op_range r = odd;
	uint32_t status = NFS4_OK;
	struct op_client again;
	struct op_file mine;
	size_t before, more;
	int n;

	begin(0);
	cr_assert_eq(op_client_new(f, &again, minor, "once more"), NFS4_OK);
	before = f->budget.used;
	/* Large enough that half of it exceeds the reserve. */
	more = before / 4 + (64u << 10);
	f->budget.max = before + more;
	for (n = 1; n < 100000 && status == NFS4_OK; n++) {
		r.offset = 20 + 2 * (uint64_t)n;
		status = op_lock(f, &locker, &file.fh, &r, &lock, NULL);
	}
	cr_expect_eq(status, minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_DELAY);
	cr_expect_lt(f->budget.used - before, more / 16 * 9);
	cr_expect_gt(f->budget.used - before, more / 16 * 6);
	cr_expect_eq(open_a(&rival, 0, &theirs), NFS4_OK);
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs,
				   &(struct op_range){ .type = 1, .offset = 5000, .length = 1 },
				   &lock, NULL),
		     NFS4_OK);
	/* Another client of the same host gets no memory, either. */
	owner.client = &again;
	cr_expect_eq(open_a(&owner, 0, &mine), minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_DELAY);
	owner.client = &client;
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK); /* frees all of its memory */
	owner.client = &again;
	cr_expect_eq(open_a(&owner, 0, &mine), NFS4_OK);
	cr_expect_lt(f->budget.used - before, 6u << 10);
}
