/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of a server that was moved here (vfs/vfs_image.h). None of them is open here. They are found by the kernel's handle, in the mount that
 * clients came through, since a device has another number on each machine. The kernel's locks are made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/file.h"
#include "vfs/vfs_image.h"
#include "vfs/vfs.h"

/* The export with that id, with a reference. Exports neither come nor go while the server starts. */
static struct vfs_export *moved_export(struct vfs *vfs, uint32_t id)
{
	struct vfs_export *exp;

	pthread_mutex_lock(&vfs->exports_lock);
	LIST_FOREACH (exp, &vfs->exports, link)
		if (exp->id == id)
			break;
	if (exp)
		vfs_export_ref(exp);
	pthread_mutex_unlock(&vfs->exports_lock);
	return exp;
}

/* The mount of the file, and its export, each with a reference. */
static int moved_mount(struct vfs *vfs, const struct vfs_moved_file *m, struct vfs_export **exp,
		       struct vfs_mount **mnt)
{
	int rc;

	*exp = moved_export(vfs, m->export_id);
	if (!*exp)
		return -ENOENT;
	rc = vfs_mount_by_id(*exp, m->submount_id, mnt);
	if (rc != 0)
		vfs_export_put(*exp);
	return rc == -ESTALE ? -ENOENT : rc;
}

/* Opens the file (O_PATH). -ESTALE: it is gone; -ESHUTDOWN: the file system has given this machine up. */
static int moved_open(const struct vfs_mount *mnt, const struct vfs_moved_file *m)
{
	struct vfs_handle h = { .len = m->key_len - (uint32_t)sizeof(uint32_t) };
	int fd;

	if (m->key_len <= sizeof(uint32_t) || h.len > sizeof(h.bytes))
		return -EPROTO;
	h.type = (int32_t)rn_get32(m->key);
	memcpy(h.bytes, m->key + sizeof(uint32_t), h.len);
	fd = vfs_handle_open(mnt->fd, &h);
	return fd < 0 && vfs_is_lost(mnt->fd) ? -ESHUTDOWN : fd;
}

static int device_of_fd(int fd, uint64_t *dev)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &sx) < 0)
		return -errno;
	*dev = vfs_device_of(&sx);
	return 0;
}

int vfs_moved_find(struct vfs *vfs, struct vfs_moved_file *m)
{
	struct vfs_export *exp;
	struct vfs_mount *mnt;
	int fd, rc = moved_mount(vfs, m, &exp, &mnt);

	if (rc != 0)
		return rc;
	fd = moved_open(mnt, m);
	rc = fd < 0 && fd != -ESTALE ? fd : device_of_fd(fd < 0 ? mnt->fd : fd, &m->dev);
	m->remote = !mnt->fs.local;
	if (fd >= 0)
		close(fd);
	vfs_mount_put(mnt);
	vfs_export_put(exp);
	return rc;
}

/* A file that is gone needs no locks: nobody comes to it any more. */
static int moved_lock_file(struct vfs_file *f)
{
	const struct vfs_moved_file m = {
		.export_id = f->export_id,
		.submount_id = f->submount_id,
		.key = f->key,
		.key_len = f->key_len,
	};
	struct vfs_export *exp;
	struct vfs_mount *mnt;
	int fd, rc = moved_mount(f->vfs, &m, &exp, &mnt);

	if (rc != 0)
		return rc;
	fd = moved_open(mnt, &m);
	if (fd >= 0) {
		rc = vfs_mirror_again(f, fd);
		close(fd);
	} else if (fd != -ESTALE) {
		rc = fd;
	}
	vfs_mount_put(mnt);
	vfs_export_put(exp);
	return rc;
}

int vfs_lock_moved(struct vfs *vfs)
{
	struct vfs_file_sweep sweep;
	struct vfs_file *f;
	int rc = 0;

	vfs_file_sweep_begin(&sweep, vfs);
	while (rc == 0 && (f = vfs_file_sweep_next(&sweep)) != NULL) {
		if (f->ranges.count > 0)
			rc = moved_lock_file(f);
		vfs_file_put(f);
	}
	return rc;
}
