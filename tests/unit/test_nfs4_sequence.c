/* SPDX-License-Identifier: BSD-2-Clause */
/* SEQUENCE: slots, retries and refusals (RFC 8881 sections 2.10.6.1 and 18.46). */
#include "lib/util.h"
#include "nfs4/client/client_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_sequence);

static struct fix4_session s;

static void begin_session(void)
{
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", true), NFS4_OK);
}

struct seq_args {
	uint32_t seqid, slot, highest;
	bool cache_this;
};

struct seq_result {
	uint32_t status; /* SEQUENCE's status */
	uint32_t seqid, slot, highest, target, flags;
};

/* Begins a COMPOUND with SEQUENCE, to which operations may be added. */
static void seq_begin(const struct fix4_session *of, const struct seq_args *a)
{
	fix4_begin_bare(f, of->minor, "");
	fix4_op(f, OP_SEQUENCE);
	xdr_put_fixed(&f->out, of->id, NFS4_SESSIONID_SIZE);
	xdr_put_u32(&f->out, a->seqid);
	xdr_put_u32(&f->out, a->slot);
	xdr_put_u32(&f->out, a->highest);
	xdr_put_bool(&f->out, a->cache_this);
}

static void seq_result(const struct fix4_session *of, struct seq_result *r)
{
	uint8_t id[NFS4_SESSIONID_SIZE];

	memset(r, 0, sizeof(*r));
	r->status = fix4_result(f, OP_SEQUENCE);
	if (r->status != NFS4_OK)
		return;
	xdr_get_fixed(&f->in, id, sizeof(id));
	cr_expect_arr_eq(id, of->id, sizeof(id));
	r->seqid = xdr_get_u32(&f->in);
	r->slot = xdr_get_u32(&f->in);
	r->highest = xdr_get_u32(&f->in);
	r->target = xdr_get_u32(&f->in);
	r->flags = xdr_get_u32(&f->in);
}

/* Sends SEQUENCE alone; returns the COMPOUND's status. */
static uint32_t seq(uint32_t seqid, uint32_t slot, uint32_t highest, struct seq_result *r)
{
	const struct seq_args a = { .seqid = seqid, .slot = slot, .highest = highest };
	struct seq_result unused;
	uint32_t status;

	seq_begin(&s, &a);
	status = fix4_send(f);
	seq_result(&s, r ? r : &unused);
	return status;
}

Test(nfs4_sequence, slots_take_their_next_request_only)
{
	static const struct {
		uint32_t seqid, slot, highest, status;
	} steps[] = {
		{ 0, 3, 3, NFS4ERR_SEQ_MISORDERED }, /* the number before the slot's first */
		{ 2, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 1, 3, 3, NFS4_OK },
		{ 1, 3, 3, NFS4_OK }, /* a retry */
		{ 0, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 3, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ UINT32_MAX, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 2, 3, 3, NFS4_OK },
		{ 1, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 1, 15, 15, NFS4_OK },
		{ 1, 16, 16, NFS4ERR_BADSLOT },
		{ 1, UINT32_MAX, UINT32_MAX, NFS4ERR_BADSLOT },
		{ 2, 15, 16, NFS4ERR_BAD_HIGH_SLOT },
		{ 2, 15, UINT32_MAX, NFS4ERR_BAD_HIGH_SLOT },
		{ 2, 15, 15, NFS4_OK },
	};
	struct seq_result r;

	NEED_FIXTURE();
	begin_session();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint32_t status = seq(steps[i].seqid, steps[i].slot, steps[i].highest, &r);

		cr_expect_eq(status, steps[i].status, "step %zu: %u", i, status);
		cr_expect_eq(r.status, steps[i].status);
		if (r.status != NFS4_OK)
			continue;
		cr_expect_eq(r.seqid, steps[i].seqid);
		cr_expect_eq(r.slot, steps[i].slot);
		cr_expect_eq(r.highest, 15);
		cr_expect_eq(r.target, 15);
		cr_expect_eq(r.flags, 0);
		whole();
	}
}

/* The server's slot object, for states that take long to reach by calls. */
static struct nfs4_slot *slot_inside(uint32_t id)
{
	struct nfs4_session *in = nfs4_session_get(f->server4->clients, s.id);
	struct nfs4_slot *slot;

	cr_assert_not_null(in);
	slot = nfs4_slot_get(in, id);
	nfs4_session_put(in);
	return slot;
}

Test(nfs4_sequence, sequence_numbers_wrap_to_zero)
{
	NEED_FIXTURE();
	begin_session();
	cr_expect_eq(seq(1, 2, 2, NULL), NFS4_OK);
	slot_inside(2)->seqid = UINT32_MAX - 1;
	cr_expect_eq(seq(UINT32_MAX, 2, 2, NULL), NFS4_OK);
	cr_expect_eq(seq(1, 2, 2, NULL), NFS4ERR_SEQ_MISORDERED);
	cr_expect_eq(seq(0, 2, 2, NULL), NFS4_OK);
	cr_expect_eq(seq(0, 2, 2, NULL), NFS4_OK);
	cr_expect_eq(seq(1, 2, 2, NULL), NFS4_OK);
	cr_expect_eq(seq(0, 2, 2, NULL), NFS4ERR_SEQ_MISORDERED);
}

/* Makes the slot look as if its last request were still running. */
static void go_on(uint32_t slot, bool busy)
{
	struct nfs4_session *in = nfs4_session_get(f->server4->clients, s.id);

	cr_assert_not_null(in);
	if (busy) {
		slot_inside(slot)->busy = true;
		in->busy++;
	} else {
		nfs4_slot_done(in, slot_inside(slot));
	}
	nfs4_session_put(in);
}

/* Makes a request with the same bytes, as from another connection. */
static struct rpc_request *retry(void)
{
	struct rpc_request *req = rpc_request_new(f->pool);

	cr_assert_not_null(req);
	req->conn = &f->conn;
	req->worker = &f->worker;
	req->reply_max = f->reply_max;
	req->seg[0] = (struct rpc_seg){ .base = f->call, .len = (uint32_t)f->out.used };
	req->nseg = 1;
	f->answers = 0;
	f->reply_len = 0;
	fix_begin(f, req);
	return req;
}

static void run_worker(void)
{
	struct rn_inbox_node *n = rn_inbox_take(&f->worker.inbox), *next;

	for (; n; n = next) {
		struct rpc_request *req = rn_container_of(n, struct rpc_request, node);

		next = n->next;
		fix_run(req);
	}
}

/* SEQUENCE's status in the latest reply. */
static uint32_t retry_status(void)
{
	struct rpc_seg seg = { .base = f->reply, .len = (uint32_t)f->reply_len };

	rn_arena_init(&f->arena, f->arena_mem, sizeof(f->arena_mem));
	xdr_in_init(&f->in, &seg, 1, &f->arena);
	xdr_skip(&f->in, 24); /* the RPC header, without a verifier */
	return xdr_get_u32(&f->in);
}

Test(nfs4_sequence, a_retry_of_what_is_under_way)
{
	struct rpc_request *r;

	NEED_FIXTURE();
	begin_session();
	cr_expect_eq(seq(1, 2, 2, NULL), NFS4_OK);
	go_on(2, true);
	r = retry();
	cr_expect_eq(f->answers, 0);
	cr_expect_eq(seq(2, 2, 2, NULL), NFS4ERR_SEQ_MISORDERED);
	f->answers = 0;
	go_on(2, false);
	run_worker();
	cr_expect_eq(f->answers, 1);
	cr_expect_eq(retry_status(), NFS4_OK);
	cr_expect_eq(seq(2, 2, 2, NULL), NFS4_OK);
	rpc_request_free(r);
}

static void put_mkdir(const char *name);

/* The last of several waiting retries gets the reply, whether it was kept or not. */
static void retries_wait(bool cached)
{
	struct rpc_request *first, *last;
	static uint8_t reply[4096];
	size_t len;

	begin_session();
	s.cache_this = cached;
	fix4_begin(f, &s);
	put_mkdir("once");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	len = f->reply_len;
	cr_assert_leq(len, sizeof(reply));
	memcpy(reply, f->reply, len);
	go_on(s.slot, true);
	first = retry();
	cr_expect_eq(f->answers, 0);
	last = retry();
	run_worker();
	cr_expect_eq(f->answers, 1);
	cr_expect_eq(retry_status(), NFS4ERR_DELAY);
	f->answers = 0;
	go_on(s.slot, false);
	run_worker();
	cr_expect_eq(f->answers, 1);
	cr_expect_eq(retry_status(), cached ? NFS4_OK : NFS4ERR_RETRY_UNCACHED_REP);
	if (cached) {
		cr_expect_eq(f->reply_len, len);
		cr_expect_arr_eq(f->reply, reply, len);
	}
	rpc_request_free(first);
	rpc_request_free(last);
}

Test(nfs4_sequence, retries_wait_for_the_reply_that_is_kept)
{
	NEED_FIXTURE();
	retries_wait(true);
}

Test(nfs4_sequence, retries_wait_for_what_is_not_kept)
{
	NEED_FIXTURE();
	retries_wait(false);
}

/* A different call on the slot is no retry, and does not wait for the running one. */
Test(nfs4_sequence, a_false_retry_of_what_is_under_way)
{
	const struct seq_args a = { .seqid = 1, .slot = 2, .highest = 2 };

	NEED_FIXTURE();
	begin_session();
	cr_expect_eq(seq(1, 2, 2, NULL), NFS4_OK);
	go_on(2, true);
	seq_begin(&s, &a);
	put_mkdir("other");
	cr_expect_eq(fix4_send(f), NFS4ERR_SEQ_FALSE_RETRY);
	go_on(2, false);
}

/* Before a waiting retry is handled, the client gets its reply by the old connection and sends its
 * next call, or ends the session. */
Test(nfs4_sequence, a_retry_that_comes_too_late)
{
	struct rpc_request *r;

	NEED_FIXTURE();
	begin_session();
	cr_expect_eq(seq(1, 2, 2, NULL), NFS4_OK);
	go_on(2, true);
	r = retry();
	slot_inside(2)->seqid++;
	go_on(2, false);
	f->answers = 0;
	run_worker();
	cr_expect_eq(f->answers, 1);
	cr_expect_eq(retry_status(), NFS4ERR_SEQ_MISORDERED);
	rpc_request_free(r);
	cr_expect_eq(seq(3, 2, 2, NULL), NFS4_OK);
	go_on(2, true);
	r = retry();
	cr_expect_eq(f->answers, 0);
	go_on(2, false);
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
	f->answers = 0;
	run_worker();
	rpc_request_free(r);
}

Test(nfs4_sequence, sessions_that_are_not_there)
{
	struct fix4_session other;

	NEED_FIXTURE();
	begin_session();
	for (unsigned i = 0; i < NFS4_SESSIONID_SIZE; i++) {
		other = s;
		other.id[i] ^= 0x40;
		cr_expect_eq(call_sequence(f, &other), NFS4ERR_BADSESSION, "byte %u", i);
	}
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_sequence, only_in_front)
{
	NEED_FIXTURE();
	begin_session();
	fix4_begin(f, &s);
	fix4_op(f, OP_SEQUENCE);
	xdr_put_fixed(&f->out, s.id, NFS4_SESSIONID_SIZE);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1);
	xdr_put_bool(&f->out, false);
	cr_expect_eq(fix4_send(f), NFS4ERR_SEQUENCE_POS);
}

/* MKDIR shows that it ran only once: a second time it would fail. */
static void put_mkdir(const char *name)
{
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, NF4DIR);
	fix4_name(f, name);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	fix4_op(f, OP_GETFH);
}

Test(nfs4_sequence, a_retry_gets_the_reply_that_was_kept)
{
	static uint8_t first[4096];
	size_t len;

	NEED_FIXTURE();
	begin_session();
	s.cache_this = true;
	fix4_begin(f, &s);
	put_mkdir("once");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	len = f->reply_len;
	cr_assert_leq(len, sizeof(first));
	memcpy(first, f->reply, len);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(fix4_resend(f), NFS4_OK);
		cr_expect_eq(f->reply_len, len);
		cr_expect_arr_eq(f->reply, first, len);
	}
	/* The next sequence number runs the operation again. */
	fix4_begin(f, &s);
	put_mkdir("once");
	cr_expect_eq(fix4_send(f), NFS4ERR_EXIST);
	/* Failures are kept, too. */
	cr_assert_eq(rmdir(fix_path(f, "once")), 0);
	cr_expect_eq(fix4_resend(f), NFS4ERR_EXIST);
	cr_expect_not(exists("once"));
}

Test(nfs4_sequence, a_retry_of_what_was_not_kept)
{
	NEED_FIXTURE();
	begin_session();
	fix4_begin(f, &s);
	put_mkdir("once");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_assert_eq(rmdir(fix_path(f, "once")), 0);
	cr_expect_eq(fix4_resend(f), NFS4ERR_RETRY_UNCACHED_REP);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4ERR_RETRY_UNCACHED_REP);
	cr_expect_eq(fix4_results_left(f), 0);
	whole();
	cr_expect_not(exists("once"));
}

/* Second operations that may not answer RETRY_UNCACHED_REP. */
Test(nfs4_sequence, a_retry_with_an_operation_that_there_is_not)
{
	NEED_FIXTURE();
	begin_session();
	fix4_begin(f, &s);
	fix4_op(f, 9999);
	cr_expect_eq(fix4_send(f), NFS4ERR_OP_ILLEGAL);
	cr_expect_eq(fix4_resend(f), NFS4ERR_OP_ILLEGAL);
	cr_expect_eq(fix4_result(f, OP_ILLEGAL), NFS4ERR_OP_ILLEGAL);
	fix4_begin(f, &s);
	fix4_op(f, OP_RENEW);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOTSUPP);
	cr_expect_eq(fix4_resend(f), NFS4ERR_NOTSUPP);
	fix4_begin(f, &s);
	fix4_op(f, OP_GETDEVICELIST);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOTSUPP);
	cr_expect_eq(fix4_resend(f), NFS4ERR_NOTSUPP);
}

Test(nfs4_sequence, data_that_was_read_comes_again)
{
	static const char text[] = "seventeen letters";
	struct vfs_fh fh;

	NEED_FIXTURE();
	begin_session();
	make_file("file", text, 0644);
	cr_assert_eq(fix4_handle(f, &s, &f->root, "file", &fh), NFS4_OK);
	s.cache_this = true;
	fix4_begin(f, &s);
	fix4_putfh(f, &fh);
	for (unsigned i = 0; i < 3; i++) {
		fix4_op(f, OP_READ);
		fix4_stateid(f, &(struct nfs4_stateid){ 0 });
		xdr_put_u64(&f->out, i * 8);
		xdr_put_u32(&f->out, 100);
	}
	cr_assert_eq(fix4_send(f), NFS4_OK);
	make_file("file", "something else", 0644);
	cr_assert_eq(fix4_resend(f), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t from = i * 8 < 17 ? i * 8 : 17;
		const uint8_t *p;
		uint32_t len;

		cr_expect_eq(fix4_result(f, OP_READ), NFS4_OK);
		cr_expect(xdr_get_bool(&f->in));
		p = xdr_get_opaque(&f->in, 100, &len);
		cr_expect_eq(len, 17 - from);
		cr_expect_arr_eq(p, text + from, len);
	}
	whole();
}

Test(nfs4_sequence, false_retries)
{
	const struct seq_args a = { .seqid = 1, .slot = 1, .highest = 1, .cache_this = true };

	NEED_FIXTURE();
	begin_session();
	seq_begin(&s, &a);
	put_mkdir("one");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	seq_begin(&s, &a);
	put_mkdir("two");
	cr_expect_eq(fix4_send(f), NFS4ERR_SEQ_FALSE_RETRY);
	cr_expect_not(exists("two"));
	seq_begin(&s, &a);
	cr_expect_eq(fix4_send(f), NFS4ERR_SEQ_FALSE_RETRY);
	/* Another user must not get the reply (section 2.10.6.1.3.1). */
	f->uid = 1000;
	seq_begin(&s, &a);
	put_mkdir("one");
	cr_expect_eq(fix4_send(f), NFS4ERR_SEQ_FALSE_RETRY);
	f->uid = 0;
	seq_begin(&s, &a);
	put_mkdir("one");
	cr_expect_eq(fix4_send(f), NFS4_OK);
}

/* Makes a session with small limits. */
static void small_session(const struct nfs4_channel *fore)
{
	const struct eid_args e = { .owner = "small", .verifier = "verf0001" };
	struct cs_args a = { .fore = *fore, .back = usual_channel };
	struct eid_result er;
	struct cs_result cr;

	cr_assert_eq(call_exchange_id(f, NULL, &e, &er), NFS4_OK);
	a.clientid = er.clientid;
	a.seqid = er.seqid;
	cr_assert_eq(call_create_session(f, NULL, &a, &cr), NFS4_OK);
	use_session(&s, er.clientid, &cr);
	cr_assert_eq(call_reclaim_complete(f, &s, false), NFS4_OK);
}

Test(nfs4_sequence, too_many_operations)
{
	struct nfs4_channel fore = usual_channel;

	NEED_FIXTURE();
	fore.max_ops = 4;
	small_session(&fore);
	for (unsigned n = 3; n <= 5; n++) {
		fix4_begin(f, &s);
		for (unsigned i = 1; i < n; i++)
			fix4_op(f, OP_PUTROOTFH);
		cr_expect_eq(fix4_send(f), n <= 4 ? NFS4_OK : NFS4ERR_TOO_MANY_OPS);
	}
	s.seqid--; /* the slot has not changed */
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_sequence, too_big_requests_and_replies)
{
	struct nfs4_channel fore = usual_channel;
	char name[256];

	NEED_FIXTURE();
	fore.max_request = 512;
	fore.max_reply = 400;
	fore.max_cached = 256;
	small_session(&fore);
	memset(name, 'x', sizeof(name));
	name[250] = '\0';
	/* The limit includes 24 + 28 bytes of RPC header: two LOOKUPs are too long. */
	fix4_begin(f, &s);
	fix4_putfh(f, &f->root);
	fix4_lookup(f, name);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOENT);
	fix4_begin(f, &s);
	fix4_putfh(f, &f->root);
	fix4_lookup(f, name);
	fix4_lookup(f, name);
	cr_expect_eq(fix4_send(f), NFS4ERR_REQ_TOO_BIG);
	s.seqid--;
	/* GETFH until the reply is full. */
	for (unsigned i = 0; i < 2; i++) {
		s.cache_this = i == 1;
		fix4_begin(f, &s);
		fix4_putfh(f, &f->root);
		for (unsigned n = 0; n < 12; n++)
			fix4_op(f, OP_GETFH);
		cr_expect_eq(fix4_send(f),
			     i == 0 ? NFS4ERR_REP_TOO_BIG : NFS4ERR_REP_TOO_BIG_TO_CACHE);
		cr_expect_leq(f->reply_len, i == 0 ? 400 : 256);
	}
	/* The results up to the failure are kept. */
	cr_expect_eq(fix4_resend(f), NFS4ERR_REP_TOO_BIG_TO_CACHE);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_GETFH), NFS4_OK);
}

Test(nfs4_sequence, nothing_to_cache_with)
{
	size_t max;

	NEED_FIXTURE();
	begin_session();
	max = f->budget.max;
	f->budget.max = f->budget.used + 100;
	s.cache_this = true;
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_DELAY);
	s.seqid--;
	s.cache_this = false;
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	f->budget.max = max;
	s.cache_this = true;
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

/* A client that wants more slots than it gets at first, and uses them. */
Test(nfs4_sequence, slots_grow_with_use)
{
	struct nfs4_channel fore = usual_channel;
	struct seq_result r;

	NEED_FIXTURE();
	fore.max_requests = 200;
	small_session(&fore);
	cr_expect_eq(seq(1, 10, 20, &r), NFS4_OK);
	cr_expect_eq(r.highest, 63);
	cr_expect_eq(r.target, 63);
	cr_expect_eq(seq(1, 64, 64, &r), NFS4ERR_BADSLOT);
	cr_expect_eq(seq(1, 63, 63, &r), NFS4_OK);
	cr_expect_eq(r.highest, 127);
	cr_expect_eq(r.target, 127);
	cr_expect_eq(seq(1, 127, 127, &r), NFS4_OK);
	cr_expect_eq(r.highest, 199);
	cr_expect_eq(seq(1, 199, 199, &r), NFS4_OK);
	cr_expect_eq(r.highest, 199);
	cr_expect_eq(seq(1, 200, 200, &r), NFS4ERR_BADSLOT);
	cr_expect_eq(slot_inside(199)->seqid, 1);
	cr_expect_eq(slot_inside(10)->seqid, 1);
}

/* When memory is short, the server asks for slots back, and frees them once the client knows. */
Test(nfs4_sequence, slots_shrink_when_memory_is_short)
{
	struct nfs4_channel fore = usual_channel;
	struct nfs4_session *in;
	struct seq_result r;

	NEED_FIXTURE();
	fore.max_requests = 16;
	small_session(&fore);
	in = nfs4_session_get(f->server4->clients, s.id);
	in->short_of_memory = true;
	cr_expect_eq(seq(1, 12, 15, &r), NFS4_OK);
	cr_expect_eq(r.highest, 15);
	cr_expect_eq(r.target, 7);
	/* The client does not know the new number yet, or still uses higher slots. */
	cr_expect_eq(seq(1, 13, 15, &r), NFS4_OK);
	cr_expect_eq(r.highest, 15);
	cr_expect_eq(seq(1, 1, 7, &r), NFS4_OK);
	cr_expect_eq(r.highest, 15);
	cr_expect_eq(seq(2, 12, 12, &r), NFS4_OK);
	cr_expect_eq(r.highest, 15);
	/* The client has given the slots back. */
	cr_expect_eq(seq(2, 1, 7, &r), NFS4_OK);
	cr_expect_eq(r.highest, 7);
	cr_expect_eq(seq(3, 12, 12, &r), NFS4ERR_BADSLOT);
	cr_expect_eq(seq(3, 1, 12, &r), NFS4ERR_BAD_HIGH_SLOT);
	/* The slots come back. The number sequence of a freed slot starts anew. */
	in->short_of_memory = false;
	cr_expect_eq(seq(3, 1, 7, &r), NFS4_OK);
	cr_expect_eq(r.highest, 15);
	cr_expect_eq(seq(1, 12, 12, &r), NFS4_OK);
	cr_expect_eq(seq(2, 12, 12, &r), NFS4_OK);
	cr_expect_eq(seq(2, 13, 13, &r), NFS4_OK);
	nfs4_session_put(in);
}

/* With SP4_NONE a session may be used over any connection. */
Test(nfs4_sequence, another_connection)
{
	NEED_FIXTURE();
	begin_session();
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	f->conn.id++;
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}
