/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of connections: walks in pages while connections come and go, and their figures. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/conns.h"

#define MANY 3000u

static struct rpc_conns *table;
static const struct rpc_conn_ops ops = { .netid = "test" };

static void start(void)
{
	table = rpc_conns_new();
	cr_assert_not_null(table);
}

static void stop(void)
{
	rpc_conns_free(table);
}

TestSuite(conns, .init = start, .fini = stop);

static struct rpc_conn *add(void)
{
	struct rpc_conn *c = calloc(1, sizeof(*c));

	cr_assert_not_null(c);
	c->ops = &ops;
	rpc_conns_enter(table, c);
	return c;
}

static void drop(struct rpc_conn *c)
{
	rpc_conns_leave(c);
	free(c);
}

struct seen {
	uint8_t times[2 * MANY + 2]; /* by id */
	unsigned n;
};

static void see(void *arg, const struct rpc_conn_view *v)
{
	struct seen *s = arg;

	cr_assert_leq(v->id, 2 * MANY);
	cr_assert_str_eq(v->netid, "test");
	s->times[v->id]++;
	s->n++;
}

Test(conns, an_empty_table_has_no_page)
{
	struct seen s = { 0 };
	uint64_t after = 0;

	cr_assert(rpc_conns_view(table, &after, 10, see, &s));
	after = UINT64_MAX;
	cr_assert(rpc_conns_view(table, &after, 10, see, &s));
	cr_expect_eq(s.n, 0);
}

/* Half of the connections end during the walk, and as many come. */
Test(conns, what_stays_is_shown_once)
{
	static struct seen s;
	static struct rpc_conn *c[MANY], *late[MANY];
	unsigned round = 0;
	uint64_t after = 0;

	for (unsigned i = 0; i < MANY; i++)
		c[i] = add();
	while (!rpc_conns_view(table, &after, 70, see, &s)) {
		cr_assert_eq(s.n, 70 * (round + 1));
		drop(c[2 * round]);
		late[round++] = add();
	}
	for (unsigned i = 0; i < MANY; i++) {
		const bool stayed = i % 2 || i / 2 >= round;

		if (stayed)
			cr_expect_eq(s.times[c[i]->id], 1, "connection %u: %u times", i,
				     s.times[c[i]->id]);
		if (stayed)
			drop(c[i]);
	}
	for (unsigned i = 0; i < round; i++) {
		cr_expect_leq(s.times[late[i]->id], 1);
		drop(late[i]);
	}
}

Test(conns, one_is_found_by_its_id)
{
	struct rpc_conn *a = add(), *b = add();
	struct rpc_conn_view v;

	cr_assert_neq(a->id, 0);
	cr_assert_neq(a->id, b->id);
	const uint64_t id = a->id;

	cr_assert(rpc_conns_find(table, id, &v));
	cr_expect_eq(v.id, id);
	drop(a);
	cr_expect_not(rpc_conns_find(table, id, &v));
	cr_expect(rpc_conns_find(table, b->id, &v));
	drop(b);
	struct rpc_conn never = { .ops = &ops };

	rpc_conns_leave(&never);
}

/* Calls end in any order. */
Test(conns, the_oldest_call_under_way)
{
	struct rpc_conn *c = add();
	struct rpc_request *req = calloc(3, sizeof(*req));
	struct rpc_conn_view v;

	cr_assert_not_null(req);
	for (unsigned i = 0; i < 3; i++) {
		req[i].arrived_ns = 100 + i;
		rpc_conn_begin(c, &req[i]);
	}
	cr_assert(rpc_conns_find(table, c->id, &v));
	cr_expect_eq(v.oldest_ns, 100);
	cr_expect_eq(v.called_ns, 102);
	cr_expect_eq(v.calls - v.ended, 3);
	rpc_conn_end(c, &req[1]);
	cr_assert(rpc_conns_find(table, c->id, &v));
	cr_expect_eq(v.oldest_ns, 100);
	rpc_conn_end(c, &req[0]);
	cr_assert(rpc_conns_find(table, c->id, &v));
	cr_expect_eq(v.oldest_ns, 102);
	rpc_conn_end(c, &req[2]);
	rpc_conn_end(c, &req[2]); /* not under way any more */
	cr_assert(rpc_conns_find(table, c->id, &v));
	cr_expect_eq(v.oldest_ns, 0);
	cr_expect_eq(v.ended, 3);
	free(req);
	drop(c);
}

Test(conns, ids_of_the_program_before_are_not_given_again)
{
	struct rpc_conn *c, *loaded = calloc(1, sizeof(*loaded));

	rpc_conns_begin_after(table, 7);
	c = add();
	cr_expect_eq(c->id, 8);
	/* One that the program before had goes on with its id. */
	cr_assert_not_null(loaded);
	loaded->ops = &ops;
	loaded->id = 3;
	rpc_conns_enter(table, loaded);
	cr_expect_eq(loaded->id, 3);
	cr_expect_eq(rpc_conns_last_id(table), 8);
	drop(loaded);
	drop(c);
}
