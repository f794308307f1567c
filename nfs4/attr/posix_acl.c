/* SPDX-License-Identifier: BSD-2-Clause */
/* posixace4 of draft-ietf-nfsv4-posix-acls: POSIX ACLs as they are. */
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/owner_name.h"

#define ENTRY_FIXED 12u /* tag, permissions and the length of the name */
#define PERMS (POSIXACE4_PERM_EXECUTE | POSIXACE4_PERM_WRITE | POSIXACE4_PERM_READ)

_Static_assert(POSIXACE4_PERM_EXECUTE == VFS_ACL_EXEC && POSIXACE4_PERM_WRITE == VFS_ACL_WRITE &&
		       POSIXACE4_PERM_READ == VFS_ACL_READ,
	       "permissions are the kernel's");

/* The kernel's tags, in the order of those of the draft. */
static const uint16_t tags[] = {
	[POSIXACE4_TAG_USER_OBJ] = VFS_ACL_USER_OBJ,   [POSIXACE4_TAG_USER] = VFS_ACL_USER,
	[POSIXACE4_TAG_GROUP_OBJ] = VFS_ACL_GROUP_OBJ, [POSIXACE4_TAG_GROUP] = VFS_ACL_GROUP,
	[POSIXACE4_TAG_MASK] = VFS_ACL_MASK,	       [POSIXACE4_TAG_OTHER] = VFS_ACL_OTHER,
};

static bool nfs4_posix_ace_is_named(uint16_t tag)
{
	return tag == VFS_ACL_USER || tag == VFS_ACL_GROUP;
}

static uint32_t tag_of(const struct vfs_acl_entry *e)
{
	uint32_t tag = POSIXACE4_TAG_USER_OBJ;

	while (tag < POSIXACE4_TAG_OTHER && tags[tag] != e->tag)
		tag++;
	return tag;
}

static void nfs4_posix_ace_name(struct nfs4_compound *c, const struct vfs_acl_entry *e,
				struct nfs4_owner_name *out)
{
	out->len = 0;
	if (e->tag == VFS_ACL_USER)
		nfs4_user_name(c, e->id, out);
	else if (e->tag == VFS_ACL_GROUP)
		nfs4_group_name(c, e->id, out);
}

void nfs4_put_posix_acl(struct nfs4_compound *c, struct xdr_out *x, const struct vfs_acl *acl)
{
	struct nfs4_owner_name who;

	xdr_put_u32(x, acl->count);
	for (uint32_t i = 0; i < acl->count; i++) {
		nfs4_posix_ace_name(c, &acl->entry[i], &who);
		xdr_put_u32(x, tag_of(&acl->entry[i]));
		xdr_put_u32(x, acl->entry[i].perm);
		xdr_put_opaque(x, who.s, who.len);
	}
}

uint32_t nfs4_posix_acl_size(struct nfs4_compound *c, const struct vfs_acl *acl)
{
	struct nfs4_owner_name who;
	uint32_t size = 4;

	for (uint32_t i = 0; i < acl->count; i++) {
		nfs4_posix_ace_name(c, &acl->entry[i], &who);
		size += ENTRY_FIXED + who.len + (uint32_t)rn_xdr_pad(who.len);
	}
	return size;
}

/* An entry's tag and permissions. */
static struct vfs_acl_entry get_fixed(struct xdr_in *x)
{
	const uint32_t tag = xdr_get_u32(x), perm = xdr_get_u32(x);

	if (tag < POSIXACE4_TAG_USER_OBJ || tag > POSIXACE4_TAG_OTHER || (perm & ~PERMS)) {
		nfs4_bad_xdr(x);
		return (struct vfs_acl_entry){ .tag = 0 };
	}
	return (struct vfs_acl_entry){ tags[tag], (uint16_t)perm, VFS_ACL_NO_ID };
}

void nfs4_pass_posix_acl(struct xdr_in *x)
{
	const uint32_t count = xdr_get_u32(x);
	uint32_t len;

	/* The cursor's error ends the loop: count comes from the client. */
	for (uint32_t i = 0; i < count && !x->err; i++) {
		const struct vfs_acl_entry e = get_fixed(x);

		len = xdr_get_u32(x);
		if (nfs4_posix_ace_is_named(e.tag) && len == 0)
			nfs4_bad_xdr(x);
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
	}
}

/* The name of an entry without one is passed over, as by the kernel's server. */
static int get_posix_ace(struct nfs4_compound *c, struct xdr_in *x, struct vfs_acl_entry *out)
{
	const char *name;
	uint32_t len;

	*out = get_fixed(x);
	name = (const char *)xdr_get_opaque(x, UINT32_MAX, &len);
	if (!name) /* in pieces that the arena has no room for: nfs4_pass_posix_acl has found no fault */
		return NFS4ERR_REQ_TOO_BIG;
	if (!nfs4_posix_ace_is_named(out->tag))
		return NFS4_OK;
	if (len > NFS4_OWNER_MAX)
		return NFS4ERR_BADOWNER;
	if (!nfs4_utf8_valid(name, len))
		return NFS4ERR_INVAL;
	return (out->tag == VFS_ACL_USER ? nfs4_user_id : nfs4_group_id)(c, name, len, &out->id);
}

/* True if sorted entries make an ACL as acl(5) has it. The kernel is stricter only in what the wire does not have. */
static bool is_acl(const struct vfs_acl *acl)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < acl->count; i++) {
		const struct vfs_acl_entry *e = &acl->entry[i];

		if ((found & e->tag) && (!nfs4_posix_ace_is_named(e->tag) || e[-1].id == e->id))
			return false;
		found |= e->tag;
	}
	if ((found & (VFS_ACL_USER | VFS_ACL_GROUP)) && !(found & VFS_ACL_MASK))
		return false;
	return acl->count == 0 || ((found & VFS_ACL_USER_OBJ) && (found & VFS_ACL_GROUP_OBJ) &&
				   (found & VFS_ACL_OTHER));
}

int nfs4_take_posix_acl(struct nfs4_compound *c, struct xdr_in *x, struct vfs_acl *out)
{
	const time_t end = (time_t)rn_now_seconds() + NFS4_ACL_NAMES_SECONDS;
	const uint32_t count = xdr_get_u32(x);
	struct vfs_acl_entry *entry;

	*out = (struct vfs_acl){ .count = 0 };
	if (count > VFS_ACL_MAX)
		return NFS4ERR_NOSPC;
	if (count == 0)
		return NFS4_OK;
	entry = rn_arena_array(&c->req->arena, count, sizeof(*entry));
	if (!entry)
		return NFS4ERR_REQ_TOO_BIG;
	for (uint32_t i = 0; i < count; i++) {
		int status = get_posix_ace(c, x, &entry[i]);

		if (status == NFS4_OK && i + 1 < count && (time_t)rn_now_seconds() > end)
			status = NFS4ERR_DELAY;
		if (status != NFS4_OK)
			return status;
	}
	vfs_acl_sort(entry, count);
	*out = (struct vfs_acl){ .count = count, .entry = entry };
	return is_acl(out) ? NFS4_OK : NFS4ERR_INVAL;
}
