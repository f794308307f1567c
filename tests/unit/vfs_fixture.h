/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fresh exported directory for each test, and a worker without a ring. Needs root, and a file
 * system with handles below TMPDIR (or /tmp, or /dev/shm): otherwise the test is skipped with the
 * reason.
 */
#ifndef RN_TEST_VFS_FIXTURE_H
#define RN_TEST_VFS_FIXTURE_H

#include <criterion/criterion.h>

#include "vfs/vfs.h"
#include "vfs/vfs_worker.h"

struct fixture {
	char base[128]; /* the directory that holds the export and files outside of it */
	char dir[160];	/* base/export */
	struct vfs_config cfg;
	struct vfs *vfs;
	struct vfs_worker *w;
	struct vfs_export *exp;
	struct rn_fiber fiber; /* this thread */
	struct vfs_ctx ctx;    /* root, not squashed */
	struct vfs_node *root;
};

enum fixture_flags { FIX_MAC = 1, FIX_CROSSMNT = 2, FIX_FEW_FDS = 4, FIX_HELPERS = 8 };

void fixture_open(struct fixture *f, unsigned flags);
void fixture_close(struct fixture *f);
/* Acts as a restart of the daemon: another struct vfs, export and worker on the same files. */
void fixture_restart(struct fixture *f);
/* The same with that budget and so many helpers. */
void fixture_with(struct fixture *f, struct rn_budget *budget, unsigned helpers);

/* Call after calls as a user, before the test itself changes files. */
void be_root(struct fixture *f);
struct vfs_ctx as_user(const struct fixture *f, uint32_t uid, uint32_t gid);

/* Path below base in one of eight static buffers, used in turn. */
const char *in_base(const struct fixture *f, const char *rel);
const char *in_export(const struct fixture *f, const char *rel);
void put_file(const char *path, const char *text);

/* Short forms of frequent calls; each asserts success. */
struct vfs_node *must_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name);
struct vfs_node *must_create(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
			     uint32_t mode);
struct vfs_node *must_mkdir(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
			    uint32_t mode);
struct vfs_attr must_getattr(struct vfs_ctx *ctx, struct vfs_node *n);
int try_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name);
int try_open(struct vfs_ctx *ctx, const struct vfs_fh *fh);

#endif
