/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous COPY: pieces, CB_OFFLOAD, OFFLOAD_STATUS and OFFLOAD_CANCEL, and the ends of a copy. The
 * tests run the pieces, so all of them come at a known moment. */
#include <errno.h>

#include "nfs4/data/nfs4_copies.h"
#include "nfs4/nfs4_private.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/space.h"

NFS3_SUITE(nfs4_copies);

#define PIECE ((uint64_t)VFS_COPY_STEP)
#define SIZE ((uint64_t)VFS_COPY_MAX + 100) /* four pieces and a little one */
#define PIECES 5u
#define STEPS (PIECES + 1u) /* and the sync */
#define OVER 94u	    /* seconds: a lease and some */

static struct op_client client, other;
static struct op_owner owner, others;
static struct op_file from, to;
static struct nfs4_stateid sid;
static struct cb_call c;
static size_t budget; /* bytes used before the first copy */

/* Pieces that wait for a worker. */
static struct rpc_request *queue[NFS4_COPIES_MAX + 1];
static unsigned queued, ended;

static void background(void *ctx, struct rpc_request *req, uint32_t export_id)
{
	(void)ctx;
	cr_expect_eq(export_id, 1);
	cr_expect_leq(req->moves, PIECE);
	queue[queued++] = req;
}

static void on_ended(void *ctx, struct rpc_request *req)
{
	(void)ctx;
	ended += req != f->req;
}

static void run_piece(void)
{
	struct rpc_request *req = queue[0];

	cr_assert_gt(queued, 0, "no piece waits");
	memmove(queue, queue + 1, --queued * sizeof(queue[0]));
	req->worker = &f->worker;
	ended = 0;
	fix_run(req);
	for (unsigned tries = 0; tries < 200 && ended == 0; tries++)
		vfs_worker_wait(f->vw, 50);
	cr_assert_eq(ended, 1);
}

static void make_big(const char *name, uint64_t size)
{
	int fd = open(fix_path(f, name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	for (uint64_t at = 0; at < size; at += 1 << 20)
		cr_assert_eq(pwrite(fd, &at, sizeof(at), (off_t)at), (ssize_t)sizeof(at));
	cr_assert_eq(fchmod(fd, 0666), 0);
	close(fd);
}

static uint64_t size_of(const char *name)
{
	struct stat st;

	return stat(fix_path(f, name), &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

static void new_client(struct op_client *cl, const char *name)
{
	cr_assert_eq(op_client_new(f, cl, 2, name), NFS4_OK);
	if (cbs_take(&c))
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
}

static void open_both(struct op_owner *o)
{
	cr_assert_eq(op_open(f, o,
			     &(struct op_how){ .fh = &f->root,
					       .name = "from",
					       .access = OPEN4_SHARE_ACCESS_READ },
			     &from),
		     NFS4_OK);
	cr_assert_eq(op_open(f, o,
			     &(struct op_how){ .fh = &f->root,
					       .name = "to",
					       .access = OPEN4_SHARE_ACCESS_WRITE },
			     &to),
		     NFS4_OK);
}

/* A client with a callback path has opened both files. */
static void begin(void)
{
	f->rpc.background = background;
	f->rpc.ended = on_ended;
	queued = 0;
	cbs_on(f);
	new_client(&client, "client");
	owner = (struct op_owner){ &client, "owner", 1 };
	make_big("from", SIZE);
	make_file("to", "", 0666);
	open_both(&owner);
	budget = f->budget.used;
}

struct order {
	const struct nfs4_stateid *from, *to;
	uint64_t count;
	bool synchronous;
};

/* Sends COPY. True: it is asynchronous, and sid is its stateid. */
static bool start(struct order o)
{
	bool has;

	op_begin(f, &client);
	fix4_putfh(f, &from.fh);
	fix4_op(f, OP_SAVEFH);
	fix4_putfh(f, &to.fh);
	fix4_op(f, OP_COPY);
	fix4_stateid(f, o.from ? o.from : &from.sid);
	fix4_stateid(f, o.to ? o.to : &to.sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, o.count);
	xdr_put_bool(&f->out, true);
	xdr_put_bool(&f->out, o.synchronous);
	xdr_put_u32(&f->out, 0);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SAVEFH);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_COPY);
	has = xdr_get_u32(&f->in) == 1;
	if (has)
		fix4_get_stateid(f, &sid);
	if (has)
		cr_expect_eq(xdr_get_u64(&f->in), 0, "no bytes so far");
	else
		cr_expect_gt(xdr_get_u64(&f->in), 0);
	cr_expect_eq(xdr_get_u32(&f->in), 0, "UNSTABLE4");
	cr_expect_eq(xdr_get_u64(&f->in), vfs_write_verifier(f->exp[0]));
	cr_expect(xdr_get_bool(&f->in), "consecutive");
	cr_expect_eq(xdr_get_bool(&f->in), !has, "synchronous");
	whole();
	return has;
}

static void start_one(void)
{
	cr_assert(start((struct order){ .count = 0 }));
	cr_assert_gt(queued, 0);
}

static uint32_t offload(uint32_t op, struct op_client *cl, const struct vfs_fh *fh,
			const struct nfs4_stateid *s)
{
	uint32_t status;

	op_begin(f, cl);
	fix4_putfh(f, fh);
	fix4_op(f, op);
	fix4_stateid(f, s);
	status = fix4_send(f);
	cr_assert_eq(f->answers, 1);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, op), status);
	return status;
}

static uint32_t cancel(void)
{
	return offload(OP_OFFLOAD_CANCEL, &client, &to.fh, &sid);
}

/* OFFLOAD_STATUS says that many bytes, and that it has ended with that status, or UINT32_MAX. */
static void is_at(uint64_t bytes, uint32_t end)
{
	cr_assert_eq(offload(OP_OFFLOAD_STATUS, &client, &to.fh, &sid), NFS4_OK);
	cr_expect_eq(xdr_get_u64(&f->in), bytes);
	cr_expect_eq(xdr_get_u32(&f->in), end != UINT32_MAX);
	if (end != UINT32_MAX)
		cr_expect_eq(xdr_get_u32(&f->in), end);
	whole();
}

static uint64_t copies(void)
{
	struct nfs4_held h;

	nfs4_held(f->server4, &h);
	return h.copies;
}

/* Nothing is left of any copy. */
static void none_left(void)
{
	cr_expect_eq(copies(), 0);
	cr_expect_eq(queued, 0);
	cr_expect_leq(f->budget.used, budget);
	cr_expect_eq(cancel(), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_test_stateid(f, &client, &sid), NFS4ERR_BAD_STATEID);
}

static void all_gone(void)
{
	none_left();
	cr_expect_eq(offload(OP_OFFLOAD_STATUS, &client, &to.fh, &sid), NFS4ERR_BAD_STATEID);
}

/* The callback that tells the end; it is not answered. */
static void told(uint32_t status, uint64_t count)
{
	cr_assert(cbs_take(&c), "no callback");
	cr_expect_eq(c.op, OP_CB_OFFLOAD);
	cr_expect_eq(c.fh.len, to.fh.len);
	cr_expect_arr_eq(c.fh.data, to.fh.data, to.fh.len);
	cr_expect_arr_eq(&c.sid, &sid, sizeof(sid));
	cr_expect_eq(c.status, status, "status %u", c.status);
	cr_expect_eq(c.count, count);
}

static void told_and_answered(uint32_t status, uint64_t count)
{
	told(status, count);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	none_left();
	is_at(count, status);
}

static void same_files(void)
{
	static char a[PIECE], b[PIECE];
	int x = open(fix_path(f, "from"), O_RDONLY), y = open(fix_path(f, "to"), O_RDONLY);
	ssize_t n;

	do {
		n = read(x, a, sizeof(a));
		cr_assert_eq(read(y, b, sizeof(b)), n);
		cr_assert(n <= 0 || memcmp(a, b, (size_t)n) == 0);
	} while (n > 0);
	close(x);
	close(y);
}

Test(nfs4_copies, piece_by_piece)
{
	uint32_t seqid;

	NEED_FIXTURE();
	begin();
	seqid = client.session.seqid;
	start_one();
	cr_expect_neq(sid.seqid, 0);
	is_at(0, UINT32_MAX);
	cr_expect_gt(f->budget.used, budget, "the client pays");
	cr_expect_eq(op_test_stateid(f, &client, &sid), NFS4_OK);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4ERR_BAD_STATEID);
	for (unsigned i = 1; i < PIECES; i++) {
		run_piece();
		cr_expect_eq(queued, 1);
		is_at(i * PIECE, UINT32_MAX);
		cr_expect_eq(size_of("to"), i * PIECE);
	}
	run_piece();
	is_at(SIZE, UINT32_MAX);
	cr_expect_eq(cbs_count(), 0, "the destination is not synced yet");
	run_piece();
	told(NFS4_OK, SIZE);
	cr_expect_eq(c.committed, VFS_FILE_SYNC);
	cr_expect_eq(atomic_load(&f->vfs->uncommitted), 0);
	cr_expect_eq(c.verifier, vfs_write_verifier(f->exp[0]));
	cr_expect_eq(c.nreferring, 1);
	cr_expect_arr_eq(c.ref_session, client.session.id, NFS4_SESSIONID_SIZE);
	cr_expect_eq(c.ref_seqid, seqid);
	cr_expect_eq(c.ref_slot, client.session.slot);
	is_at(SIZE, NFS4_OK);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	none_left();
	same_files();
}

Test(nfs4_copies, synchronous_as_before)
{
	const struct nfs4_stateid anonymous = { 0 };

	NEED_FIXTURE();
	begin();
	cr_expect_not(start((struct order){ .synchronous = true }));
	cr_expect_not(start((struct order){ .count = VFS_COPY_MAX }), "a short one");
	cr_expect_not(start((struct order){ .from = &anonymous }), "no open to rely on");
	cr_expect_not(start((struct order){ .to = &anonymous }));
	cbs_lose(f);
	cr_expect_not(start((struct order){ .count = 0 }), "no callback path");
	f->rpc.background = NULL;
	cr_expect_eq(queued, 0);
	cr_expect_eq(copies(), 0);
}

Test(nfs4_copies, cancelled)
{
	NEED_FIXTURE();
	begin();
	start_one();
	run_piece();
	/* The answer waits for the piece under way: here the next one, which is not begun. */
	rn_inbox_post(&f->worker.inbox, &queue[0]->node);
	queue[0]->worker = &f->worker;
	queued = 0;
	cr_expect_eq(cancel(), NFS4_OK);
	cr_expect_eq(size_of("to"), PIECE);
	all_gone();
	cr_expect_eq(cbs_count(), 0, "nobody waits for the result");
	/* While the callback is under way */
	cr_assert(start((struct order){ .count = VFS_COPY_MAX + 1 }));
	for (unsigned i = 0; i < STEPS; i++)
		run_piece();
	cr_expect_eq(cancel(), NFS4_OK);
	cr_expect_eq(offload(OP_OFFLOAD_STATUS, &client, &to.fh, &sid), NFS4ERR_BAD_STATEID);
	told(NFS4_OK, VFS_COPY_MAX + 1);
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_DELAY);
	all_gone();
}

Test(nfs4_copies, stateids_that_name_nothing)
{
	struct nfs4_stateid bad;

	NEED_FIXTURE();
	begin();
	new_client(&other, "other");
	budget = f->budget.used;
	start_one();
	for (uint32_t op = OP_OFFLOAD_CANCEL; op <= OP_OFFLOAD_STATUS; op++) {
		cr_expect_eq(offload(op, &other, &to.fh, &sid), NFS4ERR_BAD_STATEID,
			     "another client's");
		cr_expect_eq(offload(op, &client, &from.fh, &sid), NFS4ERR_BAD_STATEID,
			     "not the destination");
		cr_expect_eq(offload(op, &client, &to.fh, &to.sid), NFS4ERR_BAD_STATEID, "an open");
		f->uid = 1000;
		cr_expect_eq(offload(op, &client, &to.fh, &sid), NFS4ERR_BAD_STATEID,
			     "another user's");
		f->uid = 0;
		for (unsigned i = 0; i < NFS4_OTHER_SIZE; i++) {
			bad = sid;
			bad.other[i] ^= 1;
			cr_expect_eq(offload(op, &client, &to.fh, &bad), NFS4ERR_BAD_STATEID);
		}
		bad = sid;
		bad.seqid = 0;
		cr_expect_eq(offload(op, &client, &to.fh, &bad), NFS4ERR_BAD_STATEID, "seqid 0");
		bad.seqid = 2;
		cr_expect_eq(offload(op, &client, &to.fh, &bad), NFS4ERR_BAD_STATEID);
	}
	cr_expect_eq(op_test_stateid(f, &other, &sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_read(f, &client, &to.fh, &sid), NFS4ERR_BAD_STATEID);
	for (unsigned i = 0; i < STEPS; i++)
		run_piece();
	told_and_answered(NFS4_OK, SIZE);
}

/* A copy ends with the opens that it relies on. */
Test(nfs4_copies, an_open_is_closed)
{
	NEED_FIXTURE();
	begin();
	for (unsigned i = 0; i < 2; i++) {
		start_one();
		run_piece();
		cr_assert_eq(op_close(f, &owner, i == 0 ? &from : &to), NFS4_OK);
		run_piece();
		told(NFS4ERR_BAD_STATEID, PIECE);
		is_at(PIECE, NFS4ERR_BAD_STATEID);
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
		cr_expect_eq(copies(), 0);
		open_both(&owner);
	}
}

/* The client returns the delegation that it reads by, and asks for the rest by its open. */
Test(nfs4_copies, a_delegation_is_returned)
{
	NEED_FIXTURE();
	begin();
	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	cr_assert_eq(op_close(f, &owner, &from), NFS4_OK);
	cr_assert_eq(op_close(f, &owner, &to), NFS4_OK);
	open_both(&owner);
	cr_assert_eq(from.delegation, OPEN_DELEGATE_READ);
	cr_assert(start((struct order){ .from = &from.deleg }));
	run_piece();
	run_piece();
	cr_assert_eq(op_delegreturn(f, &client, &from.fh, &from.deleg), NFS4_OK);
	run_piece();
	run_piece();
	told(NFS4_OK, 2 * PIECE);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(copies(), 0);
}

/* Further OPENs and an OPEN_DOWNGRADE change the stateid's seqid, and nothing else. */
Test(nfs4_copies, an_open_changes)
{
	struct op_file both;

	NEED_FIXTURE();
	begin();
	start_one();
	run_piece();
	cr_assert_eq(op_open(f, &owner, &(struct op_how){ .fh = &f->root, .name = "to" }, &both),
		     NFS4_OK);
	run_piece();
	cr_assert_eq(op_downgrade(f, &owner, &both, OPEN4_SHARE_ACCESS_READ, 0),
		     NFS4ERR_INVAL); /* never opened so */
	cr_assert_eq(op_downgrade(f, &owner, &both, OPEN4_SHARE_ACCESS_WRITE, 0), NFS4_OK);
	for (unsigned i = 2; i < STEPS; i++)
		run_piece();
	told_and_answered(NFS4_OK, SIZE);
}

Test(nfs4_copies, the_source_is_cut)
{
	NEED_FIXTURE();
	begin();
	start_one();
	run_piece();
	cr_assert_eq(truncate(fix_path(f, "from"), (off_t)PIECE + 10), 0);
	run_piece();
	run_piece();
	run_piece();
	told_and_answered(NFS4_OK, PIECE + 10);
}

Test(nfs4_copies, the_export_goes)
{
	NEED_FIXTURE();
	begin();
	start_one();
	run_piece();
	f->deny = true;
	run_piece();
	f->deny = false;
	told_and_answered(NFS4ERR_STALE, PIECE);
	/* One that only may be read any more */
	start_one();
	run_piece();
	f->access.flags |= VFS_RO;
	run_piece();
	f->access.flags &= ~(uint32_t)VFS_RO;
	told_and_answered(NFS4ERR_ROFS, PIECE);
}

/* A copy waits up to a lease for a state that may change soon. */
Test(nfs4_copies, a_pause)
{
	NEED_FIXTURE();
	begin();
	start_one();
	run_piece();
	f->undecided = true;
	run_piece();
	cr_expect_eq(queued, 0);
	nfs4_tick(f->server4);
	cr_assert_eq(queued, 1);
	run_piece();
	f->undecided = false;
	is_at(PIECE, UINT32_MAX);
	nfs4_tick(f->server4);
	run_piece();
	is_at(2 * PIECE, UINT32_MAX);
	f->undecided = true;
	run_piece();
	nfs4_skip_lease_time(f->server4, OVER);
	f->undecided = false;
	cr_assert_eq(cbs_sequence(f, &client.session), 0);
	f->undecided = true;
	nfs4_tick(f->server4);
	run_piece();
	f->undecided = false;
	told_and_answered(NFS4ERR_DELAY, 2 * PIECE);
	/* One that pauses is cancelled at once. */
	start_one();
	f->undecided = true;
	run_piece();
	f->undecided = false;
	cr_expect_eq(cancel(), NFS4_OK);
	all_gone();
}

/* The client commits by itself what may not be on disk, and is told by what verifier. */
static void told_unstable(uint64_t verifier)
{
	run_piece();
	told(NFS4_OK, SIZE);
	cr_expect_eq(c.committed, VFS_UNSTABLE);
	cr_expect_eq(c.verifier, verifier);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	none_left();
}

static uint64_t copy_but_sync(void)
{
	const uint64_t verifier = vfs_write_verifier(f->exp[0]);

	start_one();
	for (unsigned i = 0; i < PIECES; i++)
		run_piece();
	cr_expect_eq(queued, 1);
	return verifier;
}

Test(nfs4_copies, not_synced)
{
	uint64_t verifier;

	NEED_FIXTURE();
	begin();
	/* Data were lost meanwhile. */
	verifier = copy_but_sync();
	cr_assert(vfs_verifier_change(f->vfs, f->exp[0]->verifier));
	told_unstable(verifier);
	/* The export may only be read any more. */
	verifier = copy_but_sync();
	f->access.flags |= VFS_RO;
	told_unstable(verifier);
	f->access.flags &= ~(uint32_t)VFS_RO;
	/* The export has gone. */
	verifier = copy_but_sync();
	f->deny = true;
	run_piece();
	f->deny = false;
	told(NFS4_OK, SIZE);
	cr_expect_eq(c.committed, VFS_UNSTABLE);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	none_left();
	/* The client has cancelled the copy. */
	copy_but_sync();
	rn_inbox_post(&f->worker.inbox, &queue[0]->node);
	queue[0]->worker = &f->worker;
	queued = 0;
	cr_expect_eq(cancel(), NFS4_OK);
	all_gone();
	cr_expect_eq(cbs_count(), 0);
}

static void copy_all(void)
{
	start_one();
	for (unsigned i = 0; i < STEPS; i++)
		run_piece();
}

Test(nfs4_copies, told_again)
{
	NEED_FIXTURE();
	begin();
	copy_all();
	told(NFS4_OK, SIZE);
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_DELAY);
	cr_expect_eq(cbs_count(), 0);
	is_at(SIZE, NFS4_OK);
	nfs4_tick(f->server4);
	told(NFS4_OK, SIZE);
	/* COPY's reply is still under way. */
	cbs_answer(f, &c, NFS4ERR_DELAY, 0);
	nfs4_tick(f->server4);
	told_and_answered(NFS4_OK, SIZE);
}

Test(nfs4_copies, kept_for_a_lease)
{
	NEED_FIXTURE();
	begin();
	copy_all();
	told(NFS4_OK, SIZE);
	cbs_time_out(f);
	nfs4_tick(f->server4);
	cr_expect_eq(cbs_count(), 0, "the client may have got it");
	is_at(SIZE, NFS4_OK);
	nfs4_skip_lease_time(f->server4, OVER);
	cr_expect_neq(cbs_sequence(f, &client.session), UINT32_MAX);
	nfs4_tick(f->server4);
	all_gone();
}

/* OFFLOAD_STATUS may be on its way while CB_OFFLOAD is answered. */
Test(nfs4_copies, a_result_that_was_told)
{
	NEED_FIXTURE();
	begin();
	new_client(&other, "other");
	budget = f->budget.used;
	copy_all();
	told_and_answered(NFS4_OK, SIZE);
	cr_expect_eq(offload(OP_OFFLOAD_STATUS, &other, &to.fh, &sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(offload(OP_OFFLOAD_STATUS, &client, &from.fh, &sid), NFS4ERR_BAD_STATEID);
	nfs4_skip_lease_time(f->server4, OVER);
	cr_expect_neq(cbs_sequence(f, &client.session), UINT32_MAX);
	all_gone();
}

Test(nfs4_copies, a_kept_one_is_cancelled)
{
	NEED_FIXTURE();
	begin();
	copy_all();
	told(NFS4_OK, SIZE);
	cbs_lose(f);
	is_at(SIZE, NFS4_OK);
	cr_expect_eq(cancel(), NFS4_OK);
	all_gone();
}

Test(nfs4_copies, the_client_goes)
{
	NEED_FIXTURE();
	begin();
	start_one();
	run_piece();
	cr_expect_eq(nfs4_forget_client(f->server4, client.clientid), 0);
	run_piece();
	cr_expect_eq(queued, 0);
	cr_expect_eq(cbs_count(), 0);
	nfs4_tick(f->server4);
	cr_expect_eq(copies(), 0);
	cr_expect_lt(f->budget.used, budget);
	cr_expect_eq(size_of("to"), PIECE);
}

Test(nfs4_copies, as_many_as_a_host_may_have)
{
	NEED_FIXTURE();
	begin();
	for (unsigned i = 0; i < NFS4_COPIES_OF_HOST; i++)
		start_one();
	cr_expect_eq(copies(), NFS4_COPIES_OF_HOST);
	cr_expect_not(start((struct order){ .count = 0 }), "synchronous");
	/* Another host has its own. */
	fix_from(f, 2);
	cbs_lose(f);
	new_client(&other, "other");
	others = (struct op_owner){ &other, "others", 1 };
	open_both(&others);
	client = other;
	start_one();
	cr_assert_eq(truncate(fix_path(f, "from"), 0), 0);
	while (queued > 0)
		run_piece();
}

Test(nfs4_copies, the_server_stops)
{
	NEED_FIXTURE();
	begin();
	start_one();
	f->undecided = true;
	run_piece();
	f->undecided = false;
	copy_all();
	told(NFS4_OK, SIZE);
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_DELAY);
	cr_expect_eq(copies(), 2);
	nfs4_stop_copies(f->server4);
	cr_expect_eq(copies(), 0);
	nfs4_tick(f->server4);
	cr_expect_not(start((struct order){ .count = 0 }), "synchronous");
}
