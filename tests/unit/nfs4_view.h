/* SPDX-License-Identifier: BSD-2-Clause */
/* Exports for NFSv4 that a test chooses: a tree below /tmp, with any of its directories and files
 * exported, each with its own access. They replace the fixture's two exports. */
#ifndef RN_TESTS_NFS4_VIEW_H
#define RN_TESTS_NFS4_VIEW_H

#include "tests/unit/nfs4_fixture.h"

#define VIEW_EXPORTS 8u

struct view {
	struct fixture *f;
	char dir[64];  /* root of the tree */
	bool crossmnt; /* crossmnt option of the next export */
	struct {
		struct vfs_export *exp;
		struct vfs_access access;
		bool deny;
	} e[VIEW_EXPORTS];
};

/* Makes an empty tree. Returns NULL, or the reason why that failed. */
const char *view_start(struct view *v, struct fixture *f);
/* Call before the fixture stops. */
void view_stop(struct view *v);
/* Path of a name in the tree; one static buffer. */
const char *view_path(const struct view *v, const char *rel);
void view_mkdir(const struct view *v, const char *rel);
/* Adds an export; returns its index in e[], or -errno. The server sees it after view_changed(). */
int view_export(struct view *v, const char *rel, uint32_t id);
void view_unexport(struct view *v, unsigned i);
/* Publishes the exports, as a reload does. */
int view_changed(struct view *v);

/* Gets the handle of a path that starts at NFSv4's root. Returns the first status that is not
 * NFS4_OK, or NFS4_OK. */
uint32_t view_walk(struct view *v, const char *path, struct vfs_fh *fh);
/* As view_walk(), for a path relative to the tree. */
uint32_t view_walk_tree(struct view *v, const char *rel, struct vfs_fh *fh);

struct view_attr {
	uint32_t type;
	uint64_t change, fsid[2], fileid, mounted_on;
};
uint32_t view_attr(struct view *v, const struct vfs_fh *fh, struct view_attr *out);
/* Gets the handle of the parent by LOOKUPP. */
uint32_t view_parent(struct view *v, const struct vfs_fh *fh, struct vfs_fh *parent);

#endif
