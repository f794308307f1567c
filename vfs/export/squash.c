/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/export.h"

/* The id -1 means "none" to the kernel: nobody can act under it. */
static uint32_t squash_id(uint32_t id, bool root, uint32_t anon)
{
	return id == (uint32_t)-1 || (root && id == 0) ? anon : id;
}

static unsigned find_sec(const struct vfs_access *a, enum vfs_sec sec)
{
	unsigned i = 0;

	while (i < a->nsecs && a->secs[i].sec != sec)
		i++;
	return i;
}

void vfs_access_accept(struct vfs_access *a, enum vfs_sec sec, uint32_t flavor_flags)
{
	if (find_sec(a, sec) < a->nsecs || a->nsecs == VFS_SECS)
		return;
	a->secs[a->nsecs].sec = (uint8_t)sec;
	a->secs[a->nsecs].flags = (uint8_t)(flavor_flags & VFS_FLAVOR_FLAGS);
	a->nsecs++;
}

bool vfs_access_accepts(const struct vfs_access *a, enum vfs_sec sec)
{
	return find_sec(a, sec) < a->nsecs;
}

bool vfs_access_use(struct vfs_access *a, enum vfs_sec sec)
{
	const unsigned i = find_sec(a, sec);
	const bool accepted = i < a->nsecs;

	a->flags &= ~VFS_FLAVOR_FLAGS;
	a->flags |= accepted ? a->secs[i].flags : VFS_RO | VFS_ALL_SQUASH;
	return accepted;
}

void vfs_cred_squash(struct vfs_cred *cred, const struct vfs_access *access, bool auth_none)
{
	bool root = access->flags & VFS_ROOT_SQUASH;

	if (auth_none || (access->flags & VFS_ALL_SQUASH)) {
		cred->uid = access->anonuid;
		cred->gid = access->anongid;
		cred->ngroups = 0;
		return;
	}
	cred->uid = squash_id(cred->uid, root, access->anonuid);
	cred->gid = squash_id(cred->gid, root, access->anongid);
	if (cred->ngroups > VFS_GROUPS_MAX)
		cred->ngroups = VFS_GROUPS_MAX;
	for (uint32_t i = 0; i < cred->ngroups; i++)
		cred->groups[i] = squash_id(cred->groups[i], root, access->anongid);
}
