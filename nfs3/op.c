/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/op.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs/conflict.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_procs.h"

uint32_t nfs3_op_max_io(const struct nfs3_op *op)
{
	const uint32_t set = op->server->cfg.max_io, most = op->req->conn->ops->data_max;

	if (op->dialect)
		return op->dialect->max_io;
	return most ? rn_min(set, most) : set;
}

struct nfs3_op *nfs3_op_begin(struct rpc_request *req)
{
	struct nfs3_op *op = rn_arena_alloc(&req->arena, sizeof(*op));

	if (!op)
		return NULL;
	req->op = op;
	op->req = req;
	op->dialect =
		req->proc ? req->proc->dialect : NULL; /* NULL: a grant of NLM, which is no call */
	op->server = req->program_ctx;
	op->ctx.vfs = op->server->cfg.vfs;
	op->ctx.fiber = req->fiber;
	op->ctx.caller = req->conn->id;
	return op;
}

bool nfs3_op_await(struct nfs3_op *op, int rc)
{
	if (!nfs_await(op->req, rc, 0))
		return false;
	/* A reload may have taken the export away meanwhile. */
	return !op->ctx.exp ||
	       nfs_still_served(&op->server->cfg.exports, op->export_id, op->req->conn);
}

/* True if node[0] is the root of its export. */
static bool nfs3_op_is_root(struct nfs3_op *op)
{
	struct vfs_node *root;
	const struct vfs_fh *a = vfs_node_fh(op->node[0]), *b;
	bool same;

	if (vfs_root(&op->ctx, &root) < 0)
		return false;
	b = vfs_node_fh(root);
	same = a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
	vfs_node_put(root);
	return same;
}

/* Finds the export and what the caller may do there, and squashes the identity. *weak: the call's flavour is
 * not enough. */
static int nfs3_op_enter(struct nfs3_op *op, unsigned flags, bool *weak)
{
	const struct sockaddr *peer = (const struct sockaddr *)&op->req->conn->peer;
	const struct nfs3_config *cfg = &op->server->cfg;
	const struct vfs_exports *exports = &cfg->exports;
	const struct nfs_groups groups = { cfg->lookup_groups, cfg->lookup_ctx, peer,
					   !cfg->manage_gids };
	int rc;

	do {
		rc = exports->by_id(exports->ctx, op->export_id, peer, &op->ctx.exp,
				    &op->ctx.access);
		if (rc < 0)
			op->ctx.exp = NULL;
	} while (nfs3_op_await(op, rc));
	if (rc == 0)
		rc = vfs_exports_enter(exports, op->export_id);
	if (rc < 0)
		return rc;
	rc = nfs_check_port(&op->ctx.access, op->req->conn);
	if (rc < 0)
		return rc;
	*weak = !nfs_flavor_allowed(&op->req->call.cred, &op->ctx.access);
	/* Locks of an export with insecure_locks take any flavour, under the flags of the first. */
	if (!nfs_transport_allowed(&op->req->call.cred, &op->ctx.access))
		return -NFS3_EWEAKAUTH;
	if (*weak && (flags & NFS3_OPEN_LOCK) && (op->ctx.access.flags & VFS_NO_AUTH_NLM))
		*weak = false;
	else
		vfs_access_use(&op->ctx.access, nfs_sec(&op->req->call.cred));
	if (*weak && !(flags & NFS3_OPEN_MOUNT))
		return -NFS3_EWEAKAUTH;
	do
		rc = nfs_caller(&groups, &op->req->call.cred, &op->ctx.access, &op->ctx.cred);
	while (nfs3_op_await(op, rc));
	return rc;
}

/* Checks that the call's export governs node[i], which was opened, or puts it. */
static int check_governed(struct nfs3_op *op, unsigned i)
{
	const struct sockaddr *peer = (const struct sockaddr *)&op->req->conn->peer;
	int rc;

	do
		rc = nfs_governed(&op->server->cfg.exports, &op->ctx, peer,
				  vfs_node_fh(op->node[i]));
	while (nfs3_op_await(op, rc));
	if (rc == 0)
		return 0;
	vfs_node_put(op->node[i]);
	op->node[i] = NULL;
	return rc;
}

/* The rest of an open that gave node[0] or -errno. */
static int opened(struct nfs3_op *op, unsigned flags, bool weak, int rc)
{
	if (rc == 0)
		rc = check_governed(op, 0);
	if (rc < 0) {
		op->node[0] = NULL;
		return weak ? -NFS3_EWEAKAUTH : rc;
	}
	if (weak && !nfs3_op_is_root(op))
		return -NFS3_EWEAKAUTH;
	if ((flags & NFS3_OPEN_CHANGES) && (op->ctx.access.flags & VFS_RO))
		return -EROFS;
	return 0;
}

/* The same bytes as a packed handle. */
static const struct vfs_packed_fh *as_packed(const struct vfs_fh *fh)
{
	return (const struct vfs_packed_fh *)fh->data;
}

static int handle_export_id(const struct nfs3_op *op, const struct vfs_fh *fh, bool packed,
			    uint32_t *id)
{
	return packed ? vfs_packed_export_id(op->ctx.vfs, as_packed(fh), id)
		      : vfs_fh_export_id(op->ctx.vfs, fh, id);
}

static int handle_open(struct nfs3_op *op, const struct vfs_fh *fh, bool packed, unsigned i)
{
	return packed ? vfs_packed_open(&op->ctx, as_packed(fh), &op->node[i])
		      : vfs_fh_open(&op->ctx, fh, &op->node[i]);
}

/* Clients of NFSv2 send NLM the handles that they have. */
static bool may_be_packed(const struct nfs3_op *op, const struct vfs_fh *fh, unsigned flags)
{
	return (flags & NFS3_OPEN_LOCK) && op->server->cfg.packed_handles &&
	       fh->len == VFS_PACKED_FH;
}

int nfs3_op_open(struct nfs3_op *op, const struct vfs_fh *fh, unsigned flags)
{
	bool weak = false, packed = op->dialect;
	int rc = handle_export_id(op, fh, packed, &op->export_id);

	if (rc == -EBADF && !packed && may_be_packed(op, fh, flags)) {
		packed = true;
		rc = handle_export_id(op, fh, packed, &op->export_id);
	}
	if (rc == 0)
		rc = nfs3_op_enter(op, flags, &weak);
	return rc == 0 ? opened(op, flags, weak, handle_open(op, fh, packed, 0)) : rc;
}

int nfs3_op_open_other(struct nfs3_op *op, const struct vfs_fh *fh, unsigned i)
{
	uint32_t id;
	int rc = handle_export_id(op, fh, op->dialect, &id);

	if (rc < 0)
		return rc;
	if (id != op->export_id)
		return -EXDEV;
	rc = handle_open(op, fh, op->dialect, i);
	if (rc < 0)
		op->node[i] = NULL;
	return rc < 0 ? rc : check_governed(op, i);
}

struct crossing {
	struct nfs3_op *op;
	struct vfs_ctx inner; /* exp: a reference, if rc is 0 */
	int rc;
};

/* True if the export is for the caller, or may be. Others leave him in the outer one. */
static bool nfs3_op_may_cross(const struct nfs3_op *op, const struct vfs_nested *n)
{
	const unsigned shown = op->ctx.access.flags & VFS_CROSSMNT;

	if (n->rc == -EACCES || n->rc == -ESTALE)
		return false;
	return n->rc != 0 || shown || (n->access.flags & VFS_NOHIDE) ||
	       !vfs_export_is_mounted_in(n->exp, op->ctx.exp);
}

static bool nfs3_op_take_nested(void *arg, const struct vfs_nested *n)
{
	struct crossing *x = arg;

	if (!nfs3_op_may_cross(x->op, n))
		return false;
	x->rc = n->rc;
	if (x->rc == 0)
		x->rc = nfs_check_port(&n->access, x->op->req->conn);
	if (x->rc != 0)
		return true;
	x->inner = x->op->ctx;
	x->inner.exp = n->exp;
	x->inner.access = n->access;
	vfs_export_ref(n->exp);
	return true;
}

/* Reads the root of the export that was taken, and comes back. */
static int become_nested(struct nfs3_op *op, struct crossing *x)
{
	const struct vfs_exports *exports = &op->server->cfg.exports;
	struct vfs_node *root = NULL;
	int rc = x->rc;

	vfs_node_put(op->node[1]);
	op->node[1] = NULL;
	if (rc != 0)
		return rc;
	rc = vfs_exports_enter(exports, vfs_export_id(x->inner.exp));
	if (rc == 0)
		rc = vfs_root(&x->inner, &root);
	if (rc == 0)
		rc = vfs_getattr(&x->inner, root, &op->attr);
	op->node[1] = root;
	vfs_export_put(x->inner.exp);
	if (rc == 0)
		rc = vfs_exports_enter(exports, op->export_id);
	return rc;
}

int nfs3_op_cross(struct nfs3_op *op, const struct nfs3_name *name)
{
	const struct vfs_exports *exports = &op->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&op->req->conn->peer;
	const struct nfs_entry e = { name->bytes, name->len, vfs_node_fh(op->node[1]) };
	struct crossing x = { .op = op };
	int rc;

	do {
		rc = nfs_nested_at(exports, &op->ctx, peer, &e, nfs3_op_take_nested, &x);
		if (rc == 0)
			rc = nfs_governed(exports, &op->ctx, peer, e.found);
	} while (nfs3_op_await(op, rc > 0 ? x.rc : rc));
	if (rc > 0)
		return become_nested(op, &x);
	if (rc == 0)
		return 0;
	vfs_node_put(op->node[1]);
	op->node[1] = NULL;
	/* The name is there, and leads to what the caller may not enter. */
	return rc == -ESTALE ? -EACCES : rc;
}

int nfs3_op_check_boundary(struct nfs3_op *op, unsigned i, const struct nfs3_name *name)
{
	const struct sockaddr *peer = (const struct sockaddr *)&op->req->conn->peer;
	const struct nfs_entry e = { .name = name->bytes, .len = name->len };

	int rc;

	do
		rc = nfs_check_boundary(&op->server->cfg.exports, &op->ctx, op->node[i], &e, peer);
	while (nfs3_op_await(op, rc));
	return rc;
}

static bool nfs3_op_leads_to_nested(void *arg, const struct vfs_nested *n)
{
	return nfs3_op_may_cross(arg, n);
}

bool nfs3_op_leads_away(struct nfs3_op *op, const struct nfs_entry *e)
{
	const struct vfs_exports *exports = &op->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&op->req->conn->peer;

	return nfs_nested_at(exports, &op->ctx, peer, e, nfs3_op_leads_to_nested, op) != 0 ||
	       nfs_governed(exports, &op->ctx, peer, e->found) != 0;
}

static int check_shares(struct nfs3_op *op, uint8_t access)
{
	struct vfs_conflict c = { .holder = NULL };
	int rc = vfs_share_check_io(&op->ctx, op->node[0], NULL, access, &c);

	if (rc == -RN_ESHARE)
		rc = nfs_conflict(&c, rc);
	vfs_conflict_put(&c);
	return rc;
}

int nfs3_op_check_shares(struct nfs3_op *op, uint8_t access)
{
	const struct nfs3_config *cfg = &op->server->cfg;
	int rc;

	do {
		if (cfg->in_grace && cfg->in_grace(cfg->grace_ctx, NFS3_IO_WAITS))
			rc = -RN_EGRACE;
		else
			rc = check_shares(op, access);
	} while (nfs3_op_await(op, rc == -RN_EGRACE ? -RN_EYIELDS : rc));
	return rc;
}

/* A change that takes a name away: a removal if remove is set, or a renaming. */
struct taking {
	struct nfs3_op *op;
	const struct nfs3_name *name;
	int (*remove)(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		      struct vfs_dir_change *change);
	struct vfs_dir_change *change;
	const struct vfs_rename *rename;
};

static int nfs3_op_take_name(const struct taking *t)
{
	struct vfs_ctx *ctx = &t->op->ctx;
	struct vfs_conflict c = { .holder = NULL };
	int rc;

	ctx->in_way = &c;
	rc = t->remove ? t->remove(ctx, t->op->node[0], t->name->bytes, t->name->len, t->change)
		       : vfs_rename(ctx, t->rename);
	ctx->in_way = NULL;
	if (rc == -RN_ESHARE)
		rc = nfs_conflict(&c, rc);
	vfs_conflict_put(&c);
	return rc;
}

/* Waits for clients that are in the way. */
static int await_name(const struct taking *t)
{
	int rc;

	do
		rc = nfs3_op_take_name(t);
	while (nfs3_op_await(t->op, rc));
	return rc;
}

int nfs3_op_remove(struct nfs3_op *op, const struct nfs3_name *name,
		   int (*remove)(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
				 uint32_t len, struct vfs_dir_change *change),
		   struct vfs_dir_change *change)
{
	struct taking t = { .op = op, .name = name, .remove = remove, .change = change };
	int rc = nfs3_op_check_boundary(op, 0, name);

	return rc == 0 ? await_name(&t) : rc;
}

int nfs3_op_rename(struct nfs3_op *op, const struct vfs_rename *r)
{
	return await_name(&(struct taking){ .op = op, .rename = r });
}

bool nfs3_put_status(struct nfs3_op *op, int rc)
{
	enum nfsstat3 status;

	rc = vfs_doubt(&op->ctx, rc);
	if (op->dialect)
		return op->dialect->put_status(op, rc);
	status = nfs3_status(rn_container_of(op->req->proc, const struct nfs3_proc, rpc), rc);
	xdr_put_u32(&op->req->out, status);
	return status == NFS3_OK;
}

void nfs3_put_attr(struct nfs3_op *op, const struct vfs_attr *a)
{
	if (op->dialect)
		op->dialect->put_fattr(&op->req->out, a);
	else
		nfs3_put_post_op_attr(&op->req->out, a);
}

uint32_t nfs3_attr_size(const struct nfs3_op *op)
{
	return op->dialect ? op->dialect->fattr_size : NFS3_POST_OP_ATTR_SIZE;
}

void nfs3_put_attr_of(struct nfs3_op *op, struct vfs_node *n)
{
	struct vfs_attr a;
	bool known;

	if (op->dialect)
		return;
	known = n && vfs_getattr(&op->ctx, n, &a) == 0;
	nfs3_put_post_op_attr(&op->req->out, known ? &a : NULL);
}

struct vfs_dir_change *nfs3_op_change(struct nfs3_op *op, unsigned i)
{
	if (!op->dialect)
		op->change[i] = rn_arena_alloc(&op->req->arena, sizeof(*op->change[i]));
	return op->change[i];
}

void nfs3_put_wcc_of(struct nfs3_op *op, unsigned i)
{
	const struct vfs_dir_change *d = i < NFS3_OP_DIRS ? op->change[i] : NULL;
	struct vfs_attr a;
	bool known;

	if (op->dialect)
		return;
	if (d && d->known) {
		nfs3_put_wcc(&op->req->out, d->atomic && d->ctime_tells ? &d->before : NULL,
			     &d->after);
		return;
	}
	known = op->node[i] && vfs_getattr(&op->ctx, op->node[i], &a) == 0;
	nfs3_put_wcc(&op->req->out, NULL, known ? &a : NULL);
}

enum rpc_run nfs3_op_end(struct nfs3_op *op, int rc)
{
	for (unsigned i = 0; i < NFS3_OP_NODES; i++) {
		vfs_node_put(op->node[i]);
		op->node[i] = NULL;
	}
	if (op->ctx.exp)
		vfs_export_put(op->ctx.exp);
	op->ctx.exp = NULL;
	if (rc == -NFS3_EWEAKAUTH)
		return RPC_RUN_AUTH_TOOWEAK;
	if (rc == -NFS3_ETOOLONG)
		return RPC_RUN_TOO_LONG;
	return rc == -RN_EUNNAMED || rc == -RN_EDELEG || rc == -RN_EYIELDS ? RPC_RUN_UNDONE
									   : RPC_RUN_DONE;
}

int64_t nfs3_op_read(struct nfs3_op *op)
{
	struct rpc_request *req = op->req;
	struct vfs_io *io = &op->io;
	size_t size = vfs_read_buffer_size(op->ctx.exp, io->offset, io->count);
	int64_t n;

	/* A peer may have sent much more than the arguments of READ. */
	rpc_request_forget_call(req);
	do {
		io->payload = rn_payload_await(req->server->pool, rn_max(size, 1),
					       rpc_request_account(req));
		n = io->payload ? vfs_read(io) : -ENOMEM;
		if (n <= 0) {
			rn_payload_put(io->payload);
			io->payload = NULL;
		}
	} while (n < 0 && nfs3_op_await(op, (int)n));
	return n;
}

int64_t nfs3_op_write(struct nfs3_op *op)
{
	int64_t n;

	do
		n = vfs_write(&op->io);
	while (n < 0 && nfs3_op_await(op, (int)n));
	return n;
}

int nfs3_op_setattr(struct nfs3_op *op, const struct vfs_setattr *set, const struct timespec *guard)
{
	int rc;

	do
		rc = vfs_setattr(&op->ctx, op->node[0], set, guard);
	while (nfs3_op_await(op, rc));
	return rc;
}

int nfs3_op_create(struct nfs3_op *op, const struct nfs3_name *name, struct vfs_create *cr)
{
	int rc = nfs3_op_check_boundary(op, 0, name);

	if (rc < 0)
		return rc;
	do
		rc = vfs_create(&op->ctx, op->node[0], name->bytes, name->len, cr, &op->node[1]);
	while (nfs3_op_await(op, rc));
	return rc;
}

int nfs3_op_make(struct nfs3_op *op, const struct nfs3_making *m)
{
	int rc;

	do {
		if (m->target)
			rc = vfs_symlink(&op->ctx, &m->make, m->target, &op->node[1]);
		else if (m->special)
			rc = vfs_mknod(&op->ctx, &m->make, m->special, &op->node[1]);
		else
			rc = vfs_mkdir(&op->ctx, &m->make, &op->node[1]);
	} while (nfs3_op_await(op, rc));
	return rc;
}

int nfs3_op_link(struct nfs3_op *op, const struct nfs3_name *name, struct vfs_dir_change *change)
{
	int rc;

	do
		rc = vfs_link(&op->ctx, op->node[0], op->node[1], name->bytes, name->len, change);
	while (nfs3_op_await(op, rc));
	return rc;
}

enum rpc_run nfs3_op_settle(struct nfs3_op *op, int rc, void (*encode)(struct nfs3_op *op, int rc))
{
	op->sync.ctx = &op->ctx;
	if (rc >= 0 && !(op->ctx.access.flags & VFS_ASYNC))
		rc = vfs_sync(&op->sync);
	encode(op, rc);
	return nfs3_op_end(op, rc);
}
