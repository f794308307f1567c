/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations of one file, for those who have its lock. */
#ifndef RN_VFS_DELEG_TABLE_H
#define RN_VFS_DELEG_TABLE_H

#include "vfs/hold/file.h"

/* A use of a file, and by whom; client NULL: by nobody who could have a delegation. */
struct vfs_file_use {
	const void *client;
	enum vfs_deleg_use use;
	unsigned
		news; /* kinds of enum vfs_news: holders that take all of them are told later; 0: none */
	bool made;	   /* it was made already */
	unsigned within_s; /* vfs_deleg.within_s of those that are in its way */
};

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
/* Nobody gets a delegation of the file from now on, for vfs_config.deleg_quiet_seconds. */
void vfs_deleg_quiet(struct vfs_file *f);
struct vfs_quiet_time vfs_deleg_quiet_time(const struct vfs *vfs);

#endif
