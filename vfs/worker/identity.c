/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity and the capabilities of a worker's thread, and the personalities that its ring's requests run as.
 * Capabilities are changed by the raw system call: libcap's and glibc's notion is the process, ours is this thread.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/worker/worker_state.h"

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

struct caps {
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];
};

static int caps_get(struct caps *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &h, c->d) < 0 ? -errno : 0;
}

static int caps_set(const struct caps *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &h, c->d) < 0 ? -errno : 0;
}

static int register_personality(struct vfs_worker *w, uint16_t *out)
{
	int id = io_uring_register_personality(&w->ring);

	if (id < 0)
		return id;
	*out = (uint16_t)id;
	return 0;
}

/* nobody, with an empty effective set, for the moment of registration. */
static int register_user(struct vfs_worker *w, const struct caps *root)
{
	struct caps none = *root;
	int rc, back;

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		none.d[i].effective = 0;
	rc = vfs_identity_become(&w->identity, &vfs_nobody);
	if (rc < 0)
		return rc;
	rc = caps_set(&none);
	if (rc == 0)
		rc = register_personality(w, &w->user_personality);
	back = caps_set(root);
	return rc < 0 ? rc : back;
}

static int obey_limits(struct caps *c)
{
	int rc = caps_get(c);

	if (rc < 0)
		return rc;
	c->d[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
	return caps_set(c);
}

int vfs_thread_obey_limits(void)
{
	struct caps c;

	return obey_limits(&c);
}

int vfs_thread_add_fowner(void)
{
	struct caps c;
	int rc = caps_get(&c);

	if (rc < 0)
		return rc;
	c.d[CAP_TO_INDEX(CAP_FOWNER)].effective |= CAP_TO_MASK(CAP_FOWNER);
	return caps_set(&c);
}

int vfs_worker_personalities(struct vfs_worker *w)
{
	struct caps c;
	int rc;

	rc = vfs_identity_root(&w->identity);
	if (rc == 0)
		rc = obey_limits(&c);
	if (rc < 0 || !w->has_ring)
		return rc;
	rc = register_personality(w, &w->root_personality);
	if (rc == 0)
		rc = register_user(w, &c);
	if (rc == 0)
		rc = vfs_identity_root(&w->identity);
	return rc;
}

int vfs_act_as_caller(struct vfs_ctx *ctx)
{
	if (vfs_worker_of(ctx)->on_event_thread && ctx->cred.uid == 0 && ctx->cred.gid == 0)
		return 0;
	rn_fiber_move(ctx->fiber);
	return vfs_identity_become(&vfs_worker_of(ctx)->identity, &ctx->cred);
}
