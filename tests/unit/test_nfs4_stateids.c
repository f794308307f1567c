/* SPDX-License-Identifier: BSD-2-Clause */
/* Each operation that takes a stateid, with each kind of stateid that is invalid for it. */
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_opens.h"
#include "tests/unit/nfs4_text.h"

NFS3_SUITE(nfs4_stateids);

static uint32_t minor;
static struct op_client client, other;
static struct op_owner owner, locker, rival;
static struct op_file file, elsewhere;
static struct nfs4_stateid lock;
static const struct op_range ten = { .type = 2, .length = 10 };

/* put_...(): puts an operation's arguments with that stateid. */
static void put_range(void)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 1);
}

static void put_read(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1);
}

static void put_write(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	xdr_put_opaque(&f->out, "x", 1);
}

static void put_size(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_SIZE);
	xdr_put_u32(&f->out, 8);
	xdr_put_u64(&f->out, 3);
}

static void put_close(const struct nfs4_stateid *sid)
{
	xdr_put_u32(&f->out, owner.seqid);
	fix4_stateid(f, sid);
}

static void put_confirm(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, owner.seqid);
}

static void put_downgrade(const struct nfs4_stateid *sid)
{
	put_confirm(sid);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
	xdr_put_u32(&f->out, 0);
}

static void put_lock(const struct nfs4_stateid *sid)
{
	xdr_put_u32(&f->out, 2);
	xdr_put_bool(&f->out, false);
	put_range();
	xdr_put_bool(&f->out, false);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, locker.seqid);
}

static void put_unlock(const struct nfs4_stateid *sid)
{
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, locker.seqid);
	fix4_stateid(f, sid);
	put_range();
}

static void put_space(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	put_range();
}

static void put_seek(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

/* From the file to itself. */
static void put_clone(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	put_range();
}

static void put_copy(const struct nfs4_stateid *sid)
{
	put_clone(sid);
	xdr_put_bool(&f->out, true);
	xdr_put_bool(&f->out, true);
	xdr_put_u32(&f->out, 0);
}

static void put_write_same(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 2);
	xdr_put_u64(&f->out, 2);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u32(&f->out, 0);
}

static void put_advise(const struct nfs4_stateid *sid)
{
	put_space(sid);
	xdr_put_u32(&f->out, 0);
}

static void put_notify(const struct nfs4_stateid *sid)
{
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 3); /* NL4_NETADDR */
	xdr_put_opaque(&f->out, "tcp", 3);
	xdr_put_opaque(&f->out, "127.0.0.1.8.1", 13); /* named by the fixture */
}

static const struct op {
	uint32_t num, first_minor, last_minor;
	void (*put)(const struct nfs4_stateid *sid);
	bool of_lock, writes;
} ops[] = {
	{ OP_READ, 0, 2, put_read, false, false },
	{ OP_WRITE, 0, 2, put_write, false, true },
	{ OP_SETATTR, 0, 2, put_size, false, true },
	{ OP_CLOSE, 0, 2, put_close, false, false },
	{ OP_OPEN_CONFIRM, 0, 0, put_confirm, false, false },
	{ OP_OPEN_DOWNGRADE, 0, 2, put_downgrade, false, false },
	{ OP_LOCK, 0, 2, put_lock, true, true },
	{ OP_LOCKU, 0, 2, put_unlock, true, false },
	{ OP_ALLOCATE, 2, 2, put_space, false, true },
	{ OP_DEALLOCATE, 2, 2, put_space, false, true },
	{ OP_SEEK, 2, 2, put_seek, false, false },
	{ OP_IO_ADVISE, 2, 2, put_advise, false, false },
	{ OP_READ_PLUS, 2, 2, put_read, false, false },
	{ OP_WRITE_SAME, 2, 2, put_write_same, false, true },
	{ OP_COPY, 2, 2, put_copy, false, true },
	{ OP_CLONE, 2, 2, put_clone, false, true },
	{ OP_COPY_NOTIFY, 2, 2, put_notify, false, false },
};

static uint32_t run(const struct op *op, const struct vfs_fh *fh, const struct nfs4_stateid *sid)
{
	op_begin(f, &client);
	fix4_putfh(f, fh);
	if (op->num == OP_COPY || op->num == OP_CLONE)
		fix4_op(f, OP_SAVEFH);
	fix4_op(f, op->num);
	op->put(sid);
	return fix4_send(f);
}

#define EACH_OP(op)                                                                                \
	for (const struct op *op = ops; op < ops + rn_array_size(ops); op++)                       \
		if (minor >= op->first_minor && minor <= op->last_minor)

#define IS(op, got, want)                                                                          \
	cr_expect_eq(got, want, "minor %u, %s: %s, not %s", minor, nfs4_op_text((op)->num),        \
		     nfs4_status_text(got), nfs4_status_text(want))

static struct nfs4_stateid sid_for(const struct op *op)
{
	return op->of_lock ? lock : file.sid;
}

static uint32_t open_it(struct op_owner *o, const char *name, uint32_t access, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = name, .access = access };

	return op_open(f, o, &how, out);
}

/* Makes a fresh client with a file opened and locked twice, whatever state the last one is in. */
static void begin(void)
{
	static unsigned n;
	char name[16];

	snprintf(name, sizeof(name), "client %u", n++);
	cr_assert_eq(op_client_new(f, &client, minor, name), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	locker = (struct op_owner){ &client, "locker", 1 };
	cr_assert_eq(open_it(&owner, "a", 0, &file), NFS4_OK);
	cr_assert_eq(open_it(&owner, "a", 0, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
	cr_assert_eq(op_lock(f, &locker, &file.fh, &ten, &lock, NULL), NFS4_OK);
}

static void end(void)
{
	op_unlock(f, &locker, &file.fh, &ten, &lock);
	op_close(f, &owner, &file);
}

OP_MINORS_TEST(nfs4_stateids, old_later_unknown)
{
	make_file("a", "text", 0666);
	make_file("b", "text", 0666);
	begin();
	EACH_OP (op) {
		struct nfs4_stateid sid = sid_for(op);

		sid.seqid--;
		IS(op, run(op, &file.fh, &sid), NFS4ERR_OLD_STATEID);
		/* A failure with this status advances the owner's sequence number. */
		owner.seqid += minor == 0 && (op->num == OP_CLOSE || op->num == OP_OPEN_CONFIRM ||
					      op->num == OP_OPEN_DOWNGRADE);
		locker.seqid += minor == 0 && op->of_lock;
		sid.seqid += 5;
		IS(op, run(op, &file.fh, &sid), NFS4ERR_BAD_STATEID);
		sid = sid_for(op);
		sid.other[NFS4_OTHER_SIZE - 1] ^= 0x55;
		op_retag(f, &sid);
		IS(op, run(op, &file.fh, &sid), NFS4ERR_BAD_STATEID);
		/* Stateids of another run of the server, or invented. */
		for (unsigned i = 0; i < NFS4_OTHER_SIZE; i++) {
			sid = sid_for(op);
			sid.other[i] ^= 0x55;
			IS(op, run(op, &file.fh, &sid),
			   minor == 0 ? NFS4ERR_STALE_STATEID : NFS4ERR_BAD_STATEID);
		}
	}
	end();
}

/* Gets a stateid, and has a further operation change its state. */
static void put_current_and_change(const struct op *op)
{
	const struct op_how how = { .fh = &f->root, .name = "a" };
	const struct nfs4_stateid current = { .seqid = 1 };

	if (op->of_lock) {
		fix4_putfh(f, &file.fh);
		fix4_op(f, OP_LOCK);
		put_lock(&lock);
		fix4_op(f, OP_SAVEFH);
		fix4_op(f, OP_LOCK);
		put_lock(&current);
	} else {
		fix4_putfh(f, &f->root);
		op_put_open(f, &owner, &how);
		fix4_op(f, OP_SAVEFH);
		fix4_putfh(f, &f->root);
		op_put_open(f, &owner, &how);
	}
	fix4_op(f, OP_RESTOREFH);
}

/* The current stateid of RFC 8881 section 8.2.3 has no seqid, but for two operations. */
static void of_the_past_but_current(void)
{
	const struct nfs4_stateid current = { .seqid = 1 };

	make_file("a", "text", 0666);
	EACH_OP (op) {
		const bool exact = op->num == OP_CLOSE || op->num == OP_OPEN_DOWNGRADE;
		uint32_t got;

		begin();
		op_begin(f, &client);
		put_current_and_change(op);
		if (op->num == OP_COPY || op->num == OP_CLONE)
			fix4_op(f, OP_SAVEFH);
		fix4_op(f, op->num);
		op->put(&current);
		got = fix4_send(f);
		/* A file is not copied to itself; not each file system can do all. */
		if (got != NFS4ERR_INVAL && got != NFS4ERR_NOTSUPP)
			IS(op, got, exact ? NFS4ERR_OLD_STATEID : NFS4_OK);
		nfs4_clients_skip_time(f->server4, 120); /* ends the lease of the lock's client */
	}
}

OP_MINOR_TEST(nfs4_stateids, of_the_past_but_current, 1)
OP_MINOR_TEST(nfs4_stateids, of_the_past_but_current, 2)

OP_MINORS_TEST(nfs4_stateids, of_another_file)
{
	make_file("a", "text", 0666);
	make_file("b", "text", 0666);
	EACH_OP (op) {
		struct vfs_fh b = handle("b");
		struct nfs4_stateid sid;

		begin();
		sid = sid_for(op);
		IS(op, run(op, &b, &sid), NFS4ERR_BAD_STATEID);
		if (op->of_lock) /* the open's stateid is not a lock's */
			IS(op, run(op, &file.fh, &file.sid), NFS4ERR_BAD_STATEID);
		end();
	}
}

OP_MINORS_TEST(nfs4_stateids, not_opened_for_that)
{
	make_file("a", "text", 0666);
	begin();
	end();
	owner.name = "reader";
	owner.seqid = 1;
	cr_assert_eq(open_it(&owner, "a", OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	EACH_OP (op) {
		if (op->writes && !op->of_lock)
			IS(op, run(op, &file.fh, &file.sid), NFS4ERR_OPENMODE);
	}
	cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
}

/* One client's lease has run out, and the other client has taken over its state. */
OP_MINORS_TEST(nfs4_stateids, expired)
{
	make_file("a", "text", 0666);
	make_file("b", "text", 0666);
	begin();
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	rival = (struct op_owner){ &other, "rival", 1 };
	for (int i = 0; i < 2; i++) {
		nfs4_clients_skip_time(f->server4, 60);
		cr_assert_eq(open_it(&rival, "b", 0, &elsewhere), NFS4_OK);
	}
	nfs4_tick(f->server4);
	cr_assert_eq(op_open(f, &rival,
			     &(struct op_how){
				     .fh = &f->root, .name = "a", .deny = OPEN4_SHARE_DENY_WRITE },
			     &elsewhere),
		     NFS4_OK);
	EACH_OP (op) {
		struct nfs4_stateid sid = sid_for(op);

		IS(op, run(op, &file.fh, &sid), NFS4ERR_EXPIRED);
	}
	if (minor > 0)
		return;
	cr_expect_eq(op_lockt(f, &locker, &file.fh, &ten, NULL), NFS4ERR_EXPIRED);
	cr_expect_eq(op_release_lockowner(f, &locker), NFS4ERR_EXPIRED);
}

OP_MINORS_TEST(nfs4_stateids, revoked)
{
	const struct nfs4_revocation all = { .status = NFS4ERR_ADMIN_REVOKED };

	make_file("a", "text", 0666);
	EACH_OP (op) {
		struct nfs4_client *cl;
		struct nfs4_stateid sid;

		begin();
		sid = sid_for(op);
		cl = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
		cr_assert(cl);
		nfs4_holdings_revoke(cl, &all);
		IS(op, run(op, &file.fh, &sid), NFS4ERR_ADMIN_REVOKED);
		nfs4_client_put(cl);
	}
}

/* The delegation of a file was revoked. The other stateids are not looked at. */
static void of_a_revoked_delegation(void)
{
	const struct op_how how = { .fh = &f->root,
				    .name = "a",
				    .access = OPEN4_SHARE_ACCESS_READ };
	struct nfs4_client *cl;
	struct nfs4_state *st;

	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	cbs_on(f);
	make_file("a", "text", 0666);
	cr_assert_eq(op_client_new(f, &client, minor, "holder"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
	cl = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
	cr_assert(cl);
	TAILQ_FOREACH (st, &cl->holdings->states, link) {
		if (st->kind == NFS4_STATE_DELEG)
			break;
	}
	cr_assert(st);
	cr_expect(nfs4_deleg_revoke(nfs4_as_deleg(st), NFS4ERR_DELEG_REVOKED));
	nfs4_client_put(cl);
	EACH_OP (op) {
		const bool of_open =
			op->of_lock || op->num == OP_CLOSE || op->num == OP_OPEN_DOWNGRADE;

		IS(op, run(op, &file.fh, &file.deleg),
		   of_open ? NFS4ERR_BAD_STATEID : NFS4ERR_DELEG_REVOKED);
	}
}

OP_MINOR_TEST(nfs4_stateids, of_a_revoked_delegation, 1)
OP_MINOR_TEST(nfs4_stateids, of_a_revoked_delegation, 2)

/* Operations by the anonymous stateid on a file that an open denies to others. */
OP_MINORS_TEST(nfs4_stateids, anonymous_and_denied)
{
	static const struct nfs4_stateid anonymous;
	const struct op_how how = { .fh = &f->root, .name = "a", .deny = OPEN4_SHARE_DENY_BOTH };

	make_file("a", "text", 0666);
	cr_assert_eq(op_client_new(f, &client, minor, "denies"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	EACH_OP (op) {
		switch (op->num) {
		case OP_READ:
		case OP_WRITE:
		case OP_SETATTR:
		case OP_SEEK:
		case OP_COPY:
		case OP_READ_PLUS:
		case OP_WRITE_SAME:
		case OP_COPY_NOTIFY:
			IS(op, run(op, &file.fh, &anonymous), NFS4ERR_LOCKED);
			break;
		case OP_ALLOCATE: /* LOCKED is not in this operation's table */
		case OP_DEALLOCATE:
		case OP_CLONE:
			IS(op, run(op, &file.fh, &anonymous), NFS4ERR_ACCESS);
			break;
		default:
			break;
		}
	}
}
