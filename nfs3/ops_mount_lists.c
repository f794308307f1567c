/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DUMP and EXPORT (RFC 1813 appendix I): lists of any length in one reply. A first walk adds up the
 * size, the second encodes into a reply of that length; a list that no reply can hold is cut after
 * a whole row.
 */
#include <string.h>

#include "lib/util.h"
#include "nfs3/mount_resolve.h"
#include "nfs3/nfs3_procs.h"

#define LIST_REPLY_MAX (1u << 20)

struct writer {
	struct xdr_out *x; /* NULL during the first walk */
	size_t size;	   /* bytes of all rows */
	size_t end;	   /* position where the last row must end */
};

static uint32_t string_size(const char *s)
{
	uint32_t len = (uint32_t)strlen(s);

	return 4 + len + rn_xdr_pad(len);
}

static void put_string(struct xdr_out *x, const char *s)
{
	xdr_put_opaque(x, s, (uint32_t)strlen(s));
}

/* True if there is room for a row of that size. */
static bool mnt_lists_has_room(struct writer *w, size_t size)
{
	w->size += size;
	return w->x && xdr_out_pos(w->x) + size <= w->end;
}

/* Begins the second walk, and ends the list after it. */
static bool mnt_lists_make_room(struct rpc_request *req, struct writer *w)
{
	struct xdr_out *x = &req->out;
	size_t start = xdr_out_pos(x), need = rn_min(w->size, LIST_REPLY_MAX) + 4;

	if (start + 4 > req->reply_max)
		return false;
	need = rn_min(need, req->reply_max - start);
	if (start + need > x->size && rpc_reply_grow(req, need) < 0)
		need = x->size - start;
	w->x = x;
	w->end = start + need - 4;
	return true;
}

static bool each_mount(void *arg, const struct mnt_row *row)
{
	struct writer *w = arg;

	if (!mnt_lists_has_room(w, 4 + string_size(row->host) + string_size(row->path)))
		return !w->x;
	xdr_put_bool(w->x, true);
	put_string(w->x, row->host);
	put_string(w->x, row->path);
	return true;
}

static enum rpc_run proc_dump(struct rpc_request *req, void *args)
{
	struct nfs3_server *s = req->program_ctx;
	struct writer w = { 0 };

	(void)args;
	mnt_list_walk(&s->mounts, each_mount, &w);
	if (!mnt_lists_make_room(req, &w))
		return RPC_RUN_TOO_LONG;
	mnt_list_walk(&s->mounts, each_mount, &w);
	xdr_put_bool(&req->out, false);
	return RPC_RUN_DONE;
}

/* Leaves out rows beyond the protocol's limits, which no client could decode. */
static bool each_export(void *arg, const char *path, const char *const *groups, unsigned ngroups)
{
	struct writer *w = arg;
	size_t size = 4 + string_size(path) + 4;

	if (strlen(path) > MNT_PATH_MAX)
		return true;
	for (unsigned i = 0; i < ngroups; i++)
		if (strlen(groups[i]) <= MNT_NAME_MAX)
			size += 4 + string_size(groups[i]);
	if (!mnt_lists_has_room(w, size))
		return !w->x;
	xdr_put_bool(w->x, true);
	put_string(w->x, path);
	for (unsigned i = 0; i < ngroups; i++) {
		if (strlen(groups[i]) > MNT_NAME_MAX)
			continue;
		xdr_put_bool(w->x, true);
		put_string(w->x, groups[i]);
	}
	xdr_put_bool(w->x, false);
	return true;
}

static enum rpc_run proc_export(struct rpc_request *req, void *args)
{
	struct nfs3_server *s = req->program_ctx;
	const struct vfs_exports *exports = &s->cfg.exports;
	struct writer w = { 0 };

	(void)args;
	exports->list(exports->ctx, each_export, &w);
	if (!mnt_lists_make_room(req, &w))
		return RPC_RUN_TOO_LONG;
	exports->list(exports->ctx, each_export, &w);
	xdr_put_bool(&req->out, false);
	return RPC_RUN_DONE;
}

const struct rpc_proc mnt_proc_dump = {
	.name = "DUMP",
	.run = proc_dump,
	.flags = RPC_NO_EXPORT,
};

const struct rpc_proc mnt_proc_export = {
	.name = "EXPORT",
	.run = proc_export,
	.flags = RPC_NO_EXPORT,
};

const struct rpc_proc mnt_proc_exportall = {
	.name = "EXPORTALL",
	.run = proc_export,
	.flags = RPC_NO_EXPORT,
};
