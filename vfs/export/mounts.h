/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of an export: its path, its write verifier, and the mounts that are visible through it. Mount 0 is the
 * export's own. Others exist with crossmnt only; they are found in /proc/self/mountinfo when they
 * are first used, and dropped when idle, so that an administrator can unmount them.
 */
#ifndef RN_VFS_MOUNTS_H
#define RN_VFS_MOUNTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/vfs.h"

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

struct vfs_verifier {
	unsigned refs; /* under verifiers_lock */
	uint32_t id;   /* id of the export */
	uint64_t dev;  /* device of the export's root */
	_Atomic uint64_t value;
	_Atomic int64_t logged_at; /* rn_now_coarse_seconds() of the last message about a loss */
	_Atomic long uncommitted;  /* nodes with acknowledged data that may not be on disk */
	LIST_ENTRY(vfs_verifier) link;
};

/* Uncommitted data below v's export may be lost. False: there is none. */
bool vfs_verifier_change(struct vfs *vfs, struct vfs_verifier *v);
/* Records a device failure that may have lost data of any file: for v, and for all exports on that
 * device. */
bool vfs_verifier_device_failed(struct vfs *vfs, struct vfs_verifier *v, uint64_t dev);

struct vfs_mount {
	_Atomic unsigned refs;
	const struct vfs_export *exp; /* no reference: whoever uses the mount has one */
	uint32_t id;	    /* 0: the export's own; otherwise a hash of its path below the export */
	uint64_t mnt_id;    /* the kernel's id, valid in this boot */
	uint32_t serial;    /* of all mounts that were opened; never used again, not 0 */
	int tree_fd;	    /* keeps a private clone alive; -1: the public mount is used */
	int fd;		    /* its root, open for reading, for open_by_handle_at */
	uint64_t fsid;	    /* id that survives restarts and is unique to the file system */
	uint64_t subvolume; /* subvolume of the root; 0: none (vfs_handle_subvolume) */
	bool fs_known; /* the file system has an identity of its own, or fsid= vouches for it */
	struct vfs_fs_traits fs;
	uint8_t key[VFS_HANDLE_KEY_LEN]; /* of the MACs of its handles: vfs_mount_key */
	struct vfs_dir_watch *watch;	 /* NULL: changes by others are not known */
	/* NULL: the kernel's ctimes are fine enough (vfs/fs/change.h), of files and of directories */
	struct vfs_changes *changes, *dir_changes;
	struct vfs_fh root_fh;
	/* Inode number of the covered directory, in the file system above; 0: there is none, or it is not known */
	uint64_t covered_ino;
	_Atomic int64_t found_at; /* rn_now_coarse_seconds() of the last search that returned it */
	char *path;		  /* path of a submount; NULL for mount 0 */
	TAILQ_ENTRY(vfs_mount) link;
};
TAILQ_HEAD(vfs_mount_list, vfs_mount);

/* The table that the change attribute of a file of that type (S_IFMT bits of the mode) needs; or NULL. */
static inline struct vfs_changes *vfs_changes_of(const struct vfs_mount *mnt, uint32_t mode)
{
	return S_ISDIR(mode) ? mnt->dir_changes : mnt->changes;
}

struct vfs_covered {
	uint64_t ino, dev;
};

struct vfs_export {
	_Atomic unsigned refs;
	struct vfs *vfs;
	uint32_t id;
	enum vfs_io_mode mode;
	bool crossmnt;
	_Atomic bool nfs_only; /* vfs_export_set_nfs_only */
	_Atomic bool draining; /* vfs_export_set_draining */
	bool vouched;	       /* fsid= stands for the file system's identity */
	bool covers;   /* a file system is mounted at the export's path, or that is not known */
	bool detached; /* mount 0 is a private clone: lookups cannot leave it */
	uint32_t root_type; /* S_IFDIR or S_IFREG */
	struct vfs_fh root_fh;
	uint64_t root_ino;
	struct vfs_verifier *verifier;
	_Atomic uint64_t
		cut_off_since; /* rn_now_ns() of the first error that says so (vfs_doubt); 0: none */
	_Atomic unsigned flushing;  /* nodes: vfs/node/uncommitted.h */
	struct vfs_mount *root_mnt; /* mount 0, for as long as the export lives */
	int place_fd;		    /* O_PATH descriptor on the public mount: keeps it busy */
	uint64_t place_mnt_id;	    /* id of that mount; root_mnt may be a clone */
	uint64_t root_dev;
	char *path;	 /* path as in exports(5) */
	char *real_path; /* path without symbolic links, as in mountinfo */
	pthread_mutex_t mounts_lock;
	struct vfs_mount_list mounts; /* mount 0 and all known submounts */
	/* Ids of all mounts below, in ascending order; NULL: unknown */
	uint32_t *sub_ids;
	size_t sub_nids;
	uint64_t sub_generation; /* vfs.table_generation when they were listed */
	/* Directories and files of its own mount that others are mounted over, in order (vfs/node/node.h) */
	pthread_mutex_t covered_lock; /* a leaf, held while the export's file system is asked */
	struct vfs_covered *covered;
	size_t ncovered;
	_Atomic bool any_covered;    /* ncovered > 0, for those without the lock */
	_Atomic uint64_t covered_at; /* vfs.table_generation when they were listed; 0: never */
	LIST_ENTRY(vfs_export) link; /* link in vfs.exports */
	bool listed;		     /* true from the end of vfs_export_open on */
};

/* The fsid of a file of the mount. Subvolumes repeat inode numbers, so each has its own fsid. */
uint64_t vfs_mount_fsid(const struct vfs_mount *mnt, const struct vfs_fh *fh);
/* The fileid of a file with that inode number, and of an entry with that handle; the roots of
 * subvolumes get other ones. */
uint64_t vfs_mount_fileid(const struct vfs_mount *mnt, const struct vfs_fh *fh, uint64_t ino);
uint64_t vfs_mount_entry_fileid(const struct vfs_mount *mnt, const struct vfs_handle *h,
				uint64_t fileid);
/* Opens a mount with the root fd (O_PATH). seen may be NULL. probe gets the kernel handle of the root. */
int vfs_mount_new(struct vfs_export *exp, int fd, uint32_t id, struct vfs_fs_seen *seen,
		  struct vfs_mount **out, struct vfs_handle *probe);
/* The directory that is covered by a mount at path; zeros: it cannot be found. The thread must be
 * root. */
struct vfs_covered vfs_covered_by(const char *path);
/* Key of the MACs of that mount's handles; NULL: they have none. */
vfs_handle_key vfs_mount_mac(const struct vfs *vfs, const struct vfs_mount *mnt);
void vfs_mount_ref(struct vfs_mount *mnt);
void vfs_mount_put(struct vfs_mount *mnt);

/*
 * A reference to the mount with that id in handles, or with that kernel id; unknown ones are
 * searched in the mount table, for which the thread must be root. -ESTALE: there is none below this
 * export.
 */
int vfs_mount_by_id(struct vfs_export *exp, uint32_t id, struct vfs_mount **out);
int vfs_mount_by_mnt_id(struct vfs_export *exp, uint64_t mnt_id, struct vfs_mount **out);
/* Looks whether the mount table has changed, in one system call: vfs.table_generation. */
uint64_t vfs_mounts_generation(struct vfs *vfs);
/* Drops submounts that no node uses and that have not been asked for since the last call. */
void vfs_mounts_close_idle(struct vfs_export *exp, int64_t before);
/* Takes over the new mount table t: submounts that are no longer where they were move to gone, with
 * the references that the exports had. */
void vfs_mounts_take_gone(struct vfs *vfs, const struct vfs_mount_table *t,
			  struct vfs_mount_list *gone);

/* Checks that the directory fd is the export's root or below it: 0, -ESTALE, or -errno. The thread
 * must be root. */
int vfs_export_contains(const struct vfs_export *exp, int fd);

#endif
