/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/util.h"
#include "rpc/client.h"
#include "tests/unit/rpc_fake.h"

static struct fake f;
static struct fake_conn conn;
static uint8_t buf[2048];
static struct xdr_out call;

static void setup(void)
{
	fake_init(&f, 64);
	fake_conn_init(&conn, 1, 1, 700);
}

static void teardown(void)
{
	cr_assert_eq(fake_leaks(&f), 0, "payload leaked");
	cr_assert_eq(conn.base.refs, 1, "connection references leaked");
	fake_fini(&f);
}

TestSuite(dispatch, .init = setup, .fini = teardown);

static void start(uint32_t proc)
{
	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, 77, proc);
}

static void words(const uint32_t *w, size_t n)
{
	cr_assert_eq(conn.replies, 1);
	cr_assert_eq(conn.reply_len, n * 4, "%zu bytes", conn.reply_len);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(fake_word(&conn, (unsigned)i), w[i], "word %zu", i);
}
#define REPLY(...)                                                                                 \
	words((const uint32_t[]){ __VA_ARGS__ },                                                   \
	      sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void send_words(const uint32_t *w, size_t n)
{
	xdr_out_init(&call, buf, sizeof(buf));
	for (size_t i = 0; i < n; i++)
		xdr_put_u32(&call, w[i]);
	fake_dispatch(&f, &conn, &call);
}
#define SEND(...)                                                                                  \
	send_words((const uint32_t[]){ __VA_ARGS__ },                                              \
		   sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

Test(dispatch, null_answers)
{
	SEND(77, 0, 2, FAKE_PROG, 2, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 0);
	cr_assert_eq(f.observed, 1);
	cr_assert_eq(f.errors, 0);
}

Test(dispatch, null_answers_whatever_the_credential_and_whoever_asks)
{
	f.admission = RPC_STRANGER;
	SEND(77, 0, 2, FAKE_PROG, 2, 0, 1, 4, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 0);
}

Test(dispatch, null_under_rpcsec_gss_is_rejected)
{
	SEND(77, 0, 2, FAKE_PROG, 2, 0, 6, 0, 0, 0);
	REPLY(77, 1, 1, 1, 2);
}

Test(dispatch, rpc_mismatch)
{
	SEND(77, 0, 1, FAKE_PROG, 2, 0, 0, 0, 0, 0);
	REPLY(77, 1, 1, 0, 2, 2);
	cr_assert_eq(f.errors, 1);
}

Test(dispatch, prog_unavail)
{
	SEND(77, 0, 2, FAKE_PROG + 1, 2, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 1);
}

Test(dispatch, prog_mismatch_names_the_range)
{
	SEND(77, 0, 2, FAKE_PROG, 3, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 2, 2, 4);
}

Test(dispatch, versions_for_streams_are_not_there_over_datagrams)
{
	struct rpc_conn_ops ops = *conn.base.ops;

	ops.datagrams = true;
	f.server.programs[0].streams_from = 4;
	SEND(77, 0, 2, FAKE_PROG, 4, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 0);
	conn.base.ops = &ops;
	conn.replies = 0;
	SEND(77, 0, 2, FAKE_PROG, 4, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 2, 2, 2);
	conn.replies = 0;
	SEND(77, 0, 2, FAKE_PROG, 2, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 0);
	f.server.programs[0].streams_from = 1;
	conn.replies = 0;
	SEND(77, 0, 2, FAKE_PROG, 2, 0, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 1);
}

Test(dispatch, proc_unavail_beyond_the_table)
{
	SEND(77, 0, 2, FAKE_PROG, 4, FAKE_PROCS, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 3);
}

Test(dispatch, proc_unavail_in_a_hole)
{
	SEND(77, 0, 2, FAKE_PROG, 4, FAKE_HOLE, 0, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 3);
}

Test(dispatch, a_malformed_credential_is_an_auth_error)
{
	SEND(77, 0, 2, FAKE_PROG, 4, FAKE_ECHO, 1, 4, 0, 0, 0, 0);
	REPLY(77, 1, 1, 1, 1);
}

Test(dispatch, an_unknown_flavor_is_an_auth_error)
{
	SEND(77, 0, 2, FAKE_PROG, 4, FAKE_ECHO, 6, 0, 0, 0, 0);
	REPLY(77, 1, 1, 1, 2);
}

Test(dispatch, a_header_cut_short_is_garbage)
{
	SEND(77, 0, 2, FAKE_PROG, 4, FAKE_ECHO, 0, 0, 0);
	REPLY(77, 1, 0, 0, 0, 4);
}

Test(dispatch, what_is_no_call_closes_the_connection)
{
	SEND(77);
	SEND(77, 1, 0, 0, 0, 0);
	cr_assert_eq(conn.garbage, 2);
	cr_assert_eq(conn.replies + conn.drops, 0);
}

Test(dispatch, arguments_go_in_and_results_come_out)
{
	start(FAKE_ECHO);
	xdr_put_opaque(&call, "abcd", 4);
	fake_dispatch(&f, &conn, &call);
	REPLY(77, 1, 0, 0, 0, 0, 4, 0x61626364);
}

Test(dispatch, every_truncation_of_the_arguments_is_garbage)
{
	start(FAKE_ECHO);
	const size_t header = call.used;
	xdr_put_opaque(&call, "abcdefg", 7);
	for (size_t n = header; n < header + 12; n++) {
		conn.replies = 0;
		call.used = n;
		fake_dispatch(&f, &conn, &call);
		REPLY(77, 1, 0, 0, 0, 4);
	}
}

Test(dispatch, a_read_chunk_where_none_may_be_is_garbage)
{
	static uint8_t item[] = "abcd";
	start(FAKE_ECHO);
	xdr_put_u32(&call, 4);
	struct rpc_request *req = fake_request(&f, &conn, &call);
	req->seg[1] = (struct rpc_seg){ .base = item, .len = 4, .placed = true };
	req->nseg = 2;
	fake_begin(&f, req);
	REPLY(77, 1, 0, 0, 0, 4);
}

Test(dispatch, a_read_chunk_behind_the_arguments_is_garbage)
{
	static uint8_t item[] = "abcd";

	for (int with_args = 0; with_args < 2; with_args++) {
		conn.replies = 0;
		start(with_args ? FAKE_ECHO : FAKE_NULL);
		if (with_args)
			xdr_put_opaque(&call, "efgh", 4);
		struct rpc_request *req = fake_request(&f, &conn, &call);
		req->seg[1] = (struct rpc_seg){ .base = item, .len = 4, .placed = true };
		req->nseg = 2;
		fake_begin(&f, req);
		REPLY(77, 1, 0, 0, 0, 4);
	}
}

Test(dispatch, a_read_chunk_for_bulk_and_its_payload_goes_back)
{
	start(FAKE_STORE);
	xdr_put_u32(&call, 5);
	struct rpc_request *req = fake_request(&f, &conn, &call);
	struct rn_payload *p = rn_payload_get(f.pool, 5);
	memset(p->data, 2, 5);
	req->seg[1] = (struct rpc_seg){ .base = p->data, .len = 5, .placed = true, .payload = p };
	req->nseg = 2;
	fake_begin(&f, req);
	REPLY(77, 1, 0, 0, 0, 0, 5, 10);
}

Test(dispatch, a_read_chunk_of_arguments_that_run_decodes)
{
	static uint8_t item[4] = "abc";

	start(FAKE_REST);
	xdr_put_u32(&call, 3);
	struct rpc_request *req = fake_request(&f, &conn, &call);
	req->seg[1] = (struct rpc_seg){ .base = item, .len = 3, .placed = true };
	req->nseg = 2;
	fake_begin(&f, req);
	REPLY(77, 1, 0, 0, 0, 0, 3);
}

Test(dispatch, strangers_are_denied_before_anything_is_decoded)
{
	f.admission = RPC_STRANGER;
	start(FAKE_COUNT);
	fake_dispatch(&f, &conn, &call);
	REPLY(77, 1, 1, 1, 1);
	cr_assert_eq(f.count, 0);
}

/* Replies (answered, denied, or an error) to procedures for hosts of each admission. */
Test(dispatch, who_may_call_what)
{
	static const enum fake_proc procs[] = { FAKE_COUNT, FAKE_GIVE, FAKE_ASK, FAKE_LIST };
	static const char *const may[] = {
		[RPC_UNKNOWN] = "yyye",
		[RPC_STRANGER] = "nnyn",
		[RPC_RECENT] = "nyyn",
		[RPC_ADMITTED] = "yyyy",
	};

	for (enum rpc_admission s = RPC_UNKNOWN; s <= RPC_ADMITTED; s++) {
		for (unsigned i = 0; i < 4; i++) {
			const unsigned before = f.count;
			const char want = may[s][i];

			f.admission = s;
			start(procs[i]);
			xdr_put_u32(&call, s * 4 + i);
			fake_dispatch(&f, &conn, &call);
			cr_assert_eq(f.count, before + (want == 'y'), "%d %u", s, i);
			cr_assert_eq(fake_word(&conn, 2), want == 'n', "%d %u", s, i);
			if (want == 'n')
				cr_assert_eq(fake_word(&conn, 4), RPC_AUTH_BADCRED);
			else
				cr_assert_eq(fake_word(&conn, 5),
					     want == 'y' ? RPC_SUCCESS : RPC_SYSTEM_ERR);
		}
	}
}

static void run_how(enum rpc_run how)
{
	start(FAKE_HOW);
	xdr_put_u32(&call, how);
	fake_dispatch(&f, &conn, &call);
}

Test(dispatch, a_handlers_garbage_takes_back_its_partial_result)
{
	run_how(RPC_RUN_GARBAGE);
	REPLY(77, 1, 0, 0, 0, 4);
}

Test(dispatch, a_handlers_system_error_is_answered_and_not_run_twice)
{
	run_how(RPC_RUN_SYSTEM_ERR);
	REPLY(77, 1, 0, 0, 0, 5);
	conn.replies = 0;
	run_how(RPC_RUN_SYSTEM_ERR);
	REPLY(77, 1, 0, 0, 0, 5);
	cr_assert_eq(f.count, 1);
}

Test(dispatch, a_handlers_too_weak_and_too_long)
{
	run_how(RPC_RUN_AUTH_TOOWEAK);
	REPLY(77, 1, 1, 1, 5);
	run_how(RPC_RUN_TOO_LONG);
	cr_assert_eq(conn.too_longs, 1);
	cr_assert_eq(conn.replies, 1);
}

/* chunk: length of a Write chunk, or 0 */
static void dispatch_with_room(size_t reply_max, uint32_t chunk)
{
	struct rpc_request *req = fake_request(&f, &conn, &call);

	req->reply_max = reply_max;
	req->nbulk_spaces = chunk > 0;
	req->bulk_space[0] = chunk;
	fake_begin(&f, req);
}

Test(dispatch, a_reply_of_exactly_what_was_offered_fits)
{
	start(FAKE_COUNT);
	xdr_put_u32(&call, 0);
	dispatch_with_room(28, 0);
	REPLY(77, 1, 0, 0, 0, 0, 1);
}

Test(dispatch, a_procedure_whose_worst_reply_does_not_fit_does_not_run)
{
	start(FAKE_COUNT);
	xdr_put_u32(&call, 0);
	dispatch_with_room(27, 0);
	cr_assert_eq(conn.too_longs, 1);
	cr_assert_eq(f.count, 0);
}

Test(dispatch, a_reply_that_turns_out_too_long_after_its_effects_is_kept)
{
	start(FAKE_HOW);
	xdr_put_u32(&call, RPC_RUN_DONE);
	dispatch_with_room(27, 0);
	cr_assert_eq(conn.too_longs, 1);
	dispatch_with_room(28, 0);
	REPLY(77, 1, 0, 0, 0, 0, 1);
	cr_assert_eq(f.count, 1);
}

Test(dispatch, bulk_counts_unless_it_goes_by_a_chunk)
{
	start(FAKE_BULK);
	xdr_put_u32(&call, 5);
	dispatch_with_room(32, 5);
	REPLY(77, 1, 0, 0, 0, 0, 5, 0x62626262, 0x62000000, 7);
	dispatch_with_room(39, 0);
	cr_assert_eq(conn.too_longs, 1);
	dispatch_with_room(31, 5);
	cr_assert_eq(conn.too_longs, 2);
	dispatch_with_room(1000, 4);
	cr_assert_eq(conn.too_longs, 3, "longer than its chunk");
	dispatch_with_room(40, 0);
	cr_assert_eq(conn.replies, 2);
}

Test(dispatch, a_grown_head_is_sent_whole_and_goes_back)
{
	start(FAKE_LONG);
	xdr_put_u32(&call, 10000);
	fake_dispatch(&f, &conn, &call);
	cr_assert_eq(conn.replies, 1);
	cr_assert_eq(conn.reply_len, 24 + 10000);
	cr_assert_eq(fake_word(&conn, 0), 77);
	cr_assert_eq(fake_word(&conn, 5), 0);
}

Test(dispatch, a_head_that_overflows_is_a_system_error)
{
	start(FAKE_LONG);
	xdr_put_u32(&call, RN_PAYLOAD_MAX);
	fake_dispatch(&f, &conn, &call);
	REPLY(77, 1, 0, 0, 0, 5);
}

Test(dispatch, growing_keeps_what_was_written_and_fails_without_memory)
{
	start(FAKE_NULL);
	struct rpc_request *req = fake_request(&f, &conn, &call);
	req->server = &f.server;
	xdr_put_u32(&req->out, 42);
	cr_assert_eq(rpc_reply_grow(req, 100), 0);
	cr_assert_eq(req->out.base, req->head->data, "it had the room");
	cr_assert_eq(rpc_reply_grow(req, 60000), 0);
	cr_assert_geq(req->out.size - req->out.used, 60000);
	cr_assert_eq(req->out.base[3], 42);
	cr_assert_eq(rpc_reply_grow(req, 200000), 0);
	cr_assert_eq(req->out.base[3], 42);
	cr_assert_eq(rpc_reply_grow(req, SIZE_MAX), -ENOMEM);
	cr_assert_eq(rpc_reply_grow(req, RN_PAYLOAD_MAX), -ENOMEM);
	req->conn->ops->drop(req);
}

Test(dispatch, a_call_that_waits_is_answered_when_it_goes_on)
{
	start(FAKE_PENDING);
	xdr_put_u32(&call, 5);
	fake_dispatch(&f, &conn, &call);
	cr_assert_eq(conn.replies, 0);
	fake_complete(&f, f.pending, RPC_RUN_DONE);
	REPLY(77, 1, 0, 0, 0, 0, 5);
}

Test(dispatch, a_duplicate_on_the_same_connection_is_dropped)
{
	start(FAKE_PENDING);
	xdr_put_u32(&call, 5);
	fake_dispatch(&f, &conn, &call);
	struct rpc_request *first = f.pending;
	fake_dispatch(&f, &conn, &call);
	cr_assert_eq(conn.drops, 1);
	fake_complete(&f, first, RPC_RUN_DONE);
	REPLY(77, 1, 0, 0, 0, 0, 5);
	cr_assert_eq(f.count, 1);
}

Test(dispatch, a_duplicate_after_a_reconnect_waits_for_the_reply_of_the_first)
{
	struct fake_conn again, third;

	fake_conn_init(&again, 2, 1, 700);
	fake_conn_init(&third, 3, 1, 700);
	start(FAKE_PENDING);
	xdr_put_u32(&call, 5);
	fake_dispatch(&f, &conn, &call);
	struct rpc_request *first = f.pending;
	fake_dispatch(&f, &again, &call);
	cr_assert_eq(again.drops + again.replies, 0);
	fake_dispatch(&f, &third, &call);
	fake_dispatch(&f, &again, &call);
	cr_assert_eq(again.drops, 1, "one answer on a connection is enough");
	cr_assert_eq(fake_run_inbox(&f), 0);
	fake_complete(&f, first, RPC_RUN_DONE);
	cr_assert_eq(fake_run_inbox(&f), 2);
	/*
	 * The last retransmission need not be on the newest connection: both may be the client's.
	 */
	cr_assert_eq(again.replies, 1);
	cr_assert_eq(third.replies, 1);
	cr_assert_eq(fake_word(&again, 6), 5);
	cr_assert_eq(fake_word(&third, 6), 5);
	cr_assert_eq(f.count, 1);
	cr_assert_eq(third.base.refs + again.base.refs, 2);
}

Test(dispatch, duplicates_that_wait_are_bounded)
{
	static struct fake_conn others[DRC_WAITING_MAX + 1];

	start(FAKE_PENDING);
	xdr_put_u32(&call, 5);
	fake_dispatch(&f, &conn, &call);
	struct rpc_request *first = f.pending;
	for (unsigned i = 0; i <= DRC_WAITING_MAX; i++) {
		fake_conn_init(&others[i], 2 + i, 1, 700);
		fake_dispatch(&f, &others[i], &call);
	}
	cr_assert_eq(others[DRC_WAITING_MAX].drops, 1);
	fake_complete(&f, first, RPC_RUN_DONE);
	cr_assert_eq(fake_run_inbox(&f), DRC_WAITING_MAX);
	for (unsigned i = 0; i < DRC_WAITING_MAX; i++)
		cr_assert_eq(others[i].replies, 1);
	cr_assert_eq(f.count, 1);
}

Test(dispatch, a_duplicate_runs_itself_when_the_first_was_abandoned)
{
	struct fake_conn again;

	fake_conn_init(&again, 2, 1, 700);
	start(FAKE_PENDING);
	xdr_put_u32(&call, 5);
	fake_dispatch(&f, &conn, &call);
	fake_dispatch(&f, &again, &call);
	fake_complete(&f, f.pending, RPC_RUN_TOO_LONG);
	cr_assert_eq(fake_run_inbox(&f), 1);
	cr_assert_eq(f.count, 2);
	fake_complete(&f, f.pending, RPC_RUN_DONE);
	cr_assert_eq(again.replies, 1);
}

/* Its retransmission may find that nothing is in the way any more. */
Test(dispatch, what_has_done_nothing_runs_again)
{
	for (unsigned runs = 1; runs <= 2; runs++) {
		conn.replies = 0;
		run_how(RPC_RUN_UNDONE);
		REPLY(77, 1, 0, 0, 0, 0, 1);
		cr_expect_eq(f.count, runs);
	}
}

Test(dispatch, without_a_cache_everything_runs)
{
	drc_free(f.server.drc);
	f.server.drc = NULL;
	start(FAKE_COUNT);
	xdr_put_u32(&call, 0);
	fake_dispatch(&f, &conn, &call);
	fake_dispatch(&f, &conn, &call);
	cr_assert_eq(conn.replies, 2);
	cr_assert_eq(f.count, 2);
}

static struct rpc_client client; /* who may wait */

Test(dispatch, who_is_not_known_yet_is_looked_at_again)
{
	conn.base.client = &client;
	f.admission = RPC_UNKNOWN;
	start(FAKE_LIST);
	fake_dispatch(&f, &conn, &call);
	cr_assert_eq(conn.replies + f.count, 0);
	f.admission = RPC_ADMITTED;
	rpc_wake_all(f.server.waits, 1u << RN_WAIT_NAME);
	cr_assert_eq(fake_await_inbox(&f), 1);
	cr_assert_eq(conn.replies, 1);
	cr_assert_eq(f.count, 1);
}

/* Security that does nothing but count. */
static struct rpc_secured state;
static unsigned protected, protected_event, moved;

static enum rpc_secure_verdict accept_any(void *ctx, struct rpc_request *req,
					  enum rpc_auth_stat *stat)
{
	(void)ctx;
	(void)stat;
	state.args_at = xdr_in_pos(&req->in);
	req->secured = &state;
	return RPC_SECURE_CALL;
}

static bool protect(struct rpc_request *req)
{
	protected++;
	protected_event += rpc_on_event_thread(req);
	return true;
}

static void release(struct rpc_request *req)
{
	(void)req;
}

static enum rpc_run identify(void *ctx, struct rpc_request *req)
{
	(void)ctx;
	(void)req;
	return RPC_RUN_DONE;
}

static const struct rpc_security security = { .accept = accept_any,
					      .protect = protect,
					      .release = release };

static void move(struct rpc_worker *from, struct rpc_request *req)
{
	(void)from;
	moved++;
	req->worker = &f.worker;
	rn_inbox_post(&f.worker.inbox, &req->node);
}

/* A secured call on an event thread whose reply has a bulk item of n bytes. */
static void ask_event(bool wraps, uint32_t n)
{
	static struct rpc_worker event = { .on_event_thread = true, .move = move };
	const uint32_t w[] = { 77, 0, 2, FAKE_PROG, 4, FAKE_BULK, RPC_RPCSEC_GSS, 0, RPC_RPCSEC_GSS,
			       0,  n };
	struct rpc_request *req;

	f.server.security = &security;
	f.server.identify = identify;
	state = (struct rpc_secured){ .wraps = wraps };
	protected = protected_event = moved = 0;
	conn.replies = 0;
	xdr_out_init(&call, buf, sizeof(buf));
	for (size_t i = 0; i < rn_array_size(w); i++)
		xdr_put_u32(&call, w[i]);
	req = fake_request(&f, &conn, &call);
	event.stacks = f.worker.stacks;
	req->worker = &event;
	fake_begin(&f, req);
}

Test(dispatch, long_results_are_not_wrapped_on_an_event_thread)
{
	ask_event(true, RPC_SECURE_EVENT_MOST);
	cr_assert_eq(moved, 1);
	cr_assert_eq(protected, 0);
	cr_assert_eq(f.observed, 0);
	cr_assert_eq(fake_run_inbox(&f), 1);
	cr_assert_eq(protected, 1);
	cr_assert_eq(protected_event, 0);
	cr_assert_eq(f.observed, 1);
	cr_assert_eq(conn.replies, 1);
}

Test(dispatch, short_or_merely_signed_results_stay_there)
{
	ask_event(true, RPC_SECURE_EVENT_MOST - 64);
	cr_assert_eq(moved, 0);
	cr_assert_eq(protected_event, 1);
	cr_assert_eq(conn.replies, 1);
	ask_event(false, RPC_SECURE_EVENT_MOST);
	cr_assert_eq(moved, 0);
	cr_assert_eq(protected_event, 1);
	cr_assert_eq(conn.replies, 1);
}

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

Test(dispatch, a_server_whose_time_is_over_answers_nothing)
{
	f.server.may_answer = never;
	SEND(77, 0, 2, FAKE_PROG, 2, 0, 0, 0, 0, 0);
	cr_expect_eq(conn.replies + conn.too_longs + conn.drops, 0);
	cr_expect_eq(conn.garbage, 1, "the connection is closed");
}

Test(dispatch, a_server_whose_time_is_over_runs_nothing)
{
	f.server.may_answer = never;
	start(FAKE_COUNT);
	xdr_put_u32(&call, 5);
	fake_dispatch(&f, &conn, &call);
	cr_expect_eq(f.count, 0);
	cr_expect_eq(conn.garbage, 1);
}
