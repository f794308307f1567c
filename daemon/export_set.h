/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exports in force: the table of exports(5) bound to open directories, behind one pointer that
 * a reload swaps whole. A request that started under the old set keeps its export until it is done.
 */
#ifndef RN_DAEMON_EXPORT_SET_H
#define RN_DAEMON_EXPORT_SET_H

#include "conf/exports.h"
#include "lib/log.h"
#include "vfs/export.h"

struct askers;
struct exp_matcher;
struct export_place;
struct export_set;
struct lanes;
struct exports;

struct exports_config {
	struct vfs *vfs;
	enum vfs_io_mode io_mode;
	struct exp_load_opts load;
	bool must_be_whole;    /* any error fails exports_new(), as it fails a reload */
	struct askers *askers; /* threads that wait for name services */
	struct lanes *lanes;   /* learn the exports' file systems */
	const struct rn_logger *log;
};

/* Reads and opens the exports. An export in error is logged and left out, unless load.strict. An
 * empty set is no error. 0 or -errno. */
int exports_new(const struct exports_config *cfg, struct exports **out);
/* No request may be running. */
void exports_free(struct exports *ex);

/*
 * Follows mounts that come and go from now on. changed is called, on a thread of its own or that of
 * exports_reload, when a new set is in force and the old one is still open. It must close
 * everything below the exports that are gone; only calls under way may keep files there. 0 or
 * -errno.
 */
int exports_watch(struct exports *ex,
		  void (*changed)(void *ctx, const struct vfs_exports_lost *lost), void *ctx);
/* Stops following mounts: changed is not called any more. */
void exports_unwatch(struct exports *ex);

/* Reads everything again. Any error leaves the old set in force; 0 or -errno. */
int exports_reload(struct exports *ex);

/* The view that protocols get; valid as long as ex. */
struct vfs_exports exports_view(struct exports *ex);

/* 0 if some export admits that host; -EACCES: none does; -EAGAIN: not known now. */
int exports_admit(struct exports *ex, const struct sockaddr *peer);
/* A number that changes whenever the answers of exports_admit() may have changed; never 0. */
uint32_t exports_generation(struct exports *ex);

/* The exports in force at one moment, for administrators. */
struct exports_now {
	const struct exp_table *table;
	const struct export_place *place; /* by exp_export.index */
	struct exp_matcher *matcher;
	const struct cfg_diags *diags; /* messages about the files that were read */
	void *view;		       /* holds all of them */
};
void exports_now_get(struct exports *ex, struct exports_now *now);
void exports_now_put(struct exports_now *now);

/* Logs a line for each export, with its clients. */
void exports_log(struct exports *ex);

#endif
