/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients hold of files on its way to the next program (lib/image.h): files with the descriptors that keep them and carry the kernel's locks.
 * The protocols name a file by its number, and hand shares and ranges over with their own state. Nobody else calls into vfs/ meanwhile.
 */
#ifndef RN_VFS_VFS_IMAGE_H
#define RN_VFS_VFS_IMAGE_H

#include "lib/image.h"
#include "vfs/deleg.h"
#include "vfs/lock.h"
#include "vfs/share.h"

/* Closes what is used by nobody, and adds the files to the image. NULL, or why they cannot be handed over. */
const char *vfs_save(struct vfs *vfs, struct image_writer *w);
/* Takes the files, each with a reference until vfs_load_end(). 0; -EPROTO; -ENOMEM: what was taken stays until vfs_load_end(). */
int vfs_load(struct vfs *vfs, struct image_reader *image);
/*
 * The same for the image of a server that was moved here from another machine (image_for_elsewhere()), when the exports are in force: the files are
 * looked for, and none has a descriptor. Then vfs_lock_moved(). -ENOENT: an export is gone; -ESHUTDOWN: the file system has given this machine up; or
 * -errno.
 */
int vfs_load_moved(struct vfs *vfs, struct image_reader *image);
/* After the protocols have taken theirs: the kernel locks what clients have locked. -RN_EDENIED: somebody else has locked some of it; or -errno. The
 * files keep what was locked. */
int vfs_lock_moved(struct vfs *vfs);
/* Puts those references: what no protocol has taken is closed. */
void vfs_load_end(struct vfs *vfs);

/* Number of a file among those of the image, from 1 on; after vfs_save(). */
uint32_t vfs_file_number(const struct vfs_file *f);
/* The file with that number, with a reference; NULL: there is none. Until vfs_load_end(). */
struct vfs_file *vfs_file_by_number(struct vfs *vfs, uint32_t number);

/* Opens a share that the program before has granted, with the bits that it had. client: as vfs_ctx.client. */
void vfs_share_load(struct vfs_file *f, struct vfs_share *s, const struct vfs_share_request *r,
		    const void *client, bool advisory);

/* A delegation that the program before has given; d as for vfs_deleg_give(), with recalled, late and within_s. */
void vfs_deleg_load(struct vfs_file *f, struct vfs_deleg *d);

struct vfs_locked_range {
	uint64_t start, end; /* both are part of it */
	uint8_t type;	     /* enum vfs_lock_type */
};
/* Calls each() for the owner's ranges. */
void vfs_lock_each(const struct vfs_lock_owner *o,
		   void (*each)(void *arg, const struct vfs_locked_range *r), void *arg);
/* Adds a range that the program before has granted; the kernel has it locked by the file's descriptor. -EPROTO: it overlaps with
 * another; -ENOMEM. */
int vfs_lock_load(struct vfs_lock_owner *o, const struct vfs_locked_range *r);
/* Gives a waiter of the program before its notice, which is the file's from then on. -EPROTO: there is no such waiter, or it has one. */
int vfs_lock_load_notice(struct vfs_file *f, uint64_t waiter, struct vfs_lock_notice *n);

#endif
