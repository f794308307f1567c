/* SPDX-License-Identifier: BSD-2-Clause */
/* Cached replies, of a session's slot and of minor version 0's owners, and the callers that may get
 * them. */
#include "lib/util.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_replay);

#define TEXT_LEN 5000u

static struct fix4_session s;
static struct vfs_fh secret;

static void begin_session(void)
{
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", true), NFS4_OK);
	s.cache_this = true;
	s.slot = 1;
	make_file("secret", "of the user 1000", 0600);
	cr_assert_eq(chown(fix_path(f, "secret"), 1000, 1000), 0);
	secret = handle("secret");
}

/* Sends READ of the user's file on the slot, with sequence number seqid. */
static uint32_t read_secret(uint32_t seqid)
{
	static const struct nfs4_stateid anonymous;

	s.seqid = seqid;
	fix4_begin(f, &s);
	fix4_putfh(f, &secret);
	fix4_op(f, OP_READ);
	fix4_stateid(f, &anonymous);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 100);
	return fix4_send(f);
}

Test(nfs4_replay, is_for_the_caller)
{
	NEED_FIXTURE();
	begin_session();
	f->uid = f->gid = 1000;
	cr_assert_eq(read_secret(1), NFS4_OK);
	cr_expect_eq(read_secret(1), NFS4_OK);
	f->uid = 1001;
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	f->uid = 0;
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	f->uid = 1000;
	f->gid = 1001;
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	f->gid = 1000;
	f->flavor = RPC_AUTH_NONE;
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	f->flavor = RPC_AUTH_SYS;
	cr_expect_eq(read_secret(1), NFS4_OK);
	fix_from(f, 2); /* another address of the client */
	cr_expect_eq(read_secret(1), NFS4_OK);
}

Test(nfs4_replay, is_for_whom_the_export_admits)
{
	NEED_FIXTURE();
	begin_session();
	f->uid = f->gid = 1000;
	cr_assert_eq(read_secret(1), NFS4_OK);
	f->deny = true;
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	f->deny = false;
	f->access.flags |= VFS_ALL_SQUASH;
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	f->access.flags &= ~(uint32_t)VFS_ALL_SQUASH;
	fix_accept(&f->access, VFS_SEC_NONE);
	cr_expect_eq(read_secret(1), NFS4ERR_SEQ_FALSE_RETRY);
	fix_accept(&f->access, VFS_SEC_SYS);
	f->access.flags |= VFS_RO; /* the option leaves every caller the same user */
	cr_expect_eq(read_secret(1), NFS4_OK);
}

/* Data of WRITE: TEXT_LEN bytes are 2 more than a multiple of 4, without the last byte. */
static uint8_t text[TEXT_LEN + 3];

static uint32_t write_text(uint32_t seqid, uint32_t len, bool by_chunk)
{
	static const struct nfs4_stateid anonymous;

	s.seqid = seqid;
	fix4_begin(f, &s);
	fix4_putfh(f, &secret);
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, &anonymous);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 2);
	if (by_chunk) {
		f->reduced[0].at = xdr_out_pos(&f->out) + 4;
		f->reduced[0].len = len;
		f->nreduced = 1;
	}
	xdr_put_opaque(&f->out, text, len);
	return fix4_send(f);
}

Test(nfs4_replay, is_for_the_same_bytes)
{
	NEED_FIXTURE();
	begin_session();
	f->uid = f->gid = 1000;
	for (unsigned i = 0; i < TEXT_LEN; i++)
		text[i] = (uint8_t)(i * 7);
	cr_assert_eq(write_text(1, TEXT_LEN - 2, false), NFS4_OK);
	for (unsigned i = 0; i < TEXT_LEN - 2; i += 71) {
		text[i] ^= 1;
		cr_expect_eq(write_text(1, TEXT_LEN - 2, false), NFS4ERR_SEQ_FALSE_RETRY, "%u", i);
		text[i] ^= 1;
	}
	cr_expect_eq(write_text(1, TEXT_LEN - 3, false), NFS4ERR_SEQ_FALSE_RETRY);
	cr_expect_eq(write_text(1, TEXT_LEN - 2, false), NFS4_OK);
}

/* A retry is recognized over another transport, or with the message cut at other places. */
Test(nfs4_replay, does_not_depend_on_the_transport)
{
	NEED_FIXTURE();
	begin_session();
	f->uid = f->gid = 1000;
	for (uint32_t len = TEXT_LEN - 4, seqid = 1; len < TEXT_LEN; len++, seqid++) {
		cr_assert_eq(write_text(seqid, len, false), NFS4_OK);
		cr_expect_eq(write_text(seqid, len, true), NFS4_OK);
		for (f->split = 2; f->split <= 8; f->split++)
			cr_expect_eq(write_text(seqid, len, false), NFS4_OK, "%u", f->split);
		f->split = 0;
		text[len - 1] ^= 1;
		cr_expect_eq(write_text(seqid, len, true), NFS4ERR_SEQ_FALSE_RETRY);
	}
}

static struct op_client zero;
static struct op_owner owner = { .client = &zero, .name = "owner" };
static struct op_owner locker = { .client = &zero, .name = "locker" };
static const struct op_range ten = { .type = 2, .offset = 0, .length = 10 };
static struct op_file file;
static struct nfs4_stateid lock;

enum { OPENED = 3 }; /* sequence number of the OPEN behind OPEN_CONFIRM */

static uint32_t open_secret(uint32_t seqid)
{
	const struct op_how how = { .fh = &f->root, .name = "secret", .access = 3 };

	owner.seqid = seqid;
	return op_open_only(f, &owner, &how, &file);
}

static void open_by_the_user(void)
{
	begin_session();
	cr_assert_eq(op_client_new(f, &zero, 0, "zero"), NFS4_OK);
	f->uid = f->gid = 1000;
	cr_assert_eq(open_secret(OPENED - 2), NFS4_OK);
	cr_assert_eq(op_confirm(f, &owner, &file), NFS4_OK);
	cr_assert_eq(open_secret(OPENED), NFS4_OK);
}

Test(nfs4_replay, of_an_owner_is_for_the_caller)
{
	NEED_FIXTURE();
	open_by_the_user();
	cr_expect_eq(open_secret(OPENED), NFS4_OK);
	f->uid = 1001;
	cr_expect_eq(open_secret(OPENED), NFS4ERR_BAD_SEQID);
	f->uid = 0;
	cr_expect_eq(open_secret(OPENED), NFS4ERR_BAD_SEQID);
	f->uid = 1000;
	f->access.flags |= VFS_ALL_SQUASH;
	cr_expect_eq(open_secret(OPENED), NFS4ERR_BAD_SEQID);
	f->access.flags &= ~(uint32_t)VFS_ALL_SQUASH;
	fix_from(f, 2);
	cr_expect_eq(open_secret(OPENED), NFS4_OK);
}

/* A second CLOSE with the same number is a replay for the same user, and not for others. */
static uint32_t close_again(uint32_t uid)
{
	struct op_file again = file;

	f->uid = uid;
	owner.seqid = OPENED + 1;
	return op_close(f, &owner, &again);
}

Test(nfs4_replay, of_close)
{
	NEED_FIXTURE();
	open_by_the_user();
	cr_assert_eq(close_again(1000), NFS4_OK);
	cr_expect_eq(close_again(1001), NFS4ERR_BAD_STATEID);
	cr_expect_eq(close_again(0), NFS4ERR_BAD_SEQID);
	cr_expect_eq(close_again(1000), NFS4_OK);
}

/*
 * Without a session, a stateid is valid for the user that owns it, and for the client's principal.
 */
Test(nfs4_replay, stateids_of_another_user)
{
	struct op_file his;
	struct nfs4_stateid locked;

	NEED_FIXTURE();
	open_by_the_user();
	his = file;
	f->uid = 1001;
	cr_expect_eq(op_close(f, &owner, &his), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_downgrade(f, &owner, &his, 1, 0), NFS4ERR_BAD_STATEID);
	locker.seqid = 1;
	cr_expect_eq(op_lock_first(f, &owner, &locker, &his, &ten, &lock, NULL),
		     NFS4ERR_BAD_STATEID);
	f->uid = 1000;
	owner.seqid = OPENED + 1;
	locker.seqid = 1;
	cr_assert_eq(op_lock_first(f, &owner, &locker, &his, &ten, &lock, NULL), NFS4_OK);
	f->uid = 1001;
	locked = lock;
	cr_expect_eq(op_unlock(f, &locker, &his.fh, &ten, &locked), NFS4ERR_BAD_STATEID);
	locker.seqid = 2;
	f->uid = 0;
	f->flavor = RPC_AUTH_NONE;
	vfs_access_accept(&f->access, VFS_SEC_NONE, 0);
	locked = lock;
	cr_expect_eq(op_unlock(f, &locker, &his.fh, &ten, &locked), NFS4ERR_BAD_STATEID);
	locker.seqid = 2;
	f->flavor = RPC_AUTH_SYS;
	locked = lock;
	/* The client's principal may unlock. */
	cr_expect_eq(op_unlock(f, &locker, &his.fh, &ten, &locked), NFS4_OK);
	owner.seqid = OPENED + 2;
	f->uid = 1000;
	cr_expect_eq(op_close(f, &owner, &his), NFS4_OK);
}

/* An OPEN that makes the file, as the owner's first operation. */
static uint32_t make_by_first(const char *name)
{
	const struct op_how how = {
		.fh = &f->root, .name = name, .access = 3, .create = OP_GUARDED
	};

	owner.seqid = 1;
	return op_open_only(f, &owner, &how, &file);
}

/* Some clients do not count an OPEN that has failed. Until an owner is confirmed, only the same call
 * is a retransmission. */
Test(nfs4_replay, of_an_unconfirmed_owner_is_for_the_same_call)
{
	struct op_file first;

	NEED_FIXTURE();
	cr_assert_eq(op_client_new(f, &zero, 0, "zero"), NFS4_OK);
	make_file("a", "text", 0666);
	cr_assert_eq(symlink("a", fix_path(f, "link")), 0);
	cr_assert_eq(make_by_first("link"), NFS4ERR_EXIST);
	cr_assert_eq(make_by_first("a"), NFS4ERR_EXIST);
	cr_expect_eq(make_by_first("b"), NFS4_OK,
		     "another path with the number of one that failed");
	first = file;
	cr_expect_eq(make_by_first("b"), NFS4_OK, "its retransmission");
	cr_expect_eq(memcmp(&file.sid, &first.sid, sizeof(first.sid)), 0);
	cr_expect_eq(make_by_first("c"), NFS4_OK,
		     "another path with the number of one that succeeded");
	cr_expect_neq(memcmp(&file.sid, &first.sid, sizeof(first.sid)), 0);
	cr_expect_eq(op_confirm(f, &owner, &file), NFS4_OK);
	owner.seqid = 2;
	cr_expect_eq(op_confirm(f, &owner, &file), NFS4_OK, "a retransmission");
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}
