/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that have a lease (vfs/hold/lease.h), by the lease's descriptor and by their handle. A file in
 * the table has a delegation, and so a reference. */
#ifndef RN_VFS_LEASE_TABLE_H
#define RN_VFS_LEASE_TABLE_H

#include "vfs/fs/dir_watch.h"
#include "vfs/hold/file.h"

#define VFS_LEASE_BUCKETS 1024u

LIST_HEAD(vfs_lease_list, vfs_file);

struct vfs_lease_table {
	pthread_mutex_t lock;
	struct vfs_lease_list by_fd[VFS_LEASE_BUCKETS], by_file[VFS_LEASE_BUCKETS];
	uint64_t sweep; /* number of the last sweep */
};

void vfs_lease_table_init(struct vfs_lease_table *t);
void vfs_lease_table_fini(struct vfs_lease_table *t);

/* Under f->lock, while f->lease_fd is set. */
void vfs_lease_table_add(struct vfs_lease_table *t, struct vfs_file *f);
void vfs_lease_table_remove(struct vfs_lease_table *t, struct vfs_file *f);

/* The file whose lease has that descriptor, with a reference, or NULL. */
struct vfs_file *vfs_lease_table_find(struct vfs_lease_table *t, int fd);

/* A sweep meets each file once that is in the table all the time. */
struct vfs_lease_sweep {
	struct vfs_lease_table *table;
	const struct vfs_watch_event
		*event; /* only its files, which are in one bucket; NULL: all */
	unsigned bucket;
};
void vfs_lease_sweep_begin(struct vfs_lease_sweep *s, struct vfs_lease_table *t,
			   const struct vfs_watch_event *event);
/* The next file, with a reference; NULL: that was all. */
struct vfs_file *vfs_lease_sweep_next(struct vfs_lease_sweep *s);

#endif
