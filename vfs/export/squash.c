/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/export.h"

/* The id -1 means "none" to the kernel: nobody can act under it. */
static uint32_t squash_id(uint32_t id, bool root, uint32_t anon)
{
	return id == (uint32_t)-1 || (root && id == 0) ? anon : id;
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
