/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The export's boundary for directories that were opened by handle: a handle leads anywhere on the
 * file system. Files are not checked, as they may have many parents or, just opened by handle, none
 * that is known: what keeps their handles within the export is the MAC (without it the boundary of
 * a subdirectory export is that of exports(5)'s no_subtree_check).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "vfs/base/fd_budget.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/device.h"
#include "vfs/mount_table.h"

#define DEPTH_MAX 4096

/* The device: subvolumes of btrfs are on one mount, and their roots have the same number. */
struct place {
	uint64_t ino, mnt_id, dev;
};

static int boundary_place_of(int fd, struct place *out)
{
	struct statx sx;

	int rc = vfs_statx_mount(fd, "", AT_EMPTY_PATH, STATX_INO, &sx);

	if (rc != 0)
		return rc;
	out->ino = sx.stx_ino;
	out->mnt_id = sx.stx_mnt_id;
	out->dev = vfs_device_of(&sx);
	return 0;
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->ino == b->ino && a->mnt_id == b->mnt_id && a->dev == b->dev;
}

/* In a clone of the export's tree ".." fails for a directory that is not connected to the clone's
 * root. */
static int contains_detached(const struct vfs_export *exp, int fd)
{
	int up = vfs_fd_openat(exp->vfs, fd, "..", O_PATH | O_DIRECTORY, 0);

	if (up < 0)
		return up == -ENOENT ? -ESTALE : up;
	vfs_fd_close(exp->vfs, up);
	return 0;
}

/* Goes from fd (which it closes) to the parent: a descriptor, -ESTALE at the top, or -errno. */
static int step_up(struct vfs *vfs, int fd, struct place *at)
{
	int up = vfs_fd_openat(vfs, fd, "..", O_PATH | O_DIRECTORY, 0);
	struct place parent;
	int rc = up < 0 ? up : boundary_place_of(up, &parent);

	vfs_fd_close(vfs, fd);
	if (rc == -ENOENT || (rc == 0 && same_place(&parent, at)))
		rc = -ESTALE;
	if (rc < 0) {
		vfs_fd_close(vfs, up);
		return rc;
	}
	*at = parent;
	return up;
}

int vfs_export_contains(const struct vfs_export *exp, int fd)
{
	struct place root = { .ino = exp->root_ino,
			      .mnt_id = exp->root_mnt->mnt_id,
			      .dev = exp->root_dev };
	struct place at;
	int rc;

	if (exp->detached)
		return contains_detached(exp, fd);
	rc = boundary_place_of(fd, &at);
	if (rc != 0)
		return rc;
	fd = vfs_fd_openat(exp->vfs, fd, ".", O_PATH | O_DIRECTORY, 0);
	for (unsigned i = 0; fd >= 0 && i < DEPTH_MAX; i++) {
		if (same_place(&at, &root)) {
			vfs_fd_close(exp->vfs, fd);
			return 0;
		}
		fd = step_up(exp->vfs, fd, &at);
	}
	if (fd < 0)
		return fd;
	vfs_fd_close(exp->vfs, fd);
	return -ESTALE;
}
