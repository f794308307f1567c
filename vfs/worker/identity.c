/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/worker/identity.h"

/* An id that no call accepts: setfsuid and setfsgid answer with what is in force and change
 * nothing. */
#define NO_ID ((uint32_t)-1)

const struct vfs_cred vfs_nobody = { .uid = 65534, .gid = 65534 };

static bool set_fsid(long call, uint32_t want)
{
	syscall(call, want);
	return (uint32_t)syscall(call, NO_ID) == want;
}

static bool same_groups(const struct vfs_cred *a, const struct vfs_cred *b)
{
	return a->ngroups == b->ngroups &&
	       memcmp(a->groups, b->groups, a->ngroups * sizeof(a->groups[0])) == 0;
}

static bool set_groups(struct vfs_identity *id, const struct vfs_cred *cred)
{
	if (syscall(SYS_setgroups, (size_t)cred->ngroups, cred->groups) != 0)
		return false;
	id->now.ngroups = cred->ngroups;
	memcpy(id->now.groups, cred->groups, cred->ngroups * sizeof(cred->groups[0]));
	return true;
}

static bool identity_become(struct vfs_identity *id, const struct vfs_cred *cred)
{
	if ((!id->known || !same_groups(&id->now, cred)) && !set_groups(id, cred))
		return false;
	if ((!id->known || id->now.gid != cred->gid) && !set_fsid(SYS_setfsgid, cred->gid))
		return false;
	id->now.gid = cred->gid;
	if ((!id->known || id->now.uid != cred->uid) && !set_fsid(SYS_setfsuid, cred->uid))
		return false;
	id->now.uid = cred->uid;
	return true;
}

int vfs_identity_become(struct vfs_identity *id, const struct vfs_cred *cred)
{
	if (cred->uid == NO_ID || cred->gid == NO_ID || cred->ngroups > VFS_GROUPS_MAX)
		return -EPERM;
	id->known = identity_become(id, cred);
	return id->known ? 0 : -EPERM;
}

int vfs_identity_root(struct vfs_identity *id)
{
	static const struct vfs_cred root;

	if (!id->known)
		return vfs_identity_become(id, &root);
	if (id->now.uid == 0)
		return 0;
	id->known = set_fsid(SYS_setfsuid, 0);
	id->now.uid = 0;
	return id->known ? 0 : -EPERM;
}
