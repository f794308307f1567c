/* SPDX-License-Identifier: BSD-2-Clause */
/* Many clients of few addresses and one of another address: shares of the limits on clients and
 * sessions. */
#include "lib/budget.h"
#include "nfs4/client/client_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_crowd);

static struct eid_result r;

static uint32_t exchange(const char *owner)
{
	const struct eid_args a = { .owner = owner, .verifier = "verf0001" };

	return call_exchange_id(f, NULL, &a, &r);
}

static uint32_t create(uint64_t clientid)
{
	const struct cs_args a = {
		.clientid = clientid, .seqid = 1, .fore = usual_channel, .back = usual_channel
	};
	struct cs_result out;

	return call_create_session(f, NULL, &a, &out);
}

Test(nfs4_crowd, who_registers_is_not_pushed_out_by_others)
{
	uint64_t mine;
	char name[32];

	NEED_FIXTURE();
	cr_assert_eq(exchange("mine"), NFS4_OK);
	mine = r.clientid;
	for (unsigned i = 0; i < 6000; i++) {
		fix_from(f, (uint8_t)(2 + i % 3));
		snprintf(name, sizeof(name), "bad %u", i);
		cr_assert_eq(exchange(name), NFS4_OK);
	}
	fix_from(f, 1);
	cr_expect_eq(create(mine), NFS4_OK);
}

/* Makes sessions from one address until the server refuses; returns their number. */
static unsigned crowd(uint8_t machine)
{
	struct fix4_session s;
	unsigned n = 0;
	char name[32];

	fix_from(f, machine);
	for (; n < 200; n++) {
		snprintf(name, sizeof(name), "%u of %u", n, machine);
		if (confirmed_client(f, name, "verf0001", &s) == 0)
			break;
	}
	return n;
}

Test(nfs4_crowd, sessions_of_many_do_not_keep_one_out)
{
	struct op_client one;
	struct op_owner owner = { .client = &one, .name = "owner", .seqid = 1 };
	const struct op_how how = { .fh = &f->root, .name = "file", .access = 3 };
	struct fix4_session s;
	struct op_file file;

	NEED_FIXTURE();
	make_file("file", "text", 0666);
	cr_assert_eq(op_client_new(f, &one, 1, "one"), NFS4_OK);
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	f->budget.max = f->budget.used + (5u << 19);
	for (uint8_t i = 0; i < 40; i++)
		crowd((uint8_t)(10 + i));
	fix_from(f, 2);
	for (unsigned i = 0; i < 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "late %u", i);
		cr_expect_neq(confirmed_client(f, name, "verf0001", &s), 0, "%u", i);
		cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	}
	/* A client with opens is never evicted. */
	fix_from(f, 1);
	cr_expect_eq(op_test_stateid(f, &one, &file.sid), NFS4_OK);
}

Test(nfs4_crowd, a_limit_of_sessions_is_shared)
{
	struct fix4_session s;
	struct nfs4_held held;

	NEED_FIXTURE();
	f->server4->cfg.max_sessions = 100;
	cr_expect_eq(crowd(10), 100);
	for (uint8_t i = 0; i < 40; i++) {
		char name[16];

		fix_from(f, (uint8_t)(20 + i));
		snprintf(name, sizeof(name), "late %u", i);
		cr_expect_neq(confirmed_client(f, name, "verf0001", &s), 0, "%u", i);
		cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	}
	nfs4_held(f->server4, &held);
	cr_expect_leq(held.sessions, 100);
	/* The address with most clients may not evict others. */
	fix_from(f, 10);
	cr_expect_eq(confirmed_client(f, "one more", "verf0001", &s), 0);
}
