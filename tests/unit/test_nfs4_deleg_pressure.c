/* SPDX-License-Identifier: BSD-2-Clause */
/* Too many delegations: who is asked for them, and what happens to a client that does not return them. */
#include <stdio.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/deleg/deleg_pressure.h"
#include "tests/unit/kernel_can.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_deleg_pressure);

#define READ OPEN4_SHARE_ACCESS_READ
#define LEASE 90u
#define MANY 64u /* files at most */

static struct op_client greedy, modest;
static struct op_file file[2 * MANY];
static struct cb_call c;

static void begin(void)
{
	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	cbs_on(f);
	cr_assert_eq(op_client_new(f, &greedy, 1, "greedy"), NFS4_OK);
	cr_assert(cbs_take(&c));
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_assert_eq(op_client_new(f, &modest, 1, "modest"), NFS4_OK);
	cr_assert(cbs_take(&c));
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
}

/* The client has a delegation of each file from first on, n of them. */
static void hold(struct op_client *cl, unsigned first, unsigned n)
{
	struct op_owner owner = { cl, "owner", 1 };
	char name[16];

	for (unsigned i = first; i < first + n; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		make_file(name, "text", 0666);
		const struct op_how how = { .fh = &f->root, .name = name, .access = READ };

		cr_assert_eq(op_open(f, &owner, &how, &file[i]), NFS4_OK);
		cr_assert_eq(file[i].delegation, OPEN_DELEGATE_READ, "%u: why %u", i, file[i].why);
	}
}

static struct nfs4_deleg_holders *holders(void)
{
	return f->server4->deleg_holders;
}

static void tick(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		nfs4_skip_lease_time(f->server4, 1);
		if (i % 30 == 0) {
			cr_assert_neq(cbs_sequence(f, &greedy.session), UINT32_MAX);
			cr_assert_neq(cbs_sequence(f, &modest.session), UINT32_MAX);
		}
		nfs4_tick(f->server4);
	}
}

static uint32_t delegations(void)
{
	struct nfs4_held held;

	nfs4_held(f->server4, &held);
	return (uint32_t)held.delegations;
}

/* The next callback asks the client to keep so many. */
static void expect_asked(const struct op_client *cl, uint32_t keep)
{
	cr_assert(cbs_take(&c), "nobody is asked");
	cr_expect_eq(c.op, OP_CB_RECALL_ANY);
	cr_expect_arr_eq(c.session, cl->session.id, sizeof(c.session));
	cr_expect_eq(c.keep, keep, "%u", c.keep);
	cr_expect_eq(c.types, NFS4_ANY_READ);
}

static void give_back(struct op_client *cl, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		cr_assert_eq(op_delegreturn(f, cl, &file[i].fh, &file[i].deleg), NFS4_OK);
}

Test(nfs4_deleg_pressure, the_one_with_most_is_asked)
{
	NEED_FIXTURE();
	begin();
	holders()->max = 40;
	hold(&greedy, 0, 30);
	hold(&modest, 30, 5);
	tick(2);
	cr_expect_eq(cbs_count(), 0, "35 of 40 are not too many");
	hold(&modest, 35, 1);
	tick(1);
	expect_asked(&greedy, 24);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	tick(LEASE / 2);
	cr_expect_eq(cbs_count(), 0, "it was asked, and has time");
	give_back(&greedy, 0, 6);
	tick(2 * LEASE);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(delegations(), 30);
}

/* The bound of one client; the other does not come into it. */
Test(nfs4_deleg_pressure, a_client_near_its_own_bound)
{
	NEED_FIXTURE();
	begin();
	holders()->max_of_client = 16;
	hold(&modest, 0, 10);
	hold(&greedy, 20, 14);
	tick(2);
	cr_expect_eq(cbs_count(), 0);
	hold(&greedy, 34, 2);
	tick(1);
	expect_asked(&greedy, 12);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_not(
		nfs4_deleg_has_room(holders()->clients.tqh_first->client) &&
			nfs4_deleg_has_room(TAILQ_NEXT(holders()->clients.tqh_first, link)->client),
		"one of the two is full");
	give_back(&greedy, 20, 4);
	tick(2 * LEASE);
	cr_expect_eq(cbs_count(), 0);
}

/* Descriptors: only delegations for which the kernel has a lease count. */
Test(nfs4_deleg_pressure, descriptors)
{
	struct vfs_lease_usage room;

	NEED_FIXTURE();
	NEED_KERNEL_CAN(watch_files);
	begin();
	hold(&modest, 40, 20); /* where no leases are needed */
	cr_assert_eq(vfs_leases_start(f->vfs), 0);
	vfs_export_set_nfs_only(f->exp[0], false);
	vfs_set_fds(f->vfs, 256, 0, 16);
	hold(&greedy, 0, 15);
	room = vfs_lease_usage(f->vfs);
	cr_expect_eq(room.used, 15u);
	cr_expect_eq(room.most, 16u);
	tick(1);
	expect_asked(&greedy, 12);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	give_back(&greedy, 0, 3);
	tick(LEASE * 2);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(vfs_lease_usage(f->vfs).used, 12u);
	vfs_leases_stop(f->vfs);
}

/* A client that says that it will return some, and does not. */
Test(nfs4_deleg_pressure, taken_from_a_client_that_keeps_all)
{
	bool taken[MANY] = { false };
	unsigned n = 0;

	NEED_FIXTURE();
	begin();
	holders()->max = 40;
	hold(&greedy, 0, 36);
	tick(1);
	expect_asked(&greedy, 30);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	/* The first three are in use. */
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(op_read(f, &greedy, &file[i].fh, &file[i].deleg), NFS4_OK);
	tick(LEASE - 2);
	cr_expect_eq(cbs_count(), 0);
	tick(3);
	while (cbs_take(&c)) {
		cr_assert_eq(c.op, OP_CB_RECALL);
		for (unsigned i = 0; i < 36; i++) {
			if (memcmp(c.stateid.other, file[i].deleg.other, NFS4_OTHER_SIZE) == 0)
				taken[i] = true;
		}
		n++;
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	}
	cr_expect_eq(n, 6u, "%u recalled", n);
	for (unsigned i = 0; i < 36; i++)
		cr_expect_eq(taken[i], i >= 3 && i < 9, "%u", i);
	tick(LEASE + 5);
	cr_expect_eq(cbs_sequence(f, &greedy.session), SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
	tick(5);
	cr_expect_eq(cbs_count(), 0, "it has what it was to keep");
}

/* Whoever does not take the request is asked again, not at once; its time counts from the first. */
Test(nfs4_deleg_pressure, asked_again)
{
	static const uint32_t answers[] = { NFS4ERR_DELAY, NFS4ERR_NOTSUPP, NFS4ERR_INVAL };

	NEED_FIXTURE();
	begin();
	holders()->max = 40;
	hold(&greedy, 0, 36);
	tick(1);
	for (unsigned i = 0; i < 3; i++) {
		expect_asked(&greedy, 30);
		cbs_answer(f, &c, NFS4_OK, answers[i]);
		tick(2);
		cr_expect_eq(cbs_count(), 0, "after %u", answers[i]);
		tick(4);
	}
	expect_asked(&greedy, 30);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	tick(LEASE - 18);
	cr_expect_eq(cbs_count(), 6, "single ones");
}

/* The end of the client while it is asked. */
Test(nfs4_deleg_pressure, gone_while_it_is_asked)
{
	NEED_FIXTURE();
	begin();
	holders()->max = 40;
	hold(&greedy, 0, 36);
	tick(1);
	expect_asked(&greedy, 30);
	nfs4_forget_client(f->server4, greedy.clientid);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(delegations(), 0);
	cr_expect(TAILQ_EMPTY(&holders()->clients));
	nfs4_tick(f->server4);
	hold(&modest, 36, 3);
	cr_expect_eq(delegations(), 3);
}

/* A client that is away pays before others are asked. */
Test(nfs4_deleg_pressure, courtesy_clients_first)
{
	NEED_FIXTURE();
	begin();
	holders()->max = 40;
	hold(&modest, 0, 10);
	for (unsigned i = 0; i < 4; i++) {
		nfs4_skip_lease_time(f->server4, 40);
		cr_assert_neq(cbs_sequence(f, &greedy.session), UINT32_MAX);
		nfs4_tick(f->server4);
	}
	cr_expect_eq(delegations(), 10, "nobody needs them");
	hold(&greedy, 10, 26);
	for (unsigned i = 0; i < 3; i++)
		nfs4_tick(f->server4);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(delegations(), 26);
}

/* Four a second, of more clients that have as many. */
Test(nfs4_deleg_pressure, not_all_at_once)
{
	struct op_client crowd[8];
	char name[16];

	NEED_FIXTURE();
	begin();
	holders()->max = 80;
	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "crowd%u", i);
		cr_assert_eq(op_client_new(f, &crowd[i], 1, name), NFS4_OK);
		cr_assert(cbs_take(&c));
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
		hold(&crowd[i], 10 * i, 10);
	}
	nfs4_tick(f->server4);
	cr_expect_eq(cbs_count(), NFS4_DELEG_ASKED_AT_ONCE);
	nfs4_skip_lease_time(f->server4, 1);
	nfs4_tick(f->server4);
	cr_expect_gt(cbs_count(), NFS4_DELEG_ASKED_AT_ONCE);
	cr_expect_leq(cbs_count(), 2 * NFS4_DELEG_ASKED_AT_ONCE);
	nfs4_skip_lease_time(f->server4, 1);
	nfs4_tick(f->server4);
	cr_expect_leq(cbs_count(), 8, "20 are awaited");
}

/* There is no memory for one more: the client itself has to give some back. */
Test(nfs4_deleg_pressure, no_memory_for_more)
{
	struct nfs4_client *cl;

	NEED_FIXTURE();
	begin();
	hold(&greedy, 0, 8);
	cl = nfs4_client_by_number(f->server4, (uint32_t)greedy.clientid);
	cr_assert(cl);
	pthread_mutex_lock(&cl->lock);
	nfs4_deleg_refused(cl);
	pthread_mutex_unlock(&cl->lock);
	nfs4_client_put(cl);
	tick(1);
	expect_asked(&greedy, 5);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	give_back(&greedy, 0, 3);
	tick(2 * LEASE);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(delegations(), 5);
}
