/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of files by special stateids: results and errors of READ, WRITE, COMMIT and READLINK, and
 * several bulk items in one COMPOUND. */
#include <errno.h>

#include "lib/util.h"
#include "rpc/drc.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"

NFS3_SUITE(nfs4_data);

static const struct nfs4_stateid anonymous;
static const struct nfs4_stateid bypass = {
	UINT32_MAX, { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 }
};

static const char *content_of(const char *name)
{
	static char buf[4096];
	int fd = open(fix_path(f, name), O_RDONLY);

	cr_assert_geq(fd, 0);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);
	cr_assert_geq(n, 0);
	buf[n] = 0;
	close(fd);
	return buf;
}

static struct vfs_fh handle4(const char *name)
{
	struct vfs_fh fh;

	cr_assert_eq(fix4_handle(f, NULL, &f->root, name, &fh), NFS4_OK, "%s", name);
	return fh;
}

static void put_read(const struct nfs4_stateid *sid, uint64_t offset, uint32_t count)
{
	fix4_op(f, OP_READ);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, offset);
	xdr_put_u32(&f->out, count);
}

/* Asserts that the next result is a READ of this text. */
static void is_read(const char *text, bool eof)
{
	uint32_t len;

	cr_assert_eq(fix4_result(f, OP_READ), NFS4_OK);
	cr_expect_eq(xdr_get_bool(&f->in), eof);
	const uint8_t *p = xdr_get_opaque(&f->in, 1u << 20, &len);
	cr_assert_not_null(p);
	cr_expect_eq(len, strlen(text), "%u bytes", len);
	cr_expect_eq(memcmp(p, text, rn_min(len, strlen(text))), 0);
}

/* Puts WRITE; returns the offset of its data in the call. */
static size_t put_write(const struct nfs4_stateid *sid, uint64_t offset, uint32_t stable,
			const char *text)
{
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, offset);
	xdr_put_u32(&f->out, stable);
	size_t at = xdr_out_pos(&f->out) + 4;
	xdr_put_opaque(&f->out, text, (uint32_t)strlen(text));
	return at;
}

static void reduce(size_t at, const char *text)
{
	f->reduced[f->nreduced].at = at;
	f->reduced[f->nreduced++].len = (uint32_t)strlen(text);
}

static void is_written(uint32_t count, uint32_t stable)
{
	cr_assert_eq(fix4_result(f, OP_WRITE), NFS4_OK);
	cr_expect_eq(xdr_get_u32(&f->in), count);
	cr_expect_eq(xdr_get_u32(&f->in), stable);
	cr_expect_eq(xdr_get_u64(&f->in), vfs_write_verifier(f->exp[0]));
}

/* begin() puts PUTFH, the test one operation; outcome() sends both and returns its status. */
static void begin(const struct vfs_fh *fh)
{
	fix4_begin(f, NULL);
	fix4_putfh(f, fh);
}

static uint32_t outcome(uint32_t op)
{
	uint32_t status = fix4_send(f);

	cr_assert_eq(f->answers, 1);
	if (status == FIX4_NO_STATUS)
		return status;
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, op), status);
	if (status != NFS4_OK) {
		cr_expect_eq(f->in.left, 0, "nothing behind a failure");
		cr_expect_eq(f->nbulks, 0);
	}
	return status;
}

static uint32_t read_status(const struct vfs_fh *fh, uint64_t offset, uint32_t count)
{
	begin(fh);
	put_read(&anonymous, offset, count);
	return outcome(OP_READ);
}

static uint32_t write_status(const struct vfs_fh *fh, uint64_t offset, uint32_t stable)
{
	begin(fh);
	put_write(&anonymous, offset, stable, "x");
	return outcome(OP_WRITE);
}

static uint32_t commit_status(const struct vfs_fh *fh, uint64_t offset, uint32_t count)
{
	begin(fh);
	fix4_op(f, OP_COMMIT);
	xdr_put_u64(&f->out, offset);
	xdr_put_u32(&f->out, count);
	return outcome(OP_COMMIT);
}

static uint32_t readlink_status(const struct vfs_fh *fh)
{
	begin(fh);
	fix4_op(f, OP_READLINK);
	return outcome(OP_READLINK);
}

Test(nfs4_data, read)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	begin(&fh);
	put_read(&anonymous, 0, 4);
	put_read(&bypass, 4, 6);
	put_read(&anonymous, 4, 100);
	put_read(&anonymous, 10, 1);
	put_read(&anonymous, UINT64_MAX, UINT32_MAX);
	put_read(&anonymous, 0, 0);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	is_read("0123", false);
	is_read("456789", true);
	is_read("456789", true);
	is_read("", true);
	is_read("", true);
	is_read("", false);
	cr_expect_eq(f->nbulks, 6);
	whole();
}

Test(nfs4_data, more_reads_than_bulk_items)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	begin(&fh);
	for (int i = 0; i < 20; i++)
		put_read(&anonymous, 5, 5);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	for (int i = 0; i < 20; i++)
		is_read("56789", true);
	cr_expect_eq(f->nbulks, XDR_BULKS_MAX);
	whole();
}

Test(nfs4_data, results_before_a_failure_stay)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	begin(&fh);
	put_read(&anonymous, 0, 3);
	fix4_putfh(f, &f->root);
	put_read(&anonymous, 0, 3);
	put_read(&anonymous, 0, 3);
	cr_assert_eq(fix4_send(f), NFS4ERR_ISDIR);
	fix4_result(f, OP_PUTFH);
	is_read("012", false);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_READ), NFS4ERR_ISDIR);
	cr_expect_eq(fix4_results_left(f), 0);
	cr_expect_eq(f->nbulks, 1);
	whole();
}

Test(nfs4_data, statuses_of_what_is_no_file)
{
	struct vfs_fh link, fifo;

	NEED_FIXTURE();
	cr_assert_eq(symlink("x", fix_path(f, "link")), 0);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0666), 0);
	link = handle4("link");
	fifo = handle4("fifo");
	cr_expect_eq(read_status(&f->root, 0, 1), NFS4ERR_ISDIR);
	cr_expect_eq(write_status(&f->root, 0, 0), NFS4ERR_ISDIR);
	cr_expect_eq(commit_status(&f->root, 0, 0), NFS4ERR_ISDIR);
	cr_expect_neq(read_status(&link, 0, 1), NFS4_OK);
	cr_expect_neq(write_status(&link, 0, 0), NFS4_OK);
	cr_expect_neq(commit_status(&link, 0, 0), NFS4_OK);
	cr_expect_eq(read_status(&fifo, 0, 1), NFS4ERR_INVAL);
	cr_expect_eq(write_status(&fifo, 0, 0), NFS4ERR_INVAL);
	cr_expect_eq(commit_status(&fifo, 0, 0), NFS4ERR_INVAL);
	cr_expect_eq(readlink_status(&fifo), NFS4ERR_INVAL);
	cr_expect_eq(readlink_status(&f->root), NFS4ERR_INVAL);
}

Test(nfs4_data, permission)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	f->uid = f->gid = 1000;
	cr_expect_eq(read_status(&fh, 0, 1), NFS4ERR_ACCESS);
	cr_expect_eq(write_status(&fh, 0, 0), NFS4ERR_ACCESS);
	f->uid = f->gid = 0;
	f->access.flags |= VFS_RO;
	cr_expect_eq(read_status(&fh, 0, 1), NFS4_OK);
	cr_expect_eq(write_status(&fh, 0, 0), NFS4ERR_ROFS);
}

Test(nfs4_data, write_and_commit)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle4("x");
	begin(&fh);
	put_write(&anonymous, 0, 0, "hello");
	put_write(&anonymous, 5, 1, " wor");
	put_write(&bypass, 9, 2, "ld");
	put_write(&anonymous, 3, 2, "");
	fix4_op(f, OP_COMMIT);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	put_read(&anonymous, 0, 100);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	is_written(5, 0);
	is_written(4, 1);
	is_written(2, 2);
	is_written(0, 2);
	cr_expect_eq(fix4_result(f, OP_COMMIT), NFS4_OK);
	cr_expect_eq(xdr_get_u64(&f->in), vfs_write_verifier(f->exp[0]));
	is_read("hello world", true);
	whole();
	cr_expect_str_eq(content_of("x"), "hello world");
	cr_expect_eq(write_status(&fh, INT64_MAX, 0), NFS4ERR_FBIG);
	cr_expect_eq(write_status(&fh, UINT64_MAX, 0), NFS4ERR_FBIG);
	cr_expect_eq(write_status(&fh, 0, 3), NFS4ERR_BADXDR);
	cr_expect_eq(commit_status(&fh, UINT64_MAX, UINT32_MAX), NFS4_OK);
}

Test(nfs4_data, writes_by_read_chunks_and_inline)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle4("x");
	for (int chunks = 0; chunks < 8; chunks++) {
		static const char *const part[] = { "one", "three", "seven" };

		truncate(fix_path(f, "x"), 0);
		begin(&fh);
		for (uint64_t i = 0, at = 0; i < 3; at += strlen(part[i++])) {
			size_t where = put_write(&anonymous, at, 2, part[i]);

			if (chunks & (1 << i))
				reduce(where, part[i]);
		}
		cr_assert_eq(fix4_send(f), NFS4_OK, "chunks %d", chunks);
		cr_expect_str_eq(content_of("x"), "onethreeseven", "chunks %d", chunks);
	}
	for (f->split = 2; f->split <= 8; f->split++) {
		begin(&fh);
		put_write(&anonymous, 0, 2, "split over segments, some of them");
		cr_assert_eq(fix4_send(f), NFS4_OK, "%u segments", f->split);
		cr_expect_str_eq(content_of("x"), "split over segments, some of them");
	}
}

Test(nfs4_data, a_read_chunk_of_what_is_not_eligible)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle4("x");
	begin(&fh);
	size_t at = xdr_out_pos(&f->out) - fh.len - rn_xdr_pad(fh.len);
	put_write(&anonymous, 0, 2, "data");
	f->reduced[0].at = at;
	f->reduced[0].len = fh.len;
	f->nreduced = 1;
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
	cr_expect_str_eq(content_of("x"), "");
}

Test(nfs4_data, a_read_chunk_behind_the_arguments)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle4("x");
	begin(&fh);
	put_write(&anonymous, 0, 2, "data");
	f->reduced[0].at = xdr_out_pos(&f->out);
	f->reduced[0].len = 4;
	f->nreduced = 1;
	xdr_put_u32(&f->out, 7);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
	cr_expect_str_eq(content_of("x"), "");
}

Test(nfs4_data, readlink_is_a_bulk_item)
{
	struct vfs_fh link;
	uint32_t len;

	NEED_FIXTURE();
	cr_assert_eq(symlink("some/where", fix_path(f, "link")), 0);
	link = handle4("link");
	cr_assert_eq(readlink_status(&link), NFS4_OK);
	const uint8_t *p = xdr_get_opaque(&f->in, 100, &len);
	cr_assert_eq(len, 10);
	cr_expect_eq(memcmp(p, "some/where", 10), 0);
	cr_expect(f->had_bulk);
	whole();
}

/* Three bulk results, each for a Write chunk: two files and a link. */
static void put_three(const struct vfs_fh *fh, const struct vfs_fh *link)
{
	begin(fh);
	put_read(&anonymous, 0, 8);
	fix4_putfh(f, link);
	fix4_op(f, OP_READLINK);
	fix4_putfh(f, fh);
	put_read(&anonymous, 8, 100);
}

Test(nfs4_data, write_chunks_bound_what_is_read)
{
	struct vfs_fh fh, link;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	cr_assert_eq(symlink("to", fix_path(f, "link")), 0);
	fh = handle4("x");
	link = handle4("link");
	f->nbulk_spaces = 3;
	f->bulk_space[0] = 5; /* shorter than the count of READ */
	f->bulk_space[1] = 0;
	f->bulk_space[2] = 100;
	put_three(&fh, &link);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	is_read("01234", false);
	cr_expect_eq(f->bulk_len[0], 5);
	cr_expect_eq(f->bulk_len[1], 2);
	cr_expect_eq(f->bulk_len[2], 2);
	f->bulk_space[1] = 1; /* too short for the link's text, which cannot be cut */
	put_three(&fh, &link);
	cr_expect_eq(fix4_send(f), NFS4ERR_RESOURCE);
	cr_expect_eq(f->nbulks, 1);
}

Test(nfs4_data, a_read_takes_the_room_that_there_is)
{
	struct vfs_fh fh;
	size_t head;

	NEED_FIXTURE();
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	begin(&fh);
	put_read(&anonymous, 0, 0);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	head = f->reply_len;
	for (size_t room = 0; room <= 12; room++) {
		const char *want[] = { "", "0123", "01234567", "0123456789" };

		f->reply_max = head + room;
		begin(&fh);
		put_read(&anonymous, 0, 1000);
		uint32_t status = fix4_send(f);
		if (room < 4) {
			cr_expect_eq(status, NFS4ERR_RESOURCE, "%zu", room);
			continue;
		}
		cr_assert_eq(status, NFS4_OK, "%zu", room);
		fix4_result(f, OP_PUTFH);
		is_read(want[room / 4], room == 12);
	}
	/* With a Write chunk, data do not count towards the reply's size. */
	f->nbulk_spaces = 1;
	f->bulk_space[0] = 1000;
	f->reply_max = head;
	begin(&fh);
	put_read(&anonymous, 0, 1000);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	f->reply_max = head - 4;
	begin(&fh);
	put_read(&anonymous, 0, 1000);
	cr_expect_eq(fix4_send(f), NFS4ERR_RESOURCE);
}

Test(nfs4_data, a_write_that_cannot_be_answered_does_not_happen)
{
	struct vfs_fh fh;
	size_t head;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle4("x");
	begin(&fh);
	put_write(&anonymous, 0, 2, "");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	head = f->reply_len;
	f->reply_max = head - 1;
	begin(&fh);
	put_write(&anonymous, 0, 2, "data");
	cr_expect_eq(fix4_send(f), NFS4ERR_RESOURCE);
	cr_expect_str_eq(content_of("x"), "");
	f->reply_max = head;
	begin(&fh);
	put_write(&anonymous, 0, 2, "data");
	cr_expect_eq(fix4_send(f), NFS4_OK);
	cr_expect_str_eq(content_of("x"), "data");
}

static uint32_t remove_status(const char *name, bool again)
{
	uint32_t status;

	if (!again) {
		begin(&f->root);
		fix4_op(f, OP_REMOVE);
		fix4_name(f, name);
	}
	status = again ? fix4_resend(f) : fix4_send(f);
	fix4_result(f, OP_PUTFH);
	cr_assert_eq(fix4_result(f, OP_REMOVE), status);
	return status;
}

Test(nfs4_data, a_retransmitted_change_is_answered_as_the_first_time)
{
	struct drc_stats s;
	struct vfs_fh fh;

	NEED_FIXTURE();
	f->rpc.drc = drc_new(16, 65536);
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	cr_expect_eq(remove_status("x", false), NFS4_OK);
	cr_expect_eq(remove_status("x", true), NFS4_OK);
	cr_expect_eq(remove_status("x", false), NFS4ERR_NOENT, "another call");
	make_file("x", "0123456789", 0600);
	fh = handle4("x");
	drc_stats(f->rpc.drc, &s);
	uint64_t before = s.entries;
	cr_expect_eq(read_status(&fh, 0, 4), NFS4_OK);
	cr_expect_eq(fix4_resend(f), NFS4_OK);
	drc_stats(f->rpc.drc, &s);
	cr_expect_eq(s.entries, before, "what changes nothing is not kept");
	drc_free(f->rpc.drc);
	f->rpc.drc = NULL;
}
