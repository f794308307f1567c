/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of calls: those that have begun come first, and some are passed over. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/workers/fs_queues.h"

enum { NEW, BEGUN, INSIDE, LAST_BEGUN, CALLS };

static struct rpc_client client;
static struct rpc_conn conn = { .client = &client };
static struct rpc_request call[CALLS];
static struct call_queue queue;

static void fill(void)
{
	memset(call, 0, sizeof(call));
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++)
		rn_fq_flow_init(&client.calls[i]);
	call_queue_init(&queue);
	for (unsigned i = 0; i < CALLS; i++) {
		call[i].conn = &conn;
		call[i].fs_queue = 1;
		call[i].waits = i != NEW;
		call[i].entered = i == INSIDE;
		call_queue_push(&queue, &call[i]);
	}
}

static void drop(void)
{
	call_queue_fini(&queue);
}

/* Takes calls of that kind until there is none. */
static void expect(enum call_kind kind, const unsigned *want, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		cr_expect_eq(call_queue_pop(&queue, 1, kind), &call[want[i]], "call %u", i);
		cr_expect_eq(call_queue_waiting(&queue, 0), 0);
	}
	cr_expect_null(call_queue_pop(&queue, 1, kind));
}

Test(call_queue, calls_that_have_begun_come_first, .init = fill, .fini = drop)
{
	cr_expect_eq(call_queue_waiting(&queue, 1), CALLS);
	expect(CALL_ANY, (const unsigned[]){ BEGUN, INSIDE, LAST_BEGUN, NEW }, CALLS);
	cr_expect_eq(call_queue_waiting(&queue, 1), 0);
}

Test(call_queue, without_a_stack_only_they_are_taken, .init = fill, .fini = drop)
{
	expect(CALL_BEGUN, (const unsigned[]){ BEGUN, INSIDE, LAST_BEGUN }, 3);
	cr_expect_eq(call_queue_waiting(&queue, 1), 1);
	expect(CALL_ANY, (const unsigned[]){ NEW }, 1);
}

Test(call_queue, calls_in_a_file_system_are_left, .init = fill, .fini = drop)
{
	expect(CALL_OUTSIDE, (const unsigned[]){ BEGUN, LAST_BEGUN, NEW }, 3);
	cr_expect_eq(call_queue_waiting(&queue, 1), 1);
	call_queue_push(&queue, &call[BEGUN]); /* behind the one that was left */
	expect(CALL_BEGUN, (const unsigned[]){ INSIDE, BEGUN }, 2);
}
