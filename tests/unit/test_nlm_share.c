/* SPDX-License-Identifier: BSD-2-Clause */
/* SHARE and UNSHARE of NLM, and versions with offsets of 32 bits: what each status means. */
#include <stdlib.h>

#include "nfs3/nlm/nlm.h"
#include "nfs3/nfs3_state.h"
#include "tests/unit/nfs3_suite.h"
#include "vfs/share.h"

NFS3_SUITE(nlm_share);

enum { DENY_NONE, DENY_READ, DENY_WRITE, DENY_BOTH };
enum { NONE, READ, WRITE, BOTH };

static struct vfs_fh fh;

static void put_owner(struct xdr_out *c, const char *owner)
{
	xdr_put_opaque(c, "client", 6);
	fix_put_fh(c, &fh);
	xdr_put_opaque(c, owner, (uint32_t)strlen(owner));
}

static uint32_t nlm_status_of_reply(void)
{
	uint32_t len;

	fix_send(f);
	if (f->outcome != FIX_REPLY || f->accept_stat != RPC_SUCCESS)
		return UINT32_MAX;
	xdr_get_opaque(&f->in, NLM_OPAQUE_MAX, &len);
	cr_assert_eq(len, 7);
	return xdr_get_u32(&f->in);
}

static uint32_t call_share(uint32_t proc, const char *owner, uint32_t deny, uint32_t access)
{
	struct xdr_out *c = fix_call(f, NLM_PROGRAM, 3, proc);
	uint32_t stat;

	xdr_put_opaque(c, "cookie!", 7);
	put_owner(c, owner);
	xdr_put_u32(c, deny);
	xdr_put_u32(c, access);
	xdr_put_bool(c, false);
	stat = nlm_status_of_reply();
	if (stat != UINT32_MAX) {
		cr_expect_eq(xdr_get_u32(&f->in), 0, "the sequence number");
		whole();
	}
	return stat;
}

static uint32_t share(const char *owner, uint32_t deny, uint32_t access)
{
	return call_share(NLMPROC4_SHARE, owner, deny, access);
}

static uint32_t end_share(const char *owner)
{
	return call_share(NLMPROC4_UNSHARE, owner, DENY_NONE, NONE);
}

static uint64_t shares(void)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st.shares;
}

static void make(void)
{
	make_file("x", "text", 0644);
	fh = handle("x");
}

Test(nlm_share, modes_against_each_other)
{
	NEED_FIXTURE();
	make();
	for (uint32_t deny = DENY_NONE; deny <= DENY_BOTH; deny++) {
		for (uint32_t access = NONE; access <= BOTH; access++) {
			cr_expect_eq(share("a", deny, access), NLM4_GRANTED);
			for (uint32_t d = DENY_NONE; d <= DENY_BOTH; d++) {
				for (uint32_t a = NONE; a <= BOTH; a++) {
					const bool fits = !(deny & a) && !(d & access);

					cr_expect_eq(share("b", d, a),
						     fits ? NLM4_GRANTED : NLM4_DENIED,
						     "%u %u: %u %u", deny, access, d, a);
					cr_expect_eq(end_share("b"), NLM4_GRANTED);
				}
			}
		}
	}
	cr_expect_eq(end_share("a"), NLM4_GRANTED);
	cr_expect_eq(end_share("a"), NLM4_GRANTED, "once more");
	cr_expect_eq(shares(), 0);
}

/* A further SHARE of an owner replaces its share, or changes nothing. */
Test(nlm_share, an_owner_changes_its_share)
{
	NEED_FIXTURE();
	make();
	cr_expect_eq(share("a", DENY_NONE, READ), NLM4_GRANTED);
	cr_expect_eq(share("b", DENY_NONE, READ), NLM4_GRANTED);
	cr_expect_eq(share("a", DENY_READ, READ), NLM4_DENIED);
	cr_expect_eq(share("c", DENY_NONE, READ), NLM4_GRANTED);
	cr_expect_eq(share("a", DENY_WRITE, READ), NLM4_GRANTED);
	cr_expect_eq(share("c", DENY_NONE, BOTH), NLM4_DENIED);
	cr_expect_eq(share("a", DENY_NONE, NONE), NLM4_GRANTED);
	cr_expect_eq(share("c", DENY_NONE, BOTH), NLM4_GRANTED);
	end_share("b");
	end_share("c");
	cr_expect_eq(shares(), 0, "a share of nothing is none");
}

/* NFSv3's reads and writes name no owner, so a share binds opens only. */
Test(nlm_share, opens_of_others_and_io)
{
	struct vfs_share s, none = { .file = NULL };
	struct vfs_node *n;
	struct vfs_ctx ctx;

	NEED_FIXTURE();
	make();
	ctx = (struct vfs_ctx){ .vfs = f->vfs, .fiber = &f->fiber, .exp = f->exp[0] };
	cr_assert_eq(vfs_fh_open(&ctx, &fh, &n), 0);
	cr_expect_eq(share("a", DENY_WRITE, READ), NLM4_GRANTED);
	s = none;
	cr_expect_eq(
		vfs_share_open(&ctx, n, &s, &(struct vfs_share_request){ NULL, BOTH, 0 }, NULL),
		-RN_ESHARE);
	cr_expect_eq(vfs_share_check_io(&ctx, n, NULL, VFS_SHARE_WRITE, NULL), 0);
	cr_expect_eq(vfs_share_open(&ctx, n, &s,
				    &(struct vfs_share_request){ NULL, READ, DENY_WRITE }, NULL),
		     0);
	cr_expect_eq(vfs_share_check_io(&ctx, n, NULL, VFS_SHARE_WRITE, NULL), -RN_ESHARE,
		     "one that is not advisory binds all");
	cr_expect_eq(vfs_share_check_io(&ctx, n, &s, VFS_SHARE_WRITE, NULL), 0);
	cr_expect_eq(share("b", DENY_NONE, WRITE), NLM4_DENIED);
	end_share("a");
	cr_expect_eq(share("b", DENY_NONE, WRITE), NLM4_DENIED, "the open is still in the way");
	vfs_share_close(&s);
	cr_expect_eq(share("b", DENY_NONE, WRITE), NLM4_GRANTED);
	end_share("b");
	cr_expect_eq(vfs_share_check_io(&ctx, n, NULL, VFS_SHARE_WRITE, NULL), 0);
	vfs_node_put(n);
	cr_expect_eq(shares(), 0);
}

/* A share is not its owner's locks, and the other way round. */
Test(nlm_share, beside_locks_and_free_all)
{
	struct xdr_out *c;

	NEED_FIXTURE();
	make();
	cr_expect_eq(share("a", DENY_BOTH, BOTH), NLM4_GRANTED);
	c = fix_call(f, NLM_PROGRAM, 1, NLMPROC4_LOCK);
	xdr_put_opaque(c, "cookie!", 7);
	xdr_put_bool(c, false);
	xdr_put_bool(c, true);
	put_owner(c, "a");
	xdr_put_u32(c, 0);
	xdr_put_u32(c, 0);
	xdr_put_u32(c, 0);
	xdr_put_bool(c, false);
	xdr_put_u32(c, 3);
	cr_expect_eq(nlm_status_of_reply(), NLM4_GRANTED);
	cr_expect_eq(end_share("a"), NLM4_GRANTED);
	cr_expect_eq(shares(), 1, "the lock's");
	cr_expect_eq(share("b", DENY_BOTH, BOTH), NLM4_GRANTED);
	c = fix_call(f, NLM_PROGRAM, 3, NLMPROC4_FREE_ALL);
	xdr_put_opaque(c, "client", 6);
	xdr_put_u32(c, 5);
	fix_send(f);
	cr_expect_eq(f->accept_stat, RPC_SUCCESS);
	cr_expect_eq(shares(), 0);
}

static bool always(void *ctx, enum nfs3_grace what)
{
	(void)what;
	(void)ctx;
	return true;
}

Test(nlm_share, what_is_wrong)
{
	struct vfs_fh good, secret;

	NEED_FIXTURE();
	make();
	good = fh;
	make_file("y", "", 0600);
	secret = handle("y");
	cr_assert_eq(chown(fix_path(f, "x"), 1000, 1000), 0);
	cr_expect_eq(share("a", 4, READ), UINT32_MAX);
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);
	cr_expect_eq(share("a", DENY_NONE, 4), UINT32_MAX);
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);
	/* Permissions are those of an open. */
	f->uid = f->gid = 4321;
	cr_expect_eq(share("a", DENY_WRITE, READ), NLM4_GRANTED);
	cr_expect_eq(share("a", DENY_NONE, WRITE), NLM4_DENIED_NOLOCKS);
	fh = secret;
	cr_expect_eq(share("b", DENY_NONE, WRITE), NLM4_DENIED_NOLOCKS);
	cr_expect_eq(share("b", DENY_BOTH, NONE), NLM4_DENIED_NOLOCKS);
	f->access.flags |= VFS_NO_AUTH_NLM;
	cr_expect_eq(share("b", DENY_NONE, WRITE), NLM4_GRANTED, "insecure_locks");
	cr_expect_eq(end_share("b"), NLM4_GRANTED);
	fh = good;
	f->access.flags &= ~(uint32_t)VFS_NO_AUTH_NLM;
	cr_expect_eq(end_share("a"), NLM4_GRANTED);
	f->uid = f->gid = 0;
	f->access.flags |= VFS_RO;
	cr_expect_eq(share("a", DENY_NONE, WRITE), NLM4_DENIED_NOLOCKS);
	f->access.flags &= ~(uint32_t)VFS_RO;
	fh = f->root;
	cr_expect_eq(share("a", DENY_NONE, READ), NLM4_DENIED_NOLOCKS);
	fh = (struct vfs_fh){ .len = 12 };
	cr_expect_eq(share("a", DENY_NONE, READ), NLM4_DENIED_NOLOCKS);
	fh = good;
	f->server->cfg.in_grace = always;
	cr_expect_eq(share("a", DENY_NONE, READ), NLM4_DENIED_GRACE_PERIOD);
	f->server->cfg.in_grace = NULL;
	f->deny_after = 2;
	cr_expect_eq(share("a", DENY_NONE, READ), NLM4_DENIED_NOLOCKS, "the export went meanwhile");
	f->deny = false;
	cr_expect_eq(shares(), 0);
}

/* Without a monitor nobody can send the answer. */
Test(nlm_share, messages_without_a_monitor)
{
	NEED_FIXTURE();
	make();
	for (uint32_t proc = NLMPROC4_TEST_MSG; proc <= NLMPROC4_GRANTED_MSG; proc++) {
		struct xdr_out *c = fix_call(f, NLM_PROGRAM, 4, proc);

		for (unsigned i = 0; i < 3; i++) /* cookie; booleans, or the start of the lock */
			xdr_put_u32(c, 0);
		for (unsigned i = 0; i < 16; i++)
			xdr_put_u32(c, 0);
		fix_send(f);
		cr_expect_eq(f->accept_stat, RPC_SYSTEM_ERR, "%u", proc);
	}
}
