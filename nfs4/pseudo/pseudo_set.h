/* SPDX-License-Identifier: BSD-2-Clause */
/* One version of the pseudo file system: a tree of directories over the exports of one moment. It
 * is immutable and freed with its last reference. */
#ifndef RN_NFS4_PSEUDO_PSEUDO_SET_H
#define RN_NFS4_PSEUDO_PSEUDO_SET_H

#include <stdatomic.h>
#include <stddef.h>

#include "lib/log.h"
#include "vfs/export.h"

#define NFS4_PSEUDO_NONE UINT32_MAX

struct nfs4_pseudo_export {
	uint32_t id;
	uint32_t dir;	 /* directory it replaces; NFS4_PSEUDO_NONE: beside fsid=0, not shown */
	char *path;	 /* in NFSv4's name space */
	char *real_path; /* on the server, without symbolic links */
};

struct nfs4_pseudo_dir {
	uint64_t id; /* 3..INT64_MAX; the same as long as its names from the root on are the same */
	const char *name;
	uint32_t len;
	uint32_t parent; /* index in dir[]; the root is its own parent */
	uint32_t export; /* export that replaces it, or NFS4_PSEUDO_NONE */
	/* Exports here and below: export[first_export] and the following. */
	uint32_t first_export, nexports;
	/* Entries: kid[first_kid] and the following, in ascending order of id. */
	uint32_t first_kid, nkids;
	uint32_t last_kid; /* used while the tree is built */
};

struct nfs4_pseudo_set {
	_Atomic unsigned refs;
	uint64_t change; /* change attribute of all directories: time of creation in nanoseconds */
	struct nfs4_pseudo_export *export; /* in order of path: a directory before its contents */
	uint32_t nexports;
	struct nfs4_pseudo_dir *dir; /* dir[0] is the root */
	uint32_t ndirs, dirs_size;
	uint32_t *kid;
	uint32_t *by_id; /* all directories, in ascending order of id */
};

/*
 * Makes a set from the current exports; logs those that cannot be shown. change must be larger than
 * that of the set before. 0, -ENOMEM, or -EEXIST: two directories have the same hash as their id.
 */
int nfs4_pseudo_set_new(const struct vfs_exports *exports, const struct rn_logger *log,
			uint64_t change, struct nfs4_pseudo_set **out);
void nfs4_pseudo_set_put(struct nfs4_pseudo_set *set);

/* Index of the directory with that id, or of that entry of a directory; or NFS4_PSEUDO_NONE. */
uint32_t nfs4_pseudo_find(const struct nfs4_pseudo_set *set, uint64_t id);
uint32_t nfs4_pseudo_find_kid(const struct nfs4_pseudo_set *set, uint32_t dir, const char *name,
			      uint32_t len);
/* The directory that an export replaces, or NFS4_PSEUDO_NONE. */
uint32_t nfs4_pseudo_dir_of(const struct nfs4_pseudo_set *set, uint32_t export_id);

#endif
