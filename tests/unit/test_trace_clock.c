/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace goes on when the time of day is set back while it runs. */
#include <criterion/criterion.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/counters/daemon_trace.h"
#include "lib/fiber.h"
#include "lib/util.h"

#define HOUR_S 3600

static time_t set_back_s; /* the time of day is behind by this much */

/* Takes the place of the C library's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	const int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && id == CLOCK_REALTIME)
		ts->tv_sec -= set_back_s;
	return rc;
}

static void record(struct trace *t, uint32_t xid)
{
	static const struct rpc_conn_ops ops = { .netid = "tcp" };
	struct rpc_conn conn = { .ops = &ops };
	struct rn_fiber fiber = { .longest_ns = 0 };
	struct rpc_request req = { .conn = &conn, .fiber = &fiber };

	req.call.xid = xid;
	trace_record(t, &req, 1, false);
}

Test(trace_clock, calls_after_a_step_back_are_shown_in_order)
{
	const struct trace_filter any = { .slower_ns = 0 };
	struct trace_call calls[4];
	size_t n = rn_array_size(calls);
	struct trace t;
	uint64_t id, lost;

	trace_init(&t);
	cr_assert_eq(trace_start(&t, &any, &id), 0);
	record(&t, 1);
	set_back_s = HOUR_S;
	record(&t, 2);
	record(&t, 3);
	cr_assert_eq(trace_take(&t, id, calls, &n, &lost), 0);
	cr_assert_eq(n, 3, "%zu of 3 calls are shown", n);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(calls[i].xid, i + 1, "call %u is number %u", calls[i].xid, i + 1);
	cr_expect_lt(calls[1].wall_ns, calls[0].wall_ns, "the time of day is shown as it is");
	trace_fini(&t);
}
