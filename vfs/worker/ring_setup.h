/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a worker's ring, and the payload slabs that it has registered. */
#ifndef RN_VFS_RING_SETUP_H
#define RN_VFS_RING_SETUP_H

#include "vfs/worker/worker_state.h"

int vfs_ring_open(struct vfs_worker *w, unsigned entries);
void vfs_ring_close(struct vfs_worker *w);
/* True if iov (one piece) is within a slab that the ring has registered. Registers it when seen
 * first. */
bool vfs_ring_slab_ready(struct vfs_worker *w, const struct rn_payload *p, const struct iovec *iov);
/* How many operations on regular files may wait for disks at a time; without a ring it is one. */
void vfs_ring_threads(struct vfs_worker *w, unsigned n);

#endif
