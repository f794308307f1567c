/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker's requests run as. Capabilities are changed by the raw system call: libcap's and
 * glibc's notion is the process, ours is this thread.
 */
#include "vfs/worker/personalities.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/worker/worker_state.h"

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
