/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_NOTIFY: bytes of each kind of change, order, bounds, answers, and the end of a delegation in the middle. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/deleg/delegations.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/base/instance.h"

NFS3_SUITE(nfs4_notify);

#define LEASE 90u
#define BIT(n) (1u << (n) % 32)
#define ENTRIES (BIT(NOTIFY4_ADD_ENTRY) | BIT(NOTIFY4_REMOVE_ENTRY) | BIT(NOTIFY4_RENAME_ENTRY))

static struct op_client holder, other;
static struct nfs4_stateid deleg;
static struct cb_call c;

/* Expected bytes, as words and names. */
static uint8_t want[NFS4_NOTIFY_BATCH];
static struct xdr_out wanted;

static void want_begin(void)
{
	xdr_out_init(&wanted, want, sizeof(want));
}

static void want_words(const uint32_t *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		xdr_put_u32(&wanted, words[i]);
}
#define WANT(...)                                                                                  \
	want_words((const uint32_t[]){ __VA_ARGS__ },                                              \
		   sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void check_bytes(const char *what, const uint8_t *got, size_t len)
{
	cr_expect_eq(len, wanted.used, "%s: %zu bytes, not %zu", what, len, wanted.used);
	if (len == wanted.used)
		cr_expect_arr_eq(got, want, len, "%s", what);
}

static void check_notification(const char *what, const struct nfs4_notify_attrs *attrs,
			       const struct vfs_dir_notification *notification)
{
	uint8_t got[NFS4_NOTIFY_BATCH];
	struct xdr_out x;

	xdr_out_init(&x, got, sizeof(got));
	nfs4_put_entry_notification(attrs, notification, &x);
	cr_assert_not(x.overflow);
	check_bytes(what, got, x.used);
	cr_expect_eq(nfs4_dir_notify_size(got), x.used);
}

/* RFC 5662: notify4 of a bitmap4 and an opaque; notify_remove4, notify_add4, notify_rename4. "ab" is 0x61620000
 * with its padding, "cde" 0x63646500. */
Test(nfs4_notify, wire_of_entries)
{
	static const struct nfs4_notify_attrs none;
	struct vfs_dir_notification notification = { .what = VFS_NOTIFY_REMOVE, .name = "ab" };

	NEED_FIXTURE();
	want_begin();
	WANT(1, 1 << 2, 24, 2, 0x61620000, 0, 0, 0, 0);
	check_notification("removed", &none, &notification);

	notification.what = VFS_NOTIFY_ADD;
	want_begin();
	WANT(1, 1 << 3, 32, 0, 2, 0x61620000, 0, 0, 0, 0, 0);
	check_notification("added", &none, &notification);

	notification.to = "ab";
	notification.replaced = true;
	want_begin();
	WANT(1, 1 << 3, 56, 1, 2, 0x61620000, 0, 0, 0, 0);
	WANT(2, 0x61620000, 0, 0, 0, 0, 0);
	check_notification("replaced", &none, &notification);

	notification = (struct vfs_dir_notification){ .what = VFS_NOTIFY_RENAME,
						      .name = "ab",
						      .to = "cde" };
	want_begin();
	WANT(1, 1 << 4, 56, 2, 0x61620000, 0, 0, 0, 0);
	WANT(0, 3, 0x63646500, 0, 0, 0, 0, 0);
	check_notification("renamed", &none, &notification);

	notification.replaced = true;
	want_begin();
	WANT(1, 1 << 4, 80, 2, 0x61620000, 0, 0, 0, 0);
	WANT(1, 3, 0x63646500, 0, 0, 0, 0);
	WANT(3, 0x63646500, 0, 0, 0, 0, 0);
	check_notification("renamed over another", &none, &notification);
}

Test(nfs4_notify, wire_of_attributes)
{
	static const struct nfs4_notify_attrs attrs = {
		.entry = { BIT(FATTR4_TYPE) | BIT(FATTR4_FSID) | BIT(FATTR4_FILEHANDLE) |
			   BIT(FATTR4_FILEID) },
		.dir = { BIT(FATTR4_CHANGE) | BIT(FATTR4_SIZE),
			 BIT(FATTR4_NUMLINKS) | BIT(FATTR4_SPACE_USED) | BIT(FATTR4_TIME_METADATA) |
				 BIT(FATTR4_TIME_MODIFY) },
	};
	const struct vfs_fh fh = { .len = 5, .data = { 1, 2, 3, 4, 5 } };
	const struct vfs_attr attr = { .mode = S_IFDIR | 0700,
				       .nlink = 7,
				       .size = 0x100000002,
				       .used = 0x300000004,
				       .fsid = 0x500000006,
				       .fileid = 0x700000008,
				       .change = 0x90000000a,
				       .mtime = { 0x10, 0x11 },
				       .ctime = { -1, 0x12 } };
	const struct vfs_dir_notification notification = {
		.what = VFS_NOTIFY_ADD, .name = "ab", .fh = &fh, .attr = &attr
	};
	uint8_t got[NFS4_NOTIFY_BATCH];
	struct xdr_out x;

	NEED_FIXTURE();
	want_begin();
	WANT(1, 1 << 3, 76, 0, 2, 0x61620000, 1, 0x180102, 40, 2, 5, 6, 0, 0);
	WANT(5, 0x01020304, 0x05000000, 7, 8, 0, 0, 0);
	check_notification("added", &attrs, &notification);

	want_begin();
	WANT(1, 1 << 1, 72, 0, 2, 0x18, 0x302008, 52, 9, 10, 1, 2, 7, 3, 4);
	WANT(UINT32_MAX, UINT32_MAX, 0x12, 0, 0x10, 0x11);
	xdr_out_init(&x, got, sizeof(got));
	nfs4_put_dir_notification(&attrs, &attr, &x);
	check_bytes("directory", got, x.used);
	cr_expect_eq(nfs4_dir_notify_size(got), x.used);
}

/* The longest change there can be goes in one call. */
Test(nfs4_notify, longest)
{
	static const struct nfs4_notify_attrs attrs = {
		.entry = { BIT(FATTR4_TYPE) | BIT(FATTR4_FSID) | BIT(FATTR4_FILEHANDLE) |
			   BIT(FATTR4_FILEID) },
	};
	const struct vfs_fh fh = { .len = VFS_FH_MAX };
	const struct vfs_attr attr = { .mode = S_IFREG };
	uint8_t got[NFS4_NOTIFY_BATCH];
	char name[VFS_NAME_MAX + 1] = { 0 };
	const struct vfs_dir_notification notification = { .what = VFS_NOTIFY_RENAME,
							   .name = name,
							   .to = name,
							   .replaced = true,
							   .fh = &fh,
							   .attr = &attr };
	struct xdr_out x;

	NEED_FIXTURE();
	memset(name, 'n', VFS_NAME_MAX);
	xdr_out_init(&x, got, sizeof(got));
	nfs4_put_entry_notification(&attrs, &notification, &x);
	cr_expect_not(x.overflow);
	cr_expect_eq(nfs4_dir_notify_size(got), x.used);
}

static void begin(void)
{
	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	cr_assert_eq(op_client_new(f, &other, 1, "other"), NFS4_OK);
	cbs_on(f);
	cr_assert_eq(op_client_new(f, &holder, 1, "holder"), NFS4_OK);
	if (cbs_take(&c)) /* RECLAIM_COMPLETE's SEQUENCE */
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
}

/* The holder gets a delegation of the root, with notifications of entries and, dir, of it itself. */
static void delegate(bool dir, uint64_t delay)
{
	fix4_begin(f, &holder.session);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_GET_DIR_DELEGATION);
	xdr_put_bool(&f->out, false);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, ENTRIES | (dir ? BIT(NOTIFY4_CHANGE_DIR_ATTRS) : 0));
	for (unsigned i = 0; i < 2; i++) {
		xdr_put_u64(&f->out, delay);
		xdr_put_u32(&f->out, 0);
	}
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, BIT(FATTR4_CHANGE));
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_GET_DIR_DELEGATION), NFS4_OK);
	cr_assert_eq(xdr_get_u32(&f->in), 0, "GDD4_OK");
	cr_expect_eq(xdr_get_u64(&f->in), 0);
	fix4_get_stateid(f, &deleg);
	cr_expect_eq(xdr_get_u32(&f->in), 1);
	cr_expect_eq(xdr_get_u32(&f->in), ENTRIES | (dir ? BIT(NOTIFY4_CHANGE_DIR_ATTRS) : 0));
	cr_expect_eq(xdr_get_u32(&f->in), 0);
	cr_expect_eq(xdr_get_u32(&f->in), dir ? 1 : 0);
}

static uint32_t make(struct op_client *by, const char *name)
{
	fix4_begin(f, &by->session);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, NF4DIR);
	fix4_name(f, name);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

/* Sets the time of last modification to the server's. */
static uint32_t touch(struct op_client *by)
{
	fix4_begin(f, &by->session);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &(struct nfs4_stateid){ 0 });
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, BIT(FATTR4_TIME_MODIFY_SET));
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

static void seconds_go_by(unsigned seconds)
{
	nfs4_skip_lease_time(f->server4, seconds);
	cr_assert_neq(cbs_sequence(f, &holder.session), UINT32_MAX);
	cr_assert_neq(cbs_sequence(f, &other.session), UINT32_MAX);
	nfs4_tick(f->server4);
}

/* The next call is CB_NOTIFY with so many changes, the first of which is that of a name. */
static void expect_notify(unsigned n, const char *first)
{
	cr_assert(cbs_take(&c), "%s", first);
	cr_assert_eq(c.op, OP_CB_NOTIFY);
	cr_expect_eq(c.nchanges, n, "%s: %u changes, not %u", first, c.nchanges, n);
	cr_expect_arr_eq(c.stateid.other, deleg.other, NFS4_OTHER_SIZE);
	cr_expect_eq(c.stateid.seqid, deleg.seqid);
	cr_expect_eq(c.fh.len, f->root.len);
	/* Behind mask, length, and no replaced entry. */
	cr_expect_arr_eq(c.changes + 20, first, strlen(first), "not %s", first);
}

static void expect_recall(void)
{
	static char name[] = "Alater";

	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_RECALL);
	cr_expect_arr_eq(c.stateid.other, deleg.other, NFS4_OTHER_SIZE);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	name[0]++;
	cr_expect_eq(make(&other, name), NFS4ERR_DELAY);
	cr_expect_eq(op_delegreturn(f, &holder, &f->root, &deleg), NFS4_OK);
	cr_expect_eq(make(&other, name), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

/* One call at a time; what happens meanwhile goes with the next. */
Test(nfs4_notify, in_order)
{
	NEED_FIXTURE();
	begin();
	delegate(false, 0);
	cr_assert_eq(make(&other, "a1"), NFS4_OK);
	cr_assert_eq(make(&other, "b1"), NFS4_OK);
	cr_assert_eq(make(&holder, "c1"), NFS4_OK);
	cr_expect_eq(cbs_count(), 1);
	expect_notify(1, "a1");
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	expect_notify(2, "b1");
	cr_assert_eq(make(&other, "d1"), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	expect_notify(1, "d1");
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(op_delegreturn(f, &holder, &f->root, &deleg), NFS4_OK);
	cr_assert_eq(make(&other, "e1"), NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

/* Attributes are told after the time that the client has said, once, the latest; the holder's own are not. */
Test(nfs4_notify, attributes)
{
	NEED_FIXTURE();
	begin();
	delegate(true, 5);
	cr_assert_eq(touch(&holder), NFS4_OK);
	seconds_go_by(10);
	cr_expect_eq(cbs_count(), 0, "its own");
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(touch(&other), NFS4_OK);
	/* One second may go by of itself. */
	seconds_go_by(3);
	cr_expect_eq(cbs_count(), 0, "too early");
	seconds_go_by(2);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.nchanges, 1);
	cr_expect_eq(c.changes[7], BIT(NOTIFY4_CHANGE_DIR_ATTRS));
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_assert_eq(touch(&other), NFS4_OK);
	cr_assert_eq(make(&other, "a1"), NFS4_OK);
	expect_notify(2, "a1");
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	seconds_go_by(10);
	cr_expect_eq(cbs_count(), 0);
	cr_assert_eq(touch(&other), NFS4_OK);
	cr_expect_eq(op_delegreturn(f, &holder, &f->root, &deleg), NFS4_OK);
	seconds_go_by(10);
	cr_expect_eq(cbs_count(), 0);
}

/* A client that is busy, or does not know the delegation yet, is told again, so often and no more. */
Test(nfs4_notify, told_again)
{
	static const uint32_t answers[] = { NFS4ERR_DELAY, NFS4ERR_BAD_STATEID, NFS4ERR_BADHANDLE,
					    NFS4ERR_DELAY };

	NEED_FIXTURE();
	begin();
	delegate(false, 0);
	cr_assert_eq(make(&other, "a1"), NFS4_OK);
	for (unsigned round = 0; round < 2; round++) {
		expect_notify(1, "a1");
		for (unsigned i = 0; i < NFS4_DIR_NOTIFY_TRIES - 1; i++) {
			cbs_answer(f, &c, NFS4_OK, answers[i]);
			nfs4_tick(f->server4);
			cr_expect_eq(cbs_count(), 0, "at once");
			seconds_go_by(1);
			expect_notify(1, "a1");
		}
		cbs_answer(f, &c, NFS4_OK, round == 0 ? NFS4_OK : NFS4ERR_DELAY);
		if (round == 0)
			cr_assert_eq(make(&other, "a1b"), NFS4_OK);
	}
	expect_recall();
}

/* Any other answer, or none. */
Test(nfs4_notify, not_taken)
{
	static const uint32_t answers[] = { NFS4ERR_SERVERFAULT, NFS4ERR_NOTSUPP,
					    NFS4ERR_OP_ILLEGAL, NFS4ERR_INVAL };
	char name[3] = "a0";

	NEED_FIXTURE();
	begin();
	f->vfs->cfg.deleg_quiet_seconds = 0;
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		name[1]++;
		delegate(false, 0);
		cr_assert_eq(make(&other, name), NFS4_OK);
		expect_notify(1, name);
		cbs_answer(f, &c, NFS4_OK, answers[i]);
		expect_recall();
	}
}

/* Revoked: the path is down, so the client hears of no recall. */
Test(nfs4_notify, no_answer)
{
	NEED_FIXTURE();
	begin();
	delegate(false, 0);
	cr_assert_eq(make(&other, "a1"), NFS4_OK);
	expect_notify(1, "a1");
	cbs_time_out(f);
	cr_expect_eq(make(&other, "b1"), NFS4ERR_DELAY);
	for (unsigned i = 0; i < 4; i++)
		seconds_go_by(LEASE / 3);
	cr_expect_eq(make(&other, "b1"), NFS4_OK);
	cr_expect_eq(op_test_stateid(f, &holder, &deleg), NFS4ERR_DELEG_REVOKED);
	while (cbs_take(&c))
		cr_expect_neq(c.op, OP_CB_NOTIFY);
}

/* A client that is slow: the queue has a bound, and the change that does not fit recalls. */
Test(nfs4_notify, queue)
{
	char name[VFS_NAME_MAX + 1] = { 0 };
	const unsigned size = 12 + 4 + 4 + 252 + 8 + 12; /* of notify4 */
	unsigned n = 0;

	NEED_FIXTURE();
	begin();
	delegate(false, 0);
	do {
		memset(name, 'n', 250);
		snprintf(name + 250, 6, "%05u", n);
		cr_assert_eq(make(&other, name), NFS4_OK, "%u", n);
		n++;
	} while (cbs_count() == 1 && n < 1000);
	cr_expect_eq(n - 1, NFS4_DIR_NOTIFY_QUEUE / (size + 4), "%u", n);
	cr_expect_eq(make(&other, "b1"), NFS4ERR_DELAY);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_NOTIFY);
	cr_expect_eq(c.nchanges, 1);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(cbs_count(), 1, "nothing more is told");
	expect_recall();
}

/* A CB_NOTIFY too long for the connection is split; a single change too long for it recalls the delegation. */
Test(nfs4_notify, short_calls)
{
	char name[3] = "a0", longest[251] = { 0 };
	unsigned told = 1;

	NEED_FIXTURE();
	begin();
	delegate(false, 0);
	cr_assert_eq(make(&other, "a0"), NFS4_OK);
	for (unsigned i = 1; i < 10; i++) {
		name[1]++;
		cr_assert_eq(make(&other, name), NFS4_OK);
	}
	expect_notify(1, "a0");
	cbs_limit(500);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	while (cbs_take(&c)) {
		cr_assert_eq(c.op, OP_CB_NOTIFY);
		name[1] = (char)('0' + told);
		cr_expect_arr_eq(c.changes + 20, name, 2, "not %s", name);
		told += c.nchanges;
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	}
	cr_expect_eq(told, 10);
	cbs_limit(400); /* CB_RECALL fits */
	memset(longest, 'n', 250);
	cr_assert_eq(make(&other, longest), NFS4_OK);
	expect_recall();
}

/* The delegation ends while a call is under way, and the client goes with all it has. */
Test(nfs4_notify, ends_meanwhile)
{
	NEED_FIXTURE();
	begin();
	delegate(true, 60);
	cr_assert_eq(make(&other, "a1"), NFS4_OK);
	cr_assert_eq(make(&other, "b1"), NFS4_OK);
	expect_notify(2, "a1");
	cr_expect_eq(op_delegreturn(f, &holder, &f->root, &deleg), NFS4_OK);
	cr_assert_eq(make(&other, "c1"), NFS4_OK);
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_BAD_STATEID);
	seconds_go_by(2);
	cr_expect_eq(cbs_count(), 0);
	delegate(true, 60);
	cr_assert_eq(touch(&other), NFS4_OK);
	cr_assert_eq(make(&other, "d1"), NFS4_OK);
	cr_assert_eq(touch(&other), NFS4_OK);
	cr_expect_eq(nfs4_forget_client(f->server4, holder.clientid), 0);
	cr_assert_eq(make(&other, "e1"), NFS4_OK);
	nfs4_tick(f->server4);
}

/* A client whose lease has run out is not told: it loses its state, and nobody waits. */
Test(nfs4_notify, of_a_client_that_is_away)
{
	struct nfs4_held held;

	NEED_FIXTURE();
	begin();
	delegate(false, 0);
	for (unsigned i = 0; i < 3; i++) {
		nfs4_skip_lease_time(f->server4, 40);
		cr_assert_neq(cbs_sequence(f, &other.session), UINT32_MAX);
		nfs4_tick(f->server4);
	}
	cbs_refuse(-ENOTCONN);
	cr_assert_eq(make(&other, "a1"), NFS4_OK);
	nfs4_tick(f->server4);
	cr_assert_eq(make(&other, "b1"), NFS4_OK);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.delegations, 0);
}
