/* SPDX-License-Identifier: BSD-2-Clause */
/* OPEN, CLOSE and OPEN_DOWNGRADE in each minor version, and the stateids that they accept. */
#include <endian.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/open/opening.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_open);

#define READ OPEN4_SHARE_ACCESS_READ
#define WRITE OPEN4_SHARE_ACCESS_WRITE
#define BOTH OPEN4_SHARE_ACCESS_BOTH

static struct op_client client, other;
static struct op_owner owner, rival;
static uint32_t minor;

static void begin(void)
{
	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
}

static uint32_t open_as(struct op_owner *o, const char *name, uint32_t access, uint32_t deny,
			struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = name, .access = access, .deny = deny };

	return op_open(f, o, &how, out);
}

/* True if the file cannot be run, since somebody has it open to write. */
static bool is_text_busy(const char *name)
{
	const char *path = fix_path(f, name);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(path, path, NULL);
		_exit(errno == ETXTBSY ? 1 : 0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

OP_MINORS_TEST(nfs4_open, a_program_can_be_run_after_the_last_close)
{
	struct op_file file, theirs;

	begin();
	make_file("a", "text", 0755);
	cr_assert_eq(open_as(&owner, "a", BOTH, 0, &file), NFS4_OK);
	cr_assert_eq(open_as(&rival, "a", BOTH, 0, &theirs), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect(is_text_busy("a"));
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	cr_expect(is_text_busy("a"), "another has it open");
	cr_expect_eq(op_close(f, &rival, &theirs), NFS4_OK);
	cr_expect_not(is_text_busy("a"));
}

OP_MINORS_TEST(nfs4_open, a_file_is_opened_used_and_closed)
{
	/* OPEN_CONFIRM has advanced the sequence number. */
	const uint32_t first = minor == 0 ? 2 : 1;
	struct op_file file, again;

	begin();
	make_file("a", "text", 0644);
	cr_assert_eq(open_as(&owner, "a", BOTH, 0, &file), NFS4_OK);
	cr_expect_eq(file.sid.seqid, first);
	cr_expect_eq(file.rflags,
		     OPEN4_RESULT_LOCKTYPE_POSIX | (minor == 0 ? OPEN4_RESULT_CONFIRM : 0));
	cr_expect_eq(file.delegation, 0);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK);
	/* A second open by the same owner: the same stateid, with the next sequence number. */
	cr_assert_eq(open_as(&owner, "a", READ, 0, &again), NFS4_OK);
	cr_expect_eq(again.rflags, OPEN4_RESULT_LOCKTYPE_POSIX);
	cr_expect_eq(again.sid.seqid, first + 1);
	cr_expect_arr_eq(again.sid.other, file.sid.other, NFS4_OTHER_SIZE);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_OLD_STATEID);
	cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_OLD_STATEID);
	file = again;
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	if (minor > 0)
		cr_expect(nfs4_stateid_is_invalid(&file.sid));
	cr_expect_eq(op_read(f, &client, &again.fh, &again.sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_close(f, &owner, &again), NFS4ERR_BAD_STATEID);
}

OP_MINORS_TEST(nfs4_open, what_is_no_regular_file_cannot_be_opened)
{
	static const struct {
		const char *name;
		uint32_t status0, status;
	} cases[] = {
		{ "dir", NFS4ERR_ISDIR, NFS4ERR_ISDIR },
		{ "link", NFS4ERR_SYMLINK, NFS4ERR_SYMLINK },
		{ "fifo", NFS4ERR_SYMLINK, NFS4ERR_SYMLINK },
		{ "none", NFS4ERR_NOENT, NFS4ERR_NOENT },
		{ "", NFS4ERR_INVAL, NFS4ERR_INVAL },
		{ ".", NFS4ERR_BADNAME, NFS4ERR_BADNAME },
		{ "..", NFS4ERR_BADNAME, NFS4ERR_BADNAME },
		{ "a/b", NFS4ERR_BADCHAR, NFS4ERR_BADCHAR },
	};
	struct op_file file;

	begin();
	mkdir(fix_path(f, "dir"), 0755);
	cr_assert_eq(symlink("dir", fix_path(f, "link")), 0);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0644), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(open_as(&owner, cases[i].name, READ, 0, &file),
			     minor == 0 ? cases[i].status0 : cases[i].status, "%s", cases[i].name);
}

OP_MINORS_TEST(nfs4_open, the_current_filehandle_must_be_a_directory)
{
	struct op_file file;
	struct vfs_fh fh;

	begin();
	make_file("a", "", 0644);
	fh = handle("a");
	cr_expect_eq(op_open(f, &owner, &(struct op_how){ .fh = &fh, .name = "b" }, &file),
		     NFS4ERR_NOTDIR);
	/* The client resolves symbolic links itself, so OPEN must answer NFS4ERR_SYMLINK. */
	cr_assert_eq(symlink(".", fix_path(f, "link")), 0);
	fh = handle("link");
	cr_expect_eq(op_open(f, &owner, &(struct op_how){ .fh = &fh, .name = "a" }, &file),
		     NFS4ERR_SYMLINK);
}

OP_MINORS_TEST(nfs4_open, arguments_that_make_no_sense_are_refused)
{
	static const struct {
		uint32_t access, deny;
	} cases[] = { { 4, 0 },
		      { READ, 4 },
		      { 8 | READ, 0 },
		      { 0x600 | READ, 0 },
		      { 0x80000000 | READ, 0 } };
	const struct op_how reclaim = { .fh = &f->root,
					.create = OP_UNCHECKED,
					.claim = OP_RECLAIM };
	struct op_file file;

	begin();
	make_file("a", "", 0644);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(open_as(&owner, "a", cases[i].access, cases[i].deny, &file),
			     NFS4ERR_INVAL, "case %zu", i);
	cr_expect_eq(op_open(f, &owner, &reclaim, &file), NFS4ERR_INVAL);
}

OP_MINORS_TEST(nfs4_open, files_are_created)
{
	const struct op_how unchecked = { .fh = &f->root,
					  .name = "new",
					  .create = OP_UNCHECKED,
					  .set_mode = true,
					  .mode = 0640 };
	struct op_how how = unchecked;
	struct op_file file;
	struct stat st;

	begin();
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_expect_neq(file.before, file.after);
	cr_expect_eq(file.attrset[1], 1u << (FATTR4_MODE - 32));
	cr_assert_eq(stat(fix_path(f, "new"), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0640);
	/* The file exists: it is not created again, and its mode stays. */
	how.mode = 0600;
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_expect_eq(file.before, file.after);
	cr_expect_eq(file.attrset[1], 0);
	stat(fix_path(f, "new"), &st);
	cr_expect_eq(st.st_mode & 07777, 0640);
	how.create = OP_GUARDED;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_EXIST);
	how.name = "guarded";
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	mkdir(fix_path(f, "dir"), 0755);
	how.name = "dir";
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_EXIST);
	how.create = OP_UNCHECKED;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_ISDIR);
}

OP_MINORS_TEST(nfs4_open, a_file_that_exists_is_truncated)
{
	const struct op_how cut = {
		.fh = &f->root, .name = "a", .create = OP_UNCHECKED, .set_size = true
	};
	struct op_how how = cut;
	struct op_file file;
	struct stat st;

	begin();
	make_file("a", "text", 0644);
	/* An open that denies writing prevents the truncation. */
	cr_assert_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4_OK);
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_SHARE_DENIED);
	how.access = READ;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_SHARE_DENIED);
	stat(fix_path(f, "a"), &st);
	cr_expect_eq(st.st_size, 4);
	cr_assert_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4_OK);
	cr_expect_eq(op_close(f, &rival, &file), NFS4_OK);
	how.access = BOTH;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_expect_eq(file.attrset[0], 1u << FATTR4_SIZE);
	stat(fix_path(f, "a"), &st);
	cr_expect_eq(st.st_size, 0);
}

OP_MINORS_TEST(nfs4_open, exclusive_creates_are_recognised)
{
	struct op_how how = { .fh = &f->root, .name = "x", .create = OP_EXCLUSIVE };
	const uint32_t times =
		1u << (FATTR4_TIME_ACCESS_SET - 32) | 1u << (FATTR4_TIME_MODIFY_SET - 32);
	struct op_file file;
	struct stat st;

	begin();
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_expect_eq(file.attrset[1], times);
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK); /* retransmission of the create */
	how.verifier = "another1";
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_EXIST);
	if (minor == 0)
		return;
	how = (struct op_how){ .fh = &f->root,
			       .name = "y",
			       .create = OP_EXCLUSIVE_1,
			       .set_mode = true,
			       .mode = 0400 };
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_expect_eq(file.attrset[1], times | 1u << (FATTR4_MODE - 32));
	stat(fix_path(f, "y"), &st);
	cr_expect_eq(st.st_mode & 07777, 0400);
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	how.verifier = "another1";
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_EXIST);
}

/* An empty file of another user is not opened with its times, as GETATTR shows them, as the
 * verifier. Nor is its creator's verifier accepted from another user. */
OP_MINORS_TEST(nfs4_open, exclusive_creates_open_no_file_of_another_user)
{
	struct op_how how = { .fh = &f->root, .name = "x", .create = OP_EXCLUSIVE };
	char verifier[9] = "";
	struct op_file file;
	uint32_t half[2];
	struct stat st;

	begin();
	cr_assert_eq(chmod(fix_path(f, "."), 0777), 0);
	f->uid = 1000;
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	f->uid = 1001;
	cr_expect_eq(op_open(f, &rival, &how, &file), NFS4ERR_EXIST);
	stat(fix_path(f, "x"), &st);
	half[0] = htobe32((uint32_t)st.st_atim.tv_sec);
	half[1] = htobe32((uint32_t)st.st_mtim.tv_sec);
	memcpy(verifier, half, sizeof(half));
	how.verifier = verifier;
	for (how.create = OP_EXCLUSIVE; how.create <= (minor ? OP_EXCLUSIVE_1 : OP_EXCLUSIVE);
	     how.create++)
		cr_expect_eq(op_open(f, &rival, &how, &file), NFS4ERR_EXIST);
}

OP_MINORS_TEST(nfs4_open, shares_are_in_each_others_way)
{
	struct op_file mine, theirs;

	begin();
	make_file("a", "text", 0644);
	for (uint32_t access = READ; access <= BOTH; access++) {
		for (uint32_t deny = 0; deny <= BOTH; deny++) {
			cr_assert_eq(open_as(&owner, "a", access, deny, &mine), NFS4_OK);
			for (uint32_t a = READ; a <= BOTH; a++) {
				for (uint32_t d = 0; d <= BOTH; d++) {
					bool ok = !(a & deny) && !(d & access);
					uint32_t s = open_as(&rival, "a", a, d, &theirs);

					cr_assert_eq(s, ok ? NFS4_OK : NFS4ERR_SHARE_DENIED,
						     "%u/%u beside %u/%u: %u", a, d, access, deny,
						     s);
					if (ok)
						cr_assert_eq(op_close(f, &rival, &theirs), NFS4_OK);
				}
			}
			cr_assert_eq(op_close(f, &owner, &mine), NFS4_OK);
		}
	}
}

OP_MINORS_TEST(nfs4_open, a_further_open_widens_and_a_downgrade_narrows)
{
	struct op_file file, second;

	begin();
	make_file("a", "text", 0644);
	cr_assert_eq(open_as(&owner, "a", READ, 0, &file), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4ERR_OPENMODE);
	/* The owner never opened the file with this combination. */
	cr_expect_eq(op_downgrade(f, &owner, &file, WRITE, 0), NFS4ERR_INVAL);
	cr_expect_eq(op_downgrade(f, &owner, &file, 0, 0), NFS4ERR_INVAL);
	cr_expect_eq(op_downgrade(f, &owner, &file, READ, 4), NFS4ERR_INVAL);
	cr_expect_eq(op_downgrade(f, &owner, &file, READ, 1), NFS4ERR_INVAL);
	cr_assert_eq(open_as(&owner, "a", WRITE, 0, &file), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &second),
		     NFS4ERR_SHARE_DENIED);
	cr_expect_eq(op_downgrade(f, &owner, &file, BOTH, 0), NFS4_OK);
	cr_expect_eq(file.sid.seqid, minor == 0 ? 4 : 3);
	cr_expect_eq(op_downgrade(f, &owner, &file, READ, 0), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4ERR_OPENMODE);
	cr_expect_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &second), NFS4_OK);
	/* Access that was given up by a downgrade does not come back. */
	cr_expect_eq(op_downgrade(f, &owner, &file, WRITE, 0), NFS4ERR_INVAL);
	/* The owner's own deny bits count, too. */
	cr_expect_eq(open_as(&rival, "a", WRITE, 0, &second), NFS4ERR_SHARE_DENIED);
}

OP_MINORS_TEST(nfs4_open, stateids_are_told_apart)
{
	static const struct nfs4_stateid anonymous;
	struct nfs4_stateid bypass, sid;
	struct op_file file, b;

	begin();
	memset(&bypass, 0xff, sizeof(bypass));
	make_file("a", "text", 0644);
	make_file("b", "text", 0644);
	cr_assert_eq(open_as(&owner, "a", BOTH, 0, &file), NFS4_OK);
	cr_assert_eq(open_as(&owner, "b", BOTH, 0, &b), NFS4_OK);
	cr_expect_eq(op_read(f, &client, &file.fh, &anonymous), NFS4_OK);
	cr_expect_eq(op_read(f, &client, &file.fh, &bypass), NFS4_OK);
	cr_expect_eq(op_read(f, &client, &b.fh, &file.sid), NFS4ERR_BAD_STATEID);
	sid = file.sid;
	sid.seqid++;
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4ERR_BAD_STATEID);
	sid = file.sid;
	sid.seqid = 0;
	cr_expect_eq(op_read(f, &client, &file.fh, &sid),
		     minor > 0 ? NFS4_OK : NFS4ERR_OLD_STATEID);
	sid = file.sid;
	sid.other[0] ^= 1; /* another run of the server */
	cr_expect_eq(op_read(f, &client, &file.fh, &sid),
		     minor > 0 ? NFS4ERR_BAD_STATEID : NFS4ERR_STALE_STATEID);
	sid = file.sid;
	sid.other[11] ^= 0x10; /* another generation of the slot */
	op_retag(f, &sid);
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4ERR_BAD_STATEID);
	sid = file.sid;
	sid.other[8] ^= 0x80; /* beyond the table */
	op_retag(f, &sid);
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4ERR_BAD_STATEID);
	sid = anonymous;
	sid.seqid = 2; /* not a special stateid */
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4ERR_BAD_STATEID);
	sid.seqid = 1; /* the current stateid, which is not set */
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4ERR_BAD_STATEID);
	sid = bypass;
	sid.seqid = 7;
	cr_expect_eq(op_read(f, &client, &file.fh, &sid), NFS4ERR_BAD_STATEID);
	/* Special stateids are not those of an open. */
	b.sid = anonymous;
	cr_expect_eq(op_close(f, &owner, &b), NFS4ERR_BAD_STATEID);
	if (minor > 0) {
		cr_expect_eq(op_read(f, &other, &file.fh, &file.sid), NFS4ERR_BAD_STATEID);
	}
}

OP_MINORS_TEST(nfs4_open, deny_modes_count_for_anonymous_stateids)
{
	static const struct nfs4_stateid anonymous;
	struct op_file file;

	begin();
	make_file("a", "text", 0644);
	cr_assert_eq(open_as(&owner, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4_OK);
	cr_expect_eq(op_read(f, &other, &file.fh, &anonymous), NFS4_OK);
	cr_expect_eq(op_write(f, &other, &file.fh, &anonymous), NFS4ERR_LOCKED);
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	cr_expect_eq(op_write(f, &other, &file.fh, &anonymous), NFS4_OK);
}

OP_MINORS_TEST(nfs4_open, the_kernel_decides_who_may_open)
{
	struct op_file file, made;
	const struct op_how how = {
		.fh = &f->root, .name = "ro", .create = OP_UNCHECKED, .set_mode = true, .mode = 0400
	};

	begin();
	make_file("a", "text", 0600);
	chmod(fix_path(f, "."), 0777);
	f->uid = f->gid = 1000;
	cr_expect_eq(open_as(&owner, "a", READ, 0, &file), NFS4ERR_ACCESS);
	/* The creator of a file may use it as opened, whatever its mode. */
	cr_assert_eq(op_open(f, &owner, &how, &made), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &made.fh, &made.sid), NFS4_OK);
	cr_expect_eq(open_as(&rival, "ro", WRITE, 0, &file), NFS4ERR_ACCESS);
	cr_expect_eq(open_as(&rival, "ro", READ, 0, &file), NFS4_OK);
	/* The mode does not matter after OPEN. */
	chmod(fix_path(f, "ro"), 0);
	cr_expect_eq(op_read(f, &other, &file.fh, &file.sid), NFS4_OK);
}

/* A user without write permission may not deny reading or writing to others. */
OP_MINORS_TEST(nfs4_open, denying_others_takes_write_permission)
{
	struct op_file file;

	begin();
	make_file("a", "text", 0444);
	make_file("b", "text", 0646);
	cr_assert_eq(chown(fix_path(f, "a"), 1000, 1000), 0);
	f->uid = f->gid = 1001;
	for (uint32_t deny = OPEN4_SHARE_DENY_READ; deny <= OPEN4_SHARE_DENY_BOTH; deny++) {
		cr_expect_eq(open_as(&owner, "a", READ, deny, &file), NFS4ERR_ACCESS);
		cr_expect_eq(open_as(&owner, "b", READ, deny, &file), NFS4_OK);
		cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	}
	cr_expect_eq(open_as(&owner, "a", READ, 0, &file), NFS4_OK);
	/* The same holds for an existing open that would be widened. */
	cr_expect_eq(open_as(&owner, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4ERR_ACCESS);
	f->access.flags |= VFS_ALL_SQUASH;
	f->uid = f->gid = 1000;
	cr_expect_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4ERR_ACCESS);
	/* The file's owner may deny, because he could change the mode anyway. */
	f->access.flags &= ~(uint32_t)VFS_ALL_SQUASH;
	cr_expect_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4_OK);
	cr_expect_eq(op_close(f, &rival, &file), NFS4_OK);
	f->access.flags |= VFS_RO;
	cr_expect_eq(open_as(&rival, "a", READ, OPEN4_SHARE_DENY_WRITE, &file), NFS4ERR_ROFS);
	cr_expect_eq(open_as(&rival, "a", READ, 0, &file), NFS4_OK);
}

OP_MINORS_TEST(nfs4_open, claims_of_delegations_are_refused)
{
	static const struct {
		enum op_claim claim;
		uint32_t status0, status;
	} cases[] = {
		{ OP_DELEG_CUR, NFS4ERR_BAD_STATEID, NFS4ERR_BAD_STATEID },
		{ OP_DELEG_PREV, NFS4ERR_NOTSUPP, NFS4ERR_RECLAIM_BAD },
		{ OP_DCUR_FH, NFS4ERR_BADXDR, NFS4ERR_BAD_STATEID },
		{ OP_DPREV_FH, NFS4ERR_BADXDR, NFS4ERR_RECLAIM_BAD },
	};
	struct op_file file;

	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct op_how how = { .fh = &f->root, .name = "a", .claim = cases[i].claim };

		cr_expect_eq(op_open(f, &owner, &how, &file),
			     minor == 0 ? cases[i].status0 : cases[i].status, "claim %d",
			     (int)cases[i].claim);
	}
}

OP_MINORS_TEST(nfs4_open, reclaims_need_the_grace_period)
{
	struct op_file file;
	struct vfs_fh fh;
	struct op_how how = { .fh = &fh, .claim = OP_RECLAIM };

	begin();
	make_file("a", "", 0644);
	fh = handle("a");
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_NO_GRACE);
	how.delegation = 1;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_NO_GRACE);
}

OP_MINORS_TEST(nfs4_open, an_unlinked_file_stays_usable)
{
	struct op_file file;

	begin();
	make_file("a", "text", 0644);
	cr_assert_eq(open_as(&owner, "a", BOTH, 0, &file), NFS4_OK);
	fix4_begin(f, minor > 0 ? &other.session : NULL);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_REMOVE);
	fix4_name(f, "a");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_expect_not(exists("a"));
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

Test(nfs4_open, by_handle_and_wishes_for_delegations)
{
	static const struct {
		uint32_t want, why;
	} cases[] = { { OPEN4_SHARE_ACCESS_WANT_NO_DELEG, 0 },
		      { OPEN4_SHARE_ACCESS_WANT_READ_DELEG, 3 },
		      { OPEN4_SHARE_ACCESS_WANT_ANY_DELEG, 3 },
		      { OPEN4_SHARE_ACCESS_WANT_CANCEL, 7 } };
	struct op_file file;
	struct vfs_fh fh;

	NEED_FIXTURE();
	minor = 1;
	begin();
	make_file("a", "text", 0644);
	fh = handle("a");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct op_how how = { .fh = &fh,
					    .access = READ | cases[i].want,
					    .claim = OP_BY_FH };

		cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
		cr_expect_eq(file.delegation, 3);
		cr_expect_eq(file.why, cases[i].why);
		cr_expect_eq(file.sid.seqid, i + 1);
	}
	cr_expect_eq(
		op_open(f, &owner, &(struct op_how){ .fh = &f->root, .claim = OP_BY_FH }, &file),
		NFS4ERR_ISDIR);
}

/* RFC 8881 section 16.2.3.1.2: OPEN, READ and CLOSE with the current stateid. */
Test(nfs4_open, the_current_stateid_is_handed_on)
{
	const struct nfs4_stateid current = { .seqid = 1 };

	NEED_FIXTURE();
	minor = 1;
	begin();
	make_file("a", "text", 0644);
	op_begin(f, &client);
	fix4_putfh(f, &f->root);
	op_put_open(f, &owner, &(struct op_how){ .fh = &f->root, .name = "a" });
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, &current);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	xdr_put_opaque(&f->out, "new", 3);
	fix4_op(f, OP_CLOSE);
	xdr_put_u32(&f->out, 0);
	fix4_stateid(f, &current);
	fix4_op(f, OP_READ);
	fix4_stateid(f, &current);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1);
	cr_expect_eq(fix4_send(f), NFS4ERR_BAD_STATEID);
	cr_expect_eq(fix4_results_left(f), 5); /* all but the READ were done */
}

/* An OPEN for writing gets its share and waits for the disk. Another OPEN of the same owner does
 * the same and is answered; then the first one fails. The answered open must stay. */
OP_MINORS_TEST(nfs4_open, what_a_later_open_was_told_stays)
{
	struct nfs4_opening w = { .access = WRITE, .old_access = READ, .new_combination = true };
	struct op_file file;

	begin();
	make_file("a", "text", 0644);
	cr_assert_eq(open_as(&owner, "a", READ, 0, &file), NFS4_OK);
	cr_assert_eq(open_as(&owner, "a", WRITE, 0, &file), NFS4_OK);
	w.sid = file.sid;
	cr_assert_eq(open_as(&owner, "a", WRITE, 0, &file), NFS4_OK);
	w.client = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
	cr_assert_not_null(w.client);
	w.open = nfs4_as_open(TAILQ_FIRST(&w.client->holdings->states));
	w.open->pending++;
	nfs4_open_unshare(&w);
	nfs4_client_put(w.client);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(op_downgrade(f, &owner, &file, WRITE, 0), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}
