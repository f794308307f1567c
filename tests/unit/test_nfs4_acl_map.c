/* SPDX-License-Identifier: BSD-2-Clause */
/* The mapping between POSIX and NFSv4 ACLs, without a file system: examples, and properties of
 * random ACLs. Each kind of ACL has an evaluation of its own here that does not use the mapping. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/nfs4_private.h"

#define READ VFS_ACL_READ
#define WRITE VFS_ACL_WRITE
#define EXEC VFS_ACL_EXEC
#define ALLOW ACE4_ACCESS_ALLOWED_ACE_TYPE
#define DENY ACE4_ACCESS_DENIED_ACE_TYPE
#define W (ACE4_WRITE_DATA | ACE4_APPEND_DATA)
#define ALL (ACE4_READ_DATA | W | ACE4_EXECUTE)
#define FD (ACE4_FILE_INHERIT_ACE | ACE4_DIRECTORY_INHERIT_ACE)

/* Owner and group of the file. */
#define OWNER 10u
#define GROUP 20u

static struct nfs4_server server;
static struct rpc_request *req;
static struct nfs4_compound c;
static uint8_t message[256 * 1024];
static struct rpc_seg seg;

static void start(void)
{
	req = calloc(1, sizeof(*req));
	cr_assert_not_null(req);
	rn_arena_init(&req->arena, req->arena_mem, sizeof(req->arena_mem));
	req->call.cred.flavor = RPC_AUTH_SYS;
	c = (struct nfs4_compound){ .req = req, .server = &server, .minor = 1 };
}

static void stop(void)
{
	free(req);
}

TestSuite(nfs4_acl_map, .init = start, .fini = stop, .timeout = 60);

static unsigned long long seed = 88172645463325252ull;

static uint32_t chance(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

/* Encodes one ACE of a list. */
static void put(struct xdr_out *x, uint32_t type, uint32_t flag, uint32_t mask, const char *who)
{
	xdr_put_u32(x, type);
	xdr_put_u32(x, flag);
	xdr_put_u32(x, mask);
	xdr_put_opaque(x, who, (uint32_t)strlen(who));
}

static struct xdr_in sent(const struct xdr_out *x)
{
	struct xdr_in in;

	seg = (struct rpc_seg){ .base = message, .len = (uint32_t)x->used };
	xdr_in_init(&in, &seg, 1, &req->arena);
	return in;
}

static int take(const struct xdr_out *x, bool is_dir, const struct vfs_acls **out)
{
	struct xdr_in in = sent(x), again = in;

	rn_arena_reset(&req->arena);
	nfs4_pass_acl(&in);
	cr_assert(!in.err && in.left == 0);
	return nfs4_take_acl(&c, &again, is_dir, out);
}

static void show(struct xdr_out *x, const struct vfs_acls *acls, bool is_dir)
{
	xdr_out_init(x, message, sizeof(message));
	nfs4_put_acl(&c, x, acls, is_dir);
	cr_assert_not(x->overflow);
	cr_assert_eq(x->used, nfs4_acl_size(&c, acls, is_dir), "the size was foretold");
}

/* A user with some of the groups 20 to 23. */
struct somebody {
	uint32_t uid;
	unsigned groups; /* bit n: group 20 + n */
};

static bool in_group(const struct somebody *s, uint32_t gid)
{
	return gid >= GROUP && gid < GROUP + 4 && (s->groups >> (gid - GROUP) & 1);
}

/* True if all of perm is granted (acl(5), ACCESS CHECK ALGORITHM). */
static bool posix_allows(const struct vfs_acl *a, const struct somebody *s, uint32_t perm)
{
	uint32_t mask = 7;
	bool in_any = false;

	for (uint32_t i = 0; i < a->count; i++) {
		if (a->entry[i].tag == VFS_ACL_MASK)
			mask = a->entry[i].perm;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		const struct vfs_acl_entry *e = &a->entry[i];

		if (e->tag == VFS_ACL_USER_OBJ && s->uid == OWNER)
			return (e->perm & perm) == perm;
		if (e->tag == VFS_ACL_USER && s->uid == e->id)
			return (e->perm & mask & perm) == perm;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		const struct vfs_acl_entry *e = &a->entry[i];

		if ((e->tag == VFS_ACL_GROUP_OBJ && in_group(s, GROUP)) ||
		    (e->tag == VFS_ACL_GROUP && in_group(s, e->id))) {
			in_any = true;
			if ((e->perm & mask & perm) == perm)
				return true;
		}
	}
	return !in_any && (a->entry[a->count - 1].perm & perm) == perm;
}

/* True if all of mask is granted (RFC 8881 section 6.2.1). */
static bool aces_allow(const struct nfs4_ace *ace, uint32_t count, const struct somebody *s,
		       uint32_t mask, bool inherited)
{
	for (uint32_t i = 0; i < count && mask; i++) {
		const struct nfs4_ace *a = &ace[i];
		bool applies = inherited ? (a->flag & FD) != 0 : !(a->flag & ACE4_INHERIT_ONLY_ACE);
		bool matches = a->who == NFS4_ACE_EVERYONE ||
			       (a->who == NFS4_ACE_OWNER && s->uid == OWNER) ||
			       (a->who == NFS4_ACE_USER && s->uid == a->id) ||
			       (a->who == NFS4_ACE_GROUP && in_group(s, GROUP)) ||
			       (a->who == NFS4_ACE_NAMED_GROUP && in_group(s, a->id));

		if (!matches || !applies || !(a->mask & mask))
			continue;
		if (a->type == DENY)
			return false;
		mask &= ~a->mask;
	}
	return mask == 0;
}

static uint32_t mask_of(uint32_t perm, bool is_dir)
{
	(void)is_dir;
	return (perm & READ ? ACE4_READ_DATA : 0) | (perm & WRITE ? W : 0) |
	       (perm & EXEC ? ACE4_EXECUTE : 0);
}

struct list {
	struct nfs4_ace ace[NFS4_ACES_MAX];
	uint32_t count;
};
static struct list list;

static void add(void *arg, const struct nfs4_ace *ace)
{
	struct list *l = arg;

	cr_assert_lt(l->count, NFS4_ACES_MAX);
	l->ace[l->count++] = *ace;
}

/* A random POSIX ACL, valid for the kernel. */
static void make_posix(struct vfs_acl_entry *e, struct vfs_acl *out)
{
	uint32_t n = 0, named = 0;

	e[n++] = (struct vfs_acl_entry){ VFS_ACL_USER_OBJ, (uint16_t)chance(8), VFS_ACL_NO_ID };
	for (uint32_t id = OWNER; id < OWNER + 4; id++) {
		if (chance(3) == 0)
			e[n++] = (struct vfs_acl_entry){ VFS_ACL_USER, (uint16_t)chance(8), id };
	}
	named = n - 1;
	e[n++] = (struct vfs_acl_entry){ VFS_ACL_GROUP_OBJ, (uint16_t)chance(8), VFS_ACL_NO_ID };
	for (uint32_t id = GROUP; id < GROUP + 4; id++) {
		if (chance(3) == 0) {
			e[n++] = (struct vfs_acl_entry){ VFS_ACL_GROUP, (uint16_t)chance(8), id };
			named++;
		}
	}
	if (named > 0 || chance(4) == 0)
		e[n++] = (struct vfs_acl_entry){ VFS_ACL_MASK, (uint16_t)chance(8), VFS_ACL_NO_ID };
	e[n++] = (struct vfs_acl_entry){ VFS_ACL_OTHER, (uint16_t)chance(8), VFS_ACL_NO_ID };
	*out = (struct vfs_acl){ .count = n, .entry = e };
}

/* Applies the mask to all entries, and replaces it by the smallest mask that keeps them. */
static void normalize(const struct vfs_acl *a, struct vfs_acl_entry *e, struct vfs_acl *out)
{
	uint16_t mask = 7, used = 0;
	uint32_t n = 0;
	bool named = false;

	for (uint32_t i = 0; i < a->count; i++) {
		if (a->entry[i].tag == VFS_ACL_MASK)
			mask = a->entry[i].perm;
		named |= a->entry[i].tag == VFS_ACL_USER || a->entry[i].tag == VFS_ACL_GROUP;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		struct vfs_acl_entry x = a->entry[i];

		if (x.tag == VFS_ACL_MASK)
			continue;
		if (x.tag == VFS_ACL_OTHER && named)
			e[n++] = (struct vfs_acl_entry){ VFS_ACL_MASK, used, VFS_ACL_NO_ID };
		if (x.tag != VFS_ACL_USER_OBJ && x.tag != VFS_ACL_OTHER)
			used |= x.perm &= mask;
		e[n++] = x;
	}
	*out = (struct vfs_acl){ .count = n, .entry = e };
}

static bool same(const struct vfs_acl *a, const struct vfs_acl *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		if (a->entry[i].tag != b->entry[i].tag || a->entry[i].perm != b->entry[i].perm ||
		    a->entry[i].id != b->entry[i].id)
			return false;
	}
	return true;
}

Test(nfs4_acl_map, what_is_shown_and_set_again_is_the_same)
{
	struct vfs_acl_entry e[2][32], norm[2][32];

	for (unsigned i = 0; i < 20000; i++) {
		struct vfs_acls acls = { 0 };
		const struct vfs_acls *back;
		struct vfs_acl want[2];
		bool is_dir = chance(2), is_same;
		struct xdr_out x;
		struct xdr_in in;

		make_posix(e[0], &acls.access);
		if (is_dir && chance(2))
			make_posix(e[1], &acls.inherited);
		normalize(&acls.access, norm[0], &want[0]);
		normalize(&acls.inherited, norm[1], &want[1]);
		show(&x, &acls, is_dir);
		in = sent(&x);
		cr_assert_eq(nfs4_same_acl(&c, &in, &acls, is_dir, &is_same), NFS4_OK);
		cr_assert(is_same && in.left == 0, "as VERIFY sees it");
		cr_assert_eq(take(&x, is_dir, &back), NFS4_OK);
		cr_assert(same(&back->access, &want[0]), "access, round %u", i);
		cr_assert(same(&back->inherited, &want[1]), "inherited, round %u", i);
	}
}

/* Permissions one at a time: for a user in several groups, POSIX wants one group that grants all at
 * once. */
Test(nfs4_acl_map, what_is_shown_grants_what_the_posix_acl_grants)
{
	struct vfs_acl_entry e[2][32];

	for (unsigned i = 0; i < 3000; i++) {
		struct vfs_acls acls = { 0 };
		bool is_dir = chance(2);

		make_posix(e[0], &acls.access);
		if (is_dir)
			make_posix(e[1], &acls.inherited);
		list.count = 0;
		nfs4_acl_each(&acls, is_dir, add, &list);
		for (unsigned who = 0; who < 6 * 16 * 3; who++) {
			struct somebody s = { OWNER + who % 6, who / 6 % 16 };
			uint32_t perm = 1u << who / 96;

			cr_assert_eq(
				aces_allow(list.ace, list.count, &s, mask_of(perm, is_dir), false),
				posix_allows(&acls.access, &s, perm));
			if (is_dir)
				cr_assert_eq(aces_allow(list.ace, list.count, &s,
							mask_of(perm, true), true),
					     posix_allows(&acls.inherited, &s, perm));
		}
	}
}

static const char *const whos[] = { "OWNER@", "GROUP@", "EVERYONE@", "10", "11",
				    "12",     "20",	"21",	     "22" };

static void make_aces(struct xdr_out *x, bool is_dir)
{
	uint32_t n = chance(8);

	xdr_out_init(x, message, sizeof(message));
	xdr_put_u32(x, n);
	for (uint32_t i = 0; i < n; i++) {
		unsigned who = chance(9);
		uint32_t flag = who >= 6 ? ACE4_IDENTIFIER_GROUP : 0;
		uint32_t mask = chance(ALL | ACE4_DELETE_CHILD) & (ALL | ACE4_DELETE_CHILD);

		if (chance(2))
			mask |= mask & W ? W : 0;
		if (chance(20) == 0)
			mask |= 1u << chance(24);
		if (is_dir && chance(3) == 0)
			flag |= FD | (chance(2) ? ACE4_INHERIT_ONLY_ACE : 0);
		if (chance(50) == 0)
			flag |= 1u << chance(9);
		put(x, chance(60) ? chance(2) : chance(9), flag, mask, whos[who]);
	}
}

static void read_list(const struct xdr_out *x)
{
	struct xdr_in in = sent(x);

	list.count = 0;
	for (uint32_t n = xdr_get_u32(&in); n > 0; n--)
		cr_assert_eq(nfs4_get_ace(&c, &in, &list.ace[list.count++]), NFS4_OK);
}

static bool names(const struct list *l, enum nfs4_ace_who who)
{
	for (uint32_t i = 0; i < l->count; i++) {
		if ((l->ace[i].flag & FD) &&
		    (l->ace[i].who == who || l->ace[i].who == NFS4_ACE_EVERYONE))
			return true;
	}
	return false;
}

/* For a default ACL with all required entries; other defaults take missing entries from the access
 * ACL. */
static void check_strict(const struct vfs_acls *acls, const struct somebody *s, uint32_t perm)
{
	const uint32_t mask = mask_of(perm, false);

	cr_assert(!posix_allows(&acls->access, s, perm) ||
			  aces_allow(list.ace, list.count, s, mask, false),
		  "user %u, groups %x, permission %u", s->uid, s->groups, perm);
	if (acls->inherited.count == 0 || !names(&list, NFS4_ACE_OWNER) ||
	    !names(&list, NFS4_ACE_GROUP) || !names(&list, NFS4_ACE_EVERYONE))
		return;
	cr_assert(!posix_allows(&acls->inherited, s, perm) ||
			  aces_allow(list.ace, list.count, s, mask, true),
		  "inherited: user %u, groups %x, permission %u", s->uid, s->groups, perm);
}

Test(nfs4_acl_map, what_is_set_grants_no_more_than_the_aces)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < 20000; i++) {
		const struct vfs_acls *acls;
		bool is_dir = chance(2);
		struct xdr_out x;
		int status;

		make_aces(&x, is_dir);
		status = take(&x, is_dir, &acls);
		cr_assert(status == NFS4_OK || status == NFS4ERR_ATTRNOTSUPP);
		if (status != NFS4_OK)
			continue;
		taken++;
		read_list(&x);
		for (unsigned who = 0; who < 4 * 8 * 7; who++) {
			struct somebody s = { OWNER + who % 4, who / 4 % 8 };

			check_strict(acls, &s, 1 + who / 32);
		}
	}
	cr_expect_gt(taken, 5000, "%u were taken", taken);
}

/* Any bytes give a status, and use no more than the arena. */
Test(nfs4_acl_map, any_bytes)
{
	for (unsigned i = 0; i < 20000; i++) {
		const struct vfs_acls *acls;
		struct xdr_in in;
		uint32_t len = 4 * chance(40);

		for (uint32_t j = 0; j < len; j++)
			message[j] = j % 4 == 3 ? (uint8_t)chance(i % 2 ? 256 : 8) : 0;
		rn_arena_reset(&req->arena);
		seg = (struct rpc_seg){ .base = message, .len = len };
		xdr_in_init(&in, &seg, 1, &req->arena);
		nfs4_take_acl(&c, &in, i % 3, &acls);
		xdr_in_init(&in, &seg, 1, &req->arena);
		nfs4_pass_acl(&in);
	}
}

struct one {
	uint32_t type, flag, mask;
	const char *who;
	bool is_dir;
	int status;
};

Test(nfs4_acl_map, what_cannot_be_had)
{
	static const struct one rows[] = {
		{ ALLOW, 0, ALL, "OWNER@", false, NFS4_OK },
		{ ALLOW, ACE4_IDENTIFIER_GROUP, ALL, "OWNER@", false, NFS4_OK },
		{ ACE4_SYSTEM_AUDIT_ACE_TYPE, 0, ALL, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ ACE4_SYSTEM_ALARM_ACE_TYPE, 0, ALL, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ 4, 0, ALL, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, ACE4_DIRECTORY_INHERIT_ACE, ALL, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, ACE4_FILE_INHERIT_ACE, ALL, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, ACE4_FILE_INHERIT_ACE, ALL, "OWNER@", true, NFS4_OK },
		{ ALLOW, ACE4_INHERIT_ONLY_ACE, ALL, "OWNER@", true, NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, FD | ACE4_NO_PROPAGATE_INHERIT_ACE, ALL, "OWNER@", true,
		  NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, ACE4_SUCCESSFUL_ACCESS_ACE_FLAG, ALL, "OWNER@", false,
		  NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, ACE4_INHERITED_ACE, ALL, "OWNER@", false, NFS4_OK },
		{ ALLOW, 0, 1u << 31, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, 0, ACE4_MASK_ALL, "EVERYONE@", false, NFS4_OK },
		{ DENY, 0, ACE4_READ_ATTRIBUTES, "11", false, NFS4ERR_ATTRNOTSUPP },
		{ DENY, 0, ACE4_READ_ACL, "EVERYONE@", false, NFS4ERR_ATTRNOTSUPP },
		{ DENY, 0, ACE4_WRITE_ACL, "OWNER@", false, NFS4ERR_ATTRNOTSUPP },
		{ DENY, 0, ACE4_WRITE_ACL | ACE4_WRITE_OWNER | ACE4_SYNCHRONIZE, "11", false,
		  NFS4_OK },
		{ ALLOW, 0, ALL, "INTERACTIVE@", false, NFS4ERR_ATTRNOTSUPP },
		{ ALLOW, 0, ALL, "nobody@nowhere", false, NFS4ERR_BADOWNER },
		{ ALLOW, 0, ALL, "", false, NFS4ERR_INVAL },
		{ ALLOW, 0, ALL, "\xff", false, NFS4ERR_INVAL },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct one *r = &rows[i];
		const struct vfs_acls *acls;
		struct xdr_out x;

		xdr_out_init(&x, message, sizeof(message));
		xdr_put_u32(&x, 1);
		put(&x, r->type, r->flag, r->mask, r->who);
		cr_expect_eq(take(&x, r->is_dir, &acls), r->status, "row %u", i);
	}
}

/* Permissions of owner, group and others that the list maps to. */
static int mode_of(const struct one *rows, unsigned n, bool is_dir)
{
	const struct vfs_acls *acls;
	struct xdr_out x;
	int mode = 0;

	xdr_out_init(&x, message, sizeof(message));
	xdr_put_u32(&x, n);
	for (unsigned i = 0; i < n; i++)
		put(&x, rows[i].type, rows[i].flag, rows[i].mask, rows[i].who);
	if (take(&x, is_dir, &acls) != NFS4_OK)
		return -1;
	for (uint32_t i = 0; i < acls->access.count; i++) {
		const struct vfs_acl_entry *e = &acls->access.entry[i];

		if (e->tag & (VFS_ACL_USER_OBJ | VFS_ACL_GROUP_OBJ | VFS_ACL_OTHER))
			mode = mode << 3 | e->perm;
	}
	return mode;
}

Test(nfs4_acl_map, permissions_of_a_list)
{
	const struct one append[] = { { ALLOW, 0, ACE4_APPEND_DATA, "EVERYONE@", false, 0 } };
	const struct one write[] = { { ALLOW, 0, W, "EVERYONE@", false, 0 } };
	const struct one no_remove[] = { { DENY, 0, ACE4_DELETE_CHILD, "GROUP@", false, 0 },
					 { ALLOW, 0, W, "EVERYONE@", false, 0 } };
	const struct one owner_first[] = { { ALLOW, 0, ALL, "OWNER@", false, 0 },
					   { DENY, 0, ALL, "GROUP@", false, 0 },
					   { ALLOW, 0, ALL, "EVERYONE@", false, 0 } };
	const struct one group_first[] = { { DENY, 0, ALL, "GROUP@", false, 0 },
					   { ALLOW, 0, ALL, "OWNER@", false, 0 },
					   { ALLOW, 0, ALL, "EVERYONE@", false, 0 } };

	cr_expect_eq(mode_of(NULL, 0, false), 0, "an empty list denies everything");
	cr_expect_eq(mode_of(append, 1, false), 0, "not half of write");
	cr_expect_eq(mode_of(write, 1, false), 0222);
	cr_expect_eq(mode_of(write, 1, true), 0222, "removing goes with making");
	cr_expect_eq(mode_of(no_remove, 2, true), 0002, "the owner may be in the group");
	cr_expect_eq(mode_of(no_remove, 2, false), 0222);
	cr_expect_eq(mode_of(owner_first, 3, false), 0707);
	cr_expect_eq(mode_of(group_first, 3, false), 0007, "the owner may be in the group");
}

Test(nfs4_acl_map, a_default_acl_is_made_complete)
{
	const struct vfs_acls *acls;
	struct xdr_out x;

	xdr_out_init(&x, message, sizeof(message));
	xdr_put_u32(&x, 4);
	put(&x, ALLOW, 0, ALL, "OWNER@");
	put(&x, ALLOW, 0, ACE4_READ_DATA, "GROUP@");
	put(&x, ALLOW, 0, ACE4_EXECUTE, "EVERYONE@");
	put(&x, ALLOW, FD | ACE4_INHERIT_ONLY_ACE, W, "11");
	cr_assert_eq(take(&x, true, &acls), NFS4_OK);
	cr_expect_eq(acls->access.count, 3);
	cr_assert_eq(acls->inherited.count, 5);
	cr_expect_eq(acls->inherited.entry[0].perm, 7);
	cr_expect(acls->inherited.entry[1].tag == VFS_ACL_USER &&
		  acls->inherited.entry[1].id == 11 && acls->inherited.entry[1].perm == WRITE);
	cr_expect_eq(acls->inherited.entry[2].perm, READ | EXEC);
	cr_expect(acls->inherited.entry[3].tag == VFS_ACL_MASK &&
		  acls->inherited.entry[3].perm == 7);
	cr_expect_eq(acls->inherited.entry[4].perm, EXEC);
}

/* An ACL with n named users: limited by the arena, and by the largest size of an ACL. */
static int take_many(uint32_t n)
{
	const struct vfs_acls *acls;
	struct xdr_out x;
	char who[16];

	xdr_out_init(&x, message, sizeof(message));
	xdr_put_u32(&x, n);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(who, sizeof(who), "%u", 100000 - i);
		put(&x, ALLOW, 0, ALL, who);
	}
	return take(&x, false, &acls);
}

Test(nfs4_acl_map, how_many)
{
	cr_expect_eq(take_many(NFS4_POSIX_ACL_MAX - 4), NFS4_OK);
	cr_expect_eq(take_many(NFS4_POSIX_ACL_MAX - 3), NFS4ERR_ATTRNOTSUPP);
	cr_expect_eq(take_many(NFS4_ACES_MAX + 1), NFS4ERR_ATTRNOTSUPP);
	rn_arena_init(&req->arena, req->arena_mem, 1024);
	cr_expect_eq(take_many(200), NFS4ERR_REQ_TOO_BIG);
	c.minor = 0;
	cr_expect_eq(take_many(200), NFS4ERR_RESOURCE);
}
