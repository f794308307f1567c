/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations of one file, for those who have its lock. */
#ifndef RN_VFS_DELEG_TABLE_H
#define RN_VFS_DELEG_TABLE_H

#include "vfs/hold/file.h"

/* A use of a file, and its client; NULL if the user cannot have a delegation. */
struct vfs_file_use {
	const void *client;
	enum vfs_deleg_use use;
	unsigned
		notify_kinds; /* kinds of enum vfs_notification: holders that take all of them are told later; 0: none */
	bool made;	   /* it was made already */
	unsigned within_s; /* vfs_deleg.within_s of those that are in its way */
};

/* Under f->lock: counts a delegation, and adds it to those that were given, or recalled (d->recalled). It takes a reference of f. */
void vfs_deleg_insert(struct vfs_file *f, struct vfs_deleg *d);
/* The use that a share with these bits is. */
enum vfs_deleg_use vfs_deleg_use_of_share(uint8_t access, uint8_t deny);

/* Under f->lock. True if a delegation is in the way, whether or not it was recalled. */
bool vfs_deleg_conflicts(const struct vfs_file *f, const struct vfs_file_use *u);
/* True if anybody has a delegation of any file, or may have. */
bool vfs_deleg_any(struct vfs *vfs);
/* Recalls what is in the way. 0 or -RN_EDELEG. f may be NULL. */
int vfs_deleg_ask(struct vfs_file *f, const struct vfs_file_use *u);
/* vfs_deleg_check of a file, which may be NULL. */
int vfs_deleg_check_file(struct vfs_ctx *ctx, struct vfs_file *f, enum vfs_deleg_use use);
/* -RN_EDELEG if clients may have delegations of the file that they have not reclaimed yet. f may be
 * NULL: nobody uses the file. */
int vfs_deleg_check_unknown(struct vfs *vfs, struct vfs_file *f);
/* Under f->lock, which is given up in between: asks the holders of all that are in the way. */
void vfs_deleg_recall(struct vfs_file *f, const struct vfs_file_use *u);

/*
 * Changes of directories that holders of delegations are told of (vfs/deleg.h).
 *
 * The holders must be told in the order in which the changes were made. So while a directory has
 * holders that are told, changes of it through this server are made one at a time, from the system
 * call until the holders have been told. The kernel makes them one at a time as well, under the
 * directory's own lock: nobody waits here who would not have waited there.
 *
 * Lock order: the orders of two directories by address; then whatever a system call on the directory
 * takes in vfs/, and the locks that tell() takes. vfs_file.lock is taken under it.
 */

struct vfs_dir_notifier {
	pthread_mutex_t order;
	/* Under vfs_file.lock. */
	unsigned holders; /* of delegations that were given with notifications */
	uint64_t number;  /* of the last change that was told */
};

/* For vfs_deleg_give, under f->lock: lets the holder be told, or clears d->dir_notify. */
void vfs_notify_admit(struct vfs_file *f, struct vfs_deleg *d);
/* For vfs_deleg_end, under f->lock. */
void vfs_notify_leave(struct vfs_file *f, struct vfs_deleg *d);
/* For the end of f. */
void vfs_notify_free(struct vfs_dir_notifier *notifier); /* NULL is allowed */

/* The functions below are called without f->lock. */

/* Union of the kinds that all holders take: bits of enum vfs_notification. f may be NULL. */
unsigned vfs_notify_asked(struct vfs_file *f);
/* Begin and end of a change of directories with news; b is another one, or NULL. */
void vfs_notify_begin(struct vfs_file *a, struct vfs_file *b);
void vfs_notify_end(struct vfs_file *a, struct vfs_file *b);
/* Tells all holders of f that have asked for it. Between begin and end. */
void vfs_notify_tell(struct vfs_file *f, const struct vfs_dir_notification *notification);

#endif
