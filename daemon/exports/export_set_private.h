/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the set of exports: export_set.c has the set in force, export_build.c makes sets, export_change.c puts one in the place of
 * another, export_lines.c finds the line that governs a path, and export_view.c answers requests by the one in force.
 */
#ifndef RN_DAEMON_EXPORTS_EXPORT_SET_PRIVATE_H
#define RN_DAEMON_EXPORTS_EXPORT_SET_PRIVATE_H

#include <pthread.h>

#include "daemon/exports/export_set.h"

#define STRIPES 16u /* locks; processors with the same remainder share one */
#define CACHE_LINE 64u

/* Parts of a set that do not depend on mounts: sets that differ in places only share it. */
struct set_source {
	_Atomic unsigned refs;
	struct exp_matcher *matcher;
	struct cfg_diags diags; /* messages about the files or the change that the table is from */
	struct set_source *files; /* with the messages about the files; NULL: it is itself */
	unsigned edits;		  /* temporary changes of what the files say */
};

/* A line of exports(5), by one of its paths. */
struct export_line {
	const char *path;
	const struct exp_export *e; /* NULL: the line is in error, and admits nobody */
	size_t mount, dir_mount;    /* of nested ones: as in struct vfs_nested */
	bool folds; /* of nested ones: other names may lead there, as the file system folds case */
};

struct export_set {
	struct exp_table *table;
	struct set_source *source;
	struct exp_matcher *matcher; /* the source's */
	struct export_place *place;  /* indexed by exp_export.index */
	/* In ascending order of path; each as written, and as it leads without symbolic links */
	struct export_line *line;
	/* Exports within another one, served or not, in the order of the last name of their real path, as lookups
	 * ask by that name. Those in directories that fold case come first: every lookup compares them */
	struct export_line *nested;
	unsigned n_lines, n_nested, n_folding;
	char **real; /* real paths of those that are not open */
	unsigned n_real;
	_Atomic unsigned refs;
};

/* The set in force as requests on some of the processors see it: every call asks for its export, so
 * they share neither a lock nor a counter with the others. Holds a reference of the set. */
struct set_view {
	_Alignas(CACHE_LINE) _Atomic unsigned refs;
	struct export_set *set;
};

/* Lock order: lock is the innermost; nothing is called under it. */
struct stripe {
	_Alignas(CACHE_LINE) pthread_mutex_t lock; /* guards view */
	struct set_view *view;
};

struct exports {
	struct exports_config cfg;
	_Atomic uint32_t generation;
	_Atomic bool
		any_nested; /* true if the set in force has exports within others, or the next one has */
	_Atomic bool reload_refused;
	pthread_mutex_t change_lock; /* outermost: one change of sets at a time */
	pthread_mutex_t drain_lock;  /* a leaf: exports follow the drain */
	struct mount_watch *watch;
	struct path_probe *probe;
	struct exports_hooks hooks;
	struct stripe stripe[STRIPES];
};

/* Why a set is made. */
enum purpose {
	TO_START,
	TO_RELOAD, /* any error fails it; without this, exports in error are left out */
	TO_TRY,	   /* the same, and nothing is logged or put in force */
	TO_FOLLOW, /* only the mount table has changed */
};

/* A text to be read in the place of the exports file. name NULL: there is none. */
struct draft_text {
	const char *name, *text;
	size_t len;
};

/* A set to be made. */
struct making {
	enum purpose why;
	const struct export_set *old;	 /* set in force, or NULL */
	const struct draft_text *draft;	 /* or NULL */
	const struct exports_edit *edit; /* change of old; NULL: the files are read */
};

void export_set_put(struct export_set *set);

/* Sorts the lines, once the places are known. 0 or -ENOMEM. */
int export_set_index_lines(struct export_set *set, const struct export_opener *op);
/* exports_find() in that set. */
int export_set_line_of(const struct export_set *set, const char *path, const struct sockaddr *peer,
		       const struct exp_export **e, size_t *length);
/* nested and governs of struct vfs_exports. */
void export_set_nested(const struct export_set *set, const char *name, uint32_t len,
		       const struct sockaddr *peer,
		       bool (*each)(void *arg, const struct vfs_nested *n), void *arg);
/* by_id of struct vfs_exports, without a reference. */
int export_set_admits(const struct export_set *set, const struct exp_export *e,
		      const struct sockaddr *peer, struct vfs_access *access);
int export_set_governs(const struct export_set *set, const struct vfs_export *outer,
		       const char *path, const struct sockaddr *peer);
/* Puts a set in force: all or nothing. 0 or -ENOMEM. */
int export_set_use(struct exports *ex, struct export_set *set);

/* A view of the set, with a reference of it. NULL: no memory. */
struct set_view *export_set_view_new(struct export_set *set);
/* The view of the set in force. */
struct set_view *export_set_view_get(struct exports *ex);
void export_set_view_put(struct set_view *view);
/* The set as administrators see it. */
struct exports_now export_set_now_of(struct set_view *view);

/* Builds a set. *out is there after errors, too, but for -ENOMEM. */
int export_set_build(struct exports *ex, const struct making *m, struct export_set **out);
/* Checks the exports' names with the name service, on a thread that may wait for it. */
void export_set_check_names(struct exports *ex, const struct export_set *set);

#endif
