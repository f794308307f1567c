/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mount table of this process' namespace, /proc/self/mountinfo, as it is at one moment; and
 * whether it has changed since somebody looked.
 */
#ifndef RN_VFS_MOUNT_TABLE_H
#define RN_VFS_MOUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statx;

struct vfs_mount_entry {
	uint64_t id, parent; /* the kernel's, of this boot: what statx(2) shows as stx_mnt_id */
	const char *path;    /* where it is mounted */
	const char *type;    /* of its file system; "" if the kernel does not tell */
	const char *
		fs_options; /* of its file system, with commas between; "" if the kernel does not tell */
	bool read_only; /* this mount, whatever its file system allows */
};

struct vfs_mount_table {
	size_t n;
	struct vfs_mount_entry *entry; /* a mount comes before those that are mounted on it */
	char *text;
};

/* 0 or -errno. */
int vfs_mount_table_load(struct vfs_mount_table *out);
void vfs_mount_table_free(struct vfs_mount_table *t);

/* NULL: it is not mounted (any more). */
const struct vfs_mount_entry *vfs_mount_table_find(const struct vfs_mount_table *t, uint64_t id);
/* True if the mount is at that path, and not covered by another mount. */
bool vfs_mount_table_shows(const struct vfs_mount_table *t, uint64_t id, const char *path);

/* True if the file system was mounted with that option, "name" or "name=value". */
bool vfs_mount_has_option(const struct vfs_mount_entry *e, const char *option);

/* statx(2) of what name_to_handle_at(2) looks up by the same name, with the mount's id (STATX_MNT_ID): kernels before
 * 5.8 and emulated ones do not tell it. 0 or -errno. */
int vfs_statx_mount(int dirfd, const char *name, int flags, unsigned mask, struct statx *sx);

/* A descriptor for poll(2): POLLPRI says that the table has changed since it was opened or since
 * POLLPRI was told last. Or -errno. */
int vfs_mount_table_watch(void);
/* True if the table has changed since the last call. */
bool vfs_mount_table_changed(int watch_fd);

#endif
