/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACLs on the wire, and GETACL and SETACL of NFSACL. No item is eligible for a chunk of its own (RFC 8267 section 5.2). Results and errors are those of
 * the kernel's server, but that SETACL leaves an ACL alone that the call does not name.
 */
#include <errno.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs3/acl/acl_steps.h"
#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/op.h"
#include "vfs/xattr.h"

#define PERMS (VFS_ACL_READ | VFS_ACL_WRITE | VFS_ACL_EXEC)

_Static_assert(VFS_ACL_MAX == NFSACL_ENTRIES_MAX, "what is stored can be shown");

/*
 * ACLs as NFSACL carries them. A secattr has two lists, of the access and of the default ACL: the
 * number of entries, then an array that is empty if the entries are not meant. An ACL on the wire
 * has a mask entry always; one that only repeats the group's permissions stands for none.
 */

/* A list of a result, and the ids that entries of owner and group are shown with. */
struct nfsacl_shown {
	const struct vfs_acl *acl;
	uint32_t uid, gid;
	uint32_t flag;	   /* NA_ACL_DEFAULT or 0: set in the type of each entry */
	bool with_entries; /* false: only the number is sent */
};

/* ACLs of a result of GETACL. Points into itself. */
struct nfsacl_found {
	uint32_t mask;
	struct vfs_acl_buffer room;
	struct vfs_acls acls;
	struct nfsacl_shown access, inherited;
};

static bool is_minimal(const struct vfs_acl *acl)
{
	return acl->count == VFS_ACL_OF_MODE;
}

/* Entries on the wire, with the mask of a minimal ACL. */
static uint32_t nfsacl_count_of(const struct vfs_acl *acl)
{
	return acl->count + is_minimal(acl);
}

/* Bytes of XDR that nfsacl_put takes. */
static uint32_t nfsacl_size(const struct nfsacl_shown *list)
{
	return 8 + (list->with_entries ? nfsacl_count_of(list->acl) * NFSACL_ENTRY_SIZE : 0);
}

static void nfsacl_put_entry(struct xdr_out *x, const struct nfsacl_shown *list,
			     const struct vfs_acl_entry *e)
{
	uint32_t id = 0; /* mask and others: clients of Solaris depend on it */

	if (e->tag == VFS_ACL_USER_OBJ)
		id = list->uid;
	else if (e->tag == VFS_ACL_GROUP_OBJ)
		id = list->gid;
	else if (e->tag == VFS_ACL_USER || e->tag == VFS_ACL_GROUP)
		id = e->id;
	xdr_put_u32(x, e->tag | list->flag);
	xdr_put_u32(x, id);
	xdr_put_u32(x, e->perm);
}

/* The mask goes behind the group's entry, which is its place in the kernel's order. */
static void nfsacl_put(struct xdr_out *x, const struct nfsacl_shown *list)
{
	const struct vfs_acl *acl = list->acl;

	xdr_put_u32(x, nfsacl_count_of(acl));
	xdr_put_u32(x, list->with_entries ? nfsacl_count_of(acl) : 0);
	for (uint32_t i = 0; list->with_entries && i < acl->count; i++) {
		struct vfs_acl_entry e = acl->entry[i];

		nfsacl_put_entry(x, list, &e);
		if (!is_minimal(acl) || e.tag != VFS_ACL_GROUP_OBJ)
			continue;
		e.tag = VFS_ACL_MASK;
		nfsacl_put_entry(x, list, &e);
	}
}

/* Sets x->err for an entry of no known kind. The kernel judges the others' permissions, except
 * that a mask may have more bits, as from Solaris. */
static struct vfs_acl_entry nfsacl_get_entry(struct xdr_in *x)
{
	struct vfs_acl_entry e = { .tag = 0 };
	const uint32_t tag = xdr_get_u32(x) & ~NA_ACL_DEFAULT, id = xdr_get_u32(x);
	const uint32_t perm = xdr_get_u32(x);

	e.id = VFS_ACL_NO_ID;
	e.perm = (uint16_t)rn_min(perm, UINT16_MAX);
	switch (tag) {
	case VFS_ACL_USER:
	case VFS_ACL_GROUP:
		e.id = id;
		x->err |= id == VFS_ACL_NO_ID;
		break;
	case VFS_ACL_USER_OBJ:
	case VFS_ACL_GROUP_OBJ:
	case VFS_ACL_OTHER:
		x->err |= (perm & ~PERMS) != 0;
		break;
	case VFS_ACL_MASK:
		e.perm = perm & PERMS;
		break;
	default:
		x->err = true;
	}
	e.tag = (uint16_t)tag;
	return e;
}

/* Checks a list of an argument and moves x over it. An array that is not meant must be empty. Sets
 * x->err for a list that breaks the protocol's rules. */
static void nfsacl_skip(struct xdr_in *x, bool meant)
{
	const uint32_t count = xdr_get_u32(x), n = xdr_get_u32(x);

	if (count > NFSACL_ENTRIES_MAX || n != (meant ? count : 0))
		x->err = true;
	for (uint32_t i = 0; i < n && !x->err; i++)
		nfsacl_get_entry(x);
}

/* Takes the mask out that a client has added to a minimal ACL. In the kernel's order that is the
 * third of four entries, behind the group's. */
static void drop_mask(struct vfs_acl_entry *e, struct vfs_acl *acl)
{
	if (acl->count != VFS_ACL_OF_MODE + 1 || e[1].tag != VFS_ACL_GROUP_OBJ ||
	    e[2].tag != VFS_ACL_MASK || e[1].perm != e[2].perm)
		return;
	e[2] = e[3];
	acl->count = VFS_ACL_OF_MODE;
}

/* Decodes a list that nfsacl_skip has accepted into room for NFSACL_ENTRIES_MAX entries, in the
 * kernel's order. A permission that no entry can have stays one. */
static void nfsacl_get(struct xdr_in *x, struct vfs_acl_entry *room, struct vfs_acl *out)
{
	uint32_t n;

	xdr_get_u32(x);
	n = xdr_get_u32(x);
	*out = (struct vfs_acl){ .entry = room };
	if (n > NFSACL_ENTRIES_MAX)
		x->err = true;
	while (out->count < n && !x->err)
		room[out->count++] = nfsacl_get_entry(x);
	vfs_acl_sort(room, out->count);
	drop_mask(room, out);
}

/* exports(5) no_acl. */
static int check_shown(const struct nfs3_op *op)
{
	return op->ctx.access.flags & VFS_NO_ACL ? -EOPNOTSUPP : 0;
}

/* An object that can have no ACL has the one of its permission bits. */
static int nfsacl_get_acls(struct nfs3_op *op, struct vfs_acl_buffer *room, struct vfs_acls *acls)
{
	int rc = vfs_getattr(&op->ctx, op->node[0], &op->attr);

	if (rc < 0)
		return rc;
	rc = vfs_acl_get(op->node[0], op->attr.mode, room, acls);
	if (rc != -EOPNOTSUPP)
		return rc;
	*acls = (struct vfs_acls){ 0 };
	vfs_acl_from_mode(op->attr.mode, room->access, &acls->access);
	return 0;
}

static struct nfsacl_shown shown(const struct nfs3_op *op, const struct vfs_acl *acl)
{
	return (struct nfsacl_shown){ .acl = acl, .uid = op->attr.uid, .gid = op->attr.gid };
}

/* Makes room for the result. */
static int nfsacl_make_room(struct rpc_request *req, size_t head_size, const struct nfsacl_found *f)
{
	const size_t size = head_size + 4 + nfsacl_size(&f->access) + nfsacl_size(&f->inherited);

	if (xdr_out_pos(&req->out) + size > req->reply_max)
		return -NFS3_ETOOLONG;
	return rpc_reply_grow(req, size) < 0 ? -ENOMEM : 0;
}

/* Reads op->attr and the ACLs, and makes room in the reply for them behind head_size bytes. -EOPNOTSUPP: the export
 * says no_acl. -EINVAL: mask has unknown bits. */
static int nfsacl_find(struct nfs3_op *op, uint32_t mask, size_t head_size,
		       struct nfsacl_found *out)
{
	static const struct vfs_acl none = { 0 };
	const struct vfs_acls *acls = &out->acls;
	int rc = check_shown(op);

	if (rc == 0 && (mask & ~NA_MASK))
		rc = -EINVAL;
	if (rc == 0)
		rc = nfsacl_get_acls(op, &out->room, &out->acls);
	if (rc < 0)
		return rc;
	out->mask = mask;
	out->access = shown(op, mask & (NA_ACL | NA_ACLCNT) ? &acls->access : &none);
	out->access.with_entries = mask & NA_ACL;
	out->inherited = shown(op, mask & (NA_DFACL | NA_DFACLCNT) ? &acls->inherited : &none);
	out->inherited.with_entries = mask & NA_DFACL;
	out->inherited.flag = NA_ACL_DEFAULT;
	return nfsacl_make_room(op->req, head_size, out);
}

/* Puts the secattr. */
static void nfsacl_put_found(struct nfs3_op *op, const struct nfsacl_found *f)
{
	struct xdr_out *x = &op->req->out;

	xdr_put_u32(x, f->mask);
	nfsacl_put(x, &f->access);
	nfsacl_put(x, &f->inherited);
}

void nfsacl_get_change(struct xdr_in *x, struct nfsacl_change *c)
{
	c->mask = xdr_get_u32(x);
	c->lists = *x;
	if (c->mask & ~NA_MASK)
		x->err = true;
	nfsacl_skip(x, c->mask & NA_ACL);
	nfsacl_skip(x, c->mask & NA_DFACL);
}

static int nfsacl_set(struct nfs3_op *op, const struct nfsacl_change *c)
{
	struct xdr_in lists = c->lists;
	struct vfs_acl_buffer room;
	struct vfs_acls acls = {
		.keep_access = !(c->mask & NA_ACL),
		.keep_inherited = !(c->mask & NA_DFACL),
	};
	const struct vfs_setattr set = { .acls = &acls };
	int rc = check_shown(op);

	if (rc < 0)
		return rc;
	if (vfs_node_type(op->node[0]) == S_IFLNK || !vfs_acl_supported(&op->ctx, op->node[0]))
		return -EOPNOTSUPP;
	nfsacl_get(&lists, room.access, &acls.access);
	nfsacl_get(&lists, room.inherited, &acls.inherited);
	return nfs3_op_setattr(op, &set, NULL);
}

/* Puts a whole successful result, or returns -errno with nothing put. */
static int nfs3_run_getacl(struct nfs3_op *op, const struct nfs3_word_args *a)
{
	struct nfsacl_found found;
	int rc = nfs3_op_open(op, &a->fh, 0);

	if (rc == 0)
		rc = nfsacl_find(op, a->word, 4 + nfs3_attr_size(op), &found);
	if (rc < 0)
		return rc;
	nfs3_put_status(op, 0);
	nfs3_put_attr(op, &op->attr);
	nfsacl_put_found(op, &found);
	return 0;
}

enum rpc_run nfs3_getacl(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_run_getacl(op, args);
	if (rc < 0) {
		nfs3_put_status(op, rc);
		nfs3_put_attr_of(op, op->node[0]);
	}
	return nfs3_op_end(op, rc);
}

static bool nfs3_decode_setacl(struct xdr_in *x, void *args)
{
	struct nfsacl_setacl_args *a = args;

	nfs3_get_fh(x, &a->fh);
	nfsacl_get_change(x, &a->change);
	return !x->err;
}

static void nfs3_encode_setacl(struct nfs3_op *op, int rc)
{
	if (op->dialect) {
		op->dialect->put_changed(op, rc);
		return;
	}
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
}

enum rpc_run nfs3_setacl(struct rpc_request *req, void *args)
{
	struct nfsacl_setacl_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);
	if (rc == 0)
		rc = nfsacl_set(op, &a->change);
	op->sync.node[0] = op->node[0];
	op->sync.data_from = VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, nfs3_encode_setacl);
}

/* NOTSUPP: the export says no_acl. */
const struct nfs3_proc nfsacl_proc_getacl = {
	.rpc = {
		.name = "GETACL",
		.decode = nfs3_decode_word,
		.args_size = sizeof(struct nfs3_word_args),
		.run = nfs3_getacl,
		.flags = RPC_EVENT_THREAD,
	},
	.errors = NFS3_ERRORS(NFS3_E_INVAL | NFS3_E_NOTSUPP),
};

/* INVAL: the kernel refuses the ACL. */
const struct nfs3_proc nfsacl_proc_setacl = {
	.rpc = {
		.name = "SETACL",
		.decode = nfs3_decode_setacl,
		.args_size = sizeof(struct nfsacl_setacl_args),
		.run = nfs3_setacl,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_POST_OP_ATTR_SIZE,
	},
	.errors = NFS3_ERRORS(NFS3_E_PERM | NFS3_E_INVAL | NFS3_E_SPACE | NFS3_E_ROFS | NFS3_E_NOTSUPP),
};
