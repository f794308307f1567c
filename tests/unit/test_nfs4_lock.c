/* SPDX-License-Identifier: BSD-2-Clause */
/* LOCK, LOCKT, LOCKU, FREE_STATEID, TEST_STATEID and RELEASE_LOCKOWNER in each minor version. */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_lock);

#define READ OPEN4_SHARE_ACCESS_READ
#define WRITE OPEN4_SHARE_ACCESS_WRITE
#define BOTH OPEN4_SHARE_ACCESS_BOTH
#define READ_LT 1
#define WRITE_LT 2
#define READW_LT 3
#define WRITEW_LT 4

static struct op_client client, other;
static struct op_owner owner, rival;		/* open-owners */
static struct op_owner locker, locker2, rivals; /* lock-owners of client, client and other */
static struct op_file file, theirs;
static uint32_t minor;

static void begin(void)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = BOTH };

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
}

static uint32_t first(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length,
		      struct nfs4_stateid *sid, struct op_denied *d)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };
	bool ours = o->client == &client;

	return op_lock_first(f, ours ? &owner : &rival, o, ours ? &file : &theirs, &r, sid, d);
}

static uint32_t lock(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length,
		     struct nfs4_stateid *sid)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };

	return op_lock(f, o, &file.fh, &r, sid, NULL);
}

static uint32_t unlock(struct op_owner *o, uint64_t offset, uint64_t length,
		       struct nfs4_stateid *sid)
{
	const struct op_range r = { .type = WRITE_LT, .offset = offset, .length = length };

	return op_unlock(f, o, &file.fh, &r, sid);
}

static uint32_t lockt(struct op_owner *o, uint32_t type, uint64_t offset, uint64_t length,
		      struct op_denied *d)
{
	const struct op_range r = { .type = type, .offset = offset, .length = length };

	return op_lockt(f, o, &file.fh, &r, d);
}

OP_MINORS_TEST(nfs4_lock, ranges_are_locked_tested_and_unlocked)
{
	struct nfs4_stateid sid, rsid;
	struct op_denied d;

	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 10, 10, &sid, &d), NFS4_OK);
	cr_expect_eq(sid.seqid, 1);
	cr_expect_eq(lockt(&rivals, READ_LT, 0, UINT64_MAX, &d), NFS4ERR_DENIED);
	cr_expect_eq(d.offset, 10);
	cr_expect_eq(d.length, 10);
	cr_expect_eq(d.type, WRITE_LT);
	cr_expect_eq(d.clientid, client.clientid);
	cr_expect_str_eq(d.owner, "locker");
	cr_expect_eq(lockt(&locker, WRITE_LT, 0, UINT64_MAX, &d), NFS4_OK);
	cr_expect_eq(lockt(&locker2, WRITE_LT, 0, UINT64_MAX, &d), NFS4ERR_DENIED);
	cr_expect_eq(lockt(&rivals, WRITE_LT, 20, 1, &d), NFS4_OK);
	cr_expect_eq(first(&rivals, READ_LT, 15, 1, &rsid, &d), NFS4ERR_DENIED);
	cr_expect_eq(d.clientid, client.clientid);
	/* Splits, downgrades and merges ranges. */
	cr_expect_eq(unlock(&locker, 14, 2, &sid), NFS4_OK);
	cr_expect_eq(sid.seqid, 2);
	cr_assert_eq(first(&rivals, READ_LT, 14, 2, &rsid, &d), NFS4_OK);
	cr_expect_eq(lock(&locker, WRITE_LT, 10, 10, &sid), NFS4ERR_DENIED);
	cr_expect_eq(lock(&locker, READ_LT, 10, 10, &sid), NFS4_OK);
	cr_expect_eq(lockt(&rivals, READ_LT, 0, UINT64_MAX, &d), NFS4_OK);
	cr_expect_eq(lockt(&rivals, WRITE_LT, 0, UINT64_MAX, &d), NFS4ERR_DENIED);
	cr_expect_eq(d.offset, 10);
	cr_expect_eq(d.length, 10);
	cr_expect_eq(unlock(&locker, 0, UINT64_MAX, &sid), NFS4_OK);
	cr_expect_eq(lockt(&rivals, WRITE_LT, 0, UINT64_MAX, &d), NFS4_OK);
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4_OK);
}

OP_MINORS_TEST(nfs4_lock, ranges_must_make_sense)
{
	static const struct {
		uint64_t offset, length;
		uint32_t status;
	} cases[] = {
		{ 0, 0, NFS4ERR_INVAL },
		{ 1, UINT64_MAX - 1, NFS4_OK },
		{ 2, UINT64_MAX - 1, NFS4ERR_INVAL },
		{ UINT64_MAX, 1, NFS4ERR_INVAL },
		{ UINT64_MAX, 2, NFS4ERR_INVAL },
		{ UINT64_MAX, UINT64_MAX, NFS4_OK },
	};
	struct nfs4_stateid sid;

	begin();
	cr_assert_eq(first(&locker, READ_LT, 0, 1, &sid, NULL), NFS4_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect_eq(lock(&locker, READ_LT, cases[i].offset, cases[i].length, &sid),
			     cases[i].status, "LOCK %zu", i);
		cr_expect_eq(lockt(&locker, READ_LT, cases[i].offset, cases[i].length, NULL),
			     cases[i].status, "LOCKT %zu", i);
		cr_expect_eq(unlock(&locker, cases[i].offset, cases[i].length, &sid),
			     cases[i].status, "LOCKU %zu", i);
	}
	cr_expect_eq(lock(&locker, 0, 0, 1, &sid), NFS4ERR_BADXDR);
	cr_expect_eq(lock(&locker, 5, 0, 1, &sid), NFS4ERR_BADXDR);
}

OP_MINORS_TEST(nfs4_lock, an_open_allows_what_it_is_for)
{
	const struct op_how how = { .fh = &f->root, .name = "b", .access = READ };
	const struct op_range r = { .type = READ_LT, .length = 1 },
			      w = { .type = WRITE_LT, .length = 1 };
	struct nfs4_stateid sid;
	struct op_file b;

	begin();
	make_file("b", "", 0666);
	cr_assert_eq(op_open(f, &owner, &how, &b), NFS4_OK);
	cr_expect_eq(op_lock_first(f, &owner, &locker, &b, &w, &sid, NULL), NFS4ERR_OPENMODE);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &b, &r, &sid, NULL), NFS4_OK);
	cr_expect_eq(op_lock(f, &locker, &b.fh, &w, &sid, NULL), NFS4ERR_OPENMODE);
	/* The open's stateid is not valid for a lock, nor a lock's for an open. */
	cr_expect_eq(op_lock(f, &locker, &b.fh, &r, &b.sid, NULL), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_unlock(f, &locker, &b.fh, &r, &b.sid), NFS4ERR_BAD_STATEID);
	b.sid = sid;
	cr_expect_eq(op_close(f, &owner, &b), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_lock_first(f, &owner, &locker2, &b, &r, &sid, NULL), NFS4ERR_BAD_STATEID);
}

OP_MINORS_TEST(nfs4_lock, only_files_can_be_tested)
{
	static const struct {
		const char *name;
		uint32_t status0, status;
	} cases[] = {
		{ "dir", NFS4ERR_ISDIR, NFS4ERR_ISDIR },
		{ "link", NFS4ERR_INVAL, NFS4ERR_SYMLINK },
		{ "fifo", NFS4ERR_INVAL, NFS4ERR_WRONG_TYPE },
	};
	const struct op_range r = { .type = READ_LT, .length = 1 };

	begin();
	mkdir(fix_path(f, "dir"), 0755);
	cr_assert_eq(symlink("dir", fix_path(f, "link")), 0);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0644), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vfs_fh fh = handle(cases[i].name);

		cr_expect_eq(op_lockt(f, &locker, &fh, &r, NULL),
			     minor == 0 ? cases[i].status0 : cases[i].status, "%s", cases[i].name);
	}
}

OP_MINORS_TEST(nfs4_lock, close_takes_the_locks_along)
{
	struct nfs4_stateid sid;
	struct op_denied d;

	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
	cr_expect_eq(lockt(&rivals, READ_LT, 0, 10, &d), NFS4ERR_DENIED);
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	cr_expect_eq(lockt(&rivals, READ_LT, 0, 10, &d), NFS4_OK);
	cr_expect_eq(lock(&locker, WRITE_LT, 0, 10, &sid), NFS4ERR_BAD_STATEID);
}

OP_MINORS_TEST(nfs4_lock, local_processes_have_locks_too)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = 5, .l_len = 5 };
	struct nfs4_stateid sid;
	struct op_denied d;
	int fd;

	begin();
	fd = open(fix_path(f, "a"), O_RDWR);
	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	cr_expect_eq(first(&locker, READ_LT, 0, 10, &sid, &d), NFS4ERR_DENIED);
	cr_expect_eq(d.clientid, 0);
	cr_expect_eq(d.owner_len, 0);
	close(fd);
	cr_expect_eq(first(&locker, READ_LT, 0, 10, &sid, &d), NFS4_OK);
}

OP_MINORS_TEST(nfs4_lock, reclaims_need_the_grace_period)
{
	const struct op_range r = { .type = READ_LT, .length = 1, .reclaim = true };
	struct nfs4_stateid sid;

	begin();
	cr_expect_eq(op_lock_first(f, &owner, &locker, &file, &r, &sid, NULL), NFS4ERR_NO_GRACE);
}

OP_MINORS_TEST(nfs4_lock, who_waits_gets_it_in_turn)
{
	struct nfs4_stateid sid, rsid;

	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(first(&rivals, WRITEW_LT, 0, 10, &rsid, NULL), NFS4ERR_DENIED);
	cr_expect_eq(unlock(&locker, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(first(&rivals, WRITEW_LT, 0, 10, &rsid, NULL), NFS4_OK);
	cr_expect_eq(lock(&locker, READW_LT, 0, 10, &sid), NFS4ERR_DENIED);
}

static void with_sessions(void)
{
	struct nfs4_stateid sid, wrong;
	static const struct nfs4_stateid anonymous, current = { .seqid = 1 };

	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &client, &sid), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &client, &file.sid), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &other, &sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_test_stateid(f, &client, &anonymous), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_test_stateid(f, &client, &current), NFS4ERR_BAD_STATEID);
	wrong = sid;
	wrong.seqid = 9;
	cr_expect_eq(op_test_stateid(f, &client, &wrong), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4ERR_LOCKS_HELD);
	cr_expect_eq(op_free_stateid(f, &client, &file.sid), NFS4ERR_LOCKS_HELD);
	cr_expect_eq(op_free_stateid(f, &client, &anonymous), NFS4ERR_BAD_STATEID);
	wrong = sid;
	cr_assert_eq(unlock(&locker, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &client, &wrong), NFS4ERR_OLD_STATEID);
	cr_expect_eq(op_free_stateid(f, &client, &wrong), NFS4ERR_OLD_STATEID);
	cr_expect_eq(op_free_stateid(f, &client, &sid), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &client, &sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(lock(&locker, READ_LT, 0, 1, &sid), NFS4ERR_BAD_STATEID);
	/* The client may use the open's stateid again instead of its lock stateid. */
	cr_expect_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
	cr_expect_eq(first(&locker, WRITE_LT, 20, 10, &sid, NULL), NFS4_OK);
	cr_expect_eq(sid.seqid, 2);
}

Test(nfs4_lock, stateids_are_tested_and_freed_v41)
{
	NEED_FIXTURE();
	minor = 1;
	with_sessions();
}

Test(nfs4_lock, stateids_are_tested_and_freed_v42)
{
	NEED_FIXTURE();
	minor = 2;
	with_sessions();
}

Test(nfs4_lock, an_owner_is_released)
{
	struct nfs4_stateid sid;
	struct op_owner stranger = { &client, "stranger", 1 }, stale;
	struct op_client nobody = { .clientid = 12345 };

	NEED_FIXTURE();
	minor = 0;
	begin();
	stale = (struct op_owner){ &nobody, "locker", 1 };
	cr_expect_eq(op_release_lockowner(f, &stranger), NFS4_OK);
	cr_expect_eq(op_release_lockowner(f, &stale), NFS4ERR_STALE_CLIENTID);
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
	cr_expect_eq(op_release_lockowner(f, &locker), NFS4ERR_LOCKS_HELD);
	cr_assert_eq(unlock(&locker, 0, 10, &sid), NFS4_OK);
	cr_expect_eq(op_release_lockowner(f, &locker), NFS4_OK);
	cr_expect_eq(lock(&locker, WRITE_LT, 0, 10, &sid), NFS4ERR_BAD_STATEID);
	locker.seqid = 77; /* the server takes the owner as new */
	cr_expect_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
}

/* A client that has lost its lock stateids may declare the lock-owner new. */
Test(nfs4_lock, minor_version_0_takes_an_owner_as_new_again)
{
	struct nfs4_stateid sid, again;

	NEED_FIXTURE();
	minor = 0;
	begin();
	cr_assert_eq(first(&locker, WRITE_LT, 0, 10, &sid, NULL), NFS4_OK);
	cr_expect_eq(first(&locker, WRITE_LT, 20, 10, &again, NULL), NFS4_OK);
	cr_expect_arr_eq(again.other, sid.other, sizeof(sid.other));
	cr_expect_eq(again.seqid, sid.seqid + 1);
	/* A wrong sequence number is refused, and neither owner's sequence advances. */
	locker.seqid += 5;
	cr_expect_eq(first(&locker, WRITE_LT, 40, 10, &sid, NULL), NFS4ERR_BAD_SEQID);
	locker.seqid -= 6;
	cr_expect_eq(first(&locker, WRITE_LT, 40, 10, &sid, NULL), NFS4ERR_BAD_SEQID);
	locker.seqid++;
	cr_expect_eq(lock(&locker, WRITE_LT, 40, 10, &again), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}
