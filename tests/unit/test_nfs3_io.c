/* SPDX-License-Identifier: BSD-2-Clause */
/* READ, WRITE, COMMIT. */
#include <stdlib.h>

#include "nfs3/nfs3_state.h"
#include "tests/unit/nfs3_suite.h"
#include "vfs/share.h"

NFS3_SUITE(nfs3_io);

struct read_result {
	uint32_t status, count, len;
	bool eof;
	const uint8_t *data;
};

static struct read_result do_read(const struct vfs_fh *fh, uint64_t offset, uint32_t count)
{
	struct read_result res = { .status = UINT32_MAX };
	struct xdr_out *c = call(NFSPROC3_READ);

	fix_put_fh(c, fh);
	xdr_put_u64(c, offset);
	xdr_put_u32(c, count);
	res.status = status();
	if (f->outcome != FIX_REPLY)
		return res;
	cr_expect(fix_get_post_attr(&f->in, NULL));
	if (res.status == NFS3_OK) {
		res.count = xdr_get_u32(&f->in);
		res.eof = xdr_get_bool(&f->in);
		res.data = xdr_get_opaque(&f->in, NFS3_MAX_IO, &res.len);
		cr_expect_eq(res.len, res.count);
	}
	whole();
	return res;
}

Test(nfs3_io, read_and_eof)
{
	struct read_result r;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	r = do_read(&fh, 0, 10);
	cr_assert_eq(r.status, NFS3_OK);
	cr_expect_eq(r.count, 10);
	cr_expect(r.eof);
	cr_expect_eq(memcmp(r.data, "0123456789", 10), 0);
	r = do_read(&fh, 3, 5);
	cr_expect_eq(r.count, 5);
	cr_expect_not(r.eof);
	cr_expect_eq(memcmp(r.data, "34567", 5), 0);
	r = do_read(&fh, 8, 100);
	cr_expect_eq(r.count, 2);
	cr_expect(r.eof);
	r = do_read(&fh, 10, 1);
	cr_expect_eq(r.count, 0);
	cr_expect(r.eof);
	r = do_read(&fh, UINT64_MAX, 1);
	cr_expect_eq(r.status, NFS3_OK);
	cr_expect_eq(r.count, 0);
	cr_expect(r.eof);
	r = do_read(&fh, 0, 0);
	cr_expect_eq(r.status, NFS3_OK);
	cr_expect_eq(r.count, 0);
	cr_expect_not(r.eof);
}

Test(nfs3_io, read_is_clamped_to_the_maximum)
{
	struct read_result r;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	cr_assert_eq(truncate(fix_path(f, "x"), 5ll << 30), 0);
	fh = handle("x");
	r = do_read(&fh, 4ull << 30, UINT32_MAX);
	cr_assert_eq(r.status, NFS3_OK);
	cr_expect_eq(r.count, NFS3_MAX_IO);
	cr_expect_not(r.eof);
}

Test(nfs3_io, read_that_does_not_fit_the_reply)
{
	const size_t head = 24 + 4 + NFS3_POST_OP_ATTR_SIZE + 12;
	struct vfs_fh fh;
	struct read_result r;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	f->reply_max = head + 12;
	r = do_read(&fh, 0, 1000);
	cr_expect_eq(r.status, NFS3_OK);
	f->reply_max = head + 11; /* the padding counts */
	do_read(&fh, 0, 1000);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
	f->nbulk_spaces = 1;
	f->bulk_space[0] = 10;
	f->reply_max = head;
	r = do_read(&fh, 0, 1000);
	cr_expect_eq(r.status, NFS3_OK);
	f->reply_max = head - 1;
	do_read(&fh, 0, 1000);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
	f->reply_max = head;
	f->bulk_space[0] = 9;
	do_read(&fh, 0, 1000);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
}

Test(nfs3_io, read_waits_for_memory)
{
	struct rn_payload *held[200];
	unsigned n = 0;
	struct vfs_fh fh;
	struct xdr_out *c;
	uint32_t count;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	while (n < 200 && (held[n] = rn_payload_get(f->pool, RN_PAYLOAD_MAX)))
		n++;
	cr_assert_lt(n, 200);
	c = call(NFSPROC3_READ);
	fix_put_fh(c, &fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, NFS3_MAX_IO);
	/* Dispatched by hand, so that memory comes back after the procedure has begun to wait. */
	f->req->seg[0] = (struct rpc_seg){ .base = f->call, .len = (uint32_t)f->out.used };
	f->req->nseg = 1;
	f->req->reply_max = FIX_REPLY_SIZE;
	f->answers = 0;
	fix_begin(f, f->req);
	vfs_worker_wait(f->vw, 20);
	cr_expect_eq(f->answers, 0);
	while (n > 0)
		rn_payload_put(held[--n]);
	struct rn_inbox_node *node = rn_inbox_take(&f->worker.inbox);
	cr_assert_not_null(node, "not put back on its worker");
	fix_run(f->req);
	for (int i = 0; i < 50 && f->answers == 0; i++)
		vfs_worker_wait(f->vw, 50);
	cr_assert_eq(f->answers, 1);
	memcpy(&count, f->reply + 24 + 4 + NFS3_POST_OP_ATTR_SIZE, 4);
	cr_expect_eq(count, __builtin_bswap32(10));
}

Test(nfs3_io, read_of_other_types)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	cr_expect_eq(do_read(&f->root, 0, 10).status, NFS3ERR_ISDIR);
	cr_assert_eq(symlink("x", fix_path(f, "l")), 0);
	fh = handle("l");
	cr_expect_eq(do_read(&fh, 0, 10).status, NFS3ERR_INVAL);
	cr_assert_eq(mkfifo(fix_path(f, "p"), 0666), 0);
	fh = handle("p");
	cr_expect_eq(do_read(&fh, 0, 10).status, NFS3ERR_INVAL);
}

Test(nfs3_io, the_owner_reads_and_writes_whatever_the_mode)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "abc", 0);
	cr_assert_eq(chown(fix_path(f, "x"), 4000, 4000), 0);
	fh = handle("x");
	f->uid = f->gid = 4000;
	cr_expect_eq(do_read(&fh, 0, 10).status, NFS3_OK);
	f->uid = f->gid = 4001;
	cr_expect_eq(do_read(&fh, 0, 10).status, NFS3ERR_ACCES);
}

static uint32_t do_write(const struct vfs_fh *fh, uint64_t offset, const void *data, uint32_t len,
			 uint32_t stable)
{
	struct xdr_out *c = call(NFSPROC3_WRITE);

	fix_put_fh(c, fh);
	xdr_put_u64(c, offset);
	xdr_put_u32(c, len);
	xdr_put_u32(c, stable);
	xdr_put_opaque(c, data, len);
	return status();
}

static void expect_content(const char *name, const void *want, size_t len)
{
	char *got = malloc(len + 1);
	int fd = open(fix_path(f, name), O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_expect_eq(read(fd, got, len + 1), (ssize_t)len);
	cr_expect_eq(memcmp(got, want, len), 0);
	close(fd);
	free(got);
}

Test(nfs3_io, write_every_stability)
{
	struct fix_attr after = { 0 };
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	for (uint32_t stable = 0; stable <= 2; stable++) {
		cr_assert_eq(do_write(&fh, stable * 3, "abc", 3, stable), NFS3_OK);
		cr_expect(fix_get_wcc(&f->in, &after));
		cr_expect_eq(after.size, stable * 3 + 3);
		cr_expect_eq(xdr_get_u32(&f->in), 3);
		cr_expect_geq(xdr_get_u32(&f->in), stable);
		cr_expect_eq(xdr_get_u64(&f->in), 0x1122334455667788);
		whole();
	}
	expect_content("x", "abcabcabc", 9);
	cr_expect_eq(do_write(&fh, 0, "", 0, 2), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, &after));
	cr_expect_eq(xdr_get_u32(&f->in), 0);
	expect_content("x", "abcabcabc", 9);
}

Test(nfs3_io, write_one_megabyte_in_pieces)
{
	uint8_t *data;
	struct vfs_fh fh;

	NEED_FIXTURE();
	data = malloc(NFS3_MAX_IO);
	for (unsigned i = 0; i < NFS3_MAX_IO; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	make_file("x", "", 0600);
	fh = handle("x");
	f->split = 4;
	cr_assert_eq(do_write(&fh, 0, data, NFS3_MAX_IO, 2), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, NULL));
	cr_expect_eq(xdr_get_u32(&f->in), NFS3_MAX_IO);
	f->split = 1;
	expect_content("x", data, NFS3_MAX_IO);
	free(data);
}

Test(nfs3_io, write_lengths_that_contradict)
{
	struct xdr_out *c;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	c = call(NFSPROC3_WRITE);
	fix_put_fh(c, &fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 4); /* count above the data's length */
	xdr_put_u32(c, 0);
	xdr_put_opaque(c, "abc", 3);
	status();
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);

	c = call(NFSPROC3_WRITE);
	fix_put_fh(c, &fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 2); /* count below the data's length */
	xdr_put_u32(c, 0);
	xdr_put_opaque(c, "abc", 3);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, NULL));
	cr_expect_eq(xdr_get_u32(&f->in), 2);
	expect_content("x", "ab", 2);

	cr_expect_eq(do_write(&fh, 0, "a", 1, 3), UINT32_MAX);
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);
	cr_expect_eq(do_write(&fh, UINT64_MAX, "a", 1, 0), NFS3ERR_FBIG);
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
}

Test(nfs3_io, write_needs_permission)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "abc", 0644);
	fh = handle("x");
	f->uid = f->gid = 4000;
	cr_expect_eq(do_write(&fh, 0, "z", 1, 0), NFS3ERR_ACCES);
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
	expect_content("x", "abc", 3);
}

Test(nfs3_io, a_user_s_write_clears_set_uid)
{
	struct fix_attr after = { 0 };
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "abc", 04777);
	fh = handle("x");
	f->uid = f->gid = 4000;
	cr_expect_eq(do_write(&fh, 0, "z", 1, 0), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, &after));
	cr_expect_eq(after.mode, 0777);
}

Test(nfs3_io, commit)
{
	struct xdr_out *c;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "abc", 0600);
	fh = handle("x");
	c = call(NFSPROC3_COMMIT);
	fix_put_fh(c, &fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 0);
	cr_assert_eq(status(), NFS3_OK);
	cr_expect(fix_get_wcc(&f->in, NULL));
	cr_expect_eq(xdr_get_u64(&f->in), 0x1122334455667788);
	whole();

	c = call(NFSPROC3_COMMIT);
	fix_put_fh(c, &fh);
	xdr_put_u64(c, UINT64_MAX);
	xdr_put_u32(c, UINT32_MAX);
	cr_expect_eq(status(), NFS3_OK);
}

/* The duplicate request cache answers a repeated WRITE with the same reply, and does not write
 * again. */
Test(nfs3_io, a_retransmitted_write_is_not_repeated)
{
	struct vfs_fh fh;
	uint8_t *first;
	size_t len;

	NEED_FIXTURE();
	f->rpc.drc = drc_new(16, 16384);
	make_file("x", "", 0600);
	fh = handle("x");
	cr_assert_eq(do_write(&fh, 0, "abc", 3, 0), NFS3_OK);
	len = f->reply_len;
	first = malloc(len);
	memcpy(first, f->reply, len);
	cr_assert_eq(truncate(fix_path(f, "x"), 0), 0);
	fix_send(f);
	cr_expect_eq(f->reply_len, len);
	cr_expect_eq(memcmp(first, f->reply, len), 0);
	expect_content("x", "", 0);
	free(first);
}

static uint32_t do_set_size(const struct vfs_fh *fh, uint64_t size)
{
	struct xdr_out *c = call(NFSPROC3_SETATTR);

	fix_put_fh(c, fh);
	for (unsigned i = 0; i < 3; i++)
		xdr_put_bool(c, false); /* mode, uid, gid */
	xdr_put_bool(c, true);
	xdr_put_u64(c, size);
	xdr_put_u32(c, 0); /* atime, mtime */
	xdr_put_u32(c, 0);
	xdr_put_bool(c, false); /* guard */
	return status();
}

/* NFSv3's READ and WRITE respect the deny bits of NFSv4 opens. */
Test(nfs3_io, shares_of_others)
{
	struct vfs_ctx ctx;
	struct vfs_share s;
	struct vfs_node *n;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	ctx = (struct vfs_ctx){ .vfs = f->vfs, .fiber = &f->fiber, .exp = f->exp[0] };
	for (unsigned deny = 0; deny <= VFS_SHARE_BOTH; deny++) {
		bool r = deny & VFS_SHARE_READ, w = deny & VFS_SHARE_WRITE;

		cr_assert_eq(vfs_fh_open(&ctx, &fh, &n), 0);
		cr_assert_eq(vfs_share_open(&ctx, n, &s,
					    &(struct vfs_share_request){ NULL, VFS_SHARE_READ,
									 (uint8_t)deny },
					    NULL),
			     0);
		vfs_node_put(n);
		cr_expect_eq(do_read(&fh, 0, 10).status, r ? NFS3ERR_ACCES : NFS3_OK);
		cr_expect_eq(do_write(&fh, 0, "z", 1, 0), w ? NFS3ERR_ACCES : NFS3_OK);
		cr_expect_eq(do_set_size(&fh, 10), w ? NFS3ERR_ACCES : NFS3_OK);
		vfs_share_close(&s);
		cr_expect_eq(do_read(&fh, 0, 10).status, NFS3_OK);
		cr_expect_eq(do_write(&fh, 0, "z", 1, 0), NFS3_OK);
	}
}

static bool io_waits(void *ctx, enum nfs3_grace what)
{
	(void)ctx;
	return what == NFS3_IO_WAITS;
}

/* Until all clients have reclaimed, an open that denies the access may still come. */
Test(nfs3_io, opens_that_may_be_reclaimed)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle("x");
	f->server->cfg.in_grace = io_waits;
	cr_expect_eq(do_read(&fh, 0, 10).status, NFS3ERR_JUKEBOX);
	cr_expect_eq(do_write(&fh, 0, "z", 1, 0), NFS3ERR_JUKEBOX);
	cr_expect_eq(do_set_size(&fh, 1), NFS3ERR_JUKEBOX);
	expect_content("x", "0123456789", 10);
	f->server->cfg.in_grace = NULL;
	cr_expect_eq(do_read(&fh, 0, 10).status, NFS3_OK);
}
