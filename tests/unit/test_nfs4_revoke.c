/* SPDX-License-Identifier: BSD-2-Clause */
/* State that an administrator revokes: removed exports, removed clients. */
#include <arpa/inet.h>
#include <errno.h>
#include <time.h>

#include "lib/error.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_view.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/file_state.h"

NFS3_SUITE(nfs4_revoke);

#define WRITE_LT 2

static uint32_t minor;
static struct op_client client, other;
static struct op_owner owner, rival, locker, rivals;
static struct op_file file, theirs;
static struct nfs4_stateid lock, their_lock;
static const struct op_range ten = { .type = WRITE_LT, .length = 10 };

static uint32_t open_in(const struct vfs_fh *dir, struct op_owner *o, uint32_t deny,
			struct op_file *out)
{
	const struct op_how how = { .fh = dir, .name = "a", .deny = deny };

	return op_open(f, o, &how, out);
}

static void come_from(struct op_client *c)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&f->conn.peer;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(c == &client ? 0xc0000201 : 0xc0000202);
}

/* One client has the file open and locked. */
static void begin(void)
{
	come_from(&client);
	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	come_from(&other);
	cr_assert_eq(op_client_new(f, &other, minor, "other"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
	locker = (struct op_owner){ &client, "locker", 1 };
	rivals = (struct op_owner){ &other, "rival's", 1 };
	make_file("a", "text", 0666);
	cr_assert_eq(open_in(&f->root, &owner, OPEN4_SHARE_DENY_BOTH, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &ten, &lock, NULL), NFS4_OK);
}

/* True if export 1 is lost to clients registered from 192.0.2.1, or to all clients. */
static bool is_lost(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;
	const bool *all = ctx;

	cr_expect_eq(peer->sa_family, AF_INET6);
	cr_expect(IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr));
	return id == 1 && (*all || in6->sin6_addr.s6_addr[15] == 1);
}

static uint64_t lose(bool all)
{
	static const uint32_t ids[] = { 2, 1 };
	uint32_t some[2];
	const struct vfs_exports_lost lost = {
		.ids = ids, .n = 2, .some = some, .lost = is_lost, .ctx = &all
	};

	return nfs4_revoke_exports(f->server4, &lost);
}

static uint32_t flags(struct op_client *c)
{
	cr_expect_eq(call_sequence(f, &c->session), NFS4_OK);
	return c->session.status_flags;
}

static uint64_t held_of_files(void)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st.shares + st.locks + st.held;
}

/*
 * Operations with revoked state get their own error, and other clients may open the file at once.
 */
OP_MINORS_TEST(nfs4_revoke, an_export_that_is_gone)
{
	begin();
	cr_expect_eq(open_in(&f->root, &rival, 0, &theirs), NFS4ERR_SHARE_DENIED);
	cr_expect_neq(held_of_files(), 0);
	cr_expect_eq(lose(true), 1);
	cr_expect_eq(held_of_files(), 0);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_write(f, &client, &file.fh, &lock), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_lock(f, &locker, &file.fh, &ten, &lock, NULL), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_downgrade(f, &owner, &file, 1, 0), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_close(f, &owner, &file), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(lose(true), 0);
	cr_expect_eq(open_in(&f->root, &rival, OPEN4_SHARE_DENY_WRITE, &theirs), NFS4_OK);
	cr_expect_eq(op_lock_first(f, &rival, &rivals, &theirs, &ten, &their_lock, NULL), NFS4_OK);
	cr_expect_eq(op_read(f, &other, &theirs.fh, &theirs.sid), NFS4_OK);
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4ERR_SHARE_DENIED);
	cr_expect_eq(op_unlock(f, &rivals, &theirs.fh, &ten, &their_lock), NFS4_OK);
	cr_expect_eq(op_close(f, &rival, &theirs), NFS4_OK);
	/* The export is back: the client goes on with new opens. */
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4_OK);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

static void until_freed(void)
{
	begin();
	cr_expect_eq(flags(&client), 0);
	lose(true);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(flags(&client), SEQ4_STATUS_ADMIN_STATE_REVOKED);
	cr_expect_eq(flags(&other), 0);
	cr_expect_eq(op_test_stateid(f, &client, &file.sid), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_test_stateid(f, &client, &lock), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_free_stateid(f, &client, &lock), NFS4_OK);
	cr_expect_eq(flags(&client), SEQ4_STATUS_ADMIN_STATE_REVOKED);
	cr_expect_eq(op_free_stateid(f, &client, &file.sid), NFS4_OK);
	cr_expect_eq(flags(&client), 0);
	cr_expect_eq(op_test_stateid(f, &client, &lock), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_free_stateid(f, &client, &lock), NFS4ERR_BAD_STATEID);
}

Test(nfs4_revoke, sequence_says_so_until_all_is_freed_v41)
{
	NEED_FIXTURE();
	minor = 1;
	until_freed();
}

Test(nfs4_revoke, sequence_says_so_until_all_is_freed_v42)
{
	NEED_FIXTURE();
	minor = 2;
	until_freed();
}

/* Freeing a revoked open also frees its locks. */
Test(nfs4_revoke, an_open_is_freed_with_its_locks)
{
	NEED_FIXTURE();
	minor = 1;
	begin();
	lose(true);
	cr_expect_eq(op_free_stateid(f, &client, &file.sid), NFS4_OK);
	cr_expect_eq(flags(&client), 0);
	cr_expect_eq(op_test_stateid(f, &client, &lock), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_free_stateid(f, &client, &lock), NFS4ERR_BAD_STATEID);
}

/* Some leases, which the client renews. */
static void pass_leases(void)
{
	for (unsigned i = 0; i < 5; i++) {
		nfs4_clients_skip_time(f->server4, 60);
		cr_expect_eq(call_renew(f, client.clientid), NFS4_OK);
		for (unsigned j = 0; j < 10; j++)
			nfs4_tick(f->server4);
	}
}

/* Minor version 0 has no FREE_STATEID: revoked state is dropped after a lease, and the owners go
 * on. */
Test(nfs4_revoke, after_a_lease_it_is_forgotten_v40)
{
	struct nfs4_held held;

	NEED_FIXTURE();
	minor = 0;
	begin();
	lose(true);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.opens + held.locks, 2);
	pass_leases();
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.opens + held.locks, 0);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_BAD_STATEID);
	owner.seqid = locker.seqid = 1;
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

/* Only state below the lost export, of the client that has lost it, is revoked. */
OP_MINORS_TEST(nfs4_revoke, others_keep_theirs)
{
	const struct op_how how = { .fh = &f->root, .name = "b", .create = OP_UNCHECKED };
	struct op_file elsewhere, b;
	struct vfs_fh second;
	char path[128];
	int fd;

	begin();
	fix_put_name(fix_call(f, MOUNT_PROGRAM, 3, 1 /* MNT */), f->dir[1]);
	cr_assert_eq(xdr_get_u32(fix_send(f)), 0);
	fix_get_fh(&f->in, &second);
	snprintf(path, sizeof(path), "%s/a", f->dir[1]);
	fd = open(path, O_CREAT | O_RDWR, 0666);
	cr_assert_geq(fd, 0);
	fchmod(fd, 0666);
	close(fd);
	cr_assert_eq(open_in(&second, &owner, 0, &elsewhere), NFS4_OK);
	cr_assert_eq(op_open(f, &rival, &how, &b), NFS4_OK);
	cr_expect_eq(lose(false), 1);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_write(f, &client, &elsewhere.fh, &elsewhere.sid), NFS4_OK);
	cr_expect_eq(op_write(f, &other, &b.fh, &b.sid), NFS4_OK);
	if (minor > 0) {
		cr_expect_eq(flags(&client), SEQ4_STATUS_ADMIN_STATE_REVOKED);
		cr_expect_eq(flags(&other), 0);
	}
	cr_expect_eq(op_close(f, &owner, &elsewhere), NFS4_OK);
	unlink(path);
}

/* An OPEN has found the export and has its share when the export is removed: no state is left, not
 * even for FREE_STATEID. */
OP_MINORS_TEST(nfs4_revoke, an_open_meanwhile)
{
	cr_assert_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	make_file("a", "text", 0666);
	f->deny_after = 2;
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4ERR_STALE);
	f->deny = false;
	cr_expect_eq(held_of_files(), 0);
	if (minor > 0)
		cr_expect_eq(flags(&client), 0);
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

/* More state than one walk revokes. */
Test(nfs4_revoke, many)
{
	struct op_how how = { .fh = &f->root, .create = OP_UNCHECKED };
	char name[32];

	NEED_FIXTURE();
	minor = 1;
	begin();
	how.name = name;
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "many%u", i);
		cr_assert_eq(op_open(f, &owner, &how, &theirs), NFS4_OK);
	}
	cr_expect_eq(lose(true), 301);
	cr_expect_eq(held_of_files(), 0);
	cr_expect_eq(flags(&client), SEQ4_STATUS_ADMIN_STATE_REVOKED);
	nfs4_clients_skip_time(f->server4, 95);
	nfs4_tick(f->server4);
}

static void nap(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
}

static int forget(uint64_t clientid)
{
	int rc = nfs4_forget_client(f->server4, clientid);

	for (unsigned i = 0; i < 5000 && rc == -RN_ESOON; i++) {
		nap();
		rc = nfs4_forget_client(f->server4, clientid);
	}
	return rc;
}

OP_MINORS_TEST(nfs4_revoke, a_client_is_forgotten)
{
	struct nfs4_held held;

	begin();
	cr_expect_eq(forget(client.clientid + 77), -ENOENT);
	cr_expect_eq(forget(client.clientid), 0);
	cr_expect_eq(forget(client.clientid), -ENOENT);
	cr_expect_eq(held_of_files(), 0);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.clients, 1);
	cr_expect_eq(held.opens + held.locks, 0);
	if (minor > 0) {
		cr_expect_eq(call_sequence(f, &client.session), NFS4ERR_BADSESSION);
	} else {
		cr_expect_eq(call_renew(f, client.clientid), NFS4ERR_STALE_CLIENTID);
		cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4ERR_EXPIRED);
	}
	cr_expect_eq(open_in(&f->root, &rival, OPEN4_SHARE_DENY_BOTH, &theirs), NFS4_OK);
	/* The client registers again as a new one. */
	cr_expect_eq(op_client_new(f, &client, minor, "client"), NFS4_OK);
	owner.seqid = 1;
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4ERR_SHARE_DENIED);
	cr_expect_eq(op_close(f, &rival, &theirs), NFS4_OK);
	cr_expect_eq(open_in(&f->root, &owner, 0, &file), NFS4_OK);
}

static uint64_t id_of(const struct nfs4_stateid *sid)
{
	uint64_t id = 0;

	for (unsigned i = 4; i < NFS4_OTHER_SIZE; i++)
		id = id << 8 | sid->other[i];
	return id;
}

static int end(enum nfs4_view_kind kind, uint64_t id)
{
	int rc = nfs4_end_state(f->server4, kind, id);

	for (unsigned i = 0; i < 5000 && rc == -RN_ESOON; i++) {
		nap();
		rc = nfs4_end_state(f->server4, kind, id);
	}
	return rc;
}

/* A lock that is ended alone is free at once; its open stays, and can be locked again. */
OP_MINORS_TEST(nfs4_revoke, a_lock_alone)
{
	struct nfs4_held held;

	begin();
	cr_expect_eq(end(NFS4_VIEW_OPENS, id_of(&lock)), -ENOENT, "it is no open");
	cr_expect_eq(end(NFS4_VIEW_LOCKS, id_of(&lock) + (UINT64_C(1) << 32)), -ENOENT);
	cr_expect_eq(end(NFS4_VIEW_LOCKS, id_of(&lock)), 0);
	cr_expect_eq(end(NFS4_VIEW_LOCKS, id_of(&lock)), -ENOENT, "it was revoked");
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &ten, &lock), NFS4ERR_ADMIN_REVOKED);
	cr_expect_eq(op_read(f, &client, &file.fh, &file.sid), NFS4_OK);
	if (minor > 0) {
		cr_expect(flags(&client) & SEQ4_STATUS_ADMIN_STATE_REVOKED);
		cr_expect_eq(op_free_stateid(f, &client, &lock), NFS4_OK);
		cr_expect_not(flags(&client) & SEQ4_STATUS_ADMIN_STATE_REVOKED);
	} else {
		pass_leases();
	}
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.locks, 0, "it is freed");
	cr_expect_eq(held.opens, 1);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}
