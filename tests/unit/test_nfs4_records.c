/* SPDX-License-Identifier: BSD-2-Clause */
/* Contents of the client database after crashes, damage and failures, and the calls that wait for
 * it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nfs4/recovery/db_private.h"
#include "tests/unit/recovery_fixture.h"

TestSuite(records, .init = rec_start, .fini = rec_stop);

static bool exists(const char *suffix)
{
	char path[160];

	snprintf(path, sizeof(path), "%s%s", db_path, suffix);
	return access(path, F_OK) == 0;
}

Test(records, the_file_is_roots_alone)
{
	struct stat st;

	umask(0);
	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	cr_assert_eq(stat(db_path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(records, a_second_time_nobody_waits)
{
	struct rec_client *a = rec_client("a", 1, true);

	rec_record(a, NFS4_RECORD_STATE);
	a->went_on = false;
	rec_begin(a, NFS4_RECORD_STATE);
	cr_expect(a->went_on);
	rec_record(a, NFS4_RECORD_STATE | NFS4_RECORD_DENY);
}

Test(records, without_a_state_directory_nobody_waits)
{
	struct rec_client *a;

	rec_down();
	srv.cfg.state_dir = NULL;
	rec_up();
	a = rec_client("a", 1, true);
	rec_begin(a, NFS4_RECORD_STATE);
	cr_expect(a->went_on && a->status == NFS4_OK);
	cr_expect(nfs4_record_revoke(&srv, &a->rec));
	nfs4_record_forget(&srv, &a->rec);
	cr_expect_eq(nfs4_reclaim_done(&srv, &a->rec), NFS4_OK);
	cr_expect_not(nfs4_in_grace(&srv));
	nfs4_record_fini(&srv, &a->rec);
}

Test(records, two_operations_of_one_client_wait_for_one_record)
{
	struct rec_client *a = rec_client("a", 1, true), *other = rec_client("x", 1, true);

	rec_begin(a, NFS4_RECORD_STATE);
	rec_begin(other, NFS4_RECORD_STATE);
	rec_wait(a);
	rec_wait(other);
	cr_expect(nfs4_record_has(&a->rec, NFS4_RECORD_STATE));
}

Test(records, more_than_was_asked_first_is_written_too)
{
	struct rec_client *a = rec_client("a", 1, true);

	rec_begin(a, NFS4_RECORD_STATE);
	rec_wait(a);
	rec_begin(a, NFS4_RECORD_DENY);
	nfs4_record_forget(&srv, &a->rec);
	rec_wait(a);
	/* The deletion was queued later, so the client counts as having no record. */
	cr_expect_not(nfs4_record_has(&a->rec, NFS4_RECORD_STATE));
	rec_record(a, NFS4_RECORD_STATE);
	rec_down();
	rec_up();
	a = rec_client("a", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, true), NFS4ERR_RECLAIM_BAD);
}

Test(records, thousands_at_once)
{
	enum { N = 3000 };
	struct rec_client **cl = calloc(N, sizeof(*cl));
	char id[32];

	for (unsigned i = 0; i < N; i++) {
		snprintf(id, sizeof(id), "client %u", i);
		cl[i] = rec_client(id, (uint8_t)i, i % 2);
		rec_begin(cl[i], NFS4_RECORD_STATE);
	}
	for (unsigned i = 0; i < N; i++) {
		rec_wait(cl[i]);
		cr_assert(nfs4_record_has(&cl[i]->rec, NFS4_RECORD_STATE));
	}
	rec_down();
	rec_up();
	cr_assert_eq(srv.recovery->grace.left, N);
	for (unsigned i = 0; i < N; i++) {
		struct rec_client *again = rec_client(cl[i]->id, (uint8_t)i, i % 2);

		cr_assert_eq(nfs4_may_reclaim(&srv, &again->rec, false), NFS4_OK);
		nfs4_record_forget(&srv, &again->rec);
	}
	cr_expect(rec_grace_ends());
	free(cl);
}

/* Owner strings of any bytes, of length zero to the longest. */
Test(records, owner_strings_of_any_bytes_and_length)
{
	static uint8_t bytes[NFS4_OPAQUE_LIMIT];
	static const uint32_t lens[] = { 0, 1, 2, 255, NFS4_OPAQUE_LIMIT };
	struct rec_client *cl[10];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 10; i++) {
			uint8_t v[NFS4_VERIFIER_SIZE] = { (uint8_t)i };

			cl[i] = rec_client("", 1, false);
			nfs4_record_fini(&srv, &cl[i]->rec);
			nfs4_record_init(&cl[i]->rec, bytes, lens[i / 2], v, i % 2);
			nfs4_record_confirmed(&srv, &cl[i]->rec);
			cr_expect_eq(nfs4_may_reclaim(&srv, &cl[i]->rec, false),
				     round ? NFS4_OK : NFS4ERR_NO_GRACE);
			if (!round)
				rec_record(cl[i], NFS4_RECORD_STATE);
		}
		rec_down();
		rec_up();
	}
}

Test(records, of_a_client_without_state_are_forgotten)
{
	struct rec_client *a = rec_client("a", 1, true);
	unsigned mark;

	cr_expect_not(nfs4_record_is_quiet(&a->rec, &mark), "there is none");
	nfs4_record_begin(&a->rec);
	rec_record(a, NFS4_RECORD_STATE);
	cr_expect_not(nfs4_record_is_quiet(&a->rec, &mark), "an OPEN is under way");
	nfs4_record_end(&a->rec);
	cr_expect(nfs4_record_is_quiet(&a->rec, &mark));
	nfs4_record_begin(&a->rec);
	nfs4_record_end(&a->rec);
	nfs4_record_retire(&srv, &a->rec, mark);
	cr_expect(nfs4_record_has(&a->rec, NFS4_RECORD_STATE), "one came in between");
	cr_expect(nfs4_record_is_quiet(&a->rec, &mark));
	nfs4_record_retire(&srv, &a->rec, mark);
	cr_expect_not(nfs4_record_has(&a->rec, NFS4_RECORD_STATE));
	rec_down();
	rec_up();
	cr_expect_not(nfs4_in_grace(&srv));
	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	rec_down();
	rec_up();
	a = rec_client("a", 1, true);
	rec_record(a, NFS4_RECORD_STATE);
	cr_expect(nfs4_record_is_quiet(&a->rec, &mark));
	nfs4_record_retire(&srv, &a->rec, mark);
	cr_expect(nfs4_record_has(&a->rec, NFS4_RECORD_STATE), "in grace it may be yet to reclaim");
}

struct opener {
	struct rec_client *cl;
	_Atomic bool has_state, stop;
};

static void *retire_always(void *arg)
{
	struct opener *o = arg;
	unsigned mark;

	while (!o->stop) {
		if (nfs4_record_is_quiet(&o->cl->rec, &mark) && !o->has_state)
			nfs4_record_retire(&srv, &o->cl->rec, mark);
	}
	return NULL;
}

static void open_once(struct opener *o)
{
	nfs4_record_begin(&o->cl->rec);
	rec_begin(o->cl, NFS4_RECORD_STATE);
	rec_wait(o->cl);
	o->has_state = true;
	nfs4_record_end(&o->cl->rec);
}

/* In every order of the two calls, a client with state must have a record. */
Test(records, a_client_that_opens_and_one_that_forgets_it)
{
	for (unsigned round = 0; round < 60; round++) {
		struct opener o = { .cl = rec_client("a", 1, false) };
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, retire_always, &o), 0);
		for (unsigned i = 0; i < round % 4; i++) {
			open_once(&o);
			o.has_state = false;
		}
		open_once(&o);
		o.stop = true;
		pthread_join(thread, NULL);
		rec_down();
		rec_up();
		o.cl = rec_client("a", 1, false);
		cr_assert_eq(nfs4_may_reclaim(&srv, &o.cl->rec, false), NFS4_OK, "round %u", round);
		nfs4_record_forget(&srv, &o.cl->rec);
		cr_assert(rec_grace_ends());
	}
}

/* Runs in a child process: records clients one after the other, and reports which are on disk. */
static void record_until_killed(int fd)
{
	char id[32];

	for (uint32_t i = 0;; i++) {
		struct rec_client *cl;

		snprintf(id, sizeof(id), "client %u", i);
		cl = rec_client(id, 1, true);
		rec_begin(cl, NFS4_RECORD_STATE);
		rec_wait(cl);
		if (!nfs4_record_has(&cl->rec, NFS4_RECORD_STATE) ||
		    write(fd, &i, sizeof(i)) != sizeof(i))
			_exit(2);
	}
}

/* Kills the child some time after it has reported that many clients; returns the number that it
 * reported. */
static uint32_t run_and_kill(uint32_t at, unsigned usec)
{
	int fd[2], status;
	uint32_t n = 0, i;
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		rec_up();
		record_until_killed(fd[1]);
	}
	close(fd[1]);
	while (n < at && read(fd[0], &i, sizeof(i)) == sizeof(i))
		n = i + 1;
	usleep(usec);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_assert(WIFSIGNALED(status), "the child ended by itself: %x", status);
	while (read(fd[0], &i, sizeof(i)) == sizeof(i))
		n = i + 1;
	close(fd[0]);
	return n;
}

Test(records, kill_9_amid_commits_loses_none_that_was_said_to_be_there)
{
	uint32_t n;
	char id[32];

	rec_down();
	srandom(3);
	for (unsigned round = 0; round < 20; round++) {
		n = run_and_kill(1 + round, (unsigned)random() % 2000);
		rec_up();
		for (uint32_t i = 0; i < n; i++) {
			struct rec_client *cl;

			snprintf(id, sizeof(id), "client %u", i);
			cl = rec_client(id, 1, true);
			cr_assert_eq(nfs4_may_reclaim(&srv, &cl->rec, false), NFS4_OK, "%s of %u",
				     id, n);
		}
		cr_expect_not(exists(".damaged"));
		rec_down();
	}
	rec_up();
}

static void overwrite(off_t at, const void *bytes, size_t len)
{
	int fd = open(db_path, O_WRONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

/* The server must start without reclaims, and keep records again. */
static void expect_fresh(const char *what)
{
	rec_up();
	cr_expect(exists(".damaged"), "%s", what);
	cr_expect_not(nfs4_in_grace(&srv), "%s", what);
	rec_record(rec_client("b", 1, true), NFS4_RECORD_STATE);
	rec_down();
	rec_up();
	cr_expect(nfs4_in_grace(&srv), "%s", what);
	rec_down();
}

Test(records, a_damaged_database_is_put_aside)
{
	static const char junk[5000] = "no database at all";

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	rec_down();
	overwrite(0, junk, 100);
	expect_fresh("header");
	overwrite(4096, junk, sizeof(junk)); /* overwrites a page of a table */
	expect_fresh("page");
	cr_assert_eq(truncate(db_path, 5000), 0);
	expect_fresh("truncated");
	rec_up();
}

Test(records, damage_anywhere_does_not_keep_it_from_starting)
{
	srandom(5);
	for (unsigned round = 0; round < 60; round++) {
		const uint8_t byte = (uint8_t)random();
		struct stat st;

		rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
		rec_down();
		cr_assert_eq(stat(db_path, &st), 0);
		if (round % 4 == 3)
			cr_assert_eq(truncate(db_path, random() % (st.st_size + 1)), 0);
		else
			overwrite(random() % (round % 4 ? 100 : st.st_size), &byte, 1);
		rec_up();
		if (!srv.recovery->db) { /* the database claims to be of a later release */
			rec_down();
			unlink(db_path);
			rec_up();
		}
	}
}

Test(records, a_database_of_a_later_release_is_left_alone)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	cr_assert_eq(
		sqlite3_exec(srv.recovery->db->handle, "PRAGMA user_version=3", NULL, NULL, NULL),
		SQLITE_OK);
	rec_down();
	rec_up();
	cr_expect_not(nfs4_in_grace(&srv));
	a = rec_client("b", 1, true);
	rec_begin(a, NFS4_RECORD_STATE);
	cr_expect(a->went_on && a->status == NFS4_OK);
	cr_expect(exists("") && !exists(".damaged"));
}

/* Rows of the first version hold no address: name and verifier are enough to reclaim. */
Test(records, a_database_of_the_first_version_is_brought_up)
{
	static const char first[] =
		"PRAGMA application_id=1919837811;"
		"CREATE TABLE run(one INTEGER PRIMARY KEY CHECK(one=1), epoch INTEGER NOT NULL,"
		" lease INTEGER NOT NULL);"
		"INSERT INTO run VALUES(1,3,90);"
		"CREATE TABLE client(id BLOB NOT NULL, sessions INTEGER NOT NULL,"
		" verifier BLOB NOT NULL, bits INTEGER NOT NULL, epoch INTEGER NOT NULL,"
		" PRIMARY KEY(id,sessions)) WITHOUT ROWID;"
		"INSERT INTO client VALUES(x'61',1,x'0101010101010101',1,3);"
		"PRAGMA user_version=1;";
	struct rec_client *a;
	sqlite3 *old = NULL;

	rec_down();
	cr_assert_eq(unlink(db_path), 0);
	cr_assert_eq(sqlite3_open(db_path, &old), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(old, first, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(old);
	rec_up();
	cr_expect_not(exists(".damaged"));
	cr_expect(nfs4_in_grace(&srv));
	a = rec_client("a", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	rec_record(a, NFS4_RECORD_STATE);
	rec_down();
	rec_up();
	a = rec_client("a", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
}

Test(records, no_directory)
{
	rec_down();
	srv.cfg.state_dir = "/nowhere/at/all";
	rec_up();
	cr_expect_null(srv.recovery->db);
	cr_expect_not(nfs4_in_grace(&srv));
}

Test(records, failed_writes_are_told_and_hold_up_nobody)
{
	struct rec_client *a = rec_client("a", 1, true), *b = rec_client("b", 1, true);
	sqlite3 *handle = srv.recovery->db->handle;

	rec_record(a, NFS4_RECORD_STATE);
	sqlite3_exec(handle, "PRAGMA query_only=1", NULL, NULL, NULL);
	rec_begin(b, NFS4_RECORD_STATE);
	rec_wait(b);
	cr_expect_not(nfs4_record_has(&b->rec, NFS4_RECORD_STATE));
	sqlite3_exec(handle, "PRAGMA query_only=0", NULL, NULL, NULL);
	rec_record(b, NFS4_RECORD_STATE);
	cr_expect(exists(""));
}

/* An outdated record that cannot be changed must not allow a reclaim. */
Test(records, what_cannot_be_revoked_is_removed_with_all_the_others)
{
	struct rec_client *a = rec_client("a", 1, true), *b = rec_client("b", 1, true);

	rec_record(a, NFS4_RECORD_STATE);
	sqlite3_exec(srv.recovery->db->handle, "PRAGMA query_only=1", NULL, NULL, NULL);
	while (!nfs4_record_revoke(&srv, &a->rec))
		usleep(1000);
	cr_expect_not(exists("") || exists("-wal"));
	rec_begin(b, NFS4_RECORD_STATE);
	rec_wait(b);
	cr_expect(nfs4_record_has(&b->rec, NFS4_RECORD_STATE),
		  "a new database takes what comes later");
	cr_expect(nfs4_recovery_tick(&srv), "and wants what was there before");
	rec_down();
	rec_up();
	cr_expect(nfs4_in_grace(&srv));
	cr_expect_eq(nfs4_may_reclaim(&srv, &rec_client("b", 1, true)->rec, false), NFS4_OK);
	cr_expect_neq(nfs4_may_reclaim(&srv, &rec_client("a", 1, true)->rec, false), NFS4_OK);
}

/* Each client's record is written when that can be done again, without a further call of it. */
Test(records, what_failed_is_tried_again)
{
	struct rec_client *a = rec_client("a", 1, true), *gone = rec_client("gone", 1, true);
	sqlite3 *handle = srv.recovery->db->handle;

	/* The end of grace, which a start without clients queues, is written before: its failure
	 * would replace the database. */
	rec_record(rec_client("first", 1, true), NFS4_RECORD_STATE);
	sqlite3_exec(handle, "PRAGMA query_only=1", NULL, NULL, NULL);
	rec_begin(a, NFS4_RECORD_STATE);
	rec_wait(a);
	cr_expect_not(nfs4_record_has(&a->rec, NFS4_RECORD_STATE));
	rec_begin(gone, NFS4_RECORD_STATE);
	rec_wait(gone);
	cr_expect(nfs4_recovery_is_failing(&srv));
	cr_expect(nfs4_record_revoke(&srv, &gone->rec), "nothing of it is on disk");
	cr_expect(exists(""), "so no record is removed for it");
	sqlite3_exec(handle, "PRAGMA query_only=0", NULL, NULL, NULL);
	while (!nfs4_record_has(&a->rec, NFS4_RECORD_STATE))
		usleep(1000);
	cr_expect_not(nfs4_recovery_is_failing(&srv));
	cr_expect_not(nfs4_record_has(&gone->rec, NFS4_RECORD_STATE));
	rec_down();
	rec_up();
	cr_expect_eq(nfs4_may_reclaim(&srv, &rec_client("a", 1, true)->rec, false), NFS4_OK);
	cr_expect_neq(nfs4_may_reclaim(&srv, &rec_client("gone", 1, true)->rec, false), NFS4_OK);
}

Test(records, a_second_daemon_on_the_same_directory_goes_without)
{
	struct nfs4_server second = srv;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	cr_assert_eq(nfs4_recovery_new(&second), 0);
	cr_expect_null(second.recovery->db);
	nfs4_recovery_free(&second);
	cr_expect(exists("") && !exists(".damaged"));
}
