/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports for NFSv4 that a test chooses: a tree of its own below /tmp, any of whose directories and
 * files are exported, each with its own access. They take the place of the fixture's two.
 */
#ifndef RN_TESTS_NFS4_VIEW_H
#define RN_TESTS_NFS4_VIEW_H

#include "tests/unit/nfs4_fixture.h"

#define VIEW_EXPORTS 8u

struct view {
	struct fixture *f;
	char dir[64];  /* of the tree */
	bool crossmnt; /* of the next export */
	struct {
		struct vfs_export *exp;
		struct vfs_access access;
		bool deny;
	} e[VIEW_EXPORTS];
};

/* An empty tree. NULL, or why not. */
const char *view_start(struct view *v, struct fixture *f);
/* Before the fixture stops. */
void view_stop(struct view *v);
/* The path of a name in the tree; one static buffer. */
const char *view_path(const struct view *v, const char *rel);
void view_mkdir(const struct view *v, const char *rel);
/* Exports what rel names; which of e[] it is, or -errno. It is seen after view_changed. */
int view_export(struct view *v, const char *rel, uint32_t id);
void view_unexport(struct view *v, unsigned i);
/* As after a reload. */
int view_changed(struct view *v);

/* The handle of a path from NFSv4's root on. The first status that is not NFS4_OK, or NFS4_OK. */
uint32_t view_walk(struct view *v, const char *path, struct vfs_fh *fh);
/* The same for one in the tree, whose own path comes before. */
uint32_t view_walk_tree(struct view *v, const char *rel, struct vfs_fh *fh);

struct view_attr {
	uint32_t type;
	uint64_t change, fsid[2], fileid, mounted_on;
};
uint32_t view_attr(struct view *v, const struct vfs_fh *fh, struct view_attr *out);
/* The handle of the parent. */
uint32_t view_parent(struct view *v, const struct vfs_fh *fh, struct vfs_fh *parent);

#endif
