/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An export from inside: its path, and the mounts that may be seen through it. Mount 0 is the
 * export's own; others exist with crossmnt only, are found in /proc/self/mountinfo when they are
 * met, and are let go when they are idle, so that an administrator can unmount them.
 */
#ifndef RN_VFS_MOUNTS_H
#define RN_VFS_MOUNTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/export/verifier.h"
#include "vfs/fs/handle.h"
#include "vfs/vfs.h"

struct vfs_mount {
	_Atomic unsigned refs;
	uint32_t id;	    /* 0: the export's own; otherwise a hash of its path below the export */
	uint64_t mnt_id;    /* the kernel's, of this boot */
	int tree_fd;	    /* keeps a private clone alive; -1: the mount as everybody sees it */
	int fd;		    /* its root, readable: what open_by_handle_at wants */
	uint64_t fsid;	    /* the same after a restart, and that of no other file system */
	uint64_t subvolume; /* of the root; 0: the file system has none (vfs_handle_subvolume) */
	bool fs_known; /* the file system has an identity of its own, or fsid= vouches for it */
	uint8_t key[VFS_HANDLE_KEY_LEN]; /* vfs/fs/mount_key.h */
	struct vfs_changes *changes;	 /* NULL: ctimes are fine enough (vfs/fs/change.h) */
	struct vfs_fh root_fh;
	uint64_t covered_ino; /* of what the root covers, in the file system above; 0: unknown */
	_Atomic int64_t found_at; /* rn_now_coarse_seconds() of the last search that gave it */
	char *path;		  /* where a submount is mounted; NULL for mount 0 */
	TAILQ_ENTRY(vfs_mount) link;
};
TAILQ_HEAD(vfs_mount_list, vfs_mount);

struct vfs_export {
	_Atomic unsigned refs;
	struct vfs *vfs;
	uint32_t id;
	enum vfs_io_mode mode;
	bool crossmnt;
	bool vouched;	    /* fsid= stands for the file system's identity */
	bool detached;	    /* mount 0 is a private clone: lookups cannot leave it */
	uint32_t root_type; /* S_IFDIR or S_IFREG */
	struct vfs_fh root_fh;
	uint64_t root_ino;
	struct vfs_verifier *verifier;
	_Atomic unsigned flushing;  /* nodes: vfs/node/flush.h */
	struct vfs_mount *root_mnt; /* mount 0, for as long as the export lives */
	int place_fd;		    /* O_PATH, on the mount that everybody sees: keeps it busy */
	uint64_t place_mnt_id;	    /* of that mount; root_mnt may be a clone */
	uint64_t root_dev;
	char *path;	 /* as exports(5) has it */
	char *real_path; /* without symbolic links: what mountinfo shows */
	pthread_mutex_t mounts_lock;
	struct vfs_mount_list mounts; /* mount 0 and the others that are known */
	uint32_t *sub_ids;	      /* of all that are mounted below: rising; NULL: unknown */
	size_t sub_nids;
	uint64_t sub_generation;     /* vfs.table_generation when they were listed */
	LIST_ENTRY(vfs_export) link; /* of vfs.exports */
};

/* The fsid of a file of the mount: subvolumes have inode numbers of their own, and so an fsid. */
uint64_t vfs_mount_fsid(const struct vfs_mount *mnt, const struct vfs_fh *fh);
/* The fileid of a file whose inode has that number, and of an entry with that handle: another for
 * the roots of subvolumes. */
uint64_t vfs_mount_fileid(const struct vfs_mount *mnt, const struct vfs_fh *fh, uint64_t ino);
uint64_t vfs_mount_entry_fileid(const struct vfs_mount *mnt, const struct vfs_handle *h,
				uint64_t fileid);
/* Opens a mount whose root is what fd (O_PATH) shows. probe gets the kernel handle of the root. */
int vfs_mount_new(struct vfs_export *exp, int fd, uint32_t id, struct vfs_mount **out,
		  struct vfs_handle *probe);
/* The number of the inode that the last name of path has without what is mounted there; 0: it
 * cannot be found. The thread must be root. */
uint64_t vfs_covered_inode(const char *path);
/* The key of the MACs of handles of that mount; NULL: they have none. */
vfs_handle_key vfs_mount_mac(const struct vfs *vfs, const struct vfs_mount *mnt);
void vfs_mount_ref(struct vfs_mount *mnt);
void vfs_mount_put(struct vfs_mount *mnt);

/* A reference of the mount with that id in handles, or with that id of the kernel; unknown ones are
 * searched in the mount table, for which the thread must be root. -ESTALE: there is none below this
 * export. */
int vfs_mount_by_id(struct vfs_export *exp, uint32_t id, struct vfs_mount **out);
int vfs_mount_by_mnt_id(struct vfs_export *exp, uint64_t mnt_id, struct vfs_mount **out);
/* Lets go of submounts that no node uses and nobody asked for since before. */
void vfs_mounts_close_idle(struct vfs_export *exp, int64_t before);
/* The mount table has become t: takes the submounts of all exports that are not where they were, to
 * gone, with the references that the exports had. */
void vfs_mounts_take_gone(struct vfs *vfs, const struct vfs_mount_table *t,
			  struct vfs_mount_list *gone);

/* Checks that the directory fd is the export's root or below it: 0, -ESTALE, or -errno. The thread
 * must be root. */
int vfs_export_contains(const struct vfs_export *exp, int fd);

#endif
