/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP and LOOKUPP (RFC 7530 sections 16.13, 16.14; RFC 8881 sections 18.13, 18.14). */
#include <sys/stat.h>

#include "nfs4/names/find.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/pseudo/cross.h"
#include "nfs4/pseudo/pseudo.h"

/* Sets out to n, an object of the current filehandle's export; takes over its reference. */
static void nfs4_lookup_set_place(struct nfs4_compound *c, struct vfs_node *n,
				  struct nfs4_place *out)
{
	nfs4_place_copy(out, &c->current);
	nfs4_place_move(out, n);
}

/* True if this is LOOKUP and a GETATTR follows, perhaps behind GETFH. The attributes of an object
 * that is not in the cache are read anyway. */
static bool getattr_follows(const struct nfs4_compound *c)
{
	struct xdr_in ahead = *c->in;
	uint32_t op = xdr_get_u32(&ahead);

	if (op == OP_GETFH)
		op = xdr_get_u32(&ahead);
	return c->opnum == OP_LOOKUP && op == OP_GETATTR;
}

static int find_in_export(struct nfs4_compound *c, const struct nfs4_name *name,
			  struct nfs4_place *out)
{
	struct nfs4_place *dir = &c->current, crossed = { .kind = NFS4_NOWHERE };
	struct vfs_attr *attr = getattr_follows(c) ? &c->seen : NULL;
	struct nfs_entry step = { .name = name->bytes, .len = name->len };
	struct vfs_node *n;
	int status;
	int rc = vfs_lookup(&dir->ctx, dir->node, name->bytes, name->len, &n, attr);

	if (rc < 0)
		return nfs4_status(c->minor, rc);
	step.found = vfs_node_fh(n);
	if (nfs4_cross_down(c, &step, &crossed, &status)) {
		vfs_node_put(n);
		if (status == NFS4_OK)
			nfs4_place_take(out, &crossed);
		return status;
	}
	nfs4_lookup_set_place(c, n, out);
	if (attr)
		c->seen_index = c->index + 1;
	return NFS4_OK;
}

int nfs4_find_name(struct nfs4_compound *c, const struct nfs4_name *name, struct nfs4_place *out)
{
	const struct nfs4_place *dir = &c->current;
	int status = NFS4_OK;

	if (dir->type != S_IFDIR)
		status = nfs4_no_dir(dir);
	else if (dir->refused)
		status = NFS4ERR_ACCESS;
	if (status == NFS4_OK)
		status = nfs4_name_check(name);
	if (status != NFS4_OK)
		return status;
	if (dir->kind == NFS4_PSEUDO)
		return nfs4_pseudo_lookup(c, dir, name->bytes, name->len, out);
	return find_in_export(c, name, out);
}

static int may_search(struct nfs4_compound *c)
{
	unsigned granted = 0;
	int rc = vfs_access(&c->current.ctx, c->current.node, VFS_MAY_EXEC, &granted, NULL);

	if (rc < 0)
		return nfs4_status(c->minor, rc);
	return granted & VFS_MAY_EXEC ? NFS4_OK : NFS4ERR_ACCESS;
}

int nfs4_find_parent(struct nfs4_compound *c, struct nfs4_place *out)
{
	struct nfs4_place *dir = &c->current;
	struct vfs_node *n;
	int status, rc;

	if (dir->type != S_IFDIR)
		return nfs4_no_dir(dir);
	if (dir->refused)
		return NFS4ERR_ACCESS;
	if (dir->kind == NFS4_PSEUDO)
		return nfs4_pseudo_parent(c, dir, out);
	if (vfs_node_is_root(dir->node)) {
		status = may_search(c);
		return status == NFS4_OK ? nfs4_cross_up(c, dir, out) : status;
	}
	rc = vfs_lookup(&dir->ctx, dir->node, "..", 2, &n, NULL);
	if (rc < 0)
		return nfs4_status(c->minor, rc);
	nfs4_lookup_set_place(c, n, out);
	return NFS4_OK;
}

int nfs4_find_status(const struct nfs4_place *dir, int status)
{
	if (status == NFS4_OK || status == NFS4ERR_DELAY || dir->kind != NFS4_FILE || dir->refused)
		return status;
	return dir->weak ? NFS4ERR_WRONGSEC : status;
}

struct lookup_args {
	struct nfs4_name name;
};

static void decode_lookup(struct nfs4_compound *c, void *args)
{
	struct lookup_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

static int run_lookup(struct nfs4_compound *c, void *args)
{
	const struct lookup_args *a = args;
	int status = nfs4_find_name(c, &a->name, &c->current);

	return status == NFS4_OK ? nfs4_place_usable(&c->current)
				 : nfs4_find_status(&c->current, status);
}

static int run_lookupp(struct nfs4_compound *c, void *args)
{
	int status = nfs4_find_parent(c, &c->current);

	(void)args;
	return status == NFS4_OK ? nfs4_place_usable(&c->current) : status;
}

const struct nfs4_op nfs4_op_lookup = {
	.name = "LOOKUP",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_SETS_FH | NFS4_OP_PROMPT,
	.flavor = NFS4_FLAVOR_HERE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_NAME),
	.shape = NFS4_SHAPE(0, 0, 1),
	.args_size = sizeof(struct lookup_args),
	.decode = decode_lookup,
	.run = run_lookup,
};

const struct nfs4_op nfs4_op_lookupp = {
	.name = "LOOKUPP",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_SETS_FH,
	.flavor = NFS4_FLAVOR_HERE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_NOENT | NFS4_E_NOTDIR),
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_lookupp,
};
