/* SPDX-License-Identifier: BSD-2-Clause */
/* Data operations with stateids in minor version 1: access that an open allows, and stateids that
 * are refused; and READ without memory. */
#include "lib/util.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"

NFS3_SUITE(nfs4_io);

enum { READS = 1, WRITES = 2, BOTH = 3 };

static const struct nfs4_stateid anonymous;
static const struct nfs4_stateid bypass = {
	UINT32_MAX, { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 }
};
static const struct nfs4_stateid current = { 1, { 0 } };
static struct fix4_session session;

static void start(void)
{
	cr_assert_eq(fix4_session_new(f, &session, 1, "io", true), NFS4_OK);
	make_file("x", "0123456789", 0600);
}

/* Puts OPEN of x without create. The owner is one letter. */
static void put_open(char owner, uint32_t access, uint32_t deny)
{
	struct xdr_out *c = &f->out;

	fix4_op(f, OP_OPEN);
	xdr_put_u32(c, 0); /* seqid */
	xdr_put_u32(c, access);
	xdr_put_u32(c, deny);
	xdr_put_u64(c, session.clientid);
	xdr_put_opaque(c, &owner, 1);
	xdr_put_u32(c, 0); /* OPEN4_NOCREATE */
	xdr_put_u32(c, 0); /* CLAIM_NULL */
	fix4_name(f, "x");
}

static uint32_t open_x(char owner, uint32_t access, uint32_t deny, struct nfs4_stateid *sid)
{
	uint32_t status;

	fix4_begin(f, &session);
	fix4_putfh(f, &f->root);
	put_open(owner, access, deny);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	cr_assert_eq(fix4_result(f, OP_OPEN), status);
	if (status == NFS4_OK)
		fix4_get_stateid(f, sid);
	return status;
}

static void begin(const char *name)
{
	struct vfs_fh fh;

	cr_assert_eq(fix4_handle(f, &session, &f->root, name, &fh), NFS4_OK);
	fix4_begin(f, &session);
	fix4_putfh(f, &fh);
}

static void put_read(const struct nfs4_stateid *sid, uint32_t count)
{
	fix4_op(f, OP_READ);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, count);
}

static void put_write(const struct nfs4_stateid *sid)
{
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 2);
	xdr_put_opaque(&f->out, "x", 1);
}

static uint32_t outcome(uint32_t op)
{
	uint32_t status = fix4_send(f);

	fix4_result(f, OP_PUTFH);
	cr_assert_eq(fix4_result(f, op), status);
	return status;
}

static uint32_t read_status(const struct nfs4_stateid *sid)
{
	begin("x");
	put_read(sid, 100);
	return outcome(OP_READ);
}

static uint32_t write_status(const struct nfs4_stateid *sid)
{
	begin("x");
	put_write(sid);
	return outcome(OP_WRITE);
}

Test(nfs4_io, an_open_allows_what_it_was_opened_for)
{
	struct nfs4_stateid rd, wr, both;

	NEED_FIXTURE();
	start();
	cr_assert_eq(open_x('r', READS, 0, &rd), NFS4_OK);
	cr_assert_eq(open_x('w', WRITES, 0, &wr), NFS4_OK);
	cr_assert_eq(open_x('b', BOTH, 0, &both), NFS4_OK);
	cr_expect_eq(read_status(&rd), NFS4_OK);
	cr_expect_eq(write_status(&rd), NFS4ERR_OPENMODE);
	cr_expect_eq(write_status(&wr), NFS4_OK);
	cr_expect_eq(read_status(&both), NFS4_OK);
	cr_expect_eq(write_status(&both), NFS4_OK);
	f->access.flags |= VFS_RO;
	cr_expect_eq(read_status(&rd), NFS4_OK);
	cr_expect_eq(write_status(&wr), NFS4ERR_ROFS);
}

/* An open file stays usable when its mode changes, but only by the user who opened it. */
Test(nfs4_io, permission_was_checked_for_who_has_opened)
{
	struct nfs4_stateid mine, shared, roots;

	NEED_FIXTURE();
	start();
	cr_assert_eq(open_x('r', BOTH, 0, &roots), NFS4_OK);
	cr_assert_eq(chmod(fix_path(f, "x"), 0666), 0);
	cr_assert_eq(open_x('s', READS, 0, &shared), NFS4_OK);
	f->uid = f->gid = 1000;
	cr_assert_eq(open_x('m', BOTH, 0, &mine), NFS4_OK);
	cr_assert_eq(open_x('s', BOTH, 0, &shared), NFS4_OK, "of the same owner, by two users");
	f->uid = f->gid = 0;
	cr_expect_eq(read_status(&roots), NFS4_OK);
	/* The thread acts as the last call's user */
	cr_assert_eq(chmod(fix_path(f, "x"), 0600), 0);
	f->uid = f->gid = 1000;
	cr_expect_eq(read_status(&anonymous), NFS4ERR_ACCESS);
	cr_expect_eq(read_status(&mine), NFS4_OK);
	cr_expect_eq(write_status(&mine), NFS4_OK);
	cr_expect_eq(read_status(&roots), NFS4ERR_ACCESS);
	cr_expect_eq(write_status(&roots), NFS4ERR_ACCESS);
	cr_expect_eq(read_status(&shared), NFS4ERR_ACCESS);
	f->uid = f->gid = 1001;
	cr_expect_eq(read_status(&mine), NFS4ERR_ACCESS);
	cr_expect_eq(write_status(&mine), NFS4ERR_ACCESS);
	/* A root whom the export squashes is not root. */
	f->uid = f->gid = 0;
	cr_expect_eq(read_status(&roots), NFS4_OK);
	f->access.flags |= VFS_ROOT_SQUASH;
	cr_expect_eq(read_status(&roots), NFS4ERR_ACCESS);
}

Test(nfs4_io, shares_hold_against_special_stateids)
{
	struct nfs4_stateid mine, other;

	NEED_FIXTURE();
	start();
	cr_assert_eq(open_x('d', BOTH, BOTH, &mine), NFS4_OK);
	cr_expect_eq(open_x('o', READS, 0, &other), NFS4ERR_SHARE_DENIED);
	cr_expect_eq(read_status(&anonymous), NFS4ERR_LOCKED);
	cr_expect_eq(write_status(&anonymous), NFS4ERR_LOCKED);
	cr_expect_eq(write_status(&bypass), NFS4ERR_LOCKED);
	cr_expect_eq(read_status(&mine), NFS4_OK);
	cr_expect_eq(write_status(&mine), NFS4_OK);
}

/* READ by a write-only open is checked like one without an open. */
Test(nfs4_io, a_write_only_open_reads_past_no_share)
{
	struct nfs4_stateid wr, own, denies;

	NEED_FIXTURE();
	start();
	cr_assert_eq(open_x('w', WRITES, 0, &wr), NFS4_OK);
	cr_expect_eq(read_status(&wr), NFS4_OK);
	cr_assert_eq(open_x('d', WRITES, READS, &denies), NFS4_OK);
	cr_expect_eq(read_status(&wr), NFS4ERR_LOCKED);
	cr_expect_eq(write_status(&wr), NFS4_OK);
	/* An open's deny bits do not apply to its own stateid. */
	cr_expect_eq(read_status(&denies), NFS4_OK);
	cr_assert_eq(open_x('w', WRITES, 0, &own), NFS4_OK);
	cr_expect_eq(read_status(&own), NFS4ERR_LOCKED);
}

Test(nfs4_io, stateids_that_are_none)
{
	static const struct nfs4_stateid invalid = { UINT32_MAX, { 0 } };
	struct nfs4_stateid sid, bent;

	NEED_FIXTURE();
	start();
	cr_assert_eq(open_x('a', READS, 0, &sid), NFS4_OK);
	cr_assert_eq(open_x('a', BOTH, 0, &sid), NFS4_OK);
	bent = sid;
	bent.seqid = 0;
	cr_expect_eq(read_status(&bent), NFS4_OK, "0 is the present one");
	bent.seqid = sid.seqid - 1;
	cr_expect_eq(read_status(&bent), NFS4ERR_OLD_STATEID);
	cr_expect_eq(write_status(&bent), NFS4ERR_OLD_STATEID);
	bent.seqid = sid.seqid + 1;
	cr_expect_eq(read_status(&bent), NFS4ERR_BAD_STATEID);
	for (unsigned i = 0; i < NFS4_OTHER_SIZE; i++) {
		bent = sid;
		bent.other[i] ^= 0x40;
		cr_expect_eq(read_status(&bent), NFS4ERR_BAD_STATEID, "byte %u", i);
		cr_expect_eq(write_status(&bent), NFS4ERR_BAD_STATEID, "byte %u", i);
	}
	cr_expect_eq(read_status(&invalid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(read_status(&current), NFS4ERR_BAD_STATEID, "there is none");
	/* The stateid belongs to another file. */
	make_file("y", "", 0600);
	begin("y");
	put_read(&sid, 1);
	cr_expect_eq(outcome(OP_READ), NFS4ERR_BAD_STATEID);
	begin("x");
	fix4_op(f, OP_CLOSE);
	xdr_put_u32(&f->out, 0);
	fix4_stateid(f, &sid);
	cr_assert_eq(outcome(OP_CLOSE), NFS4_OK);
	cr_expect_eq(read_status(&sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(write_status(&sid), NFS4ERR_BAD_STATEID);
}

Test(nfs4_io, the_current_stateid)
{
	NEED_FIXTURE();
	start();
	fix4_begin(f, &session);
	fix4_putfh(f, &f->root);
	put_open('c', BOTH, 0);
	put_read(&current, 10);
	put_write(&current);
	cr_assert_eq(fix4_send(f), NFS4_OK);
}

static struct rn_payload *held[200];
static unsigned nheld;

static void take_all_memory(void)
{
	while (nheld < 200 && (held[nheld] = rn_payload_get(f->pool, RN_PAYLOAD_MAX)))
		nheld++;
	cr_assert_lt(nheld, 200);
}

static void give_back(void)
{
	while (nheld > 0)
		rn_payload_put(held[--nheld]);
}

/* Dispatches the call by hand while all memory is in use except one buffer of that many bytes (or
 * none), so that some can come back while the call waits. */
static void dispatch(size_t left)
{
	struct rn_payload *call = rn_payload_get(f->pool, 4096);
	struct rn_payload *spare = left > 0 ? rn_payload_get(f->pool, left) : NULL;
	struct rpc_request *req = f->req;

	cr_assert_not_null(call);
	memcpy(call->data, f->call, f->out.used);
	take_all_memory();
	rn_payload_put(spare);
	req->seg[0] = (struct rpc_seg){ .base = call->data,
					.len = (uint32_t)f->out.used,
					.payload = call };
	req->nseg = 1;
	req->reply_max = FIX_REPLY_SIZE;
	f->answers = 0;
	fix_begin(f, req);
	vfs_worker_wait(f->vw, 20);
}

static void finish(void)
{
	struct rn_inbox_node *node = rn_inbox_take(&f->worker.inbox);

	if (node)
		fix_run(f->req);
	for (int i = 0; i < 50 && f->answers == 0; i++)
		vfs_worker_wait(f->vw, 50);
	cr_assert_eq(f->answers, 1);
}

/* Puts PUTFH, with the count of operations that fix4_send() would fill in. */
static void begin_by_hand(const struct vfs_fh *fh, uint32_t nops)
{
	struct xdr_out *c = fix_call(f, NFS4_PROGRAM, NFS4_VERSION, NFSPROC4_COMPOUND);

	xdr_put_opaque(c, "tag", 3);
	xdr_put_u32(c, 0);
	xdr_put_u32(c, nops);
	fix4_putfh(f, fh);
}

static uint32_t word_at(size_t at)
{
	uint32_t v;

	memcpy(&v, f->reply + at, sizeof(v));
	return __builtin_bswap32(v);
}

Test(nfs4_io, a_read_waits_for_memory_and_holds_none)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	if (!vfs_worker_has_ring(f->vw))
		cr_skip_test("without io_uring a READ takes pages of the cache");
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	begin_by_hand(&fh, 3);
	put_read(&anonymous, 1u << 20);
	put_write(&anonymous);
	dispatch(0);
	cr_expect_eq(f->answers, 0, "it waits");
	cr_expect_eq(f->req->nseg, 0, "and has let go of its call");
	give_back();
	finish();
	/* header, status, tag, count; PUTFH; READ: eof, data; WRITE */
	cr_expect_eq(word_at(24), NFS4_OK);
	cr_expect_eq(word_at(24 + 12), 3);
	cr_expect_eq(word_at(24 + 16 + 8 + 12), 10);
	cr_expect_eq(word_at(24 + 16 + 8 + 16 + 12), OP_WRITE);
	cr_expect_eq(word_at(24 + 16 + 8 + 16 + 12 + 8), 1, "what follows the READ was kept");
	cr_expect_eq(memcmp(f->reply + 24 + 16 + 8 + 16, "0123456789", 10), 0);
}

Test(nfs4_io, a_second_read_does_not_wait_for_memory)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	begin_by_hand(&fh, 3);
	put_read(&anonymous, 16);
	put_read(&anonymous, 1u << 20);
	dispatch(16);
	finish();
	cr_expect_eq(word_at(24), NFS4ERR_DELAY);
	cr_expect_eq(word_at(24 + 12), 3, "with the first one's result");
	give_back();
}
