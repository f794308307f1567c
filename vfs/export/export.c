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
#include <linux/magic.h>
#include <linux/mount.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/export.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/io.h"
#include "vfs/mount_table.h"
#include "vfs/worker/worker_state.h"

#define FUSE_MAGIC 0x65735546

static const struct {
	unsigned long magic;
	const char *text;
} known[] = {
	{ OVERLAYFS_SUPER_MAGIC,
	  "overlayfs has file handles only when mounted with nfs_export=on,index=on" },
	{ FUSE_MAGIC, "this FUSE file system gives no lasting file handles" },
	{ NFS_SUPER_MAGIC,
	  "NFS mounts cannot be exported again: their file handles are too long; refer= sends "
	  "clients to the server itself" },
	{ CIFS_SUPER_MAGIC, "SMB mounts have no file handles" },
	{ SMB2_SUPER_MAGIC, "SMB mounts have no file handles" },
	{ PROC_SUPER_MAGIC, "/proc has no file handles" },
	{ RAMFS_MAGIC, "ramfs has no file handles; tmpfs has" },
};

/* Says why a path cannot be exported, in words that help the administrator. error: the result of the attempt on fd. The
 * text is static. */
static const char *vfs_why_no_handles(int fd, int error)
{
	struct statfs fs;

	if (error == -EPERM)
		return "open_by_handle_at(2) is not permitted: the daemon needs "
		       "CAP_DAC_READ_SEARCH";
	if (error == -ENOSYS)
		return "this kernel cannot open files by handle (open_by_handle_at(2))";
	if (error != -EOPNOTSUPP && error != -ESTALE && error != -EINVAL)
		return strerrordesc_np(-error);
	for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < rn_array_size(known); i++) {
		if ((unsigned long)fs.f_type == known[i].magic)
			return known[i].text;
	}
	return "this file system has no file handles that fit into NFS's";
}

static struct vfs_verifier *verifier_find_locked(struct vfs *vfs, uint32_t id)
{
	struct vfs_verifier *v;

	LIST_FOREACH (v, &vfs->verifiers[id % VFS_VERIFIER_LISTS], link) {
		if (v->id == id)
			break;
	}
	return v;
}

/* Begins with a value that the id cannot have had before a loss. */
static struct vfs_verifier *new_locked(struct vfs *vfs, uint32_t id, uint64_t dev)
{
	struct vfs_verifier *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->id = id;
	v->dev = dev;
	atomic_init(&v->value, vfs->cfg.write_verifier + vfs->losses);
	LIST_INSERT_HEAD(&vfs->verifiers[id % VFS_VERIFIER_LISTS], v, link);
	return v;
}

/* The verifier of that export id, with a reference; NULL: no memory. */
static struct vfs_verifier *vfs_verifier_get(struct vfs *vfs, uint32_t id, uint64_t dev)
{
	struct vfs_verifier *v;

	pthread_mutex_lock(&vfs->verifiers_lock);
	v = verifier_find_locked(vfs, id);
	if (!v)
		v = new_locked(vfs, id, dev);
	if (v) {
		v->refs++;
		v->dev = dev;
	}
	pthread_mutex_unlock(&vfs->verifiers_lock);
	return v;
}

static void vfs_verifier_put(struct vfs *vfs, struct vfs_verifier *v)
{
	bool last;

	if (!v)
		return;
	pthread_mutex_lock(&vfs->verifiers_lock);
	last = --v->refs == 0;
	if (last)
		LIST_REMOVE(v, link);
	pthread_mutex_unlock(&vfs->verifiers_lock);
	if (last)
		free(v);
}

/* Verifiers of different runs of the daemon (vfs_config) are far apart. */
static bool verifier_change_locked(struct vfs *vfs, struct vfs_verifier *v)
{
	if (atomic_load(&v->uncommitted) <= 0)
		return false;
	atomic_store(&v->value, vfs->cfg.write_verifier + ++vfs->losses);
	return true;
}

bool vfs_verifier_change(struct vfs *vfs, struct vfs_verifier *v)
{
	bool changed;

	pthread_mutex_lock(&vfs->verifiers_lock);
	changed = verifier_change_locked(vfs, v);
	pthread_mutex_unlock(&vfs->verifiers_lock);
	return changed;
}

bool vfs_verifier_device_failed(struct vfs *vfs, struct vfs_verifier *v, uint64_t dev)
{
	struct vfs_verifier *other;
	bool changed = false;

	pthread_mutex_lock(&vfs->verifiers_lock);
	for (unsigned i = 0; i < VFS_VERIFIER_LISTS; i++) {
		LIST_FOREACH (other, &vfs->verifiers[i], link) {
			if (other == v || other->dev == dev)
				changed |= verifier_change_locked(vfs, other);
		}
	}
	pthread_mutex_unlock(&vfs->verifiers_lock);
	return changed;
}

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
	return exp->root_mnt->fs.local;
}

#define CUT_OFF_NS (20 * RN_NS_PER_SECOND)

/* No file has these of its own, and no check of permission. */
static bool error_says_cut_off(int rc)
{
	return rc == -ESHUTDOWN /* what Ceph calls EBLOCKLISTED */ || rc == -ENOTCONN ||
	       rc == -ECONNABORTED;
}

bool vfs_error_tells_lost(int rc)
{
	switch (-rc) {
	case EACCES: /* of the kernel's CephFS, once its session was rejected; of ceph-fuse EPERM */
	case EPERM:
		return true;
	default:
		return error_says_cut_off(rc);
	}
}

/* True if the error of an operation may come of that. Opening by handle fails with ESTALE whatever the reason is, and writing back with EIO. */
static bool vfs_error_of_lost(int rc)
{
	return vfs_error_tells_lost(rc) || rc == -ESTALE || rc == -EIO;
}

/* ceph-fuse gives all attributes from memory or says ENOENT, and answers the extended one by ESHUTDOWN. The kernel's CephFS has that one in
 * memory; it asks a server for the attributes once its session has ended, and root is refused none. */
bool vfs_is_lost(int fd)
{
	struct statx sx;
	char client[64];

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &sx) != 0 &&
	    vfs_error_tells_lost(-errno))
		return true;
	return fgetxattr(fd, "ceph.client_id", client, sizeof(client)) < 0 &&
	       vfs_error_tells_lost(-errno);
}

/*
 * True for CUT_OFF_NS from the first such error on. One that goes on is a file system's below the export, perhaps of a user who has mounted it
 * (FUSE) and answers as he likes: it is told for as long, and then there is a first one again.
 */
static bool export_may_be_cut_off(struct vfs_export *exp)
{
	const uint64_t now = rn_now_ns();
	uint64_t since = atomic_load(&exp->cut_off_since);

	if ((since == 0 || now - since >= 2 * CUT_OFF_NS) &&
	    atomic_compare_exchange_strong(&exp->cut_off_since, &since, now))
		return true;
	return now < since + CUT_OFF_NS;
}

/* True if it is certain. Only the root is believed: any client or local user may have an error on a file. */
static bool export_is_lost(struct vfs_ctx *ctx)
{
	const struct vfs_config *cfg = &ctx->vfs->cfg;

	if (vfs_worker_of(ctx)->on_event_thread || vfs_act_as_root(ctx) != 0 ||
	    !vfs_is_lost(ctx->exp->root_mnt->fd))
		return false;
	cfg->lost(cfg->lost_ctx, vfs_export_path(ctx->exp));
	return true;
}

int vfs_doubt(struct vfs_ctx *ctx, int rc)
{
	if (!vfs_error_of_lost(rc) || !ctx->vfs->cfg.lost || !ctx->exp ||
	    ctx->exp->root_mnt->fs.local)
		return rc;
	if (export_is_lost(ctx) || (error_says_cut_off(rc) && export_may_be_cut_off(ctx->exp)))
		return -RN_ESOON;
	return rc;
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
	exp->root_dev = vfs_device_of(&sx);
	exp->verifier = vfs_verifier_get(exp->vfs, exp->id, exp->root_dev);
	if (!exp->verifier)
		return -ENOMEM;
	exp->covers = !(sx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) ||
		      sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	exp->root_type = st.st_mode & S_IFMT;
	exp->root_ino = st.st_ino;
	if (exp->root_type == S_IFDIR || exp->root_type == S_IFREG)
		return 0;
	*why = "neither a directory nor a regular file";
	return -ENOTDIR;
}

struct vfs_fs_seen *vfs_fs_seen_new(void)
{
	return calloc(1, sizeof(struct vfs_fs_seen));
}

void vfs_fs_seen_free(struct vfs_fs_seen *seen)
{
	if (seen)
		vfs_fs_seen_close(seen);
	free(seen);
}

/* The root's mount, a private clone of it where the kernel allows, and the root's handle. */
static int open_root(struct vfs_export *exp, int fd, struct vfs_fs_seen *seen, const char **why)
{
	struct vfs_handle root;
	int rc;

	rc = vfs_mount_new(exp, fd, 0, seen, &exp->root_mnt, &root);
	if (rc == 0) {
		TAILQ_INSERT_HEAD(&exp->mounts, exp->root_mnt, link);
		exp->detached = exp->root_mnt->tree_fd >= 0;
		root.export_id = exp->id;
		root.submount_id = 0;
		rc = vfs_handle_encode(&root, vfs_mount_mac(exp->vfs, exp->root_mnt),
				       &exp->root_fh);
		exp->root_mnt->root_fh = exp->root_fh;
		if (exp->covers)
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
	return vfs_export_open_next(vfs, cfg, NULL, out, why);
}

int vfs_export_open_next(struct vfs *vfs, const struct vfs_export_config *cfg,
			 struct vfs_fs_seen *seen, struct vfs_export **out, const char **why)
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
		rc = open_root(exp, fd, seen, why);
	if (rc != 0) {
		vfs_export_put(exp);
		return rc;
	}
	enter_list(exp);
	*out = exp;
	return 0;
}

/*
 * The export's boundary for directories that were opened by handle: a handle leads anywhere on the
 * file system. Files are not checked, as they may have many parents or, just opened by handle, none
 * that is known: what keeps their handles within the export is the MAC (without it the boundary of
 * a subdirectory export is that of exports(5)'s no_subtree_check).
 */

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

/* The id -1 means "none" to the kernel: nobody can act under it. */
static uint32_t squash_id(uint32_t id, bool root, uint32_t anon)
{
	return id == (uint32_t)-1 || (root && id == 0) ? anon : id;
}

static unsigned find_sec(const struct vfs_access *a, enum vfs_sec sec)
{
	unsigned i = 0;

	while (i < a->nsecs && a->secs[i].sec != sec)
		i++;
	return i;
}

void vfs_access_accept(struct vfs_access *a, enum vfs_sec sec, uint32_t flavor_flags)
{
	if (find_sec(a, sec) < a->nsecs || a->nsecs == VFS_SECS)
		return;
	a->secs[a->nsecs].sec = (uint8_t)sec;
	a->secs[a->nsecs].flags = (uint8_t)(flavor_flags & VFS_FLAVOR_FLAGS);
	a->nsecs++;
}

bool vfs_access_accepts(const struct vfs_access *a, enum vfs_sec sec)
{
	return find_sec(a, sec) < a->nsecs;
}

bool vfs_access_use(struct vfs_access *a, enum vfs_sec sec)
{
	const unsigned i = find_sec(a, sec);
	const bool accepted = i < a->nsecs;

	a->flags &= ~VFS_FLAVOR_FLAGS;
	a->flags |= accepted ? a->secs[i].flags : VFS_RO | VFS_ALL_SQUASH;
	return accepted;
}

void vfs_cred_squash(struct vfs_cred *cred, const struct vfs_access *access, bool auth_none)
{
	bool root = access->flags & VFS_ROOT_SQUASH;

	if (auth_none || (access->flags & VFS_ALL_SQUASH)) {
		cred->uid = access->anonuid;
		cred->gid = access->anongid;
		cred->ngroups = 0;
		return;
	}
	cred->uid = squash_id(cred->uid, root, access->anonuid);
	cred->gid = squash_id(cred->gid, root, access->anongid);
	if (cred->ngroups > VFS_GROUPS_MAX)
		cred->ngroups = VFS_GROUPS_MAX;
	for (uint32_t i = 0; i < cred->ngroups; i++)
		cred->groups[i] = squash_id(cred->groups[i], root, access->anongid);
}
