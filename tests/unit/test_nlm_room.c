/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the lock manager that hosts share. */
#include <criterion/criterion.h>
#include <string.h>

#include "nfs3/nlm/room.h"

#define MAX 1000u

static const uint8_t *v4(uint8_t last)
{
	static uint8_t addr[16];

	memset(addr, 0, sizeof(addr));
	addr[10] = addr[11] = 0xff;
	addr[15] = last;
	return addr;
}

static const uint8_t *v6(uint8_t net, uint8_t last)
{
	static uint8_t addr[16];

	memset(addr, 0, sizeof(addr));
	addr[0] = 0x20;
	addr[7] = net;
	addr[15] = last;
	return addr;
}

static unsigned fill(struct nlm_room *r, const uint8_t addr[16])
{
	unsigned n = 0;

	while (nlm_room_take(r, addr, 10))
		n++;
	cr_expect_not(nlm_room_fits(r, addr, 10));
	return n;
}

Test(nlm_room, a_host_leaves_as_much_as_it_has)
{
	struct nlm_room r;

	nlm_room_init(&r, MAX);
	cr_expect_eq(fill(&r, v4(1)), 50);
	cr_expect_eq(fill(&r, v4(2)), 25);
	cr_expect_gt(fill(&r, v4(3)), 0);
	cr_expect_leq(r.used, MAX);
	/* Memory that one host gives back may be taken by every other. */
	nlm_room_change(&r, v4(1), 0, 500);
	cr_expect_gt(fill(&r, v4(2)), 0);
	for (uint8_t i = 1; i <= 3; i++) {
		while (nlm_room_has(&r, v4(i)) > 0)
			nlm_room_change(&r, v4(i), 0, 10);
	}
	cr_expect_eq(r.used, 0);
}

Test(nlm_room, addresses_of_one_host)
{
	struct nlm_room r;

	nlm_room_init(&r, MAX);
	cr_expect_eq(fill(&r, v6(1, 1)), 50);
	cr_expect_eq(fill(&r, v6(1, 2)), 0, "the same /64");
	cr_expect_eq(fill(&r, v6(2, 1)), 25, "another");
	nlm_room_change(&r, v6(1, 9), 0, 500);
	nlm_room_change(&r, v6(2, 9), 0, 250);
	cr_expect_eq(r.used, 0);
}

Test(nlm_room, more_than_there_is)
{
	struct nlm_room r;

	nlm_room_init(&r, MAX);
	cr_expect_not(nlm_room_take(&r, v4(1), MAX + 1));
	cr_expect_not(nlm_room_take(&r, v4(1), SIZE_MAX / 2));
	cr_expect(nlm_room_take(&r, v4(1), MAX / 2));
	nlm_room_change(&r, v4(1), MAX, 0);
	cr_expect_not(nlm_room_fits(&r, v4(1), 1), "what cannot fail may exceed it");
	cr_expect_not(nlm_room_fits(&r, v4(2), 1));
	nlm_room_change(&r, v4(1), 0, MAX + MAX / 2);
	cr_expect_eq(r.used, 0);
}
