/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/worker/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

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

int vfs_worker_decline(struct vfs_worker *w)
{
	w->declined = true;
	return -EAGAIN;
}

bool vfs_worker_is_prompt(const struct vfs_worker *w)
{
	return w->prompt;
}

bool vfs_worker_has_declined(struct vfs_worker *w)
{
	const bool declined = w->declined;

	w->declined = false;
	return declined;
}

bool vfs_worker_is_declining(const struct vfs_worker *w)
{
	return w->declined;
}

void vfs_prompt_decline_op(struct vfs_worker *w, struct vfs_ring_op *op)
{
	vfs_ring_finish(w, op, vfs_worker_decline(w));
}

void vfs_prompt_read(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw)
{
	ssize_t n = -1;

	if (rw->niov == 1 && rw->iov->iov_len <= READ_MAX)
		n = preadv2(rw->fd, rw->iov, 1, (off_t)rw->offset, rw->flags | RWF_NOWAIT);
	if (n < 0)
		vfs_prompt_decline_op(w, op);
	else
		vfs_ring_finish(w, op, (int)n);
}

void vfs_prompt_write(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw)
{
	if (rw->as_user || !rw->in_place) {
		vfs_prompt_decline_op(w, op);
		return;
	}
	vfs_ring_finish(w, op, vfs_syscall_pwrite(rw));
}

int vfs_prompt_act_as(struct vfs_worker *w, const struct vfs_cred *cred)
{
	return cred->uid == 0 && cred->gid == 0 ? 0 : vfs_worker_decline(w);
}
