/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE, MKDIR, SYMLINK and MKNOD (RFC 1813 sections 3.3.8 to 3.3.11): node[0] is the directory,
 * node[1] the new object. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "nfs3/op.h"
#include "nfs3/procs.h"

static void encode_made(struct nfs3_op *op, int rc)
{
	struct xdr_out *x = &op->req->out;

	if (nfs3_put_status(op, rc)) {
		nfs3_put_post_op_fh(x, vfs_node_fh(op->node[1]));
		nfs3_put_post_op_attr(x, &op->attr);
	}
	nfs3_put_wcc_of(op, 0);
}

static int open_dir(struct nfs3_op *op, const struct nfs3_dirop_args *where,
		    const struct nfs3_sattr *attr)
{
	int rc = nfs3_op_open(op, &where->dir, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_name_check(&where->name);
	if (rc == 0 && attr->bad)
		rc = -EINVAL;
	return rc;
}

/* rc is the result of the vfs call, which sets node[1] on success only. */
static enum rpc_run made(struct nfs3_op *op, const struct nfs3_sattr *attr, int rc)
{
	if (rc < 0)
		op->node[1] = NULL;
	op->sync.node[0] = op->node[0];
	op->sync.node[1] = op->node[1];
	op->sync.with_entry = !vfs_set_after_making(&attr->set);
	return nfs3_op_settle(op, rc, encode_made);
}

enum rpc_run nfs3_create(struct rpc_request *req, void *args)
{
	static const enum vfs_create_how how[] = {
		[NFS3_UNCHECKED] = VFS_UNCHECKED,
		[NFS3_GUARDED] = VFS_GUARDED,
		[NFS3_EXCLUSIVE] = VFS_EXCLUSIVE,
	};
	struct nfs3_create_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	const struct nfs3_name *name = &a->where.name;
	struct vfs_create cr = {
		.how = how[a->how], .sa = &a->attr.set, .verf = a->verf, .may = VFS_MAY_WRITE
	};
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	cr.attr = &op->attr;
	rc = open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = vfs_create(&op->ctx, op->node[0], name->bytes, name->len, &cr, &op->node[1]);
	return made(op, &a->attr, rc);
}

/* Where and with which attributes a call makes something other than a regular file. */
static struct vfs_make make_of(struct nfs3_op *op, const struct nfs3_name *name,
			       const struct vfs_setattr *sa)
{
	return (struct vfs_make){ .dir = op->node[0],
				  .name = name->bytes,
				  .len = name->len,
				  .sa = sa,
				  .attr = &op->attr };
}

enum rpc_run nfs3_mkdir(struct rpc_request *req, void *args)
{
	struct nfs3_mkdir_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_make make;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_dir(op, &a->where, &a->attr);
	make = make_of(op, &a->where.name, &a->attr.set);
	if (rc == 0)
		rc = vfs_mkdir(&op->ctx, &make, &op->node[1]);
	return made(op, &a->attr, rc);
}

/* A NUL-terminated copy of the text, which may lie in pieces. */
static int copy_target(struct rn_arena *arena, const struct xdr_bulk *text, char **out)
{
	char *p;

	if (text->len > VFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (text->len == 0)
		return -ENOENT;
	p = rn_arena_alloc(arena, text->len + 1);
	if (!p)
		return -ENOMEM;
	*out = p;
	for (unsigned i = 0; i < text->npieces; i++) {
		memcpy(p, text->piece[i].iov_base, text->piece[i].iov_len);
		p += text->piece[i].iov_len;
	}
	return memchr(*out, '\0', text->len) ? -EINVAL : 0;
}

enum rpc_run nfs3_symlink(struct rpc_request *req, void *args)
{
	struct nfs3_symlink_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_make make;
	char *target = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = copy_target(&req->arena, &a->target, &target);
	make = make_of(op, &a->where.name, &a->attr.set);
	if (rc == 0)
		rc = vfs_symlink(&op->ctx, &make, target, &op->node[1]);
	return made(op, &a->attr, rc);
}

static int mknod_type(uint32_t type, uint32_t *mode)
{
	switch (type) {
	case NF3CHR:
		*mode = S_IFCHR;
		return 0;
	case NF3BLK:
		*mode = S_IFBLK;
		return 0;
	case NF3SOCK:
		*mode = S_IFSOCK;
		return 0;
	case NF3FIFO:
		*mode = S_IFIFO;
		return 0;
	default:
		return -NFS3_EBADTYPE;
	}
}

enum rpc_run nfs3_mknod(struct rpc_request *req, void *args)
{
	struct nfs3_mknod_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_make make;
	struct vfs_mknod what = { .major = a->major, .minor = a->minor };
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = mknod_type(a->type, &what.type);
	make = make_of(op, &a->where.name, &a->attr.set);
	if (rc == 0)
		rc = vfs_mknod(&op->ctx, &make, &what, &op->node[1]);
	return made(op, &a->attr, rc);
}
