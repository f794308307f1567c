/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "transport/rdma/rdma_private.h"

#define MIB(n) ((size_t)(n) << 20)

static struct rn_budget budget;
static struct rr_server srv;

static unsigned told; /* messages */

static void tell(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	(void)fmt;
	(void)ap;
	told++;
}

static const struct rn_logger logger = { .level = RN_NOTICE, .write = tell };

/* Starts a server in a budget of which `used` bytes have been taken by others already. */
static void start_beside(size_t memory, unsigned max_connections, size_t used)
{
	rn_budget_init(&budget, memory);
	cr_assert(rn_budget_take(&budget, used));
	srv.cfg.log = &logger;
	srv.cfg.budget = &budget;
	srv.cfg.max_connections = max_connections;
	cr_assert_eq(rr_conn_memory_reserve_least(&srv), 0);
}

static void start(size_t memory, unsigned max_connections)
{
	start_beside(memory, max_connections, 0);
}

Test(rdma_conn_memory, is_a_quarter_of_the_budget_and_goes_back)
{
	start(MIB(256), 100);
	cr_assert_eq(srv.conn_memory.max, MIB(4), "without a device");
	rr_conn_memory_reserve(&srv);
	cr_assert_eq(srv.conn_memory.max, MIB(64));
	cr_assert_eq(told, 0);
	cr_assert_eq(budget.used, MIB(64));
	rr_conn_memory_reserve(&srv);
	cr_assert_eq(budget.used, MIB(64), "once");
	rr_conn_memory_release(&srv);
	cr_assert_eq(budget.used, 0);
}

Test(rdma_conn_memory, is_less_where_memory_is_used_already)
{
	start_beside(MIB(256), 100, MIB(256 - 48));
	rr_conn_memory_reserve(&srv);
	cr_assert_eq(srv.conn_memory.max, MIB(32));
	cr_assert_eq(budget.used, MIB(240), "a sixteenth is left to payload");
	cr_assert_eq(told, 1);
	rr_conn_memory_release(&srv);
	cr_assert_eq(budget.used, MIB(256 - 48));
}

Test(rdma_conn_memory, is_there_when_all_else_is_used)
{
	start_beside(MIB(256), 100, MIB(252));
	rr_conn_memory_reserve(&srv);
	cr_assert_eq(srv.conn_memory.max, MIB(4));
	cr_assert_geq(rr_conn_memory_for_one(&srv), 256u << 10);
	cr_assert_eq(told, 1);
	rr_conn_memory_reserve(&srv);
	cr_assert_eq(told, 1, "once");
}

Test(rdma_conn_memory, no_memory_at_the_start)
{
	rn_budget_init(&budget, MIB(64));
	cr_assert(rn_budget_take(&budget, MIB(64)));
	srv.cfg.budget = &budget;
	cr_assert_eq(rr_conn_memory_reserve_least(&srv), -ENOMEM);
	rr_conn_memory_release(&srv);
	cr_assert_eq(budget.used, MIB(64));
}

/* Connections take all that they are offered, beyond a minimum and up to their need. Returns the
 * number that fit. */
static unsigned fill(size_t want, size_t least, unsigned *full)
{
	for (unsigned n = 0;; n++) {
		size_t room = rr_conn_memory_for_one(&srv);
		size_t take = room < least ? least : room < want ? room : want;

		if (n == srv.cfg.max_connections || !rn_budget_take(&srv.conn_memory, take))
			return n;
		*full += take == want;
	}
}

Test(rdma_conn_memory, few_get_all_they_want_and_many_get_in)
{
	unsigned full = 0;

	start(MIB(1024), 4000);
	rr_conn_memory_reserve(&srv);
	cr_assert_eq(fill(700u << 10, 30u << 10, &full), 4000);
	cr_assert_geq(full, 170, "%u with all credits", full);
}

Test(rdma_conn_memory, with_little_memory_the_floor_decides)
{
	unsigned full = 0;

	start(MIB(64), 10000);
	rr_conn_memory_reserve(&srv);
	cr_assert_geq(fill(700u << 10, 32u << 10, &full), 250);
	cr_assert_geq(full, 3);
	cr_assert_leq(srv.conn_memory.used, MIB(16));
}
