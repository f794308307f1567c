/* SPDX-License-Identifier: BSD-2-Clause */
/* The place of an export at this moment: the directory that its path leads to, on which mount, and
 * whether it may be served. doc/design/exports.md has the rules. */
#ifndef RN_DAEMON_EXPORTS_EXPORT_SET_H
#define RN_DAEMON_EXPORTS_EXPORT_SET_H

#include <stddef.h>
#include <sys/stat.h>

#include "conf/exports.h"
#include "daemon/exports/path_probe.h"
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
	bool shared;		  /* other servers have the same exports, on other machines */
	struct vfs_fs_seen *seen; /* of this load */
	struct path_probe *probe;
	/* By exp_export.index, and behind these by the number of lines in error: false if a file system does not answer */
	const bool *answers;
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

/*
 * The exports in force: the table of exports(5) bound to open directories, behind one pointer that
 * a reload swaps whole. A request that started under the old set keeps its export until it is done.
 */

struct askers;
struct drain;
struct exp_matcher;
struct export_place;
struct export_set;
struct fs_queues;
struct exports;

struct exports_config {
	struct vfs *vfs;
	enum vfs_io_mode io_mode;
	struct exp_load_opts load;
	bool must_be_whole;	     /* any error fails exports_new(), as it fails a reload */
	struct askers *askers;	     /* threads that wait for name services */
	struct drain *drain;	     /* NULL: nothing is ever drained */
	struct fs_queues *fs_queues; /* learn the exports' file systems */
	const struct rn_logger *log;
};

/* Reads and opens the exports. An export in error is logged and left out, unless load.strict. An
 * empty set is no error. 0 or -errno. */
int exports_new(const struct exports_config *cfg, struct exports **out);
/* No request may be running. */
void exports_free(struct exports *ex);

/* State that a client of NFSv4 loses. */
struct exports_holder {
	uint64_t clientid;
	struct sockaddr_storage addr; /* that it registered from */
	uint64_t opens, locks, delegations;
};

enum { EXPORTS_HOLDERS_MAX = 1000 };

/* State that a change revokes. */
struct exports_revoked {
	uint64_t opens, locks, delegations;
	uint64_t lock_owners;	       /* of NFSv3 */
	struct exports_holder *holder; /* the first EXPORTS_HOLDERS_MAX of them; or NULL */
	unsigned nholders;
};

struct nfs3_server;
struct nfs4_server;

/* Counts what clients hold below exports, by client. The caller has the lock under which clients' state is ended. The
 * servers may be NULL; out is zeroed, and its list is the caller's to free. */
void exports_count_holders(struct nfs4_server *nfs4, struct nfs3_server *nfs3,
			   const struct vfs_exports_lost *below, struct exports_revoked *out);

/* Calls of exports_watch(). */
struct exports_hooks {
	/* Counts what clients hold below what they lose. */
	void (*count)(void *ctx, const struct vfs_exports_lost *lost, struct exports_revoked *out);
	/* Called when a new set is in force and the old one is still open. It must close everything below
	 * the exports that are gone; only calls under way may keep files there. */
	void (*revoke)(void *ctx, const struct vfs_exports_lost *lost);
	void *ctx;
};

/*
 * Follows mounts that come and go from now on. The hooks are called on a thread of its own, or on that
 * of the functions below. 0 or -errno.
 */
int exports_watch(struct exports *ex, const struct exports_hooks *hooks);
/* Stops following mounts: the hooks are not called any more. */
void exports_unwatch(struct exports *ex);

/* The exports in force at one moment, for administrators. */
struct exports_now {
	const struct exp_table *table;
	const struct export_place *place; /* by exp_export.index */
	struct exp_matcher *matcher;
	const struct cfg_diags *diags;	    /* messages about what the set was made of */
	const struct cfg_diags *file_diags; /* messages about the files that were read */
	unsigned edits;			    /* temporary changes since then */
	void *view;			    /* holds all of them */
};
void exports_now_get(struct exports *ex, struct exports_now *now);
void exports_now_put(struct exports_now *now);

/* Exports that clients get, and those that they do not get. */
struct exports_health {
	unsigned served;
	unsigned in_error;   /* by their lines, or paths that are not there */
	unsigned failed;     /* their paths could not be opened */
	unsigned unmounted;  /* their file systems were */
	unsigned removed;    /* their directories were */
	unsigned waiting;    /* option mp: the mount is not there yet */
	bool reload_refused; /* true if the last reload was: the exports before it are in force */
};
void exports_health(struct exports *ex, struct exports_health *out);

/* A change, and its consequences. */
struct exports_outcome {
	/* The exports before, and those that were, or would be, in force afterwards. */
	struct exports_now was, is; /* is.table may be NULL if the change was refused */
	struct exports_revoked revoked;
};
void exports_outcome_free(struct exports_outcome *out);

/* Reads everything again. Any error leaves the old set in force; 0 or -errno. out may be NULL; else the
 * caller frees it, after errors too. */
int exports_reload(struct exports *ex, struct exports_outcome *out);
/* Finds out what a reload would do, with text in place of the exports file if name is not NULL. Changes
 * nothing. 0, or the error of the reload; the outcome is there unless that is -ENOMEM. */
int exports_try(struct exports *ex, const char *name, const char *text, size_t len,
		struct exports_outcome *out);

/* A temporary change: it holds until the next reload. */
struct exports_edit {
	bool remove; /* the client; else it is added */
	struct exp_change change;
};
/* Makes the change, or only finds out what it would do. 0 or -errno; the outcome as above. */
int exports_edit(struct exports *ex, const struct exports_edit *edit, bool only_try,
		 struct exports_outcome *out);

/* Has the exports follow the drain, after that has changed. */
void exports_follow_drain(struct exports *ex);

/* The view that protocols get; valid as long as ex. */
struct vfs_exports exports_view(struct exports *ex);

/* 0 if some export admits that host; -EACCES: none does; -RN_EUNNAMED: not known now. */
int exports_admit(struct exports *ex, const struct sockaddr *peer);
/* A number that changes whenever the answers of exports_admit() may have changed; never 0. */
uint32_t exports_generation(struct exports *ex);

/* Rights by those options, on a mount that may be read-only. */
void exports_access(const struct exp_opts *opts, bool mount_read_only, struct vfs_access *a);
/* The deepest line that leads to the path, as written or without symbolic links, and is for the peer, and the length of the path's part
 * that leads to it: 0, or -RN_EUNNAMED if that is not known now. -EACCES: none is for the peer, and *e is the deepest of the others;
 * -ENOENT, NULL: there are none. */
int exports_find(const struct exports_now *now, const char *path, const struct sockaddr *peer,
		 const struct exp_export **e, size_t *length);

/* Logs a line for each export, with its clients. */
void exports_log(struct exports *ex);

#endif
