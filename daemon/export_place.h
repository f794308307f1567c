/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an export is at this moment: the directory that its path leads to, on which mount, and
 * whether it is to be served at all. doc/design/exports.md has the rules.
 */
#ifndef RN_DAEMON_EXPORT_PLACE_H
#define RN_DAEMON_EXPORT_PLACE_H

#include <stddef.h>
#include <sys/stat.h>

#include "conf/exports.h"
#include "daemon/path_probe.h"
#include "lib/log.h"
#include "vfs/export.h"
#include "vfs/mount_table.h"

enum export_state {
	EXPORT_SERVED,
	EXPORT_FAILED,	  /* could not be opened; tried again when another mount is there */
	EXPORT_UNMOUNTED, /* its mount was taken away: what that covered is not served for it */
	EXPORT_WAITS,	  /* option mp: its mount is not there (yet) */
};

struct export_place {
	enum export_state state;
	struct vfs_export *exp; /* NULL unless served */
	dev_t dev;		/* of the path when it was looked at, */
	ino_t ino;
	uint64_t mnt_id; /* the mount that it was on, */
	size_t depth;	 /* and the length of the path where that is mounted; 0: unknown */
	bool crossmnt;
	bool read_only;	       /* the mount is, now: what is open was opened when it was writable */
	bool opened_read_only; /* exp cannot write, whatever the mount says now */
	bool *absent; /* by client: its mp is not mounted; NULL: no client has that option */
};

struct export_opener {
	struct vfs *vfs;
	enum vfs_io_mode io_mode;
	const struct rn_logger *log;
	struct path_probe *probe;
	const struct vfs_mount_table *table; /* as it is now */
	/* The mount table has changed, and nothing else is to be followed. false: the export is
	 * what its path leads to, as at a start. */
	bool mounts_only;
};

/* was: where it was before, or NULL. An export whose file system does not answer stays as it was,
 * or is not served (-ETIMEDOUT) if it was not there before. 0, or -errno of what was logged: with -ENOMEM out is empty. */
int export_place_find(const struct export_opener *op, const struct exp_export *e,
		      const struct export_place *was, struct export_place *out);
void export_place_clear(struct export_place *p);

/* Is now still the directory that was served? */
bool export_place_same(const struct export_place *was, const struct export_place *now);
/* Is there nothing to tell anybody? */
bool export_place_unchanged(const struct exp_export *e, const struct export_place *was,
			    const struct export_place *now);
/* May a client with those options use it now? 0; -EAGAIN: it waits for its mount; -ESTALE: no. */
int export_place_usable(const struct exp_export *e, const struct export_place *p,
			const struct exp_opts *opts);

#endif
