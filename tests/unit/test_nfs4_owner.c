/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence numbers of owners in minor version 0: replays, numbers out of turn, confirmation. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/owner.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_owner);

#define BOTH OPEN4_SHARE_ACCESS_BOTH
#define READ_LT 1
#define WRITE_LT 2

static struct op_client client, other;
static struct op_owner owner, rival, locker, rivals;
static struct op_file file;
static const struct op_range ten = { .type = WRITE_LT, .length = 10 };

static void begin(void)
{
	cr_assert_eq(op_client_new(f, &client, 0, "client"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &other, 0, "other"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	locker = (struct op_owner){ &client, "locker", 1 };
	rivals = (struct op_owner){ &other, "rival's", 1 };
	make_file("a", "text", 0666);
}

static uint32_t open_unconfirmed(struct op_owner *o, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = BOTH };

	return op_open_only(f, o, &how, out);
}

static uint32_t open_a(struct op_owner *o, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = BOTH };

	return op_open(f, o, &how, out);
}

/* Prepares a repetition of o's last operation in a new RPC call, which the duplicate request cache
 * does not know. */
static void again(struct op_owner *o)
{
	o->seqid--;
}

Test(nfs4_owner, an_open_is_answered_again)
{
	const struct op_how how = { .fh = &f->root, .name = "new", .create = OP_GUARDED };
	const struct op_how none = { .fh = &f->root, .name = "none" };
	struct op_file first, second;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(op_open_only(f, &owner, &how, &first), NFS4_OK);
	again(&owner);
	/* The replay gives the same stateid and the same current filehandle, and not EEXIST. */
	cr_assert_eq(op_open_only(f, &owner, &how, &second), NFS4_OK);
	cr_expect_arr_eq(&first, &second, sizeof(first));
	/* Failures are replayed, too. */
	cr_expect_eq(op_open_only(f, &owner, &none, &second), NFS4ERR_NOENT);
	make_file("none", "", 0644);
	again(&owner);
	cr_expect_eq(op_open_only(f, &owner, &none, &second), NFS4ERR_NOENT);
	cr_expect_eq(op_open_only(f, &owner, &none, &second), NFS4_OK);
}

Test(nfs4_owner, close_downgrade_and_unlock_are_answered_again)
{
	struct nfs4_stateid lock, before, after;
	struct op_file closed, narrow;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);
	cr_assert_eq(op_open_only(f, &owner,
				  &(struct op_how){ .fh = &f->root, .name = "a", .access = 1 },
				  &file),
		     NFS4_OK);
	narrow = file;
	cr_assert_eq(op_downgrade(f, &owner, &file, 1, 0), NFS4_OK);
	again(&owner);
	cr_assert_eq(op_downgrade(f, &owner, &narrow, 1, 0), NFS4_OK);
	cr_expect_arr_eq(&narrow, &file, sizeof(file));
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);

	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	before = lock;
	cr_assert_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4_OK);
	after = lock;
	lock = before;
	again(&locker);
	cr_assert_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4_OK);
	cr_expect_arr_eq(&lock, &after, sizeof(lock));

	closed = file;
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	again(&owner);
	cr_assert_eq(op_close(f, &owner, &closed), NFS4_OK);
	cr_expect_arr_eq(&closed, &file, sizeof(file));
	/* The owner's next operation shows that the client has the reply, which is then dropped. */
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &closed), NFS4ERR_BAD_STATEID);
}

Test(nfs4_owner, locks_granted_and_denied_are_answered_again)
{
	struct nfs4_stateid lock, same, rlock;
	struct op_denied d, e;
	struct op_file theirs;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);
	cr_assert_eq(open_a(&rival, &theirs), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	again(&owner);
	again(&locker);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &same, NULL), NFS4_OK);
	cr_expect_arr_eq(&lock, &same, sizeof(lock));
	/* The replay of a refusal has the same body. */
	cr_assert_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &rlock, &d), NFS4ERR_DENIED);
	cr_assert_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4_OK);
	again(&rival);
	again(&rivals);
	cr_assert_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &rlock, &e), NFS4ERR_DENIED);
	cr_expect_arr_eq(&d, &e, sizeof(d));
	cr_expect_str_eq(e.owner, "locker");
	cr_assert_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &rlock, &e), NFS4_OK);
	/* The same with a lock stateid. */
	cr_assert_eq(op_lock(f, &locker, &file.fh, &ten, &lock, &d), NFS4ERR_DENIED);
	cr_assert_eq(op_unlock(f, &rivals, &file.fh, &ten, &rlock), NFS4_OK);
	again(&locker);
	cr_assert_eq(op_lock(f, &locker, &file.fh, &ten, &lock, &e), NFS4ERR_DENIED);
	cr_expect_arr_eq(&d, &e, sizeof(d));
	cr_assert_eq(op_lock(f, &locker, &file.fh, &ten, &lock, &e), NFS4_OK);
}

/* Linux's client does this. */
Test(nfs4_owner, a_lock_owner_that_got_nothing_is_forgotten)
{
	struct nfs4_stateid lock, rlock;
	struct op_file theirs;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);
	cr_assert_eq(open_a(&rival, &theirs), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	for (int i = 0; i < 3; i++) {
		rivals.seqid = 0;
		cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &rlock, NULL),
			     NFS4ERR_DENIED);
	}
	cr_assert_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4_OK);
	rivals.seqid = 0;
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &rlock, NULL), NFS4_OK);
}

Test(nfs4_owner, what_is_out_of_turn_is_refused)
{
	static const int off[] = { -2, 1, 2, 1000 };
	struct nfs4_stateid lock;
	struct op_file twin;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		owner.seqid += (uint32_t)off[i];
		locker.seqid += (uint32_t)off[i];
		cr_expect_eq(open_a(&owner, &twin), NFS4ERR_BAD_SEQID);
		cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_BAD_SEQID);
		cr_expect_eq(op_downgrade(f, &owner, &file, BOTH, 0), NFS4ERR_BAD_SEQID);
		cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4ERR_BAD_SEQID);
		cr_expect_eq(op_lock(f, &locker, &file.fh, &ten, &lock, NULL), NFS4ERR_BAD_SEQID);
		owner.seqid -= (uint32_t)off[i];
		locker.seqid -= (uint32_t)off[i];
	}
	/* Another operation under the last sequence number is no replay. */
	again(&owner);
	cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_BAD_SEQID);
	cr_expect_eq(op_confirm(f, &owner, &file), NFS4ERR_BAD_SEQID);
	owner.seqid++;
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

/* RFC 7530 section 9.1.7: some failures do not advance the sequence number. */
Test(nfs4_owner, some_failures_do_not_count)
{
	struct op_file wrong;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(open_a(&owner, &file), NFS4_OK);
	wrong = file;
	wrong.sid.seqid = 50;
	cr_expect_eq(op_close(f, &owner, &wrong), NFS4ERR_BAD_STATEID);
	wrong.sid.other[0] ^= 1;
	cr_expect_eq(op_close(f, &owner, &wrong), NFS4ERR_STALE_STATEID);
	/* OLD_STATEID advances it. */
	cr_expect_eq(open_a(&owner, &wrong), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_OLD_STATEID);
	cr_expect_eq(op_close(f, &owner, &wrong), NFS4_OK);
}

Test(nfs4_owner, numbers_wrap)
{
	struct op_file b;

	NEED_FIXTURE();
	begin();
	owner.seqid = UINT32_MAX;
	cr_assert_eq(open_unconfirmed(&owner, &file), NFS4_OK);
	/* The next number after the largest is 1 and not 0 (RFC 7530 section 9.1.3) */
	owner.seqid = 1;
	cr_assert_eq(op_confirm(f, &owner, &file), NFS4_OK);
	rival.seqid = UINT32_MAX - 1;
	cr_assert_eq(open_a(&rival, &b), NFS4_OK);
	cr_assert_eq(rival.seqid, 0); /* some clients go on with 0 */
	cr_assert_eq(op_close(f, &rival, &b), NFS4_OK);
}

/* Makes the server forget a known owner. */
static void forget_owner(struct op_owner *o)
{
	cr_assert_eq(open_a(o, &file), NFS4_OK);
	cr_assert_eq(op_close(f, o, &file), NFS4_OK);
	cr_assert_eq(open_unconfirmed(o, &file), NFS4_OK);
	cr_assert_not(file.rflags & OPEN4_RESULT_CONFIRM);
	cr_assert_eq(op_close(f, o, &file), NFS4_OK);
	for (int i = 0; i < 3; i++) { /* more than a lease passes, while the client renews */
		nfs4_clients_skip_time(f->server4, 60);
		cr_assert_eq(op_lockt(f, &locker, &file.fh, &ten, NULL), NFS4_OK);
	}
	for (int i = 0; i < 90; i++) /* the tick visits all clients within a lease */
		nfs4_tick(f->server4);
}

Test(nfs4_owner, an_unknown_owner_confirms)
{
	struct op_file twin;
	struct nfs4_stateid lock;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(open_unconfirmed(&owner, &file), NFS4_OK);
	cr_assert(file.rflags & OPEN4_RESULT_CONFIRM);
	cr_expect_eq(file.delegation, 0);
	/* The open cannot be used before it is confirmed. */
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL),
		     NFS4ERR_BAD_STATEID);
	cr_assert_eq(op_confirm(f, &owner, &file), NFS4_OK);
	cr_expect_eq(file.sid.seqid, 2);
	again(&owner);
	twin = file;
	twin.sid.seqid = 1;
	cr_assert_eq(op_confirm(f, &owner, &twin), NFS4_OK);
	cr_expect_arr_eq(&twin.sid, &file.sid, sizeof(file.sid));
	cr_expect_eq(op_confirm(f, &owner, &file), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(open_unconfirmed(&owner, &file), NFS4_OK);
	cr_expect_not(file.rflags & OPEN4_RESULT_CONFIRM);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	forget_owner(&rival);
	cr_assert_eq(open_unconfirmed(&rival, &file), NFS4_OK);
	cr_expect(file.rflags & OPEN4_RESULT_CONFIRM);
}

/* A failed OPEN does not confirm its owner: the next one must be confirmed. */
Test(nfs4_owner, an_open_that_failed_confirms_nothing)
{
	const struct op_how none = { .fh = &f->root, .name = "none" };

	NEED_FIXTURE();
	begin();
	cr_expect_eq(op_open_only(f, &owner, &none, &file), NFS4ERR_NOENT);
	cr_expect_eq(op_open_only(f, &owner, &none, &file), NFS4ERR_NOENT);
	cr_assert_eq(open_unconfirmed(&owner, &file), NFS4_OK);
	cr_expect(file.rflags & OPEN4_RESULT_CONFIRM);
	cr_expect_eq(op_confirm(f, &owner, &file), NFS4_OK);
	cr_expect_eq(op_open_only(f, &owner, &none, &file), NFS4ERR_NOENT);
	cr_assert_eq(open_unconfirmed(&owner, &file), NFS4_OK);
	cr_expect_not(file.rflags & OPEN4_RESULT_CONFIRM);
}

Test(nfs4_owner, another_open_takes_an_unconfirmed_ones_place)
{
	const struct op_how deny = { .fh = &f->root, .name = "a", .access = 1, .deny = 2 };
	struct op_file old;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(op_open_only(f, &owner, &deny, &old), NFS4_OK);
	cr_assert(old.rflags & OPEN4_RESULT_CONFIRM);
	owner.seqid = 1000; /* the server takes the OPEN before for a replay */
	cr_assert_eq(open_unconfirmed(&owner, &file), NFS4_OK);
	cr_assert(file.rflags & OPEN4_RESULT_CONFIRM);
	cr_expect_eq(op_confirm(f, &owner, &old), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_confirm(f, &owner, &file), NFS4_OK);
	cr_expect_eq(open_a(&rival, &file), NFS4_OK); /* the deny bits are gone */
}
