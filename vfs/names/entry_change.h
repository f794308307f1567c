/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of a directory's entries, and the delegations of the directory (vfs/deleg.h).
 *
 * Steps: vfs_entry_change_begin for each directory; checks of the files that are concerned;
 * vfs_entry_order, the system call, and vfs_entry_tell if it has changed something; then
 * vfs_entry_change_end for each.
 *
 * No system call makes a directory, a link or a special file and tells which. So from vfs_entry_order to
 * vfs_entry_change_end no other change of the same name is made through this server, and what was made can be
 * looked up by its name. Only local processes come between.
 */
#ifndef RN_VFS_ENTRY_CHANGE_H
#define RN_VFS_ENTRY_CHANGE_H

#include <pthread.h>

#include "vfs/deleg.h"
#include "vfs/io.h"
#include "vfs/names/node_open.h"

enum vfs_entry {
	VFS_ENTRY_NEW,	 /* the entry is made: there must be none yet */
	VFS_ENTRY_THERE, /* the entry is removed */
	VFS_ENTRY_ANY,	 /* the entry is made, or replaced */
};

struct vfs_entry_orders;

struct vfs_entry_orders *vfs_entry_orders_new(void);	/* NULL: no memory */
void vfs_entry_orders_free(struct vfs_entry_orders *o); /* NULL is allowed */

/* A change under way. */
struct vfs_entry_change {
	struct vfs_file_change count;
	struct vfs_node *dir;
	const struct vfs_name *name;
	pthread_mutex_t
		*order; /* held: the name's; NULL: none, or the other change of a pair holds it */
	struct vfs_file
		*told;	/* a reference of dir's file, if it has holders that are told; or NULL */
	unsigned asked; /* bits of enum vfs_notification that they ask for */
	bool ordered;	/* vfs_notify_begin was called */
};

/* A change of an entry that is about to begin. */
struct vfs_entry_wish {
	struct vfs_node *dir;
	const struct vfs_name *name; /* is there until the end of the change */
	enum vfs_entry entry;
	enum vfs_notification kind; /* of the notification that it causes */
};

/*
 * Begins the change of an entry, which vfs_entry_change_end ends. 0, or nothing has begun:
 * -RN_EDELEG; or, if others have delegations of the directory and the change would fail anyway, so
 * that they need not be asked to return them: -EEXIST, -ENOENT, -EACCES and the like. The thread acts
 * as the caller before, and may be root afterwards.
 */
int vfs_entry_change_begin(struct vfs_ctx *ctx, const struct vfs_entry_wish *wish,
			   struct vfs_entry_change *out);
void vfs_entry_change_end(struct vfs_entry_change *c);

/*
 * Before the system call: no other change of these names comes between it and the end, and none of these directories
 * between it and the notification. b is NULL unless there are two. The thread stays the same, and waits for no other call, until the
 * end. Lock order: the orders of names by address, then those of vfs/hold/deleg_table.h.
 */
void vfs_entry_order(struct vfs_entry_change *a, struct vfs_entry_change *b);
/* Tells the holders. notification lacks what this finds out: fh, attr, dir, export_id and client. The thread may
 * be root afterwards. */
void vfs_entry_tell(struct vfs_ctx *ctx, struct vfs_entry_change *c,
		    struct vfs_dir_notification *notification);
/* Like vfs_entry_tell(), for an entry that was made. */
void vfs_entry_tell_made(struct vfs_ctx *ctx, struct vfs_entry_change *c,
			 const struct vfs_name *name);

#endif
