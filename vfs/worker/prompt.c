/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/worker/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vfs/worker/acting.h"
#include "vfs/worker/syscall.h"

/* Longer reads would keep the thread's other clients waiting while they are copied. */
#define READ_MAX (64u << 10)

int vfs_worker_new_prompt(struct vfs *vfs, struct vfs_worker **out)
{
	struct vfs_worker *w;

	if (geteuid() != 0)
		return -EPERM;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->vfs = vfs;
	w->watch.fd = -1;
	STAILQ_INIT(&w->finished);
	w->prompt = true;
	/* Set by no system call: RDMA's drivers refuse a thread whose credentials have changed. */
	w->identity.known = true;
	*out = w;
	return 0;
}

bool vfs_worker_is_prompt(const struct vfs_worker *w)
{
	return w->prompt;
}

bool vfs_prompt_read(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw, int *n)
{
	if (!vfs_worker_of(ctx)->prompt)
		return false;
	if (rw->niov == 1 && rw->iov->iov_len <= READ_MAX) {
		*n = (int)preadv2(rw->fd, rw->iov, 1, (off_t)rw->offset, rw->flags | RWF_NOWAIT);
		if (*n >= 0)
			return true;
	}
	rn_fiber_move(ctx->fiber);
	return false;
}

bool vfs_prompt_write(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw, int *n)
{
	if (!vfs_worker_of(ctx)->prompt)
		return false;
	if (!rw->as_user && rw->in_place) {
		*n = vfs_syscall_pwrite(rw);
		return true;
	}
	rn_fiber_move(ctx->fiber);
	return false;
}

int vfs_act_as_caller(struct vfs_ctx *ctx)
{
	if (vfs_worker_of(ctx)->prompt && ctx->cred.uid == 0 && ctx->cred.gid == 0)
		return 0;
	rn_fiber_move(ctx->fiber);
	return vfs_identity_become(&vfs_worker_of(ctx)->identity, &ctx->cred);
}
