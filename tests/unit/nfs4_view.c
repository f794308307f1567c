/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_view.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "nfs4/pseudo/pseudo.h"
#include "nfs4/nfs4_private.h"

static int by_id(void *ctx, uint32_t id, const struct sockaddr *peer, struct vfs_export **exp,
		 struct vfs_access *access)
{
	struct view *v = ctx;

	(void)peer;
	for (unsigned i = 0; i < VIEW_EXPORTS; i++) {
		if (!v->e[i].exp || vfs_export_id(v->e[i].exp) != id)
			continue;
		if (v->e[i].deny)
			return -EACCES;
		vfs_export_ref(v->e[i].exp);
		*exp = v->e[i].exp;
		*access = v->e[i].access;
		fix_spread(access);
		return 0;
	}
	return -ESTALE;
}

static void each_export(void *ctx, bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	struct view *v = ctx;

	for (unsigned i = 0; i < VIEW_EXPORTS; i++) {
		if (v->e[i].exp && !each(arg, v->e[i].exp))
			return;
	}
}

static void nested(void *ctx, const char *name, uint32_t len, const struct sockaddr *peer,
		   bool (*each)(void *arg, const struct vfs_nested *n), void *arg)
{
	struct view *v = ctx;

	for (unsigned i = 0; i < VIEW_EXPORTS; i++) {
		const char *path = v->e[i].exp ? vfs_export_real_path(v->e[i].exp) : "";
		const char *last = strrchr(path, '/');

		if (!last || strlen(last + 1) != len || memcmp(last + 1, name, len) != 0)
			continue;
		/* All lie on the mount of the temporary directory. */
		struct vfs_nested n = { .real_path = path,
					.exp = v->e[i].exp,
					.id = vfs_export_id(v->e[i].exp) };
		struct vfs_export *exp;

		n.rc = by_id(v, n.id, peer, &exp, &n.access);
		if (n.rc == 0)
			vfs_export_put(exp);
		if (!each(arg, &n))
			return;
	}
}

const char *view_start(struct view *v, struct fixture *f)
{
	*v = (struct view){ .f = f };
	snprintf(v->dir, sizeof(v->dir), "/tmp/ringnfs-view-XXXXXX");
	if (!mkdtemp(v->dir) || chmod(v->dir, 0755) < 0)
		return "no temporary directory";
	f->server4->cfg.exports.by_id = by_id;
	f->server4->cfg.exports.each = each_export;
	f->server4->cfg.exports.nested = nested;
	f->server4->cfg.exports.ctx = v;
	return view_changed(v) == 0 ? NULL : "no memory";
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void view_unexport(struct view *v, unsigned i)
{
	setfsuid(0); /* the thread still acts as the last call's user */
	setfsgid(0);
	vfs_forget_export(v->f->vfs, vfs_export_id(v->e[i].exp));
	vfs_export_put(v->e[i].exp);
	v->e[i].exp = NULL;
}

void view_stop(struct view *v)
{
	for (unsigned i = 0; i < VIEW_EXPORTS; i++) {
		if (v->e[i].exp)
			view_unexport(v, i);
	}
	setfsuid(0);
	setfsgid(0);
	nftw(v->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *view_path(const struct view *v, const char *rel)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", v->dir, rel);
	return path;
}

void view_mkdir(const struct view *v, const char *rel)
{
	setfsuid(0);
	setfsgid(0);
	mkdir(view_path(v, rel), 0755);
}

int view_export(struct view *v, const char *rel, uint32_t id)
{
	const char *why;
	unsigned i = 0;
	int rc;

	while (i < VIEW_EXPORTS && v->e[i].exp)
		i++;
	if (i == VIEW_EXPORTS)
		return -ENOSPC;
	setfsuid(0);
	setfsgid(0);
	rc = vfs_export_open(
		v->f->vfs,
		&(struct vfs_export_config){ view_path(v, rel), id, VFS_IO_BUFFERED, v->crossmnt },
		&v->e[i].exp, &why);
	if (rc < 0) {
		v->e[i].exp = NULL;
		return rc;
	}
	v->e[i].access = v->f->access;
	if (v->crossmnt)
		v->e[i].access.flags |= VFS_CROSSMNT;
	v->e[i].deny = false;
	return (int)i;
}

int view_changed(struct view *v)
{
	return nfs4_pseudo_changed(v->f->server4);
}

static void put_lookups(struct fixture *f, const char *path)
{
	char name[256];

	while (*path) {
		size_t len = strcspn(path, "/");

		if (len > 0) {
			snprintf(name, sizeof(name), "%.*s", (int)len, path);
			fix4_lookup(f, name);
		}
		path += len;
		path += strspn(path, "/");
	}
}

uint32_t view_walk(struct view *v, const char *path, struct vfs_fh *fh)
{
	struct fixture *f = v->f;
	uint32_t status;

	fix4_begin(f, NULL);
	fix4_op(f, OP_PUTROOTFH);
	put_lookups(f, path);
	fix4_op(f, OP_GETFH);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTROOTFH);
	while (fix4_results_left(f) > 1)
		fix4_result(f, OP_LOOKUP);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, fh);
	return status;
}

uint32_t view_walk_tree(struct view *v, const char *rel, struct vfs_fh *fh)
{
	return view_walk(v, view_path(v, rel), fh);
}

uint32_t view_attr(struct view *v, const struct vfs_fh *fh, struct view_attr *out)
{
	struct fixture *f = v->f;
	uint32_t status;

	fix4_begin(f, NULL);
	fix4_putfh(f, fh);
	fix4_op(f, OP_GETATTR);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, 1u << FATTR4_TYPE | 1u << FATTR4_CHANGE | 1u << FATTR4_FSID |
				     1u << FATTR4_FILEID);
	xdr_put_u32(&f->out, 1u << (FATTR4_MOUNTED_ON_FILEID - 32));
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_GETATTR);
	xdr_skip(&f->in, 4 + 8 + 4); /* the bitmap, and the length of all values */
	out->type = xdr_get_u32(&f->in);
	out->change = xdr_get_u64(&f->in);
	out->fsid[0] = xdr_get_u64(&f->in);
	out->fsid[1] = xdr_get_u64(&f->in);
	out->fileid = xdr_get_u64(&f->in);
	out->mounted_on = xdr_get_u64(&f->in);
	return status;
}

uint32_t view_parent(struct view *v, const struct vfs_fh *fh, struct vfs_fh *parent)
{
	struct fixture *f = v->f;
	uint32_t status;

	fix4_begin(f, NULL);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LOOKUPP);
	fix4_op(f, OP_GETFH);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_LOOKUPP);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, parent);
	return status;
}
