/* SPDX-License-Identifier: BSD-2-Clause */
/* LOCK, LOCKT and LOCKU on an event thread's worker: they end there if nothing stands in the way. Otherwise
 * they move to another worker, as if they had not begun. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/owner.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_lock_event);

#define READ_LT 1
#define WRITE_LT 2
#define WRITEW_LT 4
#define OVER 94u /* seconds: a lease and some */

static struct op_client client, other;
static struct op_owner owner, rival, locker, locker2, rivals;
static struct op_file file, theirs;
static struct nfs4_stateid sid, rsid;
static struct op_denied denied;
static uint32_t minor;

static void begin(void)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = 3 };

	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	locker = (struct op_owner){ &client, "locker", 1 };
	locker2 = (struct op_owner){ &client, "locker2", 10 };
	rivals = (struct op_owner){ &other, "rival's", 5 };
	make_file("a", "text", 0666);
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_assert_eq(op_open(f, &rival, &how, &theirs), NFS4_OK);
	f->on_event_thread = true;
}

static uint32_t first(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length,
		      struct nfs4_stateid *out)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };
	const bool ours = o->client == &client;

	return op_lock_first(f, ours ? &owner : &rival, o, ours ? &file : &theirs, &r, out,
			     &denied);
}

static uint32_t lock(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length,
		     struct nfs4_stateid *lock)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };

	return op_lock(f, o, &file.fh, &r, lock, &denied);
}

static uint32_t unlock(struct op_owner *o, uint64_t offset, uint64_t length,
		       struct nfs4_stateid *lock)
{
	const struct op_range r = { .type = WRITE_LT, .offset = offset, .length = length };

	return op_unlock(f, o, &file.fh, &r, lock);
}

static uint32_t lockt(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };

	return op_lockt(f, o, &file.fh, &r, &denied);
}

static void stayed_at(int line)
{
	cr_expect_eq(f->moved, 0, "line %d: the call has moved", line);
}

static void moved_at(int line)
{
	cr_expect_eq(f->moved, 1, "line %d: the call has moved %u times", line, f->moved);
}
#define STAYED() stayed_at(__LINE__)
#define MOVED() moved_at(__LINE__)

static uint64_t waiters(void)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st.waiters;
}

OP_MINORS_TEST(nfs4_lock_event, nothing_moves_that_need_not)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = 100, .l_len = 5 };
	int fd;

	begin();
	cr_expect_eq(first(&locker, WRITE_LT, 10, 10, &sid), NFS4_OK);
	STAYED();
	cr_expect_eq(sid.seqid, 1);
	cr_expect_eq(lock(&locker, WRITE_LT, 30, 10, &sid), NFS4_OK);
	STAYED();
	cr_expect_eq(lockt(&locker, WRITE_LT, 0, UINT64_MAX), NFS4_OK);
	STAYED();
	cr_expect_eq(lockt(&rivals, READ_LT, 25, 10), NFS4ERR_DENIED);
	STAYED();
	cr_expect_eq(denied.offset, 30);
	cr_expect_eq(denied.clientid, client.clientid);
	cr_expect_eq(first(&rivals, READ_LT, 0, 15, &rsid), NFS4ERR_DENIED);
	STAYED();
	cr_expect_str_eq(denied.owner, "locker");
	cr_expect_eq(first(&rivals, READ_LT, 50, 1, &rsid), NFS4_OK);
	STAYED();
	cr_expect_eq(unlock(&locker, 0, 20, &sid), NFS4_OK);
	STAYED();
	cr_expect_eq(sid.seqid, 3);
	cr_expect_eq(lockt(&rivals, WRITE_LT, 0, 20), NFS4_OK);
	STAYED();
	/* The locks of local processes and clients' are in each other's way. */
	fd = open(fix_path(f, "a"), O_RDWR);
	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	cr_expect_eq(lock(&locker, READ_LT, 100, 1, &sid), NFS4ERR_DENIED);
	STAYED();
	cr_expect_eq(denied.clientid, 0);
	fl.l_start = 30;
	cr_expect_lt(fcntl(fd, F_OFD_SETLK, &fl), 0);
	close(fd);
	cr_expect_eq(unlock(&locker, 0, UINT64_MAX, &sid), NFS4_OK);
	STAYED();
}

static void busy_end(struct op_busy *b, int line)
{
	moved_at(line);
	op_busy_end(b);
}
#define BUSY_END(b) busy_end(b, __LINE__)

OP_MINORS_TEST(nfs4_lock_event, an_open_that_is_busy_is_waited_for_elsewhere)
{
	struct op_busy busy;

	begin();
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	BUSY_END(&busy);
	cr_expect_eq(sid.seqid, 1);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(lock(&locker, WRITE_LT, 10, 10, &sid), NFS4_OK);
	BUSY_END(&busy);
	cr_expect_eq(sid.seqid, 2);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(lockt(&locker, WRITE_LT, 0, 10), NFS4_OK);
	BUSY_END(&busy);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(unlock(&locker, 0, 5, &sid), NFS4_OK);
	BUSY_END(&busy);
	cr_expect_eq(sid.seqid, 3);
	/* By the open's stateid once more: the lock-owner's sequence has not advanced before. */
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(first(&locker, WRITE_LT, 20, 10, &sid), NFS4_OK);
	BUSY_END(&busy);
	cr_expect_eq(sid.seqid, 4);
	/* Minor version 0: both owners' sequences have advanced by one for each. */
	cr_expect_eq(first(&locker2, WRITE_LT, 0, 5, &rsid), NFS4_OK);
	STAYED();
	cr_expect_eq(unlock(&locker, 0, UINT64_MAX, &sid), NFS4_OK);
	STAYED();
	/* A LOCK of another lock-owner that is refused after it has moved leaves nothing. */
	cr_expect_eq(lock(&locker2, WRITE_LT, 0, 10, &rsid), NFS4_OK);
	locker.name = "third";
	locker.seqid = 7;
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4ERR_DENIED);
	BUSY_END(&busy);
	cr_expect_eq(unlock(&locker2, 0, UINT64_MAX, &rsid), NFS4_OK);
	locker.seqid = 1; /* as a new owner's */
	cr_expect_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(sid.seqid, 1);
}

OP_MINORS_TEST(nfs4_lock_event, a_lock_stateid_is_freed)
{
	struct op_busy busy;

	if (minor == 0) /* has no FREE_STATEID */
		return;
	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4ERR_LOCKS_HELD);
	STAYED();
	cr_expect_eq(unlock(&locker, 0, 10, &sid), NFS4_OK);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4_OK);
	BUSY_END(&busy);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4ERR_BAD_STATEID);
	STAYED();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(unlock(&locker, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4_OK);
	STAYED();
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	STAYED();
}

OP_MINORS_TEST(nfs4_lock_event, a_client_that_is_away_gives_way_elsewhere)
{
	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	STAYED();
	nfs4_clients_skip_time(f->server4, OVER);
	cr_expect_eq(first(&rivals, WRITEW_LT, 0, 10, &rsid), NFS4_OK);
	MOVED();
	cr_expect_eq(rsid.seqid, 1);
	cr_expect_eq(waiters(), 0);
	cr_expect_neq(lock(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(unlock(&rivals, 0, 10, &rsid), NFS4_OK);
	STAYED();
}

OP_MINORS_TEST(nfs4_lock_event, a_test_finds_that_a_client_is_away)
{
	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	nfs4_clients_skip_time(f->server4, OVER);
	cr_expect_eq(lockt(&rivals, WRITE_LT, 0, 10), NFS4_OK);
	MOVED();
	cr_expect_eq(lockt(&rivals, WRITE_LT, 0, 10), NFS4_OK);
	STAYED();
}

/* The node is cached, but has no descriptor for data. */
static void close_data(void)
{
	f->on_event_thread = false;
	vfs_forget_export(f->vfs, 1);
	handle("a");
	f->on_event_thread = true;
}

OP_MINORS_TEST(nfs4_lock_event, files_are_opened_elsewhere)
{
	begin();
	close_data();
	cr_expect_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	MOVED();
	cr_expect_eq(sid.seqid, 1);
	cr_expect_eq(lock(&locker, WRITE_LT, 20, 10, &sid), NFS4_OK);
	STAYED();
	cr_expect_eq(unlock(&locker, 0, UINT64_MAX, &sid), NFS4_OK);
	STAYED();
}

OP_MINORS_TEST(nfs4_lock_event, very_many_locks_of_a_file_are_left_to_others)
{
	struct flock fl = { .l_type = F_WRLCK };
	int fd;

	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 1, &sid), NFS4_OK);
	for (unsigned i = 1; i <= 1000; i++) {
		cr_assert_eq(lock(&locker, WRITE_LT, 2 * i, 1, &sid), NFS4_OK);
		cr_assert_eq(f->moved, 0);
	}
	cr_expect_eq(lockt(&rivals, WRITE_LT, 2000, 1), NFS4ERR_DENIED);
	MOVED();
	cr_expect_eq(lock(&locker, WRITE_LT, 2, 1, &sid), NFS4_OK);
	MOVED();
	cr_expect_eq(unlock(&locker, 2, UINT64_MAX, &sid), NFS4_OK);
	MOVED();
	cr_expect_eq(unlock(&locker, 0, UINT64_MAX, &sid), NFS4_OK);
	STAYED();
	fd = open(fix_path(f, "a"), O_RDWR);
	cr_expect_eq(fcntl(fd, F_OFD_SETLK, &fl), 0, "a lock of a client is left in the kernel");
	close(fd);
}

/* Each refusal is counted once, wherever it is given. */
OP_MINORS_TEST(nfs4_lock_event, who_waits_gets_it_in_turn)
{
	struct op_busy busy;

	begin();
	cr_assert_eq(first(&rivals, WRITE_LT, 0, 10, &rsid), NFS4_OK);
	for (unsigned i = 0; i < 2; i++) {
		op_busy_begin(&busy, f, &client);
		cr_expect_eq(first(&locker, WRITEW_LT, 0, 10, &sid), NFS4ERR_DENIED);
		BUSY_END(&busy);
	}
	cr_expect_eq(waiters(), 1);
	cr_expect_eq(unlock(&rivals, 0, 10, &rsid), NFS4_OK);
	cr_expect_eq(lock(&rivals, WRITE_LT, 0, 10, &rsid), NFS4_OK, "two are not enough");
	cr_expect_eq(first(&locker, WRITEW_LT, 0, 10, &sid), NFS4ERR_DENIED);
	STAYED();
	cr_expect_eq(unlock(&rivals, 0, 10, &rsid), NFS4_OK);
	cr_expect_eq(lock(&rivals, WRITE_LT, 0, 10, &rsid), NFS4ERR_DENIED);
	STAYED();
	cr_expect_eq(first(&locker, WRITEW_LT, 0, 10, &sid), NFS4_OK);
	STAYED();
	cr_expect_eq(waiters(), 0);
}

/* Minor version 0: retransmissions are answered from the stored reply, without a worker. */
Test(nfs4_lock_event, a_repeated_call_gets_the_same_reply)
{
	struct op_busy busy;

	NEED_FIXTURE();
	minor = 0;
	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid), NFS4_OK);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(lock(&locker, WRITE_LT, 10, 10, &sid), NFS4_OK);
	BUSY_END(&busy);
	cr_expect_eq(fix4_resend(f), NFS4_OK);
	STAYED();
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_LOCK), NFS4_OK);
	fix4_get_stateid(f, &rsid);
	cr_expect_arr_eq(&rsid, &sid, sizeof(sid));
	cr_expect_eq(unlock(&locker, 0, UINT64_MAX, &sid), NFS4_OK);
	STAYED();
}
