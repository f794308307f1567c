/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_NOTIFY_LOCK: who is told that a lock may be free, when, and of what. */
#include <errno.h>
#include <unistd.h>

#include "lib/clock.h"
#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/lock_waiter.h"
#include "rpc/backchannel.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_notify_lock);

#define READ_LT 1
#define WRITE_LT 2
#define READW_LT 3
#define WRITEW_LT 4
#define OVER 94u /* seconds: a lease and some */

static struct op_client holder, waiter;
static struct op_owner owner, rival, locker, first_waiter, second_waiter;
static struct op_file file, theirs;
static struct nfs4_stateid sid, rsid;
static struct cb_call c;
static uint32_t minor = 1;

static uint32_t lock_by(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length,
			struct nfs4_stateid *out)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };
	const bool holds = o->client == &holder;

	return op_lock_first(f, holds ? &owner : &rival, o, holds ? &file : &theirs, &r, out, NULL);
}

static uint32_t unlock(uint64_t offset, uint64_t length)
{
	const struct op_range r = { .type = WRITE_LT, .offset = offset, .length = length };

	return op_unlock(f, &locker, &file.fh, &r, &sid);
}

/* The holder has locked bytes 0 to 99; the other client's path is up. */
static void begin(void)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = 3 };

	cr_assert_eq(op_client_new(f, &holder, minor, "holder"), NFS4_OK);
	cbs_on(f);
	cr_assert_eq(op_client_new(f, &waiter, minor, "waiter"), NFS4_OK);
	if (cbs_take(&c)) /* RECLAIM_COMPLETE's SEQUENCE */
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	owner = (struct op_owner){ &holder, "owner", 1 };
	rival = (struct op_owner){ &waiter, "rival", 1 };
	locker = (struct op_owner){ &holder, "locker", 1 };
	first_waiter = (struct op_owner){ &waiter, "first waiter", 1 };
	second_waiter = (struct op_owner){ &waiter, "second", 1 };
	make_file("a", "text", 0666);
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_assert_eq(op_open(f, &rival, &how, &theirs), NFS4_OK);
	cr_assert_eq(lock_by(&locker, WRITE_LT, 0, 100, &sid), NFS4_OK);
	cr_assert_eq(cbs_count(), 0);
}

/* A call has come that tells the owner; it is answered. */
static void expect_told(const struct op_owner *o)
{
	cr_assert(cbs_take(&c), "%s is not told", o->name);
	cr_expect_arr_eq(c.session, o->client->session.id, sizeof(c.session));
	cr_expect_eq(c.nops, 2);
	cr_expect_eq(c.op, OP_CB_NOTIFY_LOCK);
	cr_expect_eq(c.clientid, o->client->clientid);
	cr_expect_eq(c.owner_len, strlen(o->name));
	cr_expect_str_eq(c.owner, o->name);
	cr_expect_eq(c.fh.len, theirs.fh.len);
	cr_expect_arr_eq(c.fh.data, theirs.fh.data, c.fh.len);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
}

static uint64_t waiters(void)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st.waiters;
}

static void told_by_unlock(void)
{
	begin();
	cr_expect(theirs.rflags & OPEN4_RESULT_MAY_NOTIFY_LOCK);
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 10, 5, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(unlock(50, 50), NFS4_OK);
	cr_expect_eq(cbs_count(), 0, "bytes 10 to 14 are still locked");
	cr_expect_eq(unlock(0, 50), NFS4_OK);
	expect_told(&first_waiter);
	/* Once. */
	cr_expect_eq(unlock(0, 50), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
	/* Nothing is reserved, and the waiter gets it by asking. */
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 10, 5, &rsid), NFS4_OK);
	cr_expect_eq(waiters(), 0);
}

Test(nfs4_notify_lock, told_by_an_unlock)
{
	NEED_FIXTURE();
	told_by_unlock();
}

Test(nfs4_notify_lock, told_by_an_unlock_v42)
{
	NEED_FIXTURE();
	minor = 2;
	told_by_unlock();
}

Test(nfs4_notify_lock, told_by_a_close)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, READW_LT, 0, UINT64_MAX, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	expect_told(&first_waiter);
}

Test(nfs4_notify_lock, told_when_the_holder_expires)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(nfs4_forget_client(f->server4, holder.clientid), 0);
	expect_told(&first_waiter);
}

/* A write lock that becomes a read lock lets readers in. */
Test(nfs4_notify_lock, told_by_a_downgrade)
{
	const struct op_range r = { .type = READ_LT, .offset = 0, .length = 100 };

	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, READW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(lock_by(&second_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(op_lock(f, &locker, &file.fh, &r, &sid, NULL), NFS4_OK);
	expect_told(&first_waiter);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	expect_told(&second_waiter);
}

/* The waiter's own read lock is not in its way. */
Test(nfs4_notify_lock, told_of_an_upgrade)
{
	const struct op_range r = { .type = WRITEW_LT, .offset = 200, .length = 10 };
	const struct op_range share = { .type = READ_LT, .offset = 200, .length = 10 };

	NEED_FIXTURE();
	begin();
	cr_assert_eq(lock_by(&first_waiter, READ_LT, 200, 10, &rsid), NFS4_OK);
	cr_assert_eq(op_lock(f, &locker, &file.fh, &share, &sid, NULL), NFS4_OK);
	cr_expect_eq(op_lock(f, &first_waiter, &theirs.fh, &r, &rsid, NULL), NFS4ERR_DENIED);
	cr_expect_eq(unlock(200, 10), NFS4_OK);
	expect_told(&first_waiter);
	cr_expect_eq(op_lock(f, &first_waiter, &theirs.fh, &r, &rsid, NULL), NFS4_OK);
}

Test(nfs4_notify_lock, all_that_could_have_it_are_told)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 10, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(lock_by(&second_waiter, WRITEW_LT, 0, 10, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 2);
	cr_assert(cbs_take(&c));
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.slot, 1, "both are under way at once");
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	/* They race: one that has been told is not held up for another. */
	cr_expect_eq(lock_by(&second_waiter, WRITEW_LT, 0, 10, &rsid), NFS4_OK);
}

/* A lock-owner waits for one range of a file at a time. */
Test(nfs4_notify_lock, asking_again_replaces_the_waiter)
{
	NEED_FIXTURE();
	begin();
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, i, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(waiters(), 1);
	cr_expect_eq(unlock(0, 2), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	expect_told(&first_waiter);
	cr_expect_eq(cbs_count(), 0);
}

Test(nfs4_notify_lock, those_who_do_not_wait)
{
	const struct op_range r = { .type = WRITEW_LT, .offset = 0, .length = 1 };

	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, WRITE_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(op_lockt(f, &second_waiter, &theirs.fh, &r, NULL), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

Test(nfs4_notify_lock, minor_version_0_is_not_told)
{
	NEED_FIXTURE();
	struct op_client old;
	struct op_owner o = { &old, "old", 1 }, l = { &old, "old locker", 1 };
	const struct op_how how = { .fh = &f->root, .name = "a", .access = 3 };
	const struct op_range r = { .type = WRITEW_LT, .offset = 0, .length = 1 };
	struct op_file of;

	begin();
	cr_assert_eq(op_client_new(f, &old, 0, "old"), NFS4_OK);
	cr_assert_eq(op_open(f, &o, &how, &of), NFS4_OK);
	cr_expect_not(of.rflags & OPEN4_RESULT_MAY_NOTIFY_LOCK);
	cr_expect_eq(op_lock_first(f, &o, &l, &of, &r, &rsid, NULL), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

Test(nfs4_notify_lock, no_promise_without_a_path)
{
	NEED_FIXTURE();
	const struct op_how how = { .fh = &f->root, .name = "a", .access = 3 };
	struct op_owner more = { &waiter, "more", 1 };
	struct op_file again;

	begin();
	cr_expect_not(file.rflags & OPEN4_RESULT_MAY_NOTIFY_LOCK);
	cbs_lose(f);
	cr_assert_eq(op_open(f, &more, &how, &again), NFS4_OK);
	cr_expect_not(again.rflags & OPEN4_RESULT_MAY_NOTIFY_LOCK);
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

/* The kernel does not tell when a local process unlocks. */
Test(nfs4_notify_lock, a_local_lock_is_asked_about_again)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = 500, .l_len = 5 };
	int fd;

	NEED_FIXTURE();
	begin();
	fd = open(fix_path(f, "a"), O_RDWR);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 500, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(cbs_count(), 0, "told at once, it would ask at once");
	for (unsigned i = 0; i < 10; i++)
		nfs4_tick(f->server4);
	cr_expect_eq(cbs_count(), 1);
	expect_told(&first_waiter);
	close(fd);
}

/* Nobody else asks for the lock of a client that is not heard of any more. */
Test(nfs4_notify_lock, told_when_the_holder_s_lease_runs_out)
{
	NEED_FIXTURE();
	begin();
	nfs4_skip_lease_time(f->server4, OVER / 2);
	cr_assert_eq(cbs_sequence(f, &waiter.session), 0);
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 10, 5, &rsid), NFS4ERR_DENIED);
	for (unsigned i = 0; i < 10; i++)
		nfs4_tick(f->server4);
	cr_expect_eq(cbs_count(), 0);
	nfs4_skip_lease_time(f->server4, OVER / 2 + 1);
	cr_assert_eq(cbs_sequence(f, &waiter.session), 0);
	for (unsigned i = 0; i < 10; i++)
		nfs4_tick(f->server4);
	expect_told(&first_waiter);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 10, 5, &rsid), NFS4_OK);
}

Test(nfs4_notify_lock, a_waiter_is_forgotten_after_a_lease)
{
	size_t used;

	NEED_FIXTURE();
	begin();
	used = f->budget.used;
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_gt(f->budget.used, used);
	cr_expect_eq(waiters(), 1);
	nfs4_skip_lease_time(f->server4, OVER);
	cr_assert_eq(cbs_sequence(f, &holder.session), 0);
	cr_assert_eq(cbs_sequence(f, &waiter.session), 0);
	for (unsigned i = 0; i < 10; i++)
		nfs4_tick(f->server4);
	cr_expect_eq(waiters(), 0);
	cr_expect_eq(f->budget.used, used);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

Test(nfs4_notify_lock, the_waiter_s_client_goes)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(nfs4_forget_client(f->server4, waiter.clientid), 0);
	cr_expect_eq(waiters(), 0);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

/* Fewer slots than callbacks: the others wait for a slot, and go when one is free. */
Test(nfs4_notify_lock, more_callbacks_than_slots)
{
	static char names[5][8];
	struct op_owner o[5];

	NEED_FIXTURE();
	begin();
	/* The client allows slots 0 and 1 from now on. */
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 99, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(99, 1), NFS4_OK);
	cr_assert(cbs_take(&c));
	cbs_answer_target(f, &c, 1);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(names[i], sizeof(names[i]), "o%u", i);
		o[i] = (struct op_owner){ &waiter, names[i], 1 };
		cr_expect_eq(lock_by(&o[i], WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	}
	cr_expect_eq(unlock(0, 99), NFS4_OK);
	cr_expect_eq(cbs_count(), 2);
	for (unsigned i = 0; i < 5; i++) {
		cr_assert(cbs_take(&c), "call %u", i);
		cr_expect_lt(c.slot, 2);
		cbs_answer_target(f, &c, 1);
	}
	cr_expect_eq(cbs_count(), 0);
}

/* A client that answers one call after the other is in time with each. */
Test(nfs4_notify_lock, the_wait_for_a_slot_is_not_the_client_s)
{
	const uint64_t ms = RN_NS_PER_MS;
	uint64_t start, period;

	NEED_FIXTURE();
	begin();
	period = f->server4->cfg.lease_seconds / 10 * RN_NS_PER_SECOND;
	/* The client allows slot 0 from now on. */
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 99, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(99, 1), NFS4_OK);
	cr_assert(cbs_take(&c));
	cbs_answer_target(f, &c, 0);
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(lock_by(&second_waiter, WRITEW_LT, 1, 1, &rsid), NFS4ERR_DENIED);
	start = rn_now_ns();
	cr_expect_eq(unlock(0, 99), NFS4_OK);
	cr_expect_eq(cbs_count(), 1);
	while (rn_now_ns() < start + 40 * ms)
		usleep(1000);
	cr_assert(cbs_take(&c));
	cbs_answer_target(f, &c, 0);
	cr_assert(cbs_take(&c));
	rpc_backchannel_expire(&f->conn, start + period + 20 * ms);
	cbs_answer_target(f, &c, 0);
	cr_expect_eq(cbs_sequence(f, &waiter.session), 0);
}

static void ticks(void)
{
	for (unsigned i = 0; i < 10; i++)
		nfs4_tick(f->server4);
}

/* A client whose session recovers answers no callback but with NFS4ERR_DELAY (Linux's does so for
 * CB_SEQUENCE). Left alone, it would ask again after half a minute. */
Test(nfs4_notify_lock, told_again_if_the_client_has_no_time)
{
	static const uint32_t answers[][2] = { { NFS4ERR_DELAY, NFS4_OK },
					       { NFS4_OK, NFS4ERR_DELAY } };
	size_t used;

	NEED_FIXTURE();
	begin();
	used = f->budget.used;
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 10, 5, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(cbs_take(&c), "%u", i);
		cbs_answer(f, &c, answers[i][0], answers[i][1]);
		cr_expect_eq(cbs_count(), 0, "not at once");
		ticks();
	}
	expect_told(&first_waiter);
	ticks();
	cr_expect_eq(cbs_count(), 0);
	cr_expect_leq(f->budget.used, used + 512, "the lock-owner's place alone");
}

/* Waiters whom no callback reaches are told when there is a connection, or forgotten after a lease. */
Test(nfs4_notify_lock, the_path_goes_down)
{
	size_t used;

	NEED_FIXTURE();
	begin();
	used = f->budget.used;
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(lock_by(&second_waiter, WRITEW_LT, 50, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 50), NFS4_OK);
	cr_assert(cbs_take(&c));
	cbs_lose(f);
	cr_expect_eq(unlock(50, 50), NFS4_OK);
	ticks();
	cr_expect_eq(cbs_count(), 0);
	nfs4_skip_lease_time(f->server4, OVER);
	(void)cbs_sequence(f, &waiter.session);
	ticks();
	cr_expect_leq(f->budget.used, used);
}

Test(nfs4_notify_lock, the_transport_has_no_memory)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(lock_by(&first_waiter, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cbs_refuse(-ENOMEM);
	cr_expect_eq(unlock(0, 50), NFS4_OK);
	cbs_refuse(0);
	/* That slot can be used again: the client has not seen its sequence id. */
	cr_expect_eq(lock_by(&second_waiter, WRITEW_LT, 50, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(50, 50), NFS4_OK);
	expect_told(&second_waiter);
	cr_expect_eq(c.slot, 0);
	cr_expect_eq(c.seqid, 2);
}

Test(nfs4_notify_lock, as_many_as_a_client_may_have)
{
	static char name[NFS4_NOTIFY_OWNER_MAX + 2];
	struct op_owner long_one = { &waiter, name, 1 };

	NEED_FIXTURE();
	begin();
	/* A name that does not fit a callback. */
	memset(name, 'n', NFS4_NOTIFY_OWNER_MAX + 1);
	cr_expect_eq(lock_by(&long_one, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(waiters(), 1);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
	name[NFS4_NOTIFY_OWNER_MAX] = 0;
	cr_assert_eq(lock_by(&locker, WRITE_LT, 0, 100, &sid), NFS4_OK);
	cr_expect_eq(lock_by(&long_one, WRITEW_LT, 0, 1, &rsid), NFS4ERR_DENIED);
	cr_expect_eq(unlock(0, 100), NFS4_OK);
	expect_told(&long_one);
}
