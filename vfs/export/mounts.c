/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mounts of an export. Mount 0 is opened with the export; with crossmnt the others are found in
 * the mount table when a lookup steps onto an unknown mount or a handle names one. A
 * submount's id in handles is a hash of its path below the export: it survives a reboot, unlike the
 * kernel's.
 */
#include "vfs/export/mounts.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "vfs/base/instance.h"
#include "vfs/fs/change.h"
#include "vfs/fs/dir_watch.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/mount_table.h"

_Static_assert(VFS_HANDLE_KEY_LEN == crypto_shorthash_KEYBYTES, "the MAC's");
_Static_assert(VFS_HANDLE_KEY_LEN >= crypto_generichash_KEYBYTES_MIN &&
		       VFS_HANDLE_KEY_LEN >= crypto_generichash_BYTES_MIN,
	       "the hash's");

/* Each field with its length before it: two different inputs are never the same bytes. */
static void mount_key_add(crypto_generichash_state *st, const void *data, uint32_t len)
{
	uint32_t be = htobe32(len);

	crypto_generichash_update(st, (const uint8_t *)&be, sizeof(be));
	crypto_generichash_update(st, data, len);
}

/*
 * The key of the MACs of a mount's handles: a hash, under the server's secret, of the export's id and of what the mount's
 * root is: the identity of its file system (vfs/fs/file_system.h) and the root's own handle of the kernel. A submount's
 * key is made of its export's in the same way. above: the key that it is derived from, the server's secret or the export's
 * key; id: the export's or the submount's.
 */
static void vfs_mount_key(const uint8_t above[VFS_HANDLE_KEY_LEN], uint32_t id,
			  const struct vfs_fs_id *fs, const struct vfs_handle *root,
			  uint8_t key[VFS_HANDLE_KEY_LEN])
{
	static const char use[] = "ringnfs file handles of a mount";
	uint32_t numbers[] = { htobe32(id), htobe32(fs->kind), htobe32((uint32_t)root->type) };
	crypto_generichash_state st;

	crypto_generichash_init(&st, above, VFS_HANDLE_KEY_LEN, VFS_HANDLE_KEY_LEN);
	mount_key_add(&st, use, sizeof(use));
	mount_key_add(&st, numbers, sizeof(numbers));
	mount_key_add(&st, fs->bytes, fs->len);
	mount_key_add(&st, root->bytes, root->len);
	crypto_generichash_final(&st, key, VFS_HANDLE_KEY_LEN);
	sodium_memzero(&st, sizeof(st));
}

/* Names are hashed under a fixed key: the result must be the same for ever. */
static uint64_t stable_hash(const void *data, size_t len)
{
	static const uint8_t key[crypto_shorthash_KEYBYTES + 1] = "ringnfs submount";
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, data, len, key);
	return h;
}

static uint32_t submount_id(const char *rel)
{
	uint32_t id = (uint32_t)stable_hash(rel, strlen(rel));

	return id ? id : 1;
}

static uint64_t fsid_of(uint32_t export_id, uint32_t mount_id, const struct vfs_fs_id *fs)
{
	struct {
		uint32_t ids[2];
		struct vfs_fs_id fs;
	} all = { .ids = { export_id, mount_id }, .fs = *fs };

	_Static_assert(sizeof(all) == sizeof(all.ids) + 2 + VFS_FS_ID_MAX, "no gaps are hashed");

	return stable_hash(&all, sizeof(all));
}

void vfs_mount_ref(struct vfs_mount *mnt)
{
	atomic_fetch_add(&mnt->refs, 1);
}

void vfs_mount_put(struct vfs_mount *mnt)
{
	if (atomic_fetch_sub(&mnt->refs, 1) != 1)
		return;
	vfs_dir_watch_put(mnt->watch);
	if (mnt->fd >= 0)
		close(mnt->fd);
	if (mnt->tree_fd >= 0)
		close(mnt->tree_fd);
	free(mnt->path);
	free(mnt);
}

static int clone_tree(int fd)
{
	return (int)syscall(SYS_open_tree, fd, "",
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* Handles must open again: a file system may give some that it does not take back. */
static int try_handle(int fd, struct vfs_handle *h, uint64_t *mnt_id)
{
	int rc = vfs_handle_of(fd, "", h, mnt_id);

	if (rc == 0)
		rc = vfs_handle_open(fd, h);
	if (rc < 0)
		return rc;
	close(rc);
	return 0;
}

/* The root of a subvolume is a directory with the same number everywhere, and what its entry in the
 * directory above shows is the subvolume's own, which some inode there may have, too. Linux's
 * client shows the latter, with the fsid above, until it enters the subvolume. So both are replaced
 * by a number that no inode has. */
#define SUBVOLUME_ROOT_INO 256
#define SUBVOLUME_ROOT_FILEID ((uint64_t)1 << 62)

/* false: it is in the subvolume that the mount's root is in, or there are none. */
static bool in_other_subvolume(const struct vfs_mount *mnt, const struct vfs_fh *fh, uint64_t *ino,
			       uint64_t *subvolume)
{
	return mnt->subvolume != 0 && vfs_fh_subvolume(fh, ino, subvolume) &&
	       *subvolume != mnt->subvolume;
}

uint64_t vfs_mount_fsid(const struct vfs_mount *mnt, const struct vfs_fh *fh)
{
	uint64_t ino, ids[2] = { mnt->fsid };

	return in_other_subvolume(mnt, fh, &ino, &ids[1]) ? stable_hash(ids, sizeof(ids))
							  : mnt->fsid;
}

uint64_t vfs_mount_fileid(const struct vfs_mount *mnt, const struct vfs_fh *fh, uint64_t ino)
{
	uint64_t num, subvolume;

	if (ino != SUBVOLUME_ROOT_INO || !in_other_subvolume(mnt, fh, &num, &subvolume))
		return ino;
	return SUBVOLUME_ROOT_FILEID | subvolume;
}

uint64_t vfs_mount_entry_fileid(const struct vfs_mount *mnt, const struct vfs_handle *h,
				uint64_t fileid)
{
	uint64_t num, subvolume;

	if (mnt->subvolume == 0 || !vfs_handle_subvolume(h, &num, &subvolume) ||
	    subvolume == mnt->subvolume || num != SUBVOLUME_ROOT_INO)
		return fileid;
	return SUBVOLUME_ROOT_FILEID | subvolume;
}

vfs_handle_key vfs_mount_mac(const struct vfs *vfs, const struct vfs_mount *mnt)
{
	return vfs->cfg.handle_mac ? mnt->key : NULL;
}

/* Fills the mount's identity, from which its handles' key and its fsid are made. */
static int identify_mount(const struct vfs_export *exp, struct vfs_mount *mnt,
			  struct vfs_fs_facts *facts, const struct vfs_handle *root)
{
	struct vfs_fs_id fs = { .kind = VFS_FS_ID_GIVEN };
	bool is_sub = mnt->id != 0;
	uint64_t ino;
	int rc;

	if (is_sub || !exp->vouched) {
		rc = facts->has_id ? 0 : vfs_fs_id_of(mnt->fd, &facts->id);
		if (rc != 0)
			return rc;
		facts->has_id = true;
		fs = facts->id;
	}
	if (!vfs_handle_subvolume(root, &ino, &mnt->subvolume))
		mnt->subvolume = 0;
	mnt->fs_known = fs.kind != VFS_FS_ID_DEVICE;
	mnt->fsid = fsid_of(exp->id, mnt->id, &fs);
	vfs_mount_key(is_sub ? exp->root_mnt->key : exp->vfs->cfg.secret,
		      is_sub ? mnt->id : exp->id, &fs, root, mnt->key);
	return 0;
}

static void watch_mount(const struct vfs_export *exp, struct vfs_mount *mnt)
{
	mnt->watch = vfs_dir_watch_get(&exp->vfs->dir_watches, mnt->fd, mnt->fs.local);
	if (mnt->watch || errno != EMFILE || !exp->vfs->cfg.log)
		return;
	rn_log(exp->vfs->cfg.log, RN_WARNING,
	       "%s: this user's processes watch as much as they may: directories are read again "
	       "after each change, and nothing is delegated; "
	       "raise fs.fanotify.max_user_groups (sysctl)",
	       exp->path);
}

static struct vfs_fs_traits traits_once(struct vfs_fs_facts *facts, int fd)
{
	if (!facts->has_traits)
		facts->traits = vfs_fs_traits_of(fd);
	facts->has_traits = true;
	return facts->traits;
}

int vfs_mount_new(struct vfs_export *exp, int fd, uint32_t id, struct vfs_fs_seen *seen,
		  struct vfs_mount **out, struct vfs_handle *probe)
{
	struct vfs_mount *mnt = calloc(1, sizeof(*mnt));
	struct vfs_fs_facts own = { .has_id = false }, *facts = NULL;
	int rc;

	if (!mnt)
		return -ENOMEM;
	atomic_init(&mnt->refs, 1);
	mnt->exp = exp;
	mnt->id = id;
	mnt->tree_fd = exp->crossmnt ? -1 : clone_tree(fd);
	/* A file can be exported, and have a lease. */
	mnt->fd = open(vfs_proc_path(mnt->tree_fd >= 0 ? mnt->tree_fd : fd).s,
		       O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	rc = mnt->fd < 0 ? -errno : try_handle(mnt->fd, probe, &mnt->mnt_id);
	if (rc == 0 && seen)
		facts = vfs_fs_seen_find(seen, mnt->fd);
	if (!facts)
		facts = &own;
	if (rc == 0)
		rc = identify_mount(exp, mnt, facts, probe);
	mnt->serial = atomic_fetch_add(&exp->vfs->mounts_opened, 1) + 1;
	if (rc == 0) {
		mnt->fs = traits_once(facts, mnt->fd);
		watch_mount(exp, mnt);
		/* Other servers' clocks are not as fine as this kernel's. */
		const bool alone = !exp->vfs->cfg.shared;

		mnt->changes = alone && mnt->fs.fine_files ? NULL : exp->vfs->changes;
		mnt->dir_changes = alone && mnt->fs.fine_dirs ? NULL : exp->vfs->changes;
	}
	if (rc != 0) {
		vfs_mount_put(mnt);
		return rc;
	}
	*out = mnt;
	return 0;
}

/* A clone of the mount above, rooted at the parent directory, has nothing mounted on it. */
static int clone_parent(const char *path, const char **base)
{
	const char *slash = strrchr(path, '/');
	char *parent;
	int fd, tree;

	if (!slash || slash[1] == '\0')
		return -1;
	*base = slash + 1;
	parent = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	fd = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	free(parent);
	if (fd < 0)
		return -1;
	tree = clone_tree(fd);
	close(fd);
	return tree;
}

struct vfs_covered vfs_covered_by(const char *path)
{
	struct vfs_covered covered = { 0, 0 };
	const char *base;
	struct statx sx;
	int tree = clone_parent(path, &base);

	if (tree < 0)
		return covered;
	if (statx(tree, base, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO, &sx) == 0)
		covered = (struct vfs_covered){ sx.stx_ino, vfs_device_of(&sx) };
	close(tree);
	return covered;
}

static int root_handle(struct vfs_export *exp, struct vfs_mount *mnt, struct vfs_handle *root)
{
	root->export_id = exp->id;
	root->submount_id = mnt->id;
	return vfs_handle_encode(root, vfs_mount_mac(exp->vfs, mnt), &mnt->root_fh);
}

/* Opens the mount at path as it is now: mountinfo also lists those hidden below another mount. */
static int open_submount(struct vfs_export *exp, const char *path, uint32_t id,
			 struct vfs_mount **out)
{
	struct vfs_handle probe;
	struct stat st;
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int rc = -EACCES;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
		rc = vfs_mount_new(exp, fd, id, NULL, out, &probe);
	close(fd);
	if (rc != 0)
		return rc;
	(*out)->covered_ino = vfs_covered_by(path).ino;
	(*out)->path = strdup(path);
	rc = (*out)->path ? root_handle(exp, *out, &probe) : -ENOMEM;
	if (rc != 0)
		vfs_mount_put(*out);
	return rc;
}

struct wanted {
	bool by_id;
	uint32_t id;
	uint64_t mnt_id;
};

static bool mount_is_wanted(const struct vfs_mount *mnt, const struct wanted *w)
{
	return w->by_id ? mnt->id == w->id : mnt->mnt_id == w->mnt_id;
}

/* Under mounts_lock: mnt takes the place of the one that had its id before it. */
static void replace_mount(struct vfs_export *exp, struct vfs_mount *mnt)
{
	struct vfs_mount *old;

	TAILQ_FOREACH (old, &exp->mounts, link) {
		if (old->id == mnt->id)
			break;
	}
	if (old) {
		TAILQ_REMOVE(&exp->mounts, old, link);
		vfs_mount_put(old);
	}
	TAILQ_INSERT_TAIL(&exp->mounts, mnt, link);
}

/* The mount of a line of the mount table, if it is the one that is wanted; else NULL. */
static struct vfs_mount *try_entry(struct vfs_export *exp, const struct vfs_mount_entry *e,
				   const struct wanted *w)
{
	const char *rel = vfs_path_below(e->path, exp->real_path);
	uint32_t id = rel ? submount_id(rel) : 0;
	struct vfs_mount *mnt = NULL;

	if (!rel || (w->by_id ? id != w->id : e->id != w->mnt_id) ||
	    open_submount(exp, e->path, id, &mnt) != 0)
		return NULL;
	if (mount_is_wanted(mnt, w))
		return mnt;
	vfs_mount_put(mnt);
	return NULL;
}

/* Under mounts_lock. */
static struct vfs_mount *search_table(struct vfs_export *exp, const struct wanted *w)
{
	struct vfs_mount *mnt = NULL;
	struct vfs_mount_table t;

	if (vfs_mount_table_load(&t) != 0)
		return NULL;
	for (size_t i = 0; i < t.n && !mnt; i++)
		mnt = try_entry(exp, &t.entry[i], w);
	vfs_mount_table_free(&t);
	if (mnt)
		replace_mount(exp, mnt);
	return mnt;
}

uint64_t vfs_mounts_generation(struct vfs *vfs)
{
	uint64_t gen;

	pthread_mutex_lock(&vfs->table_lock);
	if (vfs->table_watch < 0 || vfs_mount_table_changed(vfs->table_watch))
		atomic_fetch_add(&vfs->table_generation, 1);
	gen = atomic_load(&vfs->table_generation);
	pthread_mutex_unlock(&vfs->table_lock);
	return gen;
}

static int mount_compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Under mounts_lock: the ids that submounts of the export have now. */
static int list_ids(struct vfs_export *exp)
{
	struct vfs_mount_table t;
	uint32_t *ids;
	int rc = vfs_mount_table_load(&t);

	if (rc != 0)
		return rc;
	ids = calloc(t.n + 1, sizeof(*ids));
	if (ids) {
		free(exp->sub_ids);
		exp->sub_ids = ids;
		exp->sub_nids = 0;
		for (size_t i = 0; i < t.n; i++) {
			const char *rel = vfs_path_below(t.entry[i].path, exp->real_path);

			if (rel)
				ids[exp->sub_nids++] = submount_id(rel);
		}
		qsort(ids, exp->sub_nids, sizeof(*ids), mount_compare_ids);
	}
	vfs_mount_table_free(&t);
	return ids ? 0 : -ENOMEM;
}

/* Under mounts_lock. Ids in handles may be made up: those that no mount has cost a search, but no
 * reading of the table for each of them. */
static bool may_exist(struct vfs_export *exp, uint32_t id)
{
	uint64_t gen = vfs_mounts_generation(exp->vfs);

	if (!exp->sub_ids || exp->sub_generation != gen) {
		if (list_ids(exp) != 0)
			return true;
		exp->sub_generation = gen;
	}
	return bsearch(&id, exp->sub_ids, exp->sub_nids, sizeof(id), mount_compare_ids);
}

static int mount_find_wanted(struct vfs_export *exp, const struct wanted *w, struct vfs_mount **out)
{
	struct vfs_mount *mnt;

	/* Mount 0 is never exchanged, and nearly always the one. */
	if (mount_is_wanted(exp->root_mnt, w)) {
		vfs_mount_ref(exp->root_mnt);
		*out = exp->root_mnt;
		return 0;
	}
	if (!exp->crossmnt)
		return -ESTALE;
	pthread_mutex_lock(&exp->mounts_lock);
	TAILQ_FOREACH (mnt, &exp->mounts, link) {
		if (mount_is_wanted(mnt, w))
			break;
	}
	if (!mnt && (!w->by_id || may_exist(exp, w->id)))
		mnt = search_table(exp, w);
	if (mnt) {
		vfs_mount_ref(mnt);
		atomic_store(&mnt->found_at, (int64_t)rn_now_coarse_seconds());
	}
	pthread_mutex_unlock(&exp->mounts_lock);
	*out = mnt;
	return mnt ? 0 : -ESTALE;
}

int vfs_mount_by_id(struct vfs_export *exp, uint32_t id, struct vfs_mount **out)
{
	return mount_find_wanted(exp, &(struct wanted){ .by_id = true, .id = id }, out);
}

int vfs_mount_by_mnt_id(struct vfs_export *exp, uint64_t mnt_id, struct vfs_mount **out)
{
	return mount_find_wanted(exp, &(struct wanted){ .mnt_id = mnt_id }, out);
}

void vfs_mounts_close_idle(struct vfs_export *exp, int64_t before)
{
	struct vfs_mount *mnt, *next;

	pthread_mutex_lock(&exp->mounts_lock);
	for (mnt = TAILQ_FIRST(&exp->mounts); mnt; mnt = next) {
		next = TAILQ_NEXT(mnt, link);
		if (mnt == exp->root_mnt || atomic_load(&mnt->refs) > 1 ||
		    atomic_load(&mnt->found_at) >= before)
			continue;
		TAILQ_REMOVE(&exp->mounts, mnt, link);
		vfs_mount_put(mnt);
	}
	pthread_mutex_unlock(&exp->mounts_lock);
}

/* Under mounts_lock: those that are not where they were go to the list. */
static void take_gone(struct vfs_export *exp, const struct vfs_mount_table *t,
		      struct vfs_mount_list *gone)
{
	struct vfs_mount *mnt, *next;

	for (mnt = TAILQ_FIRST(&exp->mounts); mnt; mnt = next) {
		next = TAILQ_NEXT(mnt, link);
		if (mnt == exp->root_mnt || vfs_mount_table_shows(t, mnt->mnt_id, mnt->path))
			continue;
		TAILQ_REMOVE(&exp->mounts, mnt, link);
		TAILQ_INSERT_TAIL(gone, mnt, link);
	}
}

int vfs_submount_path(struct vfs_export *exp, const struct vfs_fh *fh, char *path, size_t size)
{
	struct vfs_mount *mnt;
	struct vfs_handle h;
	int rc = -ESTALE;

	if (vfs_handle_parse(fh, exp->vfs->cfg.handle_mac, &h) != 0 || h.submount_id == 0)
		return 0;
	pthread_mutex_lock(&exp->mounts_lock);
	TAILQ_FOREACH (mnt, &exp->mounts, link) {
		if (mnt->id == h.submount_id && strlen(mnt->path) < size) {
			strcpy(path, mnt->path);
			rc = 1;
		}
	}
	pthread_mutex_unlock(&exp->mounts_lock);
	return rc;
}

void vfs_mounts_take_gone(struct vfs *vfs, const struct vfs_mount_table *t,
			  struct vfs_mount_list *gone)
{
	struct vfs_export *exp;

	pthread_mutex_lock(&vfs->exports_lock);
	LIST_FOREACH (exp, &vfs->exports, link) {
		pthread_mutex_lock(&exp->mounts_lock);
		take_gone(exp, t, gone);
		pthread_mutex_unlock(&exp->mounts_lock);
	}
	pthread_mutex_unlock(&vfs->exports_lock);
}
