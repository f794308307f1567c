/* SPDX-License-Identifier: BSD-2-Clause */
/* OPEN, CLOSE and OPEN_DOWNGRADE on an event thread's worker: they end there if nothing has to wait. Otherwise
 * they move to another worker, as if they had not begun. */
#include <sys/stat.h>
#include <unistd.h>

#include "nfs4/state/owner.h"
#include "tests/unit/kernel_can.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_open_event);

enum { READ = 1, WRITE = 2, BOTH = 3 };

static struct op_client client, other;
static struct op_owner owner, rival;
static struct op_file file, theirs;
static uint32_t minor;

/* Has the node of file "a" cached, without a descriptor for its data. */
static void look_up_a(void)
{
	op_begin(f, &client);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_LOOKUP);
	xdr_put_opaque(&f->out, "a", 1);
	cr_assert_eq(fix4_send(f), NFS4_OK);
}

static void begin(void)
{
	NEED_KERNEL_CAN(open_cached);
	NEED_KERNEL_CAN(read_cached);
	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	make_file("a", "text", 0666);
	make_file("b", "text", 0666);
	/* The first OPEN of a client waits for its record; the first of an owner, in minor version
	 * 0, is confirmed. */
	const struct op_how how = { .fh = &f->root, .name = "b", .access = READ };
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	cr_assert_eq(op_open(f, &rival, &how, &theirs), NFS4_OK);
	cr_assert_eq(op_close(f, &rival, &theirs), NFS4_OK);
	look_up_a();
	f->on_event_thread = true;
}

static uint32_t open_as(uint32_t access, uint32_t deny, enum op_create create)
{
	const struct op_how how = {
		.fh = &f->root, .name = "a", .access = access, .deny = deny, .create = create
	};

	return op_open(f, &owner, &how, &file);
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

static uint64_t shares(void)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st.shares;
}

OP_MINORS_TEST(nfs4_open_event, nothing_moves_that_need_not)
{
	struct stat st;

	begin();
	cr_expect_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	STAYED();
	cr_expect_eq(file.sid.seqid, 1);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4_OK);
	STAYED();
	cr_expect_eq(open_as(READ, 0, OP_UNCHECKED), NFS4_OK);
	STAYED();
	cr_expect_eq(file.sid.seqid, 2);
	cr_expect_eq(shares(), 1);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	STAYED();
	cr_expect_eq(shares(), 0);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_BAD_STATEID);
	cr_assert_eq(stat(fix_path(f, "a"), &st), 0);
	cr_expect_eq(st.st_size, 4);
}

/* To open for writing may read a quota. Afterwards the descriptor is there for others. */
OP_MINORS_TEST(nfs4_open_event, the_first_that_writes_moves)
{
	begin();
	cr_expect_eq(open_as(BOTH, 0, OP_NOCREATE), NFS4_OK);
	MOVED();
	cr_expect_eq(file.sid.seqid, 1);
	cr_expect_eq(open_as(BOTH, 0, OP_NOCREATE), NFS4_OK);
	STAYED();
	cr_expect_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	STAYED();
	cr_expect_eq(file.sid.seqid, 3);
	cr_expect_eq(op_downgrade(f, &owner, &file, READ, 0), NFS4_OK);
	STAYED();
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4ERR_OPENMODE);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	STAYED();
}

OP_MINORS_TEST(nfs4_open_event, what_creates_or_truncates_moves)
{
	struct op_how how = {
		.fh = &f->root, .name = "new", .access = READ, .create = OP_UNCHECKED
	};
	struct stat st;

	begin();
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	MOVED();
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	how.create = OP_GUARDED;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4ERR_EXIST);
	MOVED();
	how = (struct op_how){ .fh = &f->root, .name = "a", .access = WRITE };
	how.create = OP_UNCHECKED;
	how.set_size = true;
	cr_expect_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	MOVED();
	cr_assert_eq(stat(fix_path(f, "a"), &st), 0);
	cr_expect_eq(st.st_size, 0);
}

OP_MINORS_TEST(nfs4_open_event, what_denies_moves)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = READ };

	begin();
	cr_expect_eq(open_as(READ, READ, OP_NOCREATE), NFS4_OK);
	MOVED();
	cr_expect_eq(op_open(f, &rival, &how, &theirs), NFS4ERR_SHARE_DENIED);
	cr_expect_eq(shares(), 1);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	cr_expect_eq(op_open(f, &rival, &how, &theirs), NFS4_OK);
	STAYED();
}

/* The data of a file without a name are freed with its last descriptor. */
OP_MINORS_TEST(nfs4_open_event, the_end_of_an_unlinked_file_moves)
{
	begin();
	cr_assert_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	op_begin(f, &client);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_REMOVE);
	xdr_put_opaque(&f->out, "a", 1);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	MOVED();
	cr_expect_eq(shares(), 0);
}

OP_MINORS_TEST(nfs4_open_event, a_close_that_ends_locks_moves)
{
	const struct op_range r = { .type = 1, .offset = 0, .length = 10 };
	struct op_owner locker = { &client, "locker", 1 };
	struct op_denied denied;
	struct nfs4_stateid sid;

	begin();
	cr_assert_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &r, &sid, &denied), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	MOVED();
	cr_expect_eq(shares(), 0);
}

static void busy_end(struct op_busy *b, int line)
{
	moved_at(line);
	op_busy_end(b);
}

OP_MINORS_TEST(nfs4_open_event, nobody_is_waited_for)
{
	struct op_busy busy;

	begin();
	cr_assert_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	busy_end(&busy, __LINE__);
	cr_expect_eq(file.sid.seqid, 2);
	op_busy_begin(&busy, f, &client);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
	busy_end(&busy, __LINE__);
	cr_expect_eq(shares(), 0);
}

OP_MINORS_TEST(nfs4_open_event, refuses_as_another_worker_does)
{
	begin();
	f->access.flags |= VFS_RO;
	cr_expect_eq(open_as(WRITE, 0, OP_NOCREATE), NFS4ERR_ROFS);
	STAYED();
	f->access.flags &= ~(unsigned)VFS_RO;
	f->uid = 1234;
	cr_assert_eq(chmod(fix_path(f, "a"), 0600), 0);
	cr_expect_eq(open_as(READ, 0, OP_NOCREATE), NFS4ERR_ACCESS);
	cr_assert_eq(chmod(fix_path(f, "a"), 0604), 0);
	cr_expect_eq(open_as(READ, 0, OP_NOCREATE), NFS4_OK);
	cr_expect_eq(shares(), 1);
}
