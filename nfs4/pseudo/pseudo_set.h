/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One state of the pseudo file system: a tree of directories over the exports of a moment. It is
 * made whole, never changes, and is freed with its last reference.
 */
#ifndef RN_NFS4_PSEUDO_PSEUDO_SET_H
#define RN_NFS4_PSEUDO_PSEUDO_SET_H

#include <stdatomic.h>
#include <stddef.h>

#include "lib/log.h"
#include "vfs/export.h"

#define NFS4_PSEUDO_NONE UINT32_MAX

struct nfs4_pseudo_export {
	uint32_t id;
	uint32_t dir; /* that it takes the place of; NFS4_PSEUDO_NONE: beside fsid=0, not shown */
	char *path;   /* in NFSv4's name space */
	char *real_path;  /* on the server, without symbolic links */
	const char *base; /* last name of real_path */
};

struct nfs4_pseudo_dir {
	uint64_t id; /* 3..INT64_MAX; the same as long as the names from the root on are */
	const char *name;
	uint32_t len;
	uint32_t parent; /* the root's is itself */
	uint32_t export; /* that takes its place, or NFS4_PSEUDO_NONE */
	/* Exports here and below: export[first_export] and so on. */
	uint32_t first_export, nexports;
	/* Entries: kid[first_kid] and so on, by rising id. */
	uint32_t first_kid, nkids;
	uint32_t last_kid; /* while the tree is built */
};

struct nfs4_pseudo_set {
	_Atomic unsigned refs;
	uint64_t change; /* change attribute of all directories: nanoseconds of when it was made */
	struct nfs4_pseudo_export *export; /* by path, a directory before what is in it */
	uint32_t nexports;
	struct nfs4_pseudo_dir *dir; /* dir[0] is the root */
	uint32_t ndirs, dirs_room;
	uint32_t *kid;
	uint32_t *by_id; /* all directories, by rising id */
	/* Exports that lie within another, by base: what can be met in the middle of an export. */
	uint32_t *nested;
	uint32_t nnested;
};

/* Of the exports as they are now. what cannot be shown is logged. change must be larger than that
 * of the set before. 0, -ENOMEM, or -EEXIST: two directories have the same id, which does not
 * happen. */
int nfs4_pseudo_set_new(const struct vfs_exports *exports, const struct rn_logger *log,
			uint64_t change, struct nfs4_pseudo_set **out);
void nfs4_pseudo_set_put(struct nfs4_pseudo_set *set);

/* The directory with that id, or that entry of a directory; NFS4_PSEUDO_NONE: there is none. */
uint32_t nfs4_pseudo_find(const struct nfs4_pseudo_set *set, uint64_t id);
uint32_t nfs4_pseudo_find_kid(const struct nfs4_pseudo_set *set, uint32_t dir, const char *name,
			      uint32_t len);
/* The directory that an export takes the place of, or NFS4_PSEUDO_NONE. */
uint32_t nfs4_pseudo_dir_of(const struct nfs4_pseudo_set *set, uint32_t export_id);

/* What follows dir and a slash in path; NULL: path is not below dir. */
const char *nfs4_path_below(const char *path, const char *dir);

#endif
