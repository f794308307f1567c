/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding and decoding of nfsace4. */
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/owner_name.h"
#include "nfs4/attr/nfs4_utf8.h"

#define ACE_FIXED 16u /* type, flag, mask and the length of the name */

static const char *const special[] = {
	[NFS4_ACE_OWNER] = "OWNER@", [NFS4_ACE_GROUP] = "GROUP@", [NFS4_ACE_EVERYONE] = "EVERYONE@"
};

/* Special identifiers of RFC 8881 section 6.2.1.5 that this server does not support. */
static const char *const unknown[] = { "INTERACTIVE@", "NETWORK@",	 "DIALUP@", "BATCH@",
				       "ANONYMOUS@",   "AUTHENTICATED@", "SERVICE@" };

static void nfs4_ace_name_of(struct nfs4_compound *c, const struct nfs4_ace *ace,
			     struct nfs4_owner_name *out)
{
	switch (ace->who) {
	case NFS4_ACE_USER:
		nfs4_user_name(c, ace->id, out);
		break;
	case NFS4_ACE_NAMED_GROUP:
		nfs4_group_name(c, ace->id, out);
		break;
	default:
		out->len = (uint32_t)strlen(special[ace->who]);
		memcpy(out->s, special[ace->who], out->len);
	}
}

struct putting {
	struct nfs4_compound *c;
	struct xdr_out *x; /* NULL: only the size is counted */
	uint32_t count;
	uint32_t size;
};

static void nfs4_acl_put_ace(void *arg, const struct nfs4_ace *ace)
{
	struct putting *p = arg;
	struct nfs4_owner_name who;

	nfs4_ace_name_of(p->c, ace, &who);
	p->count++;
	p->size += ACE_FIXED + who.len + (uint32_t)rn_xdr_pad(who.len);
	if (!p->x)
		return;
	xdr_put_u32(p->x, ace->type);
	xdr_put_u32(p->x, ace->flag);
	xdr_put_u32(p->x, ace->mask);
	xdr_put_opaque(p->x, who.s, who.len);
}

void nfs4_put_acl(struct nfs4_compound *c, struct xdr_out *x, const struct vfs_acls *acls,
		  bool is_dir)
{
	struct putting p = { .c = c, .x = x };
	size_t at = xdr_out_pos(x);

	xdr_put_u32(x, 0);
	nfs4_acl_each(acls, is_dir, nfs4_acl_put_ace, &p);
	if (!x->overflow)
		xdr_patch_u32(x, at, p.count);
}

uint32_t nfs4_acl_size(struct nfs4_compound *c, const struct vfs_acls *acls, bool is_dir)
{
	struct putting p = { .c = c, .size = 4 };

	nfs4_acl_each(acls, is_dir, nfs4_acl_put_ace, &p);
	return p.size;
}

void nfs4_pass_acl(struct xdr_in *x)
{
	uint32_t count = xdr_get_u32(x), len;

	/* The cursor's error ends the loop: count comes from the client. */
	for (uint32_t i = 0; i < count && !x->err; i++) {
		xdr_skip(x, ACE_FIXED - 4);
		len = xdr_get_u32(x);
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
	}
}

static bool nfs4_ace_name_is(const char *name, uint32_t len, const char *what)
{
	return strlen(what) == len && memcmp(name, what, len) == 0;
}

static int find_who(struct nfs4_compound *c, const char *name, uint32_t len, struct nfs4_ace *ace)
{
	for (unsigned i = 0; i < rn_array_size(special); i++) {
		if (nfs4_ace_name_is(name, len, special[i])) {
			ace->who = (enum nfs4_ace_who)i;
			ace->flag &= ~ACE4_IDENTIFIER_GROUP;
			return NFS4_OK;
		}
	}
	for (unsigned i = 0; i < rn_array_size(unknown); i++) {
		if (nfs4_ace_name_is(name, len, unknown[i]))
			return NFS4ERR_ATTRNOTSUPP;
	}
	if (len > NFS4_OWNER_MAX)
		return NFS4ERR_BADOWNER;
	if (!nfs4_utf8_valid(name, len))
		return NFS4ERR_INVAL;
	if (ace->flag & ACE4_IDENTIFIER_GROUP) {
		ace->who = NFS4_ACE_NAMED_GROUP;
		return nfs4_group_id(c, name, len, &ace->id);
	}
	ace->who = NFS4_ACE_USER;
	return nfs4_user_id(c, name, len, &ace->id);
}

int nfs4_get_ace(struct nfs4_compound *c, struct xdr_in *x, struct nfs4_ace *out)
{
	const char *name;
	uint32_t len;

	*out = (struct nfs4_ace){ .type = xdr_get_u32(x) };
	out->flag = xdr_get_u32(x);
	out->mask = xdr_get_u32(x);
	name = (const char *)xdr_get_opaque(x, UINT32_MAX, &len);
	return name ? find_who(c, name, len, out) : NFS4ERR_BADXDR;
}

struct comparing {
	struct nfs4_compound *c;
	struct xdr_in *x;
	uint32_t left; /* ACEs of the call that have not been read */
	bool same;
	int status;
};

static void compare_ace(void *arg, const struct nfs4_ace *ours)
{
	struct comparing *cmp = arg;
	struct nfs4_ace theirs;
	int status;

	if (cmp->left == 0 || !cmp->same || cmp->x->err) {
		cmp->same = false;
		return;
	}
	cmp->left--;
	status = nfs4_get_ace(cmp->c, cmp->x, &theirs);
	if (status == NFS4ERR_DELAY)
		cmp->status = status;
	cmp->same = status == NFS4_OK && theirs.type == ours->type && theirs.flag == ours->flag &&
		    theirs.mask == ours->mask && theirs.who == ours->who && theirs.id == ours->id;
}

int nfs4_same_acl(struct nfs4_compound *c, struct xdr_in *x, const struct vfs_acls *acls,
		  bool is_dir, bool *same)
{
	struct xdr_in copy = *x;
	struct comparing cmp = { .c = c, .x = &copy, .same = true };

	nfs4_pass_acl(x);
	*same = false;
	if (x->err)
		return NFS4_OK;
	cmp.left = xdr_get_u32(&copy);
	nfs4_acl_each(acls, is_dir, compare_ace, &cmp);
	*same = cmp.same && cmp.left == 0;
	return cmp.status;
}
