/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/quota.h"

#include <errno.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/export/mounts.h"
#include "vfs/node/node.h"

#define BLOCK 1024u /* bytes: the unit of limits, whatever the file system's */

/* QCMD of sys/quota.h shifts a signed number out of its range. */
#define COMMAND(what, kind) ((unsigned)(what) << SUBCMDSHIFT | (kind))

static int quota_ctl(const struct vfs_node *n, unsigned what, uint32_t id, void *out)
{
#ifdef SYS_quotactl_fd
	return syscall(SYS_quotactl_fd, n->mnt->fd, what, id, out) == 0 ? 0 : -errno;
#else
	(void)n, (void)what, (void)id, (void)out;
	return -ENOSYS;
#endif
}

bool vfs_quota_supported(const struct vfs_node *n)
{
	struct dqinfo info;

	return quota_ctl(n, COMMAND(Q_GETINFO, USRQUOTA), 0, &info) == 0;
}

/* limit in blocks, 0: none. */
static uint64_t quota_bytes_left(uint64_t limit, uint64_t used, uint64_t otherwise)
{
	if (limit == 0 || limit > UINT64_MAX / BLOCK)
		return otherwise;
	limit *= BLOCK;
	return limit > used ? rn_min(limit - used, otherwise) : 0;
}

/* Nothing may ever have been counted for that user or group. */
static int quota_get_dqblk(const struct vfs_node *n, unsigned kind, uint32_t id, struct dqblk *q)
{
	int rc;

	memset(q, 0, sizeof(*q));
	rc = quota_ctl(n, COMMAND(Q_GETQUOTA, kind), id, q);
	return rc == -ENOENT ? 0 : rc;
}

int vfs_quota_get(struct vfs_ctx *ctx, struct vfs_node *n, uint32_t uid, struct vfs_quota *out)
{
	struct dqblk q;
	struct vfs_statfs fs;
	int rc = quota_get_dqblk(n, USRQUOTA, uid, &q);

	if (rc == 0)
		rc = vfs_statfs(ctx, n, &fs);
	if (rc != 0)
		return rc;
	out->used = q.dqb_curspace;
	out->avail_hard = quota_bytes_left(q.dqb_bhardlimit, out->used, fs.avail_bytes);
	out->avail_soft = quota_bytes_left(q.dqb_bsoftlimit, out->used, out->avail_hard);
	return 0;
}

/* Bytes of a limit in blocks; 0: none. */
static uint64_t quota_limit_bytes(uint64_t limit)
{
	return limit > UINT64_MAX / BLOCK ? 0 : limit * BLOCK;
}

int vfs_quota_row(const struct vfs_node *n, bool group, uint32_t id, struct vfs_quota_row *out)
{
	struct dqblk q;
	int rc = quota_get_dqblk(n, group ? GRPQUOTA : USRQUOTA, id, &q);

	if (rc != 0)
		return rc;
	out->bytes = (struct vfs_quota_limit){ .hard = quota_limit_bytes(q.dqb_bhardlimit),
					       .soft = quota_limit_bytes(q.dqb_bsoftlimit),
					       .used = q.dqb_curspace,
					       .until = (int64_t)q.dqb_btime };
	out->files = (struct vfs_quota_limit){ .hard = q.dqb_ihardlimit,
					       .soft = q.dqb_isoftlimit,
					       .used = q.dqb_curinodes,
					       .until = (int64_t)q.dqb_itime };
	return 0;
}
