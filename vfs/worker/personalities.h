/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities of a worker's thread and of its ring's requests. */
#ifndef RN_VFS_PERSONALITIES_H
#define RN_VFS_PERSONALITIES_H

struct vfs_worker;

/* Takes CAP_SYS_RESOURCE from this thread's effective set and, with a ring, registers the
 * personalities. The thread is root afterwards. 0 or -errno. */
int vfs_worker_personalities(struct vfs_worker *w);

/* Gives this thread, which acts as a caller other than root, CAP_FOWNER beside the caller's rights. Becoming root takes
 * it away again. 0 or -errno. */
int vfs_thread_add_fowner(void);

#endif
