/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/quota.h"

#include <errno.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/export/mounts.h"
#include "vfs/node/node.h"

#define BLOCK 1024u /* bytes: the unit of limits, whatever the file system's */

static int ask(const struct vfs_node *n, int what, uint32_t id, void *out)
{
#ifdef SYS_quotactl_fd
	/* Not QCMD, which shifts a signed number out of its range. */
	const unsigned cmd = (unsigned)what << SUBCMDSHIFT | USRQUOTA;

	return syscall(SYS_quotactl_fd, n->mnt->fd, cmd, id, out) == 0 ? 0 : -errno;
#else
	(void)n, (void)what, (void)id, (void)out;
	return -ENOSYS;
#endif
}

bool vfs_quota_supported(const struct vfs_node *n)
{
	struct dqinfo info;

	return ask(n, Q_GETINFO, 0, &info) == 0;
}

/* limit in blocks, 0: none. */
static uint64_t left_of(uint64_t limit, uint64_t used, uint64_t otherwise)
{
	if (limit == 0 || limit > UINT64_MAX / BLOCK)
		return otherwise;
	limit *= BLOCK;
	return limit > used ? rn_min(limit - used, otherwise) : 0;
}

int vfs_quota_get(struct vfs_ctx *ctx, struct vfs_node *n, uint32_t uid, struct vfs_quota *out)
{
	struct dqblk q = { 0 };
	struct vfs_statfs fs;
	int rc = ask(n, Q_GETQUOTA, uid, &q);

	if (rc == -ENOENT) /* nothing was ever counted for that user */
		rc = 0;
	if (rc == 0)
		rc = vfs_statfs(ctx, n, &fs);
	if (rc != 0)
		return rc;
	out->used = q.dqb_curspace;
	out->avail_hard = left_of(q.dqb_bhardlimit, out->used, fs.avail_bytes);
	out->avail_soft = left_of(q.dqb_bsoftlimit, out->used, out->avail_hard);
	return 0;
}
