/* SPDX-License-Identifier: BSD-2-Clause */
/* Write delegations: who gets one, and the attributes that others see meanwhile (CB_GETATTR). */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "nfs4/client/nfs4_client.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_held);

#define READ OPEN4_SHARE_ACCESS_READ
#define WRITE OPEN4_SHARE_ACCESS_WRITE
#define SIZE 4 /* of the file, in bytes */

static struct op_client holder, other;
static struct op_owner owner, rival;
static struct op_file file, theirs;
static struct fix4_attrs got;
static struct cb_call c;

/* Answers of the holder. */
static struct {
	enum { ATTRS, STATUS, WORDS, SILENCE, TIMEOUT } how;
	uint64_t change, size;
	uint32_t status;
	unsigned asked;
	uint64_t extend; /* to this size, before it answers; 0: not at all */
} will;

static uint32_t open_as(struct op_owner *o, const char *name, uint32_t access, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = name, .access = access };

	return op_open(f, o, &how, out);
}

/* An answer of fewer bytes than it has attributes. */
static void answer_nonsense(void)
{
	uint32_t words[20] = { RPC_REPLY, 0, 0, 0, 0, NFS4_OK, 0, 2, OP_CB_SEQUENCE, NFS4_OK };

	memcpy(words + 10, c.session, NFS4_SESSIONID_SIZE);
	for (unsigned i = 10; i < 14; i++)
		words[i] = be32toh(words[i]);
	words[14] = c.seqid;
	words[15] = c.slot;
	words[16] = words[17] = 15;
	words[18] = OP_CB_GETATTR;
	words[19] = NFS4_OK;
	cbs_answer_words(f, &c, words, 20);
}

/* While a call waits, the holder does as it will. */
static void play_holder(struct fixture *fx)
{
	if (!cbs_take(&c))
		return;
	if (c.op == OP_CB_RECALL) {
		cbs_answer(fx, &c, NFS4_OK, NFS4_OK);
		return;
	}
	cr_assert_eq(c.op, OP_CB_GETATTR);
	cr_expect_arr_eq(c.session, holder.session.id, sizeof(c.session));
	cr_expect_eq(c.fh.len, file.fh.len);
	cr_expect_arr_eq(c.fh.data, file.fh.data, c.fh.len);
	cr_expect_eq(c.wants, 1u << FATTR4_CHANGE | 1u << FATTR4_SIZE);
	will.asked++;
	if (will.extend)
		cr_assert_eq(truncate(fix_path(f, "a"), (off_t)will.extend), 0);
	switch (will.how) {
	case ATTRS:
		cbs_answer_attrs(fx, &c, will.change, will.size);
		break;
	case STATUS:
		cbs_answer(fx, &c, NFS4_OK, will.status);
		break;
	case WORDS:
		answer_nonsense();
		break;
	case TIMEOUT:
		cbs_time_out(fx);
		break;
	case SILENCE:
		nfs4_skip_lease_time(fx->server4, 3);
		nfs4_tick(fx->server4);
		break;
	}
}

static void begin(void)
{
	memset(&will, 0, sizeof(will));
	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	cr_assert_eq(op_client_new(f, &other, 1, "other"), NFS4_OK);
	cbs_on(f);
	cr_assert_eq(op_client_new(f, &holder, 1, "holder"), NFS4_OK);
	if (cbs_take(&c)) /* RECLAIM_COMPLETE's SEQUENCE */
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	owner = (struct op_owner){ &holder, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	f->on_wait = play_holder;
}

static uint64_t begin_delegated(void)
{
	struct fix4_attrs mine;

	begin();
	make_file("a", "text", 0666);
	cr_assert_eq(open_as(&owner, "a", READ | WRITE, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_WRITE);
	cr_assert_eq(fix4_getattr(f, &holder.session, &file.fh, &mine), NFS4_OK);
	cr_expect_eq(will.asked, 0, "the holder is not asked for its own");
	will.change = mine.change;
	will.size = SIZE;
	return mine.change;
}

static uint32_t look(void)
{
	return fix4_getattr(f, &other.session, &file.fh, &got);
}

Test(nfs4_held, unchanged)
{
	uint64_t change;
	struct timespec mtime;

	NEED_FIXTURE();
	change = begin_delegated();
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(will.asked, 1);
	cr_expect_eq(got.change, change);
	cr_expect_eq(got.size, SIZE);
	mtime = got.mtime;
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(will.asked, 2);
	cr_expect_eq(got.mtime.tv_sec, mtime.tv_sec);
	cr_expect_eq(got.mtime.tv_nsec, mtime.tv_nsec);
	cr_expect_eq(cbs_count(), 0, "nothing is recalled");
}

/* The holder may give the same value after each change, and its first one again after it has written. */
Test(nfs4_held, changed)
{
	uint64_t last;

	NEED_FIXTURE();
	last = begin_delegated();
	will.change++;
	will.size = 100;
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(look(), NFS4_OK);
		cr_expect_eq(got.size, 100);
		cr_expect_gt(got.change, last);
		last = got.change;
	}
	will.change--;
	will.size = SIZE;
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_gt(got.change, last, "it stays modified");
	cr_expect_eq(got.size, SIZE);
	last = got.change;
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_geq(got.change, last);
	cr_expect_eq(got.size, SIZE);
	cr_expect_eq(will.asked, 4);
}

/* Another size is a change, whatever the change attribute. */
Test(nfs4_held, other_size)
{
	uint64_t change;

	NEED_FIXTURE();
	change = begin_delegated();
	will.size = 0;
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, 0);
	cr_expect_gt(got.change, change);
}

/* The holder has told a size, and never writes what makes it: the file's own comes with another value. */
Test(nfs4_held, never_written)
{
	uint64_t told;

	NEED_FIXTURE();
	begin_delegated();
	will.change++;
	will.size = 100;
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, 100);
	told = got.change;
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, SIZE);
	cr_expect_gt(got.change, told);
}

/* After what the holder has written itself, its first value says that it has no more. */
Test(nfs4_held, written)
{
	NEED_FIXTURE();
	begin_delegated();
	cr_expect_eq(op_write(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(will.asked, 1);
	cr_expect_eq(got.size, SIZE);
}

/* The answer left before the WRITE that made the file longer, and comes after it. */
Test(nfs4_held, answer_older_than_the_file)
{
	uint64_t change;

	NEED_FIXTURE();
	change = begin_delegated();
	will.size = SIZE + 5;
	will.extend = 1000;
	cr_assert_eq(look(), NFS4_OK);
	cr_expect_eq(will.asked, 1);
	cr_expect_eq(got.size, 1000);
	cr_expect_gt(got.change, change);
}

/* The call is answered DELAY, and the delegation is recalled; the holder is not asked a second time. */
static void check_recalled(void)
{
	cr_expect_eq(look(), NFS4ERR_DELAY);
	cr_expect_eq(look(), NFS4ERR_DELAY);
	cr_expect_eq(will.asked, 1);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, SIZE);
	cr_expect_eq(will.asked, 1);
}

Test(nfs4_held, refused)
{
	NEED_FIXTURE();
	begin_delegated();
	will.how = STATUS;
	will.status = NFS4ERR_BADHANDLE;
	check_recalled();
}

Test(nfs4_held, nonsense)
{
	NEED_FIXTURE();
	begin_delegated();
	will.how = WORDS;
	check_recalled();
}

Test(nfs4_held, timed_out)
{
	NEED_FIXTURE();
	begin_delegated();
	will.how = TIMEOUT;
	check_recalled();
}

/* Nobody waits for long, though the callback may last longer. */
Test(nfs4_held, silent)
{
	struct cb_call late;

	NEED_FIXTURE();
	begin_delegated();
	will.how = SILENCE;
	cr_expect_eq(look(), NFS4ERR_DELAY);
	late = c;
	cr_expect_eq(look(), NFS4ERR_DELAY);
	cr_expect_eq(will.asked, 1);
	late.wants = 1u << FATTR4_CHANGE | 1u << FATTR4_SIZE;
	cbs_answer_attrs(f, &late, 1, 1000);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, SIZE);
}

Test(nfs4_held, no_path)
{
	NEED_FIXTURE();
	begin_delegated();
	cbs_refuse(-ENOTCONN);
	cr_expect_eq(look(), NFS4ERR_DELAY);
	cr_expect_eq(will.asked, 0);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(look(), NFS4_OK);
}

/* A holder whose lease has run out is not asked: its state goes. */
Test(nfs4_held, of_a_client_that_is_away)
{
	NEED_FIXTURE();
	begin_delegated();
	for (unsigned i = 0; i < 3; i++) {
		nfs4_skip_lease_time(f->server4, 40);
		cr_assert_neq(cbs_sequence(f, &other.session), UINT32_MAX);
		nfs4_tick(f->server4);
	}
	cr_expect_eq(look(), NFS4ERR_DELAY);
	cr_expect_eq(will.asked, 0);
	nfs4_tick(f->server4);
	cr_expect_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, SIZE);
}

Test(nfs4_held, event_worker)
{
	NEED_FIXTURE();
	begin_delegated();
	will.size = 9;
	f->on_event_thread = true;
	f->moved = 0;
	cr_expect_eq(look(), NFS4_OK);
	cr_expect_eq(got.size, 9);
	cr_expect_eq(will.asked, 1);
	cr_expect_eq(f->moved, 1);
	f->on_event_thread = false;
}

Test(nfs4_held, types)
{
	static const struct {
		uint32_t access, type;
	} gets[] = {
		{ READ, OPEN_DELEGATE_READ },
		{ WRITE, OPEN_DELEGATE_WRITE },
		{ READ | WRITE, OPEN_DELEGATE_WRITE },
		{ READ | OPEN4_SHARE_ACCESS_WANT_ANY_DELEG, OPEN_DELEGATE_READ },
		{ WRITE | OPEN4_SHARE_ACCESS_WANT_ANY_DELEG, OPEN_DELEGATE_WRITE },
		{ READ | OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG, OPEN_DELEGATE_WRITE },
		{ READ | WRITE | OPEN4_SHARE_ACCESS_WANT_READ_DELEG, OPEN_DELEGATE_READ },
		{ READ | WRITE | OPEN4_SHARE_ACCESS_WANT_NO_DELEG, OPEN_DELEGATE_NONE_EXT },
	};

	NEED_FIXTURE();
	begin();
	for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++) {
		make_file("a", "text", 0666);
		cr_assert_eq(open_as(&owner, "a", gets[i].access, &file), NFS4_OK);
		cr_expect_eq(file.delegation, gets[i].type, "%zu: %u", i, file.delegation);
		if (file.delegation != OPEN_DELEGATE_NONE_EXT)
			cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
		cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	}
}

/* Minor version 0 has none, and a file with set-id bits; a client keeps what it has. */
Test(nfs4_held, not_given)
{
	struct op_client old;
	struct op_owner o = { &old, "old", 1 };

	NEED_FIXTURE();
	begin();
	cr_assert_eq(op_client_new(f, &old, 0, "old"), NFS4_OK);
	make_file("a", "text", 0666);
	cr_assert_eq(open_as(&o, "a", READ | WRITE, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_NONE);
	make_file("s", "text", 04777);
	cr_assert_eq(open_as(&owner, "s", READ | WRITE | OPEN4_SHARE_ACCESS_WANT_ANY_DELEG, &file),
		     NFS4_OK);
	cr_expect_eq(file.why, WND4_CONTENTION);
	make_file("b", "text", 0666);
	cr_assert_eq(open_as(&owner, "b", READ, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
	cr_assert_eq(open_as(&owner, "b", WRITE | OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG, &theirs),
		     NFS4_OK);
	cr_expect_eq(theirs.why, WND4_NOT_SUPP_UPGRADE);
	make_file("c", "text", 0666);
	cr_assert_eq(open_as(&owner, "c", WRITE, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_WRITE);
	cr_assert_eq(open_as(&owner, "c", READ | OPEN4_SHARE_ACCESS_WANT_READ_DELEG, &theirs),
		     NFS4_OK);
	cr_expect_eq(theirs.why, WND4_NOT_SUPP_DOWNGRADE);
}

/* The user of the OPEN writes by it; others as far as the mode allows. */
Test(nfs4_held, of_another_user)
{
	NEED_FIXTURE();
	begin();
	make_file("a", "text", 0600);
	cr_assert_eq(open_as(&owner, "a", READ | WRITE, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_WRITE);
	cr_expect_eq(op_read(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(op_write(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	f->uid = f->gid = 1000;
	cr_expect_eq(op_read(f, &holder, &file.fh, &file.deleg), NFS4ERR_ACCESS);
	cr_expect_eq(op_write(f, &holder, &file.fh, &file.deleg), NFS4ERR_ACCESS);
	cr_expect_eq(op_write(f, &other, &file.fh, &file.deleg), NFS4ERR_BAD_STATEID);
}
