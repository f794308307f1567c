/* SPDX-License-Identifier: BSD-2-Clause */
/* posixace4 of draft-ietf-nfsv4-posix-acls, without a file system: limits of what is decoded, and what comes back. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/nfs4_private.h"

#define MOST 600u /* entries that the arena holds at least */

static struct nfs4_server server;
static struct rpc_request *req;
static struct nfs4_compound c;
static uint8_t message[256 * 1024];
static struct xdr_out x;

static void start(void)
{
	req = calloc(1, sizeof(*req));
	cr_assert_not_null(req);
	rn_arena_init(&req->arena, req->arena_mem, sizeof(req->arena_mem));
	req->call.cred.flavor = RPC_AUTH_SYS;
	c = (struct nfs4_compound){ .req = req, .server = &server, .minor = 2 };
	xdr_out_init(&x, message, sizeof(message));
}

static void stop(void)
{
	free(req);
}

TestSuite(nfs4_posix_acl, .init = start, .fini = stop, .timeout = 60);

static void put(uint32_t tag, uint32_t perm, const char *who)
{
	xdr_put_u32(&x, tag);
	xdr_put_u32(&x, perm);
	xdr_put_opaque(&x, who, (uint32_t)strlen(who));
}

/* Decodes what was put, cut into two segments behind cut bytes. NFS4ERR_BADXDR: it does not pass. */
static int take_cut(struct vfs_acl *out, size_t cut)
{
	const struct rpc_seg seg[] = {
		{ .base = message, .len = (uint32_t)cut },
		{ .base = message + cut, .len = (uint32_t)(x.used - cut) },
	};
	struct xdr_in in, again;

	rn_arena_reset(&req->arena);
	xdr_in_init(&in, seg, 2, &req->arena);
	again = in;
	nfs4_pass_posix_acl(&in);
	if (in.err)
		return NFS4ERR_BADXDR;
	cr_assert_eq(in.left, 0);
	return nfs4_take_posix_acl(&c, &again, out);
}

static int take(struct vfs_acl *out)
{
	const int status = take_cut(out, x.used);

	xdr_out_init(&x, message, sizeof(message));
	return status;
}

static void put_plain(uint32_t count)
{
	xdr_put_u32(&x, count);
	put(POSIXACE4_TAG_OTHER, 0, "");
	put(POSIXACE4_TAG_GROUP_OBJ, POSIXACE4_PERM_READ, "");
	put(POSIXACE4_TAG_USER_OBJ, POSIXACE4_PERM_READ | POSIXACE4_PERM_WRITE, "");
}

static void put_named(uint32_t named)
{
	char who[16];

	put_plain(4 + named);
	put(POSIXACE4_TAG_MASK, POSIXACE4_PERM_READ, "");
	for (uint32_t i = 0; i < named; i++) {
		snprintf(who, sizeof(who), "%u", 5000 - i);
		put(i % 2 ? POSIXACE4_TAG_USER : POSIXACE4_TAG_GROUP, i % 8, who);
	}
}

Test(nfs4_posix_acl, entries_are_sorted_and_keep_what_they_say)
{
	static const struct vfs_acl_entry want[] = {
		{ VFS_ACL_USER_OBJ, 6, VFS_ACL_NO_ID },
		{ VFS_ACL_USER, 1, 4999 },
		{ VFS_ACL_GROUP_OBJ, 4, VFS_ACL_NO_ID },
		{ VFS_ACL_GROUP, 2, 4998 },
		{ VFS_ACL_GROUP, 0, 5000 },
		{ VFS_ACL_MASK, 4, VFS_ACL_NO_ID },
		{ VFS_ACL_OTHER, 0, VFS_ACL_NO_ID },
	};
	struct vfs_acl acl;

	put_named(3);
	for (size_t cut = 0; cut <= x.used; cut++) {
		cr_assert_eq(take_cut(&acl, cut), NFS4_OK, "cut at %zu", cut);
		cr_assert_eq(acl.count, rn_array_size(want));
		cr_expect_arr_eq(acl.entry, want, sizeof(want), "cut at %zu", cut);
	}
}

Test(nfs4_posix_acl, cut_short)
{
	struct vfs_acl acl;
	size_t whole;

	put_named(3);
	whole = x.used;
	for (x.used = 0; x.used < whole; x.used += 4)
		cr_expect_eq(take_cut(&acl, x.used), NFS4ERR_BADXDR, "%zu bytes", x.used);
}

Test(nfs4_posix_acl, comes_back)
{
	struct vfs_acl acl, again;
	struct vfs_acl_entry copy[MOST];

	put_named(MOST - 4);
	cr_assert_eq(take(&acl), NFS4_OK);
	cr_assert_eq(acl.count, MOST);
	memcpy(copy, acl.entry, sizeof(copy));
	acl.entry = copy;
	nfs4_put_posix_acl(&c, &x, &acl);
	cr_expect_eq(x.used, nfs4_posix_acl_size(&c, &acl), "the size was foretold");
	cr_assert_eq(take(&again), NFS4_OK);
	cr_assert_eq(again.count, acl.count);
	cr_expect_arr_eq(again.entry, copy, sizeof(copy));
}

Test(nfs4_posix_acl, none)
{
	struct vfs_acl acl = { .count = 1 };

	xdr_put_u32(&x, 0);
	cr_expect_eq(take(&acl), NFS4_OK);
	cr_expect_eq(acl.count, 0);
	nfs4_put_posix_acl(&c, &x, &acl);
	cr_expect_eq(x.used, 4);
	cr_expect_eq(nfs4_posix_acl_size(&c, &acl), 4);
}

/* The status of an ACL of four plain entries and one more. */
static int with(uint32_t tag, uint32_t perm, const char *who)
{
	struct vfs_acl acl;

	put_plain(5);
	put(POSIXACE4_TAG_MASK, POSIXACE4_PERM_READ, "");
	put(tag, perm, who);
	return take(&acl);
}

Test(nfs4_posix_acl, tags_permissions_and_names)
{
	char longest[NFS4_OWNER_MAX + 2] = "";

	cr_expect_eq(with(POSIXACE4_TAG_USER, 7, "4294967294"), NFS4_OK);
	cr_expect_eq(with(POSIXACE4_TAG_GROUP, 0, "0"), NFS4_OK);
	cr_expect_eq(with(0, 0, "1"), NFS4ERR_BADXDR);
	cr_expect_eq(with(POSIXACE4_TAG_OTHER + 1, 0, "1"), NFS4ERR_BADXDR);
	cr_expect_eq(with(UINT32_MAX, 0, "1"), NFS4ERR_BADXDR);
	cr_expect_eq(with(POSIXACE4_TAG_USER, 8, "1"), NFS4ERR_BADXDR);
	cr_expect_eq(with(POSIXACE4_TAG_USER, 1u << 31, "1"), NFS4ERR_BADXDR);
	cr_expect_eq(with(POSIXACE4_TAG_USER, 0, ""), NFS4ERR_BADXDR);
	cr_expect_eq(with(POSIXACE4_TAG_GROUP, 0, ""), NFS4ERR_BADXDR);
	cr_expect_eq(with(POSIXACE4_TAG_USER, 0, "4294967295"), NFS4ERR_BADOWNER);
	cr_expect_eq(with(POSIXACE4_TAG_USER, 0, "OWNER@"), NFS4ERR_BADOWNER);
	cr_expect_eq(with(POSIXACE4_TAG_GROUP, 0, "\xc0\x80"), NFS4ERR_INVAL);
	memset(longest, 'x', NFS4_OWNER_MAX + 1);
	cr_expect_eq(with(POSIXACE4_TAG_USER, 0, longest), NFS4ERR_BADOWNER);
	for (uint32_t tag = POSIXACE4_TAG_USER_OBJ; tag <= POSIXACE4_TAG_OTHER; tag++) {
		if (tag != POSIXACE4_TAG_USER && tag != POSIXACE4_TAG_GROUP)
			cr_expect_eq(with(tag, 0, ""), NFS4ERR_INVAL, "a second one of tag %u",
				     tag);
	}
}

Test(nfs4_posix_acl, what_is_no_acl)
{
	struct vfs_acl acl;

	for (uint32_t n = 1; n <= 2; n++) {
		xdr_put_u32(&x, n);
		for (uint32_t i = 0; i < n; i++)
			put(i ? POSIXACE4_TAG_GROUP_OBJ : POSIXACE4_TAG_USER_OBJ, 0, "");
		cr_expect_eq(take(&acl), NFS4ERR_INVAL, "%u entries", n);
	}
	put_plain(4);
	put(POSIXACE4_TAG_USER, 0, "1");
	cr_expect_eq(take(&acl), NFS4ERR_INVAL, "no mask");
	put_named(1);
	put(POSIXACE4_TAG_GROUP, 0, "5000");
	xdr_patch_u32(&x, 0, 6);
	cr_expect_eq(take(&acl), NFS4ERR_INVAL, "a group twice");
	put_named(1);
	put(POSIXACE4_TAG_USER, 0, "5000");
	xdr_patch_u32(&x, 0, 6);
	cr_expect_eq(take(&acl), NFS4_OK, "a user and a group of one number");
}

Test(nfs4_posix_acl, too_many)
{
	struct vfs_acl acl;

	put_named(VFS_ACL_MAX - 3);
	cr_expect_eq(take(&acl), NFS4ERR_NOSPC);
	put_named(VFS_ACL_MAX - 4);
	cr_expect_eq(take(&acl), NFS4_OK, "the arena has room for one of them");
	put_named(VFS_ACL_MAX - 4);
	req->arena.size /= 2;
	cr_expect_eq(take(&acl), NFS4ERR_REQ_TOO_BIG);
	xdr_put_u32(&x, UINT32_MAX);
	cr_expect_eq(take(&acl), NFS4ERR_BADXDR, "more than there are");
}

static int find(unsigned number, uint32_t minor)
{
	return nfs4_attr_find(number, nfs4_attr_level(&server, minor)) != NULL;
}

Test(nfs4_posix_acl, the_setting_has_the_attributes_in_minor_version_2_alone)
{
	for (int on = 0; on <= 1; on++) {
		server.cfg.posix_acls = on;
		for (unsigned n = FATTR4_ACL_TRUEFORM; n <= FATTR4_POSIX_ACCESS_ACL; n++) {
			cr_expect_not(find(n, 0));
			cr_expect_not(find(n, 1));
			cr_expect_eq(find(n, 2), on);
		}
		cr_expect(find(FATTR4_OPEN_ARGUMENTS, 2));
	}
	server.cfg.posix_acls = false;
}
