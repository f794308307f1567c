/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and letting go of exports. An export holds its root's descriptors for its life, outside
 * the cache's budget: of a clone of the mount, through which files are reached, and of the mount
 * itself, so that it cannot be unmounted unawares; nodes hold references of their export, so that
 * the cache never outlives it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/device.h"
#include "vfs/fs/local.h"
#include "vfs/fs/proc_path.h"
#include "vfs/fs/why.h"
#include "vfs/io.h"
#include "vfs/mount_table.h"

static char *real_path_of(int fd)
{
	char buf[PATH_MAX];
	ssize_t n = readlink(vfs_proc_path(fd).s, buf, sizeof(buf) - 1);

	if (n <= 0)
		return NULL;
	buf[n] = '\0';
	return strdup(buf);
}

static struct vfs_export *export_new(struct vfs *vfs, const char *path, int fd)
{
	struct vfs_export *exp = calloc(1, sizeof(*exp));

	if (!exp)
		return NULL;
	exp->path = strdup(path);
	exp->real_path = real_path_of(fd);
	if (!exp->path || !exp->real_path) {
		free(exp->path);
		free(exp->real_path);
		free(exp);
		return NULL;
	}
	exp->place_fd = fd;
	exp->vfs = vfs;
	atomic_init(&exp->refs, 1);
	pthread_mutex_init(&exp->mounts_lock, NULL);
	pthread_mutex_init(&exp->covered_lock, NULL);
	TAILQ_INIT(&exp->mounts);
	return exp;
}

static void vfs_export_free(struct vfs_export *exp)
{
	struct vfs_mount *mnt;

	if (exp->listed) {
		pthread_mutex_lock(&exp->vfs->exports_lock);
		LIST_REMOVE(exp, link);
		pthread_mutex_unlock(&exp->vfs->exports_lock);
	}
	while ((mnt = TAILQ_FIRST(&exp->mounts)) != NULL) {
		TAILQ_REMOVE(&exp->mounts, mnt, link);
		vfs_mount_put(mnt);
	}
	vfs_verifier_put(exp->vfs, exp->verifier);
	pthread_mutex_destroy(&exp->mounts_lock);
	pthread_mutex_destroy(&exp->covered_lock);
	free(exp->sub_ids);
	free(exp->covered);
	if (exp->place_fd >= 0)
		close(exp->place_fd);
	free(exp->path);
	free(exp->real_path);
	free(exp);
}

void vfs_export_ref(struct vfs_export *exp)
{
	atomic_fetch_add(&exp->refs, 1);
}

void vfs_export_put(struct vfs_export *exp)
{
	if (exp && atomic_fetch_sub(&exp->refs, 1) == 1)
		vfs_export_free(exp);
}

const char *vfs_path_below(const char *path, const char *dir)
{
	const size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(path, dir, n) != 0 || path[n] != '/' || path[n + 1] == '\0')
		return NULL;
	return path + n + 1;
}

uint32_t vfs_export_id(const struct vfs_export *exp)
{
	return exp->id;
}

const char *vfs_export_path(const struct vfs_export *exp)
{
	return exp->path;
}

const char *vfs_export_real_path(const struct vfs_export *exp)
{
	return exp->real_path;
}

enum vfs_root_name vfs_export_root_name(const struct vfs_export *exp)
{
	static const char gone[] = " (deleted)";
	const size_t len = strlen(exp->real_path);
	char buf[PATH_MAX + sizeof(gone)];
	struct statx sx;

	if (statx(exp->place_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &sx) == 0 &&
	    sx.stx_mask & STATX_NLINK && sx.stx_nlink == 0)
		return VFS_ROOT_REMOVED;
	const ssize_t n = readlink(vfs_proc_path(exp->place_fd).s, buf, sizeof(buf) - 1);

	if (n < 0)
		return VFS_ROOT_NAMED;
	buf[n] = '\0';
	if (strcmp(buf, exp->real_path) == 0)
		return VFS_ROOT_NAMED;
	return strncmp(buf, exp->real_path, len) == 0 && strcmp(buf + len, gone) == 0
		       ? VFS_ROOT_UNNAMED
		       : VFS_ROOT_MOVED;
}

uint64_t vfs_export_mnt_id(const struct vfs_export *exp)
{
	return exp->place_mnt_id;
}

/* The keys say whether it is the same root of a file system that is the same by its UUID; the
 * device, that it is not a copy of that one. */
bool vfs_export_is_mounted_in(const struct vfs_export *inner, const struct vfs_export *outer)
{
	return inner->place_mnt_id != outer->place_mnt_id;
}

bool vfs_export_same_root(const struct vfs_export *a, const struct vfs_export *b)
{
	return a->root_dev == b->root_dev && a->id == b->id &&
	       memcmp(a->root_mnt->key, b->root_mnt->key, sizeof(a->root_mnt->key)) == 0;
}

void vfs_export_set_nfs_only(struct vfs_export *exp, bool nfs_only)
{
	atomic_store(&exp->nfs_only, nfs_only);
}

bool vfs_export_is_nfs_only(const struct vfs_export *exp)
{
	return atomic_load(&exp->nfs_only);
}

void vfs_export_set_draining(struct vfs_export *exp, bool draining)
{
	atomic_store(&exp->draining, draining);
}

bool vfs_export_is_draining(const struct vfs_export *exp)
{
	return atomic_load_explicit(&exp->draining, memory_order_relaxed);
}

bool vfs_export_signs(const struct vfs_export *exp)
{
	return exp->vfs->cfg.handle_mac;
}

bool vfs_export_fs_known(const struct vfs_export *exp)
{
	return exp->root_mnt->fs_known;
}

bool vfs_export_is_local(const struct vfs_export *exp)
{
	return exp->local;
}

uint64_t vfs_write_verifier(const struct vfs_export *exp)
{
	return atomic_load(&exp->verifier->value);
}

static int export_check_type(struct vfs_export *exp, int fd, const char **why)
{
	struct statx sx;
	struct stat st;

	int rc = fstat(fd, &st) != 0 ? -errno : vfs_statx_mount(fd, "", AT_EMPTY_PATH, 0, &sx);

	if (rc != 0) {
		*why = vfs_why_no_handles(fd, rc);
		return rc;
	}
	exp->place_mnt_id = sx.stx_mnt_id;
	exp->local = vfs_fs_is_local(fd);
	exp->root_dev = vfs_device_of(&sx);
	exp->verifier = vfs_verifier_get(exp->vfs, exp->id, exp->root_dev);
	if (!exp->verifier)
		return -ENOMEM;
	exp->root_type = st.st_mode & S_IFMT;
	exp->root_ino = st.st_ino;
	if (exp->root_type == S_IFDIR || exp->root_type == S_IFREG)
		return 0;
	*why = "neither a directory nor a regular file";
	return -ENOTDIR;
}

/* The root's mount, a private clone of it where the kernel allows, and the root's handle. */
static int open_root(struct vfs_export *exp, int fd, const char **why)
{
	struct vfs_handle root;
	int rc;

	rc = vfs_mount_new(exp, fd, 0, &exp->root_mnt, &root);
	if (rc == 0) {
		TAILQ_INSERT_HEAD(&exp->mounts, exp->root_mnt, link);
		exp->detached = exp->root_mnt->tree_fd >= 0;
		root.export_id = exp->id;
		root.submount_id = 0;
		rc = vfs_handle_encode(&root, vfs_mount_mac(exp->vfs, exp->root_mnt),
				       &exp->root_fh);
		exp->root_mnt->root_fh = exp->root_fh;
		exp->root_mnt->covered_ino = vfs_covered_by(exp->real_path).ino;
	}
	if (rc != 0)
		*why = vfs_why_no_handles(fd, rc);
	return rc;
}

/* From here on other threads see the export, which must not change any more but under its locks. */
static void enter_list(struct vfs_export *exp)
{
	exp->listed = true;
	pthread_mutex_lock(&exp->vfs->exports_lock);
	LIST_INSERT_HEAD(&exp->vfs->exports, exp, link);
	pthread_mutex_unlock(&exp->vfs->exports_lock);
}

int vfs_export_open(struct vfs *vfs, const struct vfs_export_config *cfg, struct vfs_export **out,
		    const char **why)
{
	struct vfs_export *exp;
	int fd, rc;

	*why = "";
	fd = open(cfg->path, O_PATH | O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		*why = strerrordesc_np(-rc);
		return rc;
	}
	exp = export_new(vfs, cfg->path, fd);
	if (!exp) {
		close(fd);
		*why = "out of memory, or no /proc";
		return -ENOMEM;
	}
	exp->id = cfg->id;
	exp->mode = cfg->mode;
	exp->crossmnt = cfg->flags & VFS_EXPORT_CROSSMNT;
	exp->vouched = cfg->flags & VFS_EXPORT_FSID;
	rc = export_check_type(exp, fd, why);
	if (rc == 0)
		rc = open_root(exp, fd, why);
	if (rc != 0) {
		vfs_export_put(exp);
		return rc;
	}
	enter_list(exp);
	*out = exp;
	return 0;
}
