/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies that are longer than the chunks which the client offers with the call, over a transport
 * that can say so (RFC 8267 sections 6.2.1 and 6.6): the client must get a transport error, and not
 * an NFS error.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"

NFS3_SUITE(nfs4_room);

static struct rpc_conn_ops rdma;
static struct fix4_session session;
static struct vfs_fh file, target;

static struct fix4_session *set_up(uint32_t minor)
{
	rdma = *f->conn.ops;
	rdma.says_too_long = true;
	f->conn.ops = &rdma;
	f->reply_max = 1 << 20;
	f->nbulk_spaces = 0;
	make_file("x", "0123456789", 0600);
	if (symlink("to/some/place", fix_path(f, "link")) < 0)
		cr_assert(exists("link"));
	struct fix4_session *s = minor ? &session : NULL;
	if (minor)
		cr_assert_eq(fix4_session_new(f, s, minor, minor == 1 ? "one" : "two", true),
			     NFS4_OK);
	cr_assert_eq(fix4_handle(f, s, &f->root, "x", &file), NFS4_OK);
	cr_assert_eq(fix4_handle(f, s, &f->root, "link", &target), NFS4_OK);
	return s;
}

enum kind { GETATTR, READ, READLINK, READDIR, REMOVE, KINDS };

static void put(struct fix4_session *s, enum kind kind)
{
	static const struct nfs4_stateid anonymous;
	struct xdr_out *c = &f->out;

	fix4_begin(f, s);
	switch (kind) {
	case GETATTR:
		fix4_putfh(f, &file);
		fix4_op(f, OP_GETATTR);
		xdr_put_u32(c, 2);
		xdr_put_u32(c, 1u << 1 | 1u << 3 | 1u << 4 | 1u << 8 | 1u << 19 | 1u << 20);
		xdr_put_u32(c, 1u << 1 | 1u << 3);
		break;
	case READ:
		fix4_putfh(f, &file);
		fix4_op(f, OP_READ);
		fix4_stateid(f, &anonymous);
		xdr_put_u64(c, 0);
		xdr_put_u32(c, 10);
		break;
	case READLINK:
		fix4_putfh(f, &target);
		fix4_op(f, OP_READLINK);
		break;
	case READDIR:
		fix4_putfh(f, &f->root);
		fix4_op(f, OP_READDIR);
		xdr_put_u64(c, 0);
		xdr_put_u64(c, 0);
		xdr_put_u32(c, 4096);
		xdr_put_u32(c, 4096);
		xdr_put_u32(c, 0);
		break;
	default:
		fix4_putfh(f, &f->root);
		fix4_op(f, OP_REMOVE);
		fix4_name(f, "x");
		break;
	}
}

/* Length of a reply in which PUTFH succeeds and the operation behind it fails. */
static size_t least(struct fix4_session *s)
{
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_LOOKUP);
	fix4_name(f, "nothing");
	cr_assert_eq(fix4_send(f), NFS4ERR_NOENT);
	return f->reply_len;
}

static void is_transports_error(uint32_t minor)
{
	struct fix4_session *s = set_up(minor);
	const size_t room = least(s);

	for (int kind = 0; kind < KINDS; kind++) {
		f->reply_max = room;
		put(s, kind);
		fix4_send(f);
		cr_expect_eq(f->outcome, FIX_TOO_LONG, "minor %u, kind %d", minor, kind);
		cr_expect(exists("x"), "minor %u: removed, though that cannot be said", minor);
		if (s)
			s->cache_this = false;
		/* Slot and connection go on, and with enough room the operation succeeds. */
		f->reply_max = 1 << 20;
		put(s, kind);
		cr_expect_eq(fix4_send(f), NFS4_OK, "minor %u, kind %d", minor, kind);
		make_file("x", "0123456789", 0600);
		cr_assert_eq(fix4_handle(f, s, &f->root, "x", &file), NFS4_OK);
	}
}

Test(nfs4_room, no_room_in_the_reply_chunk)
{
	NEED_FIXTURE();
	for (uint32_t minor = 0; minor <= 2; minor++)
		is_transports_error(minor);
}

/* The Write chunk is too short for a result that cannot be cut. */
Test(nfs4_room, no_room_in_the_write_chunk)
{
	NEED_FIXTURE();
	for (uint32_t minor = 0; minor <= 2; minor++) {
		struct fix4_session *s = set_up(minor);

		f->nbulk_spaces = 1;
		f->bulk_space[0] = 5;
		put(s, READLINK);
		fix4_send(f);
		cr_expect_eq(f->outcome, FIX_TOO_LONG);
		put(s, READ); /* READ's data can be cut */
		cr_expect_eq(fix4_send(f), NFS4_OK);
	}
}

/*
 * A transport without such an error would have to close the connection, so an NFS error is better.
 */
Test(nfs4_room, transport_without_a_word_for_it)
{
	NEED_FIXTURE();
	struct fix4_session *s = set_up(0);

	f->reply_max = least(s);
	rdma.says_too_long = false;
	put(s, READLINK);
	cr_expect_eq(fix4_send(f), NFS4ERR_RESOURCE);
}

/* A retry in the slot: operations that ran are not run again, and the one without room may be tried
 * again. */
Test(nfs4_room, kept_for_a_retry)
{
	NEED_FIXTURE();
	struct fix4_session *s = set_up(1);
	const size_t room = least(s);

	for (int cached = 0; cached < 2; cached++) {
		s->cache_this = cached;
		f->reply_max = room + 36; /* room for REMOVE's result, and not for READDIR's */
		fix4_begin(f, s);
		fix4_putfh(f, &f->root);
		fix4_op(f, OP_REMOVE);
		fix4_name(f, "x");
		fix4_op(f, OP_READDIR);
		xdr_put_u64(&f->out, 0);
		xdr_put_u64(&f->out, 0);
		xdr_put_u32(&f->out, 4096);
		xdr_put_u32(&f->out, 4096);
		xdr_put_u32(&f->out, 0);
		fix4_send(f);
		cr_expect_eq(f->outcome, FIX_TOO_LONG);
		cr_expect(!exists("x"));
		make_file("x", "", 0600);
		f->reply_max = 1 << 20;
		uint32_t status = fix4_resend(f);
		cr_expect_eq(status, cached ? NFS4ERR_DELAY : NFS4ERR_RETRY_UNCACHED_REP);
		cr_expect_eq(fix4_result(f, OP_PUTFH),
			     cached ? NFS4_OK : NFS4ERR_RETRY_UNCACHED_REP);
		cr_expect(exists("x"), "removed twice");
	}
}
