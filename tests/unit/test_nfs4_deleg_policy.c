/* SPDX-License-Identifier: BSD-2-Clause */
/* How many delegations clients have to give back, and when. */
#include <criterion/criterion.h>

#include "nfs4/deleg/deleg_pressure.h"

Test(nfs4_deleg_policy, excess_begins_below_the_limit)
{
	cr_expect_eq(nfs4_deleg_excess(0, 0), 0u);
	cr_expect_eq(nfs4_deleg_excess(1, 1), 0u, "one of one is no excess");
	cr_expect_eq(nfs4_deleg_excess(700, 800), 0u);
	cr_expect_eq(nfs4_deleg_excess(701, 800), 101u, "three quarters are left");
	cr_expect_eq(nfs4_deleg_excess(800, 800), 200u);
	cr_expect_eq(nfs4_deleg_excess(900, 800), 300u);
	cr_expect_eq(nfs4_deleg_excess(UINT64_MAX, UINT64_MAX), UINT64_MAX / 8 * 2);
}

Test(nfs4_deleg_policy, memory_is_asked_for_from_those_who_have_it)
{
	struct nfs4_deleg_memory m = { .used = 700, .most = 800, .delegs = 60, .cost = 1 };

	cr_expect_eq(nfs4_deleg_memory_excess(&m), 0u, "there is enough");
	m.used = 750;
	cr_expect_eq(nfs4_deleg_memory_excess(&m), 10u, "a sixteenth is theirs");
	m.delegs = 50;
	cr_expect_eq(nfs4_deleg_memory_excess(&m), 0u);
	m.delegs = 700;
	cr_expect_eq(nfs4_deleg_memory_excess(&m), 150u);
	m.cost = 100;
	cr_expect_eq(nfs4_deleg_memory_excess(&m), 2u, "rounded up");
}

static void share(const uint32_t *has, unsigned n, uint32_t next, uint64_t excess,
		  const uint32_t *want)
{
	uint32_t give[4] = { 0 };

	nfs4_deleg_divide(has, n, next, excess, give);
	for (unsigned i = 0; i < n; i++)
		cr_expect_eq(give[i], want[i], "client %u of %u gives %u, not %u", i, n, give[i],
			     want[i]);
}

Test(nfs4_deleg_policy, who_has_most_gives_most)
{
	share((uint32_t[]){ 100 }, 1, 0, 30, (uint32_t[]){ 30 });
	share((uint32_t[]){ 100 }, 1, 0, 300, (uint32_t[]){ 100 });
	share((uint32_t[]){ 100, 10, 10, 10 }, 4, 10, 30, (uint32_t[]){ 30, 0, 0, 0 });
	share((uint32_t[]){ 100, 80, 8, 8 }, 4, 8, 60, (uint32_t[]){ 40, 20, 0, 0 });
	/* Down to the next client at first, */
	share((uint32_t[]){ 100, 90 }, 2, 80, 1000, (uint32_t[]){ 25, 23 });
	share((uint32_t[]){ 100, 90 }, 2, 20, 1000, (uint32_t[]){ 80, 70 });
	/* and all alike, a quarter each. */
	share((uint32_t[]){ 40, 40, 40, 40 }, 4, 40, 1000, (uint32_t[]){ 10, 10, 10, 10 });
	share((uint32_t[]){ 40, 40, 40, 40 }, 4, 40, 25, (uint32_t[]){ 10, 10, 5, 0 });
	share((uint32_t[]){ 1, 1, 1, 1 }, 4, 1, 3, (uint32_t[]){ 1, 1, 1, 0 });
	share((uint32_t[]){ 5 }, 1, 5, 0, (uint32_t[]){ 0 });
}

Test(nfs4_deleg_policy, a_client_is_asked_now_and_then)
{
	struct nfs4_deleg_asked a = { .keep = NFS4_DELEG_KEEP_ALL };

	cr_expect(nfs4_deleg_may_ask(&a, 10, 0), "it was never asked");
	a = (struct nfs4_deleg_asked){ .keep = 10, .since = 100, .last = 100 };
	cr_expect_not(nfs4_deleg_may_ask(&a, 5, 104));
	cr_expect(nfs4_deleg_may_ask(&a, 5, 105));
	cr_expect(nfs4_deleg_may_ask(&a, 10, 105));
	cr_expect_not(nfs4_deleg_may_ask(&a, 11, 105), "more changes nothing");
}

Test(nfs4_deleg_policy, taken_after_a_lease)
{
	struct nfs4_deleg_asked a = { .keep = 10, .since = 100, .last = 180 };

	cr_expect_eq(nfs4_deleg_to_take(&a, 20, 189, 90), 0u);
	cr_expect_eq(nfs4_deleg_to_take(&a, 20, 190, 90), 10u, "from the first request on");
	cr_expect_eq(nfs4_deleg_to_take(&a, 10, 190, 90), 0u);
	cr_expect_eq(nfs4_deleg_to_take(&a, 1000, 190, 90), NFS4_DELEG_TAKEN_AT_ONCE);
	a.deaf = true;
	cr_expect_eq(nfs4_deleg_to_take(&a, 20, 100, 90), 10u, "it cannot be asked");
	a.keep = NFS4_DELEG_KEEP_ALL;
	cr_expect_eq(nfs4_deleg_to_take(&a, 20, 190, 90), 0u);
}
