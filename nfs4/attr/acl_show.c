/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes POSIX ACLs as ACEs. */
#include "nfs4/attr/nfs4_acl.h"

/* Permissions that this server always gives to all, and to owners; they cannot be denied. */
#define ALWAYS (ACE4_READ_ATTRIBUTES | ACE4_READ_ACL | ACE4_SYNCHRONIZE)
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
			  ALWAYS | (who == NFS4_ACE_OWNER ? OF_OWNER : 0) | to_ace_mask(s, perm));
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
