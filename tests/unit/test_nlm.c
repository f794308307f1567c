/* SPDX-License-Identifier: BSD-2-Clause */
/* NLM version 4: conflicts of locks of NFSv3's clients with each other and with other locks. */
#include <netinet/in.h>
#include <stdlib.h>

#include "nfs3/nlm/nlm.h"
#include "nfs3/nlm/owners.h"
#include "nfs3/nfs3_state.h"
#include "rpc/client.h"
#include "rpc/worker.h"
#include "tests/unit/nfs3_suite.h"
#include "vfs/lock.h"

NFS3_SUITE(nlm);

struct range {
	uint64_t offset, length;
	bool exclusive;
};

static const struct range whole_file = { .exclusive = true };

static struct xdr_out *nlm_call(uint32_t proc)
{
	struct xdr_out *c = fix_call(f, NLM_PROGRAM, NLM_VERSION, proc);

	xdr_put_opaque(c, "cookie!", 7);
	return c;
}

static void put_lock(struct xdr_out *c, const struct vfs_fh *fh, int svid, const struct range *r)
{
	char oh[32];

	snprintf(oh, sizeof(oh), "%d@client", svid);
	xdr_put_opaque(c, "client", 6);
	fix_put_fh(c, fh);
	xdr_put_opaque(c, oh, (uint32_t)strlen(oh));
	xdr_put_u32(c, (uint32_t)svid);
	xdr_put_u64(c, r->offset);
	xdr_put_u64(c, r->length);
}

/* Reads the status behind the cookie. */
static uint32_t reply_status(void)
{
	const uint8_t *cookie;
	uint32_t len;

	fix_send(f);
	if (f->outcome != FIX_REPLY || f->accept_stat != RPC_SUCCESS)
		return UINT32_MAX;
	cookie = xdr_get_opaque(&f->in, NLM_OPAQUE_MAX, &len);
	cr_assert(len == 7 && memcmp(cookie, "cookie!", 7) == 0);
	return xdr_get_u32(&f->in);
}

static uint32_t do_lock(const struct vfs_fh *fh, int svid, const struct range *r, bool block,
			bool reclaim)
{
	struct xdr_out *c = nlm_call(NLMPROC4_LOCK);

	xdr_put_bool(c, block);
	xdr_put_bool(c, r->exclusive);
	put_lock(c, fh, svid, r);
	xdr_put_bool(c, reclaim);
	xdr_put_u32(c, 3);
	return reply_status();
}

static uint32_t do_unlock(const struct vfs_fh *fh, int svid, const struct range *r)
{
	struct xdr_out *c = nlm_call(NLMPROC4_UNLOCK);

	put_lock(c, fh, svid, r);
	return reply_status();
}

static uint32_t do_cancel(const struct vfs_fh *fh, int svid, const struct range *r)
{
	struct xdr_out *c = nlm_call(NLMPROC4_CANCEL);

	xdr_put_bool(c, true);
	xdr_put_bool(c, r->exclusive);
	put_lock(c, fh, svid, r);
	return reply_status();
}

struct seen {
	struct range range;
	int svid;
	uint32_t oh_len;
};

static uint32_t do_test(const struct vfs_fh *fh, int svid, const struct range *r, struct seen *out)
{
	struct xdr_out *c = nlm_call(NLMPROC4_TEST);
	uint32_t stat;

	xdr_put_bool(c, r->exclusive);
	put_lock(c, fh, svid, r);
	stat = reply_status();
	if (stat == NLM4_DENIED) {
		out->range.exclusive = xdr_get_bool(&f->in);
		out->svid = (int)xdr_get_u32(&f->in);
		xdr_get_opaque(&f->in, NLM_OPAQUE_MAX, &out->oh_len);
		out->range.offset = xdr_get_u64(&f->in);
		out->range.length = xdr_get_u64(&f->in);
	}
	if (stat != UINT32_MAX)
		whole();
	return stat;
}

static void free_all(const char *name)
{
	struct xdr_out *c = fix_call(f, NLM_PROGRAM, NLM_VERSION, NLMPROC4_FREE_ALL);

	xdr_put_opaque(c, name, (uint32_t)strlen(name));
	xdr_put_u32(c, 5);
	fix_send(f);
	cr_assert_eq(f->accept_stat, RPC_SUCCESS);
}

static void come_from(uint32_t address)
{
	struct sockaddr_in *a = (struct sockaddr_in *)&f->conn.peer;

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons(700);
	a->sin_addr.s_addr = htonl(address);
}

static uint64_t locks(void)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st.locks;
}

Test(nlm, grant_deny_unlock)
{
	const struct range some = { 10, 10, true }, shared = { 15, 100, false };
	struct seen seen;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &some, false, false), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 1, &some, false, false), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 2, &shared, false, false), NLM4_DENIED);
	cr_expect_eq(do_test(&fh, 2, &shared, &seen), NLM4_DENIED);
	cr_expect(seen.range.exclusive && seen.svid == 1 && seen.oh_len == 8);
	cr_expect(seen.range.offset == 10 && seen.range.length == 10);
	cr_expect_eq(do_test(&fh, 1, &whole_file, &seen), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &(struct range){ 12, 0, false }), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 2, &shared, false, false), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 3, &whole_file), NLM4_GRANTED);
	cr_expect_eq(locks(), 2);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 2, &whole_file), NLM4_GRANTED);
	cr_expect_eq(locks(), 0);
}

Test(nlm, one_that_waits_asks_again)
{
	struct vfs_file_stats st;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, true, false), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 2, &whole_file, true, false), NLM4_BLOCKED);
	cr_expect_eq(do_lock(&fh, 3, &whole_file, true, false), NLM4_BLOCKED);
	cr_expect_eq(do_cancel(&fh, 3, &whole_file), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 2, &whole_file, true, false), NLM4_GRANTED);
	vfs_file_stats(f->vfs, &st);
	cr_expect_eq(st.waiters, 0);
}

Test(nlm, clients_are_told_apart)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	come_from(0x0a000001);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	come_from(0x0a000002);
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_DENIED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	free_all("client");
	cr_expect_eq(locks(), 1);
	come_from(0x0a000001);
	free_all("clien");
	cr_expect_eq(locks(), 1);
	free_all("client");
	cr_expect_eq(locks(), 0);
}

/* Any user of the client's machine can call from an unprivileged port, or without AUTH_SYS. */
Test(nlm, free_all_by_who_may_not_lock)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	come_from(0x0a000001);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	f->access.flags |= VFS_SECURE;
	((struct sockaddr_in *)&f->conn.peer)->sin_port = htons(40000);
	free_all("client");
	cr_expect_eq(locks(), 1);
	come_from(0x0a000001);
	f->flavor = RPC_AUTH_NONE;
	free_all("client");
	cr_expect_eq(locks(), 1);
	f->flavor = RPC_AUTH_SYS;
	f->deny = true;
	free_all("client");
	cr_expect_eq(locks(), 1);
	f->deny = false;
	free_all("client");
	cr_expect_eq(locks(), 0);
}

static struct rpc_client waiting_client;
static unsigned looks;

/* The name service answers when the call has waited three times. */
static void answer_third(struct fixture *fix)
{
	if (rpc_waits_count(fix->rpc.waits) == 0)
		return;
	fix->undecided = ++looks < 3;
	rpc_wake_all(fix->rpc.waits, 1u << RN_WAIT_NAME);
}

Test(nlm, free_all_waits_until_the_client_is_known)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	come_from(0x0a000001);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	f->undecided = true;
	f->conn.client = &waiting_client;
	f->on_wait = answer_third;
	free_all("client");
	cr_expect_geq(looks, 3);
	cr_expect_eq(locks(), 0);
}

/* The client has to ask again. */
Test(nlm, free_all_of_who_stays_unknown_fails)
{
	struct xdr_out *c;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	come_from(0x0a000001);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	f->undecided = true;
	c = fix_call(f, NLM_PROGRAM, NLM_VERSION, NLMPROC4_FREE_ALL);
	xdr_put_opaque(c, "client", 6);
	xdr_put_u32(c, 5);
	fix_send(f);
	cr_expect_eq(f->accept_stat, RPC_SYSTEM_ERR);
	cr_expect_eq(locks(), 1);
	f->undecided = false;
	free_all("client");
	cr_expect_eq(locks(), 0);
}

/* An exclusive lock needs write permission: otherwise it would only keep writers out. */
Test(nlm, exclusive_locks_need_write_permission)
{
	const struct range shared = { .length = 10 };
	struct seen seen;
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	cr_assert_eq(chown(fix_path(f, "x"), 1000, 1000), 0);
	fh = handle("x");
	f->uid = f->gid = 4321;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_FAILED);
	cr_expect_eq(do_lock(&fh, 1, &whole_file, true, false), NLM4_FAILED);
	cr_expect_eq(do_test(&fh, 1, &whole_file, &seen), NLM4_FAILED);
	cr_expect_eq(do_lock(&fh, 1, &shared, false, false), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &shared), NLM4_GRANTED);
	/* The file's owner may lock whatever the mode. */
	f->uid = f->gid = 1000;
	cr_assert_eq(chmod(fix_path(f, "x"), 0400), 0);
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	f->access.flags |= VFS_ALL_SQUASH;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_FAILED);
	f->access.flags &= ~(uint32_t)VFS_ALL_SQUASH;
	f->access.flags |= VFS_RO;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_ROFS);
	cr_expect_eq(do_lock(&fh, 1, &shared, false, false), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &shared), NLM4_GRANTED);
	cr_expect_eq(locks(), 0);
}

/* The option insecure_locks of exports(5). */
Test(nlm, locks_without_permission)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	f->access.flags |= VFS_NO_AUTH_NLM;
	f->uid = f->gid = 4321;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	f->flavor = RPC_AUTH_NONE;
	cr_expect_eq(do_lock(&fh, 2, &whole_file, false, false), NLM4_DENIED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 2, &whole_file, false, false), NLM4_GRANTED);
	free_all("client");
	cr_expect_eq(locks(), 0);
	cr_expect_eq(do_lock(&f->root, 1, &whole_file, false, false), NLM4_FAILED);
	f->access.flags |= VFS_RO;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_ROFS);
	f->access.flags &= ~(uint32_t)VFS_NO_AUTH_NLM;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), UINT32_MAX);
	cr_expect_eq(f->auth_stat, RPC_AUTH_TOOWEAK);
}

/* Locks of an NFSv4 client, and of a local process. */
Test(nlm, locks_of_others)
{
	struct vfs_lock_request r = { .type = VFS_LOCK_READ, .offset = 3, .length = 4 };
	struct flock fl = { .l_type = F_WRLCK, .l_start = 100, .l_len = 1 };
	struct vfs_lock_owner o;
	struct vfs_file *file;
	struct vfs_node *n;
	struct vfs_ctx ctx;
	struct seen seen;
	struct vfs_fh fh;
	int fd;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	fd = open(fix_path(f, "x"), O_RDWR);
	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	ctx = (struct vfs_ctx){ .vfs = f->vfs, .fiber = &f->fiber, .exp = f->exp[0] };
	cr_assert_eq(vfs_fh_open(&ctx, &fh, &n), 0);
	cr_assert_eq(vfs_file_get(&ctx, n, &file), 0);
	vfs_lock_owner_init(&o, file, NULL);
	cr_assert_eq(vfs_lock(&ctx, n, &o, &r, NULL), 0);
	cr_expect_eq(do_test(&fh, 1, &whole_file, &seen), NLM4_DENIED);
	cr_expect(!seen.range.exclusive && seen.range.offset == 3 && seen.range.length == 4);
	cr_expect_eq(do_lock(&fh, 1, &(struct range){ 0, 10, false }, false, false), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 1, &(struct range){ 0, 10, true }, false, false), NLM4_DENIED);
	cr_expect_eq(do_test(&fh, 1, &(struct range){ 100, 1, false }, &seen), NLM4_DENIED);
	cr_expect(seen.range.exclusive && seen.svid == 0 && seen.range.offset == 100);
	r.type = VFS_LOCK_WRITE;
	cr_expect_eq(vfs_lock(&ctx, n, &o, &r, NULL), -RN_EDENIED);
	fl.l_start = 9;
	cr_expect_eq(fcntl(fd, F_OFD_SETLK, &fl), -1);
	close(fd);
	vfs_lock_owner_end(&o);
	vfs_file_put(file);
	vfs_node_put(n);
}

static bool always(void *ctx, enum nfs3_grace what)
{
	(void)what;
	(void)ctx;
	return true;
}

Test(nlm, grace)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, true), NLM4_DENIED_GRACE_PERIOD);
	f->server->cfg.in_grace = always;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, true, false), NLM4_DENIED_GRACE_PERIOD);
	cr_expect_eq(do_test(&fh, 1, &whole_file, NULL), NLM4_DENIED_GRACE_PERIOD);
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, true), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
}

static unsigned questions;

/* Other servers grant locks until the third question. */
static bool later(void *ctx, enum nfs3_grace what)
{
	(void)ctx;
	if (what == NFS3_RECLAIMS_LATER)
		return ++questions < 3;
	return what == NFS3_LOCKS_WAIT || questions >= 3;
}

/* A refusal would end the lock. */
Test(nlm, reclaim_that_comes_too_early)
{
	static struct rpc_client client; /* who may wait */
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	f->server->cfg.in_grace = later;
	f->conn.client = &client;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, true), NLM4_GRANTED);
	cr_expect_eq(questions, 3);
	questions = 0;
	f->conn.client = NULL;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, true), NLM4_DENIED_GRACE_PERIOD,
		     "there is no place to wait");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_DENIED_GRACE_PERIOD);
	cr_expect_eq(questions, 1, "a new lock does not wait");
	questions = 3;
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	f->server->cfg.in_grace = NULL;
}

Test(nlm, what_is_wrong)
{
	struct vfs_fh fh, bad = { .len = 12 };
	struct xdr_out *c;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	make_file("y", "", 0600);
	fh = handle("x");
	cr_expect_eq(do_lock(&bad, 1, &whole_file, false, false), NLM4_STALE_FH);
	bad.len = 0;
	cr_expect_eq(do_lock(&bad, 1, &whole_file, false, false), NLM4_STALE_FH);
	cr_expect_eq(do_lock(&f->root, 1, &whole_file, false, false), NLM4_FAILED);
	cr_expect_eq(do_lock(&fh, 1, &(struct range){ 3, UINT64_MAX - 1, true }, false, false),
		     NLM4_FBIG);
	f->uid = f->gid = 4321;
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_FAILED);
	f->uid = f->gid = 0;
	c = nlm_call(NLMPROC4_UNLOCK);
	xdr_put_opaque(c, "client", 6);
	fix_send(f);
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);
	cr_expect_eq(locks(), 0);
}

/* A locked file stays usable after its removal, until it is unlocked. */
Test(nlm, of_a_removed_file)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	cr_expect_eq(do_lock(&fh, 1, &whole_file, false, false), NLM4_GRANTED);
	call_name(NFSPROC3_REMOVE, "x");
	cr_expect_eq(status(), NFS3_OK);
	cr_expect_eq(do_lock(&fh, 2, &whole_file, false, false), NLM4_DENIED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_STALE_FH);
	cr_expect_eq(locks(), 0);
}

/* The export is removed: its locks are freed, and no descriptor of the file stays open. */
static bool first_is_lost(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	(void)ctx;
	return id == 1 && peer->sa_family == AF_INET;
}

static uint64_t revoke_first(void)
{
	static const uint32_t ids[] = { 1 };
	const struct vfs_exports_lost lost = { .ids = ids, .n = 1, .lost = first_is_lost };

	return nlm_revoke_exports(f->server, &lost);
}

Test(nlm, an_export_that_is_gone)
{
	const struct range begin = { .length = 10, .exclusive = true };
	struct vfs_file_stats st;
	struct vfs_fh fh;
	struct seen seen;

	NEED_FIXTURE();
	make_file("file", "text", 0666);
	fh = handle("file");
	cr_expect_eq(do_lock(&fh, 1, &begin, false, false), NLM4_GRANTED);
	cr_expect_eq(do_test(&fh, 2, &whole_file, &seen), NLM4_DENIED);
	cr_expect_eq(revoke_first(), 1);
	cr_expect_eq(revoke_first(), 0);
	vfs_file_stats(f->vfs, &st);
	cr_expect_eq(st.locks + st.shares + st.held, 0);
	cr_expect_eq(do_lock(&fh, 2, &whole_file, false, false), NLM4_GRANTED);
	/* The client that lost the lock is not notified, and can go on. */
	cr_expect_eq(do_unlock(&fh, 1, &begin), NLM4_GRANTED);
	cr_expect_eq(do_lock(&fh, 1, &begin, false, false), NLM4_DENIED);
	cr_expect_eq(do_unlock(&fh, 2, &whole_file), NLM4_GRANTED);
	/* A call that has already found the export when it is removed. */
	f->deny_after = 2;
	cr_expect_eq(do_lock(&fh, 1, &begin, false, false), NLM4_STALE_FH);
	f->deny = false;
	cr_expect_eq(do_test(&fh, 2, &whole_file, &seen), NLM4_GRANTED);
}

/* Ranges take memory: one owner may not have as many as the whole limit. */
Test(nlm, ranges_cost_memory)
{
	struct nlm_owners *t;
	struct vfs_fh fh;
	size_t one;

	NEED_FIXTURE();
	make_file("x", "", 0644);
	fh = handle("x");
	t = f->server->nlm;
	for (uint64_t i = 0; i < 3; i++)
		cr_expect_eq(do_lock(&fh, 1, &(struct range){ 10 * i, 5, true }, false, false),
			     NLM4_GRANTED);
	one = t->memory.used;
	cr_expect_geq(one, 3 * (size_t)NLM_RANGE_COST);
	cr_expect_eq(do_unlock(&fh, 1, &(struct range){ 0, 5, true }), NLM4_GRANTED);
	cr_expect_eq(t->memory.used, one - NLM_RANGE_COST);
	cr_expect_eq(do_unlock(&fh, 1, &(struct range){ 22, 1, true }), NLM4_GRANTED);
	cr_expect_eq(t->memory.used, one);
	t->memory.used += NLM_MEMORY_MAX;
	cr_expect_eq(do_lock(&fh, 1, &(struct range){ 100, 5, true }, false, false),
		     NLM4_DENIED_NOLOCKS);
	cr_expect_eq(do_unlock(&fh, 1, &(struct range){ 10, 1, true }), NLM4_GRANTED);
	t->memory.used -= NLM_MEMORY_MAX;
	cr_expect_eq(do_lock(&fh, 1, &(struct range){ 100, 5, true }, false, false), NLM4_GRANTED);
	cr_expect_eq(do_unlock(&fh, 1, &whole_file), NLM4_GRANTED);
	cr_expect_eq(t->memory.used, 0);
}
