/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The write verifier, one for each export id. It changes when data that were acknowledged without
 * being durable may be lost, and then only: each client then sends again what it has not committed.
 * Not one for each file: there are clients that keep one for a whole mount. Not one for all
 * exports: a disk that fails time and again must not make the clients of others send without end.
 *
 * All begin with the same value. Export objects of one id, as a reload makes them, share theirs, so
 * that a loss below the old one is seen by the clients of the new one.
 *
 * Lock order: vfs.verifiers_lock is a leaf.
 */
#ifndef RN_VFS_VERIFIER_H
#define RN_VFS_VERIFIER_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/vfs.h"

struct vfs_verifier {
	unsigned refs; /* under verifiers_lock */
	uint32_t id;   /* id of the export */
	uint64_t dev;  /* device of the export's root */
	_Atomic uint64_t value;
	_Atomic int64_t logged_at; /* rn_now_coarse_seconds() of the last message about a loss */
	_Atomic long uncommitted;  /* nodes with acknowledged data that may not be on disk */
	LIST_ENTRY(vfs_verifier) link;
};

/* The verifier of that export id, with a reference; NULL: no memory. */
struct vfs_verifier *vfs_verifier_get(struct vfs *vfs, uint32_t id, uint64_t dev);
void vfs_verifier_put(struct vfs *vfs, struct vfs_verifier *v);

/* Uncommitted data below v's export may be lost. False: there is none. */
bool vfs_verifier_change(struct vfs *vfs, struct vfs_verifier *v);
/* Records a device failure that may have lost data of any file: for v, and for all exports on that
 * device. */
bool vfs_verifier_device_failed(struct vfs *vfs, struct vfs_verifier *v, uint64_t dev);

#endif
