/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/names/node_open.h"
#include "vfs/worker/worker_state.h"

static bool has_handles(const char *dir)
{
	struct file_handle *h = calloc(1, sizeof(*h) + 128);
	int mnt;
	bool ok;

	h->handle_bytes = 128;
	ok = name_to_handle_at(AT_FDCWD, dir, h, &mnt, 0) == 0;
	free(h);
	return ok;
}

static void make_base(struct fixture *f)
{
	const char *places[] = { getenv("TMPDIR"), "/tmp", "/dev/shm" };

	for (unsigned i = 0; i < 3; i++) {
		if (!places[i] || !has_handles(places[i]))
			continue;
		snprintf(f->base, sizeof(f->base), "%s/ringnfs-test-XXXXXX", places[i]);
		cr_assert_not_null(mkdtemp(f->base));
		chmod(f->base, 0755);
		snprintf(f->dir, sizeof(f->dir), "%s/export", f->base);
		cr_assert_eq(mkdir(f->dir, 0755), 0);
		return;
	}
	cr_skip_test("no directory for temporary files on a file system with handles");
}

static void start(struct fixture *f, bool crossmnt)
{
	const char *why = "";
	int rc;

	cr_assert_eq(vfs_new(&f->cfg, &f->vfs), 0);
	cr_assert_eq(vfs_worker_new(f->vfs, 0, &f->w), 0);
	rc = vfs_export_open(f->vfs,
			     &(struct vfs_export_config){ f->dir, 7, VFS_IO_BUFFERED, crossmnt },
			     &f->exp, &why);
	if (rc == -EPERM)
		cr_skip_test("may not open by handle: %s", why);
	cr_assert_eq(rc, 0, "export: %d, %s", rc, why);
	rn_fiber_of_thread(&f->fiber, f->w);
	f->ctx = (struct vfs_ctx){ .vfs = f->vfs, .fiber = &f->fiber, .exp = f->exp };
	cr_assert_eq(vfs_root(&f->ctx, &f->root), 0);
}

static void stop(struct fixture *f)
{
	struct vfs_stats st;

	vfs_ahead_free(f->vfs->ahead); /* a helper may have a directory still */
	f->vfs->ahead = NULL;
	vfs_node_put(f->root);
	vfs_export_put(f->exp);
	vfs_worker_free(f->w);
	vfs_forget_export(f->vfs, 7);
	vfs_stats(f->vfs, &st);
	cr_expect_eq(st.nodes, 0, "%lu nodes are still referenced", (unsigned long)st.nodes);
	cr_expect_eq(st.fds, 0, "%lu descriptors leaked", (unsigned long)st.fds);
	vfs_free(f->vfs);
}

void fixture_open(struct fixture *f, unsigned flags)
{
	memset(f, 0, sizeof(*f));
	if (geteuid() != 0)
		cr_skip_test("needs root: opening by handle and acting as other users");
	umask(0);
	make_base(f);
	f->cfg = (struct vfs_config){ .max_fds = flags & FIX_FEW_FDS ? 32 : 1000,
				      .helpers = flags & FIX_HELPERS ? 2 : 0,
				      .handle_mac = flags & FIX_MAC,
				      .secret = "fifteen letters",
				      .write_verifier = 1 };
	start(f, flags & FIX_CROSSMNT);
}

static int remove_entry(const char *path, const struct stat *st, int what, struct FTW *ftw)
{
	(void)st, (void)what, (void)ftw;
	return remove(path);
}

void fixture_close(struct fixture *f)
{
	be_root(f);
	stop(f);
	nftw(f->base, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void fixture_restart(struct fixture *f)
{
	bool crossmnt = f->ctx.access.flags & VFS_CROSSMNT;

	be_root(f);
	stop(f);
	start(f, crossmnt);
}

void fixture_with(struct fixture *f, struct rn_budget *budget, unsigned helpers)
{
	f->cfg.budget = budget;
	f->cfg.helpers = helpers;
	fixture_restart(f);
}

void be_root(struct fixture *f)
{
	cr_assert_eq(vfs_identity_root(&f->w->identity), 0);
}

struct vfs_ctx as_user(const struct fixture *f, uint32_t uid, uint32_t gid)
{
	struct vfs_ctx ctx = f->ctx;

	ctx.cred = (struct vfs_cred){ .uid = uid, .gid = gid };
	return ctx;
}

static const char *join(const char *a, const char *b)
{
	static char buf[8][512];
	static unsigned next;
	char *s = buf[next++ % 8];

	snprintf(s, sizeof(buf[0]), "%s/%s", a, b);
	return s;
}

const char *in_base(const struct fixture *f, const char *rel)
{
	return join(f->base, rel);
}

const char *in_export(const struct fixture *f, const char *rel)
{
	return join(f->dir, rel);
}

void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

int try_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name)
{
	struct vfs_node *n = NULL;
	int rc = vfs_lookup(ctx, dir, name, (uint32_t)strlen(name), &n, NULL);

	if (rc == 0)
		vfs_node_put(n);
	return rc;
}

int try_open(struct vfs_ctx *ctx, const struct vfs_fh *fh)
{
	struct vfs_node *n = NULL;
	int rc = vfs_fh_open(ctx, fh, &n);

	if (rc == 0)
		vfs_node_put(n);
	return rc;
}

struct vfs_node *must_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name)
{
	struct vfs_node *n = NULL;
	int rc = vfs_lookup(ctx, dir, name, (uint32_t)strlen(name), &n, NULL);

	cr_assert_eq(rc, 0, "lookup %s: %d", name, rc);
	return n;
}

struct vfs_node *must_create(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
			     uint32_t mode)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = mode };
	struct vfs_create cr = { .how = VFS_GUARDED, .sa = &sa };
	struct vfs_node *n = NULL;
	int rc = vfs_create(ctx, dir, name, (uint32_t)strlen(name), &cr, &n);

	cr_assert_eq(rc, 0, "create %s: %d", name, rc);
	return n;
}

struct vfs_node *must_mkdir(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
			    uint32_t mode)
{
	struct vfs_setattr sa = { .set_mode = true, .mode = mode };
	struct vfs_node *n = NULL;
	int rc = vfs_mkdir(
		ctx, &(struct vfs_make){ dir, name, (uint32_t)strlen(name), &sa, NULL, NULL }, &n);

	cr_assert_eq(rc, 0, "mkdir %s: %d", name, rc);
	return n;
}

struct vfs_attr must_getattr(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct vfs_attr a;

	cr_assert_eq(vfs_getattr(ctx, n, &a), 0);
	return a;
}
