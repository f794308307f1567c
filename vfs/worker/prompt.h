/* SPDX-License-Identifier: BSD-2-Clause */
/* What a prompt worker does (vfs/worker.h), where other workers use their ring or change their
 * identity. */
#ifndef RN_VFS_PROMPT_H
#define RN_VFS_PROMPT_H

#include "vfs/worker/worker_state.h"

struct vfs_ctx;

/* The operations of vfs/worker/ring.h. Only what is in memory is read. */
void vfs_prompt_read(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
/* Only what is in_place, and not as_user. */
void vfs_prompt_write(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
void vfs_prompt_decline_op(struct vfs_worker *w, struct vfs_ring_op *op);

/* 0 if the thread's identity, root's, is that of the caller; else it is declined. */
int vfs_prompt_act_as(struct vfs_worker *w, const struct vfs_cred *cred);

#endif
