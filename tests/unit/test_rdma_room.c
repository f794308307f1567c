/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include "transport/rdma/rdma_room.h"

#define MIB(n) ((size_t)(n) << 20)

static struct rn_budget budget;
static struct rr_server srv;

static void start(size_t memory, unsigned max_connections)
{
	rn_budget_init(&budget, memory);
	srv.cfg.budget = &budget;
	srv.cfg.max_connections = max_connections;
}

Test(rdma_room, is_a_quarter_of_the_budget_and_goes_back)
{
	start(MIB(256), 100);
	rr_room_reserve(&srv);
	cr_assert_eq(srv.conn_memory.max, MIB(64));
	cr_assert_eq(budget.used, MIB(64));
	rr_room_reserve(&srv);
	cr_assert_eq(budget.used, MIB(64), "once");
	rr_room_release(&srv);
	cr_assert_eq(budget.used, 0);
}

Test(rdma_room, is_less_where_memory_is_used_already)
{
	start(MIB(256), 100);
	cr_assert(rn_budget_take(&budget, MIB(240)));
	rr_room_reserve(&srv);
	cr_assert_eq(srv.conn_memory.max, MIB(16));
	rr_room_release(&srv);
	cr_assert(rn_budget_take(&budget, MIB(16)));
	rr_room_reserve(&srv);
	cr_assert_eq(srv.conn_memory.max, 0);
	cr_assert_eq(rr_room_for_one(&srv), 0);
}

/* Connections take all that they are offered, beyond a minimum and up to their need. Returns the
 * number that fit. */
static unsigned fill(size_t want, size_t least, unsigned *full)
{
	for (unsigned n = 0;; n++) {
		size_t room = rr_room_for_one(&srv);
		size_t take = room < least ? least : room < want ? room : want;

		if (n == srv.cfg.max_connections || !rn_budget_take(&srv.conn_memory, take))
			return n;
		*full += take == want;
	}
}

Test(rdma_room, few_get_all_they_want_and_many_get_in)
{
	unsigned full = 0;

	start(MIB(1024), 4000);
	rr_room_reserve(&srv);
	cr_assert_eq(fill(700u << 10, 30u << 10, &full), 4000);
	cr_assert_geq(full, 170, "%u with all credits", full);
}

Test(rdma_room, with_little_memory_the_floor_decides)
{
	unsigned full = 0;

	start(MIB(64), 10000);
	rr_room_reserve(&srv);
	cr_assert_geq(fill(700u << 10, 32u << 10, &full), 250);
	cr_assert_geq(full, 3);
	cr_assert_leq(srv.conn_memory.used, MIB(16));
}
