/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the lock manager that hosts share. */
#include <criterion/criterion.h>
#include <string.h>

#include "nfs3/nlm/owners.h"

#define MAX 1000u

static const struct rpc_address *v4(uint8_t last)
{
	static struct rpc_address addr;

	memset(&addr, 0, sizeof(addr));
	addr.bytes[10] = addr.bytes[11] = 0xff;
	addr.bytes[15] = last;
	return &addr;
}

static const struct rpc_address *v6(uint8_t net, uint8_t last)
{
	static struct rpc_address addr;

	memset(&addr, 0, sizeof(addr));
	addr.bytes[0] = 0x20;
	addr.bytes[7] = net;
	addr.bytes[15] = last;
	return &addr;
}

static unsigned fill(struct nlm_memory *r, const struct rpc_address *addr)
{
	unsigned n = 0;

	while (nlm_memory_take(r, addr, 10))
		n++;
	cr_expect_not(nlm_memory_fits(r, addr, 10));
	return n;
}

Test(nlm_memory, a_host_leaves_as_much_as_it_has)
{
	struct nlm_memory r;

	nlm_memory_init(&r, MAX);
	cr_expect_eq(fill(&r, v4(1)), 37);
	cr_expect_eq(fill(&r, v4(2)), 19);
	cr_expect_gt(fill(&r, v4(3)), 0);
	cr_expect_leq(r.used, MAX);
	/* Memory that one host gives back may be taken by every other. */
	nlm_memory_change(&r, v4(1), 0, 370);
	cr_expect_gt(fill(&r, v4(2)), 0);
	for (uint8_t i = 1; i <= 3; i++) {
		while (nlm_memory_has(&r, v4(i)) > 0)
			nlm_memory_change(&r, v4(i), 0, 10);
	}
	cr_expect_eq(r.used, 0);
}

/* Sixty hosts that take what they may leave room for more than a hundred that want little. */
Test(nlm_memory, many_hosts_leave_room)
{
	struct nlm_memory r;

	nlm_memory_init(&r, 1024 * 100);
	for (uint8_t i = 1; i <= 60; i++)
		fill(&r, v4(i));
	for (uint8_t i = 100; i < 240; i++)
		cr_expect_eq(fill(&r, v4(i)), 10, "%u", i);
	for (unsigned i = 1; i < 240; i++)
		while (nlm_memory_has(&r, v4((uint8_t)i)) > 0)
			nlm_memory_change(&r, v4((uint8_t)i), 0, 10);
	cr_expect_eq(r.used, 0);
}

Test(nlm_memory, addresses_of_one_host)
{
	struct nlm_memory r;

	nlm_memory_init(&r, MAX);
	cr_expect_eq(fill(&r, v6(1, 1)), 37);
	cr_expect_eq(fill(&r, v6(1, 2)), 0, "the same /64");
	cr_expect_eq(fill(&r, v6(2, 1)), 19, "another");
	nlm_memory_change(&r, v6(1, 9), 0, 370);
	nlm_memory_change(&r, v6(2, 9), 0, 190);
	cr_expect_eq(r.used, 0);
}

Test(nlm_memory, more_than_there_is)
{
	struct nlm_memory r;

	nlm_memory_init(&r, MAX);
	cr_expect_not(nlm_memory_take(&r, v4(1), MAX + 1));
	cr_expect_not(nlm_memory_take(&r, v4(1), SIZE_MAX / 2));
	cr_expect(nlm_memory_take(&r, v4(1), MAX / 4));
	nlm_memory_change(&r, v4(1), MAX, 0);
	cr_expect_not(nlm_memory_fits(&r, v4(1), 1), "what cannot fail may exceed it");
	cr_expect_not(nlm_memory_fits(&r, v4(2), 1));
	nlm_memory_change(&r, v4(1), 0, MAX + MAX / 4);
	cr_expect_eq(r.used, 0);
}

Test(nlm_memory, link_local_addresses_are_hosts_of_their_own)
{
	struct rpc_address a = { .bytes = { 0xfe, 0x80, [15] = 1 }, .scope = 1 }, b = a, c = a;
	struct nlm_memory r;

	b.bytes[15] = 2;
	c.scope = 2;
	nlm_memory_init(&r, MAX);
	cr_expect_eq(fill(&r, &a), 37);
	cr_expect_eq(fill(&r, &b), 19, "another of the link");
	cr_expect_gt(fill(&r, &c), 0, "the same on another link");
	nlm_memory_change(&r, &a, 0, 370);
	nlm_memory_change(&r, &b, 0, 190);
	nlm_memory_change(&r, &c, 0, nlm_memory_has(&r, &c));
	cr_expect_eq(r.used, 0);
}
