/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/attr/nfs4_acl.h"

#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/attr/owner_name.h"

/* Encodes POSIX ACLs as ACEs. */

/* Permissions that this server always gives to all, and to owners; they cannot be denied. */
#define ALWAYS_SHOWN (ACE4_READ_ATTRIBUTES | ACE4_READ_ACL | ACE4_SYNCHRONIZE)
#define OF_OWNER (ACE4_WRITE_ATTRIBUTES | ACE4_WRITE_ACL)
#define INHERITED (ACE4_FILE_INHERIT_ACE | ACE4_DIRECTORY_INHERIT_ACE | ACE4_INHERIT_ONLY_ACE)

struct showing {
	const struct vfs_acl *acl;
	uint32_t flag; /* flags of each ACE */
	bool is_dir;
	void (*each)(void *arg, const struct nfs4_ace *ace);
	void *arg;
	/* Effective permissions: unions over the entries of a kind. */
	uint32_t mask, owner, users, group, groups, other;
};

static uint32_t to_ace_mask(const struct showing *s, uint32_t perm)
{
	uint32_t mask = 0;

	if (perm & VFS_ACL_READ)
		mask |= ACE4_READ_DATA;
	if (perm & VFS_ACL_WRITE)
		mask |= ACE4_WRITE_DATA | ACE4_APPEND_DATA | (s->is_dir ? ACE4_DELETE_CHILD : 0);
	if (perm & VFS_ACL_EXEC)
		mask |= ACE4_EXECUTE;
	return mask;
}

static void nfs4_acl_show_ace(const struct showing *s, uint32_t type, enum nfs4_ace_who who,
			      uint32_t id, uint32_t mask)
{
	const struct nfs4_ace ace = {
		.type = type,
		.flag = s->flag | (who == NFS4_ACE_NAMED_GROUP ? ACE4_IDENTIFIER_GROUP : 0),
		.mask = mask,
		.who = who,
		.id = id,
	};

	s->each(s->arg, &ace);
}

static void nfs4_acl_show_allow(const struct showing *s, enum nfs4_ace_who who, uint32_t id,
				uint32_t perm)
{
	nfs4_acl_show_ace(s, ACE4_ACCESS_ALLOWED_ACE_TYPE, who, id,
			  ALWAYS_SHOWN | (who == NFS4_ACE_OWNER ? OF_OWNER : 0) |
				  to_ace_mask(s, perm));
}

static void deny(const struct showing *s, enum nfs4_ace_who who, uint32_t id, uint32_t perm)
{
	if (perm)
		nfs4_acl_show_ace(s, ACE4_ACCESS_DENIED_ACE_TYPE, who, id, to_ace_mask(s, perm));
}

static void nfs4_acl_show_sum_up(struct showing *s)
{
	const struct vfs_acl *a = s->acl;

	s->mask = 7;
	for (uint32_t i = 0; i < a->count; i++) {
		if (a->entry[i].tag == VFS_ACL_MASK)
			s->mask = a->entry[i].perm;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		const uint32_t perm = a->entry[i].perm;

		switch (a->entry[i].tag) {
		case VFS_ACL_USER_OBJ:
			s->owner = perm;
			break;
		case VFS_ACL_USER:
			s->users |= perm & s->mask;
			break;
		case VFS_ACL_GROUP_OBJ:
			s->group = perm & s->mask;
			break;
		case VFS_ACL_GROUP:
			s->groups |= perm & s->mask;
			break;
		case VFS_ACL_OTHER:
			s->other = perm;
			break;
		}
	}
}

/* Each user's entry decides completely: what it does not allow is denied. */
static void show_users(const struct showing *s)
{
	for (uint32_t i = 0; i < s->acl->count; i++) {
		const struct vfs_acl_entry *e = &s->acl->entry[i];
		const uint32_t perm = e->perm & s->mask;

		if (e->tag != VFS_ACL_USER)
			continue;
		deny(s, NFS4_ACE_USER, e->id, ~perm & (s->group | s->groups | s->other));
		nfs4_acl_show_allow(s, NFS4_ACE_USER, e->id, perm);
	}
}

/* A member of several groups has the union of their rights: nothing is denied before all groups
 * have been shown. */
static void show_groups(const struct showing *s)
{
	nfs4_acl_show_allow(s, NFS4_ACE_GROUP, 0, s->group);
	for (uint32_t i = 0; i < s->acl->count; i++) {
		const struct vfs_acl_entry *e = &s->acl->entry[i];

		if (e->tag == VFS_ACL_GROUP)
			nfs4_acl_show_allow(s, NFS4_ACE_NAMED_GROUP, e->id, e->perm & s->mask);
	}
	deny(s, NFS4_ACE_GROUP, 0, ~s->group & s->other);
	for (uint32_t i = 0; i < s->acl->count; i++) {
		const struct vfs_acl_entry *e = &s->acl->entry[i];

		if (e->tag == VFS_ACL_GROUP)
			deny(s, NFS4_ACE_NAMED_GROUP, e->id, ~(e->perm & s->mask) & s->other);
	}
}

static void nfs4_acl_show_all(struct showing *s)
{
	nfs4_acl_show_sum_up(s);
	deny(s, NFS4_ACE_OWNER, 0, ~s->owner & (s->users | s->group | s->groups | s->other));
	nfs4_acl_show_allow(s, NFS4_ACE_OWNER, 0, s->owner);
	show_users(s);
	show_groups(s);
	nfs4_acl_show_allow(s, NFS4_ACE_EVERYONE, 0, s->other);
}

void nfs4_acl_each(const struct vfs_acls *acls, bool is_dir,
		   void (*each)(void *arg, const struct nfs4_ace *ace), void *arg)
{
	struct showing access = {
		.acl = &acls->access, .is_dir = is_dir, .each = each, .arg = arg
	};
	struct showing inherited = {
		.acl = &acls->inherited, .flag = INHERITED, .is_dir = true, .each = each, .arg = arg
	};

	if (acls->access.count > 0)
		nfs4_acl_show_all(&access);
	if (acls->inherited.count > 0)
		nfs4_acl_show_all(&inherited);
}

/* Translates ACEs into POSIX ACLs, in one pass. For each future POSIX entry it keeps what the ACEs,
 * in their order, have allowed and denied its subject. */

/* ACE permissions that POSIX permissions control. */
#define DATA                                                                                       \
	(ACE4_READ_DATA | ACE4_WRITE_DATA | ACE4_APPEND_DATA | ACE4_EXECUTE | ACE4_DELETE_CHILD)
/* Permissions that this server always gives to all, whatever the ACL; OF_OWNER to owners. */
#define ALWAYS (ACE4_READ_ATTRIBUTES | ACE4_READ_ACL)

#define INHERIT (ACE4_FILE_INHERIT_ACE | ACE4_DIRECTORY_INHERIT_ACE)
#define FLAGS (INHERIT | ACE4_INHERIT_ONLY_ACE | ACE4_IDENTIFIER_GROUP | ACE4_INHERITED_ACE)

struct rights {
	uint32_t allowed, denied;
	bool named; /* an ACE names this subject, and not only one that includes it */
};

struct named {
	enum nfs4_ace_who who;
	uint32_t id;
	struct rights r;
};

/* State of the translation into one POSIX ACL. */
struct taking {
	struct rights owner, group, other;
	/* An unknown subject, which may be in each group that was denied anything: the initial
	 * rights of a subject that an ACE names first. */
	struct rights anybody;
	bool any; /* true if there was an ACE */
	bool too_many;
	uint32_t count;
	struct named who[NFS4_POSIX_ACL_MAX - 4]; /* sorted by kind and id */
};

static void nfs4_acl_rights_apply(struct rights *r, bool is_allow, uint32_t mask)
{
	if (is_allow)
		r->allowed |= mask & ~r->denied;
	else
		r->denied |= mask & ~r->allowed;
}

/* mask is denied to a subject that may be a member of each of these groups, too. */
static void deny_groups(struct taking *t, uint32_t mask)
{
	nfs4_acl_rights_apply(&t->group, false, mask);
	for (uint32_t i = 0; i < t->count; i++) {
		if (t->who[i].who == NFS4_ACE_NAMED_GROUP)
			nfs4_acl_rights_apply(&t->who[i].r, false, mask);
	}
}

static void deny_users(struct taking *t, uint32_t mask)
{
	nfs4_acl_rights_apply(&t->owner, false, mask);
	for (uint32_t i = 0; i < t->count; i++) {
		if (t->who[i].who == NFS4_ACE_USER)
			nfs4_acl_rights_apply(&t->who[i].r, false, mask);
	}
}

static bool before(const struct named *a, const struct nfs4_ace *b)
{
	return a->who != b->who ? a->who < b->who : a->id < b->id;
}

/* Finds or adds the rights of the ACE's subject, in the order that the kernel requires. */
static struct rights *nfs4_acl_rights_find(struct taking *t, const struct nfs4_ace *ace)
{
	uint32_t i = 0;

	while (i < t->count && before(&t->who[i], ace))
		i++;
	if (i < t->count && t->who[i].who == ace->who && t->who[i].id == ace->id)
		return &t->who[i].r;
	/* The other four entries are owner, group, mask and other. */
	if (t->count == NFS4_POSIX_ACL_MAX - 4) {
		t->too_many = true;
		return &t->anybody; /* the result is not used after this */
	}
	memmove(&t->who[i + 1], &t->who[i], (t->count - i) * sizeof(t->who[0]));
	t->count++;
	t->who[i] = (struct named){ .who = ace->who, .id = ace->id, .r = t->anybody };
	return &t->who[i].r;
}

static void take_everyone(struct taking *t, bool is_allow, uint32_t mask)
{
	struct rights *const all[] = { &t->owner, &t->group, &t->other, &t->anybody };

	for (unsigned i = 0; i < rn_array_size(all); i++) {
		all[i]->named = true;
		nfs4_acl_rights_apply(all[i], is_allow, mask);
	}
	for (uint32_t i = 0; i < t->count; i++)
		nfs4_acl_rights_apply(&t->who[i].r, is_allow, mask);
}

static void nfs4_acl_take_ace(struct taking *t, const struct nfs4_ace *ace)
{
	const bool is_allow = ace->type == ACE4_ACCESS_ALLOWED_ACE_TYPE;
	struct rights *r;

	t->any = true;
	switch (ace->who) {
	case NFS4_ACE_EVERYONE:
		take_everyone(t, is_allow, ace->mask);
		return;
	case NFS4_ACE_OWNER:
		r = &t->owner;
		break;
	case NFS4_ACE_GROUP:
		r = &t->group;
		break;
	default:
		r = nfs4_acl_rights_find(t, ace);
	}
	r->named = true;
	nfs4_acl_rights_apply(r, is_allow, ace->mask);
	if (is_allow || ace->who == NFS4_ACE_OWNER)
		return;
	if (ace->who == NFS4_ACE_USER) {
		nfs4_acl_rights_apply(&t->owner, false, ace->mask & DATA);
		return;
	}
	nfs4_acl_rights_apply(&t->anybody, false, ace->mask & DATA);
	deny_groups(t, ace->mask & DATA);
	deny_users(t, ace->mask & DATA);
}

static int check_ace(const struct nfs4_ace *ace, bool is_dir)
{
	if (ace->type > ACE4_ACCESS_DENIED_ACE_TYPE || (ace->flag & ~FLAGS) ||
	    (ace->mask & ~ACE4_MASK_ALL))
		return NFS4ERR_ATTRNOTSUPP;
	if ((ace->flag & INHERIT) && !is_dir)
		return NFS4ERR_ATTRNOTSUPP;
	if ((ace->flag & ACE4_INHERIT_ONLY_ACE) && !(ace->flag & INHERIT))
		return NFS4ERR_ATTRNOTSUPP;
	return NFS4_OK;
}

/* POSIX has one flag for files and directories alike: either inheritance flag means both. */
static int nfs4_acl_take_all(struct nfs4_compound *c, struct xdr_in *x, bool is_dir,
			     struct taking *access, struct taking *inherited)
{
	const time_t end = (time_t)rn_now_seconds() + NFS4_ACL_NAMES_SECONDS;
	uint32_t count = xdr_get_u32(x);
	struct nfs4_ace ace;
	int status;

	if (count > NFS4_ACES_MAX)
		return NFS4ERR_ATTRNOTSUPP;
	for (uint32_t i = 0; i < count; i++) {
		status = nfs4_get_ace(c, x, &ace);
		if (status == NFS4_OK)
			status = check_ace(&ace, is_dir);
		if (status == NFS4_OK && i + 1 < count && (time_t)rn_now_seconds() > end)
			status = NFS4ERR_DELAY;
		if (status != NFS4_OK)
			return status;
		if (ace.flag & INHERIT)
			nfs4_acl_take_ace(inherited, &ace);
		if (!(ace.flag & ACE4_INHERIT_ONLY_ACE))
			nfs4_acl_take_ace(access, &ace);
	}
	return access->too_many || inherited->too_many ? NFS4ERR_ATTRNOTSUPP : NFS4_OK;
}

/* True if an ACE denies a permission that this server always grants. */
static bool pretends(const struct taking *t)
{
	uint32_t denied = t->owner.denied | t->group.denied | t->other.denied;

	for (uint32_t i = 0; i < t->count; i++)
		denied |= t->who[i].r.denied;
	return (denied & ALWAYS) || (t->owner.denied & OF_OWNER);
}

/* Permission bits of a POSIX entry. A subject that may add entries to a directory may also remove
 * some, unless DELETE_CHILD is denied (section 6.2.1.3.2). */
static uint16_t perm_of(const struct rights *r, bool is_dir)
{
	const uint32_t write = ACE4_WRITE_DATA | ACE4_APPEND_DATA;
	uint16_t perm = 0;

	if (r->allowed & ACE4_READ_DATA)
		perm |= VFS_ACL_READ;
	if ((r->allowed & write) == write && !(is_dir && (r->denied & ACE4_DELETE_CHILD)))
		perm |= VFS_ACL_WRITE;
	if (r->allowed & ACE4_EXECUTE)
		perm |= VFS_ACL_EXEC;
	return perm;
}

struct filling {
	struct vfs_acl_entry *entry;
	uint32_t count;
	uint16_t mask;
	bool is_dir;
};

static void nfs4_acl_fill_add(struct filling *f, enum vfs_acl_tag tag, uint16_t perm, uint32_t id)
{
	f->entry[f->count++] = (struct vfs_acl_entry){ (uint16_t)tag, perm, id };
	if (tag == VFS_ACL_USER || tag == VFS_ACL_GROUP_OBJ || tag == VFS_ACL_GROUP)
		f->mask |= perm;
}

static void add_named(struct filling *f, const struct taking *t, enum nfs4_ace_who who,
		      enum vfs_acl_tag tag)
{
	for (uint32_t i = 0; i < t->count; i++) {
		if (t->who[i].who == who)
			nfs4_acl_fill_add(f, tag, perm_of(&t->who[i].r, f->is_dir), t->who[i].id);
	}
}

/* Fills out with the entries found. False: no memory. */
static bool nfs4_acl_fill_entries(struct rn_arena *arena, const struct taking *t, bool is_dir,
				  struct vfs_acl *out)
{
	struct filling f = { .is_dir = is_dir };

	f.entry = rn_arena_array(arena, t->count + 4u, sizeof(*f.entry));
	if (!f.entry)
		return false;
	nfs4_acl_fill_add(&f, VFS_ACL_USER_OBJ, perm_of(&t->owner, is_dir), VFS_ACL_NO_ID);
	add_named(&f, t, NFS4_ACE_USER, VFS_ACL_USER);
	nfs4_acl_fill_add(&f, VFS_ACL_GROUP_OBJ, perm_of(&t->group, is_dir), VFS_ACL_NO_ID);
	add_named(&f, t, NFS4_ACE_NAMED_GROUP, VFS_ACL_GROUP);
	if (t->count > 0)
		nfs4_acl_fill_add(&f, VFS_ACL_MASK, f.mask, VFS_ACL_NO_ID);
	nfs4_acl_fill_add(&f, VFS_ACL_OTHER, perm_of(&t->other, is_dir), VFS_ACL_NO_ID);
	*out = (struct vfs_acl){ .count = f.count, .entry = f.entry };
	return true;
}

/*
 * A default ACL must have entries for owner, group and others. If the ACEs have none to inherit,
 * those of the directory itself are inherited, as by setfacl(1) and the kernel's server. A new
 * file's mode bounds them; an ACL without them would shut out the file's creator.
 */
static void nfs4_acl_rights_complete(struct rights *r, const struct rights *access)
{
	if (!r->named)
		r->allowed |= access->allowed & ~r->denied;
	r->denied |= r->named ? 0 : access->denied & ~r->allowed;
}

int nfs4_take_acl(struct nfs4_compound *c, struct xdr_in *x, bool is_dir,
		  const struct vfs_acls **out)
{
	struct rn_arena *arena = &c->req->arena;
	struct taking access = { .count = 0 }, inherited = { .count = 0 };
	struct vfs_acls *acls;
	int status = nfs4_acl_take_all(c, x, is_dir, &access, &inherited);

	if (status == NFS4_OK && (pretends(&access) || pretends(&inherited)))
		status = NFS4ERR_ATTRNOTSUPP;
	if (status != NFS4_OK)
		return status;
	nfs4_acl_rights_complete(&inherited.owner, &access.owner);
	nfs4_acl_rights_complete(&inherited.group, &access.group);
	nfs4_acl_rights_complete(&inherited.other, &access.other);
	acls = rn_arena_alloc(arena, sizeof(*acls));
	if (!acls || !nfs4_acl_fill_entries(arena, &access, is_dir, &acls->access) ||
	    (inherited.any && !nfs4_acl_fill_entries(arena, &inherited, true, &acls->inherited)))
		return c->minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_REQ_TOO_BIG;
	*out = acls;
	return NFS4_OK;
}

/* Encoding and decoding of nfsace4. */

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
