/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and locks in the grace period after a restart. */
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/client_table.h"
#include "nfs4/session/session_private.h"
#include "rpc/client.h"
#include "rpc/worker.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"
#include "tests/unit/nfs4_text.h"

#define WRITE_LT 2

static struct op_client client, other;
static struct op_owner owner, rival, locker, rivals;
static struct op_file file, theirs;
static struct nfs4_stateid lock;
static const struct op_range ten = { .type = WRITE_LT, .length = 10 };
static const struct op_range reclaimed_ten = { .type = WRITE_LT, .length = 10, .reclaim = true };
static uint32_t minor;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void start_with_records(void)
{
	suite_start();
	if (!f)
		return;
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	snprintf(f->state_dir, sizeof(f->state_dir), "/dev/shm/ringnfs-reclaim-XXXXXX");
	cr_assert(mkdtemp(f->state_dir));
	cr_assert_null(fix_start_nfs4(f));
}

static void stop_with_records(void)
{
	if (f) {
		nfs4_server_free(f->server4);
		f->server4 = NULL;
		setfsuid(0); /* the thread still acts as the last call's user */
		setfsgid(0);
		nftw(f->state_dir, remove_one, 4, FTW_DEPTH | FTW_PHYS);
	}
	suite_stop();
}

TestSuite(nfs4_reclaim, .init = start_with_records, .fini = stop_with_records, .timeout = 60);

static uint32_t open_a(struct op_owner *o, uint32_t deny, enum op_claim claim, struct op_file *out)
{
	const struct op_how how = { .fh = claim == OP_RECLAIM ? &file.fh : &f->root,
				    .name = "a",
				    .deny = deny,
				    .claim = claim };

	return op_open(f, o, &how, out);
}

/* Registers the client again after the restart. A client with a session does not send
 * RECLAIM_COMPLETE. */
static void come_back(struct op_client *c, const char *name)
{
	if (minor == 0) {
		cr_assert_eq(fix4_clientid_new(f, name, &c->clientid), NFS4_OK);
		return;
	}
	cr_assert_eq(fix4_session_new(f, &c->session, minor, name, false), NFS4_OK);
	c->clientid = c->session.clientid;
}

static void two_clients(void)
{
	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	locker = (struct op_owner){ &client, "locker", 1 };
	rivals = (struct op_owner){ &other, "rival's", 1 };
	make_file("a", "text", 0666);
	make_file("b", "text", 0666);
}

/* Two clients have the file open, one has locked it, and the server restarts. */
static void begin(uint32_t deny)
{
	two_clients();
	cr_assert_eq(open_a(&owner, deny, OP_BY_NAME, &file), NFS4_OK);
	cr_assert_eq(op_open(f, &rival, &(struct op_how){ .fh = &f->root, .name = "b" }, &theirs),
		     NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
	come_back(&client, "client");
	come_back(&other, "other");
}

OP_MINORS_TEST(nfs4_reclaim, what_was_held_comes_back)
{
	begin(OPEN4_SHARE_DENY_WRITE);
	/* New opens and locks that could conflict with a reclaim must wait. */
	cr_expect_eq(open_a(&rival, 0, OP_BY_NAME, &theirs), NFS4ERR_GRACE);
	cr_expect_eq(op_lockt(f, &rivals, &file.fh, &ten, NULL), NFS4ERR_GRACE);
	cr_assert_eq(open_a(&owner, OPEN4_SHARE_DENY_WRITE, OP_RECLAIM, &file), NFS4_OK);
	cr_expect_not(file.rflags & OPEN4_RESULT_CONFIRM);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &reclaimed_ten, &lock, NULL),
		     NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &lock), NFS4_OK);
	cr_expect_eq(op_lock(f, &locker, &file.fh, &ten, &lock, NULL), NFS4ERR_GRACE);
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

OP_MINORS_TEST(nfs4_reclaim, what_another_has_reclaimed_is_not_given)
{
	struct nfs4_stateid sid;

	begin(0);
	cr_assert_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &reclaimed_ten, &lock, NULL),
		     NFS4_OK);
	cr_assert_eq(open_a(&rival, 0, OP_RECLAIM, &theirs), NFS4_OK);
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &reclaimed_ten, &sid, NULL),
		     NFS4ERR_RECLAIM_CONFLICT);
	/* The client's record says that it denied nothing before the restart. */
	cr_expect_eq(open_a(&rival, OPEN4_SHARE_DENY_READ, OP_RECLAIM, &theirs),
		     NFS4ERR_RECLAIM_BAD);
}

/* The owner of a file may reclaim an open whatever the file's mode has become. */
OP_MINORS_TEST(nfs4_reclaim, the_mode_of_the_file_may_have_changed)
{
	begin(0);
	cr_assert_eq(chown(fix_path(f, "a"), 1000, 1000), 0);
	cr_assert_eq(chmod(fix_path(f, "a"), 0400), 0);
	f->uid = f->gid = 1000;
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4_OK);
	f->uid = f->gid = 1001;
	cr_expect_eq(open_a(&rival, 0, OP_RECLAIM, &theirs), NFS4ERR_ACCESS);
}

OP_MINORS_TEST(nfs4_reclaim, strangers_reclaim_nothing)
{
	struct op_client stranger = { .minor = minor };
	struct op_owner nobody = { &stranger, "owner", 1 };

	begin(0);
	stranger.minor = minor;
	come_back(&stranger, "stranger");
	cr_expect_eq(open_a(&nobody, 0, OP_RECLAIM, &file), NFS4ERR_NO_GRACE);
}

/* Another host registers under the client's name. */
static uint32_t claim(const char *verifier)
{
	const struct scid_args sa = { .owner = "client", .verifier = verifier };
	const struct eid_args ea = { .owner = "client", .verifier = verifier };
	struct scid_result sr;
	struct eid_result er;

	return minor == 0 ? call_setclientid(f, &sa, &sr) : call_exchange_id(f, NULL, &ea, &er);
}

static void restart(void);

static void begin_strange(void)
{
	two_clients();
	cr_assert_eq(open_a(&owner, 0, OP_BY_NAME, &file), NFS4_OK);
	restart();
	owner.seqid = locker.seqid = 1;
}

/* The client's name alone does not allow another host to reclaim. */
OP_MINORS_TEST(nfs4_reclaim, a_stranger_does_not_come_before_the_client)
{
	begin_strange();
	fix_from(f, 2);
	cr_expect_eq(claim("stranger"), NFS4ERR_DELAY);
	fix_from(f, 1);
	f->uid = 1000;
	cr_expect_eq(claim("verifier"), NFS4ERR_DELAY);
	cr_expect_eq(claim("stranger"), NFS4ERR_DELAY);
	f->uid = 0;
	((struct sockaddr_in *)&f->conn.peer)->sin_port = htons(7000);
	cr_expect_eq(claim("stranger"), NFS4ERR_DELAY);
	fix_from(f, 1);
	come_back(&client, "client");
	/* A client of minor version 0 has no session that would protect its name. */
	fix_from(f, 2);
	cr_expect_eq(claim("stranger"), NFS4ERR_DELAY);
	fix_from(f, 1);
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4_OK);
}

/* A client with another address than before is recognized by its verifier. */
OP_MINORS_TEST(nfs4_reclaim, the_client_may_come_from_another_address)
{
	begin_strange();
	fix_from(f, 2);
	come_back(&client, "client");
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4_OK);
}

/* The verifier is a boot time, so the server limits the number of guesses. */
OP_MINORS_TEST(nfs4_reclaim, a_stranger_may_not_guess_the_verifier)
{
	char guess[NFS4_VERIFIER_SIZE + 1];

	begin_strange();
	fix_from(f, 2);
	for (unsigned i = 0; i < 64; i++) {
		snprintf(guess, sizeof(guess), "guess%03u", i);
		cr_expect_eq(claim(guess), NFS4ERR_DELAY);
	}
	cr_expect_eq(claim("verifier"), NFS4ERR_DELAY);
	fix_from(f, 1);
	come_back(&client, "client");
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4_OK);
}

/* A client that has rebooted has nothing to reclaim, and need not wait. */
OP_MINORS_TEST(nfs4_reclaim, a_client_that_booted_goes_on)
{
	begin_strange();
	cr_expect_eq(claim("rebooted"), NFS4_OK);
}

/* RFC 7530 section 9.1.11: reclaims need no OPEN_CONFIRM. */
Test(nfs4_reclaim, a_reclaim_is_not_confirmed)
{
	const struct op_how reclaim = { .fh = &file.fh, .claim = OP_RECLAIM };

	NEED_FIXTURE();
	minor = 0;
	begin(0);
	cr_assert_eq(op_open_only(f, &owner, &reclaim, &theirs), NFS4_OK);
	cr_expect_eq(theirs.rflags & OPEN4_RESULT_CONFIRM, 0);
	cr_expect_eq(theirs.delegation, 0);
	cr_expect_eq(op_read(f, &client, &theirs.fh, &theirs.sid), NFS4_OK);
	/* The owner is confirmed by its reclaim. */
	cr_assert_eq(op_open_only(f, &owner,
				  &(struct op_how){ .fh = &f->root, .name = "b", .access = 1 },
				  &theirs),
		     NFS4_OK);
	cr_expect_eq(theirs.rflags & OPEN4_RESULT_CONFIRM, 0);
}

static void restart(void)
{
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
}

/* The client with the lock has been silent for longer than its lease when the server stops. */
static void begin_away(bool other_holds)
{
	two_clients();
	cr_assert_eq(open_a(&owner, 0, OP_BY_NAME, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	nfs4_clients_skip_time(f->server4, 120);
	if (other_holds)
		cr_assert_eq(op_open(f, &rival, &(struct op_how){ .fh = &f->root, .name = "b" },
				     &theirs),
			     NFS4_OK);
	restart();
	owner.seqid = locker.seqid = rival.seqid = rivals.seqid = 1;
}

/* Retries the lock while the server answers NFS4ERR_GRACE, as a client does. */
static uint32_t lock_when_grace_is_over(void)
{
	struct nfs4_stateid sid;
	uint32_t status = NFS4ERR_GRACE;

	for (int i = 0; i < 500 && status == NFS4ERR_GRACE; i++) {
		usleep(i == 0 ? 0 : 2000);
		status = op_lock_first(f, &rival, &rivals, &theirs, &ten, &sid, NULL);
	}
	return status;
}

static void lapse(void)
{
	nfs4_clients_skip_time(f->server4, 120);
}

/* Makes a new client, its open-owner and its lock-owner. */
static void newcomer(const char *name, struct op_client *c, struct op_owner *o, struct op_owner *l)
{
	cr_assert_eq(op_client_new(f, c, minor, name), NFS4_OK);
	*o = (struct op_owner){ c, "newcomer", 1 };
	*l = (struct op_owner){ c, "newcomer's", 1 };
}

/* The loss of the other client's state must be on disk first; the call waits for that. */
OP_MINORS_TEST(nfs4_reclaim, who_has_lapsed_is_in_nobodys_way)
{
	static const struct nfs4_stateid anonymous;
	struct op_client second, third;
	struct op_owner owners[2], lockers[2];
	struct op_file opened;
	struct nfs4_stateid sid;

	two_clients();
	cr_assert_eq(open_a(&owner, OPEN4_SHARE_DENY_BOTH, OP_BY_NAME, &file), NFS4_OK);
	lapse();
	cr_expect_eq(open_a(&rival, 0, OP_BY_NAME, &theirs), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4ERR_EXPIRED);

	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &lock, NULL), NFS4_OK);
	newcomer("second", &second, &owners[0], &lockers[0]);
	cr_assert_eq(open_a(&owners[0], 0, OP_BY_NAME, &opened), NFS4_OK);
	/* The owner has a sequence number, so a retry must not count twice. */
	cr_assert_eq(
		op_lock_first(f, &owners[0], &lockers[0], &opened,
			      &(struct op_range){ .type = WRITE_LT, .offset = 50, .length = 1 },
			      &sid, NULL),
		NFS4_OK);
	lapse();
	if (minor == 0)
		cr_expect_eq(op_lock_first(f, &owners[0], &lockers[0], &opened, &ten, &sid, NULL),
			     NFS4_OK);
	else
		cr_expect_eq(op_lock(f, &lockers[0], &opened.fh, &ten, &sid, NULL), NFS4_OK);
	cr_expect_eq(op_close(f, &owners[0], &opened), NFS4_OK);

	cr_assert_eq(open_a(&owners[0], OPEN4_SHARE_DENY_BOTH, OP_BY_NAME, &opened), NFS4_OK);
	newcomer("third", &third, &owners[1], &lockers[1]);
	lapse();
	cr_expect_eq(op_write(f, &third, &file.fh, &anonymous), NFS4_OK);
	cr_assert_eq(open_a(&owners[1], 0, OP_BY_NAME, &opened), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owners[1], &lockers[1], &opened, &ten, &sid, NULL), NFS4_OK);
	lapse();
	newcomer("fourth", &second, &owners[0], &lockers[0]);
	cr_expect_eq(op_lockt(f, &lockers[0], &file.fh, &ten, NULL), NFS4_OK);
}

static struct rpc_client waiting_client;

/* NFSv3's call waits, too: "come again" would take its client five seconds. */
OP_MINORS_TEST(nfs4_reclaim, who_has_lapsed_is_not_in_the_way_of_nfs3)
{
	struct xdr_out *c;
	struct xdr_in *r;

	two_clients();
	cr_assert_eq(open_a(&owner, OPEN4_SHARE_DENY_BOTH, OP_BY_NAME, &file), NFS4_OK);
	lapse();
	f->conn.client = &waiting_client;
	c = fix_call(f, NFS_PROGRAM, 3, NFSPROC3_READ);
	fix_put_fh(c, &file.fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 10);
	r = fix_send(f);
	cr_assert_eq(f->accept_stat, RPC_SUCCESS);
	cr_expect_eq(xdr_get_u32(r), NFS3_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4ERR_EXPIRED);
}

/* The silent client's state could have been given away before the restart, so grace does not wait
 * for it. */
OP_MINORS_TEST(nfs4_reclaim, nobody_waits_for_who_was_away)
{
	begin_away(false);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	cr_assert_eq(open_a(&rival, 0, OP_BY_NAME, &theirs), NFS4_OK);
	nfs4_tick(f->server4);
	cr_expect(nfs4_reclaiming(f->server4));
	cr_expect_eq(lock_when_grace_is_over(), NFS4_OK);
	cr_expect_not(nfs4_reclaiming(f->server4));
	come_back(&client, "client");
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4ERR_NO_GRACE);
}

/* The silent client may still reclaim until another client needs its state; then grace waits for
 * it. */
OP_MINORS_TEST(nfs4_reclaim, who_was_away_may_come_back)
{
	struct nfs4_stateid sid;

	begin_away(minor == 1);
	come_back(&client, "client");
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	cr_assert_eq(open_a(&rival, 0, OP_BY_NAME, &theirs), NFS4_OK);
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &sid, NULL), NFS4ERR_GRACE);
	cr_assert_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &reclaimed_ten, &lock, NULL),
		     NFS4_OK);
}

/* Memory of a courtesy client is freed when its record is removed, not when the client would be
 * forgotten. */
OP_MINORS_TEST(nfs4_reclaim, memory_comes_back_with_the_record)
{
	struct nfs4_held held = { .opens = 1 };
	struct nfs4_client *cl;

	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	make_file("a", "text", 0666);
	cr_assert_eq(open_a(&owner, 0, OP_BY_NAME, &file), NFS4_OK);
	nfs4_clients_skip_time(f->server4, 120);
	nfs4_tick(f->server4);
	cl = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
	cr_expect_not(
		nfs4_clients_take(f->server4->clients, cl->host, f->budget.max, NFS4_TO_HOLD));
	nfs4_client_put(cl);
	for (int i = 0; i < 500 && held.opens > 0; i++) {
		usleep(2000);
		nfs4_tick(f->server4);
		nfs4_held(f->server4, &held);
	}
	cr_expect_eq(held.opens, 0);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4ERR_EXPIRED);
}

/* Clients that have "a" open and ten bytes of it locked to read, and whose leases run out. */
#define DEAD 40u

static void leave_dead_clients(uint32_t deny)
{
	const struct op_range read_ten = { .type = 1, .length = 10 };
	const struct op_how how = {
		.fh = &f->root, .name = "a", .access = OPEN4_SHARE_ACCESS_READ, .deny = deny
	};
	char name[16];

	make_file("a", "text", 0666);
	for (unsigned i = 0; i < DEAD; i++) {
		snprintf(name, sizeof(name), "dead %u", i);
		cr_assert_eq(op_client_new(f, &client, minor, name), NFS4_OK);
		owner = (struct op_owner){ &client, "owner", 1 };
		locker = (struct op_owner){ &client, "locker", 1 };
		cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
		cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &read_ten, &lock, NULL),
			     NFS4_OK);
	}
	nfs4_clients_skip_time(f->server4, 120);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	rival = (struct op_owner){ &other, "rival", 1 };
	rivals = (struct op_owner){ &other, "rival's", 1 };
}

static void expect_dead_clients_have_ended(void)
{
	struct nfs4_held held;

	nfs4_held(f->server4, &held);
	cr_expect_eq(held.locks, 0, "%lu", (unsigned long)held.locks);
}

OP_MINORS_TEST(nfs4_reclaim, an_open_ends_all_dead_clients_in_its_way)
{
	leave_dead_clients(0);
	cr_expect_eq(open_a(&rival, OPEN4_SHARE_DENY_BOTH, OP_BY_NAME, &theirs), NFS4_OK);
	expect_dead_clients_have_ended();
}

OP_MINORS_TEST(nfs4_reclaim, a_lock_ends_all_dead_clients_in_its_way)
{
	struct nfs4_held held;

	leave_dead_clients(0);
	cr_assert_eq(open_a(&rival, 0, OP_BY_NAME, &theirs), NFS4_OK);
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &lock, NULL), NFS4_OK);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.locks, 1);
}

OP_MINORS_TEST(nfs4_reclaim, a_test_ends_all_dead_clients_in_its_way)
{
	leave_dead_clients(0);
	cr_assert_eq(open_a(&rival, 0, OP_BY_NAME, &theirs), NFS4_OK);
	cr_expect_eq(op_lockt(f, &rivals, &theirs.fh, &ten, NULL), NFS4_OK);
	expect_dead_clients_have_ended();
}

OP_MINORS_TEST(nfs4_reclaim, data_end_all_dead_clients_in_their_way)
{
	static const struct nfs4_stateid anonymous;

	leave_dead_clients(OPEN4_SHARE_DENY_WRITE);
	cr_expect_eq(op_write(f, &other, &file.fh, &anonymous), NFS4_OK);
	expect_dead_clients_have_ended();
}

/* One that lives is in the way, too: the call is refused. */
OP_MINORS_TEST(nfs4_reclaim, dead_clients_hide_no_other)
{
	struct op_client third;
	struct op_owner lives = { &third, "lives", 1 };

	leave_dead_clients(0);
	cr_assert_eq(op_client_new(f, &third, minor, "third"), NFS4_OK);
	cr_assert_eq(open_a(&lives, 0, OP_BY_NAME, &file), NFS4_OK);
	cr_expect_eq(open_a(&rival, OPEN4_SHARE_DENY_BOTH, OP_BY_NAME, &theirs),
		     NFS4ERR_SHARE_DENIED);
	cr_expect_eq(op_write(f, &third, &file.fh, &file.sid), NFS4_OK);
}

/*
 * Until a client whose open denied access has reclaimed, READ and WRITE without an open must wait.
 */
OP_MINORS_TEST(nfs4_reclaim, data_waits_for_who_has_denied)
{
	static const struct nfs4_stateid anonymous;
	static const struct {
		uint32_t op, stateids, words,
			four; /* index of the word that is 4; all others are 0 */
	} later[] = { { OP_ALLOCATE, 1, 4, 3 },	 { OP_DEALLOCATE, 1, 4, 3 }, { OP_SEEK, 1, 3, 3 },
		      { OP_IO_ADVISE, 1, 5, 3 }, { OP_COPY, 2, 9, 3 },	     { OP_CLONE, 2, 6, 3 },
		      { OP_READ_PLUS, 1, 3, 2 }, { OP_WRITE_SAME, 1, 13, 4 } };
	static const char here[] = "127.0.0.1.8.1";

	begin(OPEN4_SHARE_DENY_WRITE);
	cr_expect_eq(op_read(f, &other, &file.fh, &anonymous), NFS4ERR_GRACE);
	cr_expect_eq(op_write(f, &other, &file.fh, &anonymous), NFS4ERR_GRACE);
	op_begin(f, &other);
	fix4_putfh(f, &file.fh);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_SIZE);
	xdr_put_u32(&f->out, 8);
	xdr_put_u64(&f->out, 0);
	cr_expect_eq(fix4_send(f), NFS4ERR_GRACE);
	for (unsigned i = 0; minor == 2 && i < rn_array_size(later); i++) {
		op_begin(f, &other);
		fix4_putfh(f, &file.fh);
		fix4_op(f, OP_SAVEFH);
		fix4_op(f, later[i].op);
		for (uint32_t n = 0; n < later[i].stateids; n++)
			fix4_stateid(f, &anonymous);
		for (uint32_t n = 0; n < later[i].words; n++)
			xdr_put_u32(&f->out, n == later[i].four ? 4 : 0);
		cr_expect_eq(fix4_send(f), NFS4ERR_GRACE, "%s", nfs4_op_text(later[i].op));
	}
	if (minor < 2)
		return;
	op_begin(f, &other);
	fix4_putfh(f, &file.fh);
	fix4_op(f, OP_COPY_NOTIFY);
	fix4_stateid(f, &anonymous);
	xdr_put_u32(&f->out, 3); /* NL4_NETADDR */
	xdr_put_opaque(&f->out, "tcp", 3);
	xdr_put_opaque(&f->out, here, sizeof(here) - 1);
	cr_expect_eq(fix4_send(f), NFS4ERR_GRACE);
}

/* Both clients reclaim opens that conflict. The second one must fail. */
OP_MINORS_TEST(nfs4_reclaim, opens_that_deny_each_other)
{
	begin(OPEN4_SHARE_DENY_WRITE);
	cr_assert_eq(open_a(&owner, OPEN4_SHARE_DENY_WRITE, OP_RECLAIM, &file), NFS4_OK);
	cr_expect_eq(open_a(&rival, 0, OP_RECLAIM, &theirs), NFS4ERR_RECLAIM_CONFLICT);
}

/* SEQUENCE sets the flag until the client sends RECLAIM_COMPLETE (RFC 8881 section 18.46.3). */
Test(nfs4_reclaim, sequence_says_that_there_is_something_to_reclaim)
{
	struct fix4_session *s = &client.session;

	NEED_FIXTURE();
	minor = 1;
	begin(0);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(call_sequence(f, s), NFS4_OK);
		cr_expect_eq(s->status_flags, SEQ4_STATUS_RESTART_RECLAIM_NEEDED);
	}
	cr_expect_eq(call_reclaim_complete(f, s, false), NFS4_OK);
	cr_expect_eq(call_sequence(f, s), NFS4_OK);
	cr_expect_eq(s->status_flags, 0);
}

/* A client that the administrator has removed cannot reclaim. */
OP_MINORS_TEST(nfs4_reclaim, what_was_forgotten_is_not_reclaimed)
{
	int rc = -RN_ESOON;

	begin(0);
	for (unsigned i = 0; i < 5000 && rc == -RN_ESOON; i++) {
		rc = nfs4_forget_client(f->server4, client.clientid);
		usleep(1000);
	}
	cr_expect_eq(rc, 0);
	come_back(&client, "client");
	owner.seqid = 1;
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4ERR_NO_GRACE);
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
	come_back(&client, "client");
	owner.seqid = 1;
	cr_expect_eq(open_a(&owner, 0, OP_RECLAIM, &file), NFS4ERR_NO_GRACE);
}
