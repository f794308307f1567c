/* SPDX-License-Identifier: BSD-2-Clause */
/* The place of an export at this moment: the directory that its path leads to, on which mount, and
 * whether it may be served. doc/design/exports.md has the rules. */
#ifndef RN_DAEMON_EXPORT_PLACE_H
#define RN_DAEMON_EXPORT_PLACE_H

#include <stddef.h>
#include <sys/stat.h>

#include "conf/exports.h"
#include "daemon/path_probe.h"
#include "lib/log.h"
#include "vfs/export.h"
#include "vfs/mount_table.h"

enum { EXPORT_FS_TYPE = 32 }; /* longer names are cut */

enum export_state {
	EXPORT_SERVED,
	/* could not be opened; tried again when another file system is mounted there */
	EXPORT_FAILED,
	/* its mount was removed: the directory below is not served in its place */
	EXPORT_UNMOUNTED,
	/* its directory was removed; served again when one is there by the same path, on the same mount */
	EXPORT_REMOVED,
	EXPORT_WAITS, /* option mp: its mount is not there yet */
};

struct export_place {
	enum export_state state;
	struct vfs_export *exp; /* NULL unless served */
	dev_t dev;		/* device number of the directory, */
	ino_t ino;
	uint64_t mnt_id; /* id of the mount it is on, */
	size_t depth;	 /* and length of the path's part where that is mounted; 0: unknown */
	char fs_type[EXPORT_FS_TYPE]; /* type of the file system there; "": unknown */
	const char *why;	 /* EXPORT_FAILED, EXPORT_REMOVED: static text; NULL: not known */
	enum vfs_root_name root; /* EXPORT_SERVED: as seen last */
	bool moved;		 /* root, and the path leads there no more */
	char *real_path;	 /* EXPORT_REMOVED: the directory's, without symbolic links */
	bool crossmnt;
	bool read_only;	       /* the mount is, now: what is open was opened when it was writable */
	bool opened_read_only; /* exp cannot write, whatever the mount says now */
	/* for each client: true if its mp is not mounted; NULL: no client has that option */
	bool *absent;
};

struct export_opener {
	struct vfs *vfs;
	enum vfs_io_mode io_mode;
	const struct rn_logger *log;
	struct path_probe *probe;
	const struct vfs_mount_table *table; /* mount table, as it is now */
	/*
	 * True if only the mount table has changed. False: the export is looked up as at a start.
	 */
	bool mounts_only;
};

/* was: the place before, or NULL. 0, or -errno, logged: with -ENOMEM out is empty. */
int export_place_find(const struct export_opener *op, const struct exp_export *e,
		      const struct export_place *was, struct export_place *out);
void export_place_clear(struct export_place *p);

/* True if the name of what is served has changed since the place was found. Never waits. */
bool export_place_renamed(const struct export_place *p);
/* True if now is the directory that was served before. */
bool export_place_same(const struct export_place *was, const struct export_place *now);
/* True if nothing has changed that clients or the log must learn. */
bool export_place_unchanged(const struct exp_export *e, const struct export_place *was,
			    const struct export_place *now);
/* 0 if a client with those options may use it now; -EALREADY: it waits for its mount; -ESTALE: no. */
int export_place_usable(const struct exp_export *e, const struct export_place *p,
			const struct exp_opts *opts);

#endif
