/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended attributes (RFC 8276): GETXATTR, SETXATTR, LISTXATTRS and REMOVEXATTR. Names and values
 * are never placed in chunks of their own by RDMA, as no binding of RFC 8267 makes them eligible;
 * so they are no bulk items.
 */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/xattr.h"

#define COOKIE_SIZE 8u
#define WORD 4u
/* LISTXATTRS4resok without names: cookie, count, eof */
#define LIST_SIZE (COOKIE_SIZE + WORD + WORD)
/* The shortest entry of a listing, a name of one character and its length: nfsd refuses less, too. */
#define MAXCOUNT_LEAST 8u
#define TRIES_MOST 4u

/* The statuses that only these operations have, with those of all others. */
static int xattr_status(const struct nfs4_compound *c, int rc)
{
	switch (rc) {
	case -ENODATA:
		return NFS4ERR_NOXATTR;
	case -E2BIG:
		return NFS4ERR_XATTR2BIG;
	default:
		return nfs4_status(c->minor, rc);
	}
}

/* The pseudo file system has no such attributes (xattr_support). */
static int nfs4_xattr_need(struct nfs4_compound *c, unsigned what)
{
	int status = nfs4_need(c, &c->current, 0);

	if (status == NFS4_OK && c->current.kind == NFS4_PSEUDO)
		return NFS4ERR_NOTSUPP;
	return status == NFS4_OK ? nfs4_need(c, &c->current, what) : status;
}

/* A name may hold any character but NUL: the server must not interpret it (section 8.1). */
static int nfs4_xattr_check_name(const struct nfs4_name *name, int bad, struct vfs_xattr_name *out)
{
	if (name->len == 0)
		return NFS4ERR_INVAL;
	if (name->len > VFS_XATTR_NAME_MAX)
		return NFS4ERR_NAMETOOLONG;
	if (memchr(name->bytes, '\0', name->len))
		return bad;
	*out = (struct vfs_xattr_name){ name->bytes, name->len };
	return NFS4_OK;
}

struct getxattr_args {
	struct nfs4_name name;
};

static void decode_getxattr(struct nfs4_compound *c, void *args)
{
	struct getxattr_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

/* Puts the value. -RN_ECHANGED: it was replaced by one of another length in the meantime. */
static int getxattr_put_value(struct nfs4_compound *c, const struct vfs_xattr_name *name,
			      uint32_t len)
{
	const size_t at = xdr_out_pos(c->out);
	uint8_t *buf;
	int got;

	xdr_put_u32(c->out, len);
	buf = xdr_reserve(c->out, len);
	if (!buf || len == 0)
		return 0;
	got = vfs_xattr_get(&c->current.ctx, c->current.node, name, buf, len);
	if (got == (int)len)
		return 0;
	xdr_out_rewind(c->out, at);
	return got >= 0 || got == -ERANGE ? -RN_ECHANGED : got;
}

static int run_getxattr(struct nfs4_compound *c, void *args)
{
	const struct getxattr_args *a = args;
	struct vfs_xattr_name name;
	int status = nfs4_xattr_need(c, 0), rc = -RN_ECHANGED;

	if (status == NFS4_OK)
		status = nfs4_xattr_check_name(&a->name, NFS4ERR_INVAL, &name);
	for (unsigned i = 0; i < TRIES_MOST && status == NFS4_OK && rc == -RN_ECHANGED; i++) {
		rc = vfs_xattr_get(&c->current.ctx, c->current.node, &name, NULL, 0);
		if (rc < 0)
			break;
		status = nfs4_reserve_reply(c, WORD + (size_t)rc + rn_xdr_pad((uint32_t)rc));
		if (status == NFS4_OK)
			rc = getxattr_put_value(c, &name, (uint32_t)rc);
	}
	return status == NFS4_OK ? xattr_status(c, rc) : status;
}

enum setxattr_option4 { SETXATTR4_EITHER = 0, SETXATTR4_CREATE = 1, SETXATTR4_REPLACE = 2 };

struct setxattr_args {
	uint32_t option; /* enum vfs_xattr_how has the same values */
	struct nfs4_name name;
	struct xdr_in value; /* at the length word; well-formed */
	uint32_t len;
	struct vfs_xattr_change change;
};

static void decode_setxattr(struct nfs4_compound *c, void *args)
{
	struct setxattr_args *a = args;

	a->option = xdr_get_u32(c->in);
	nfs4_get_name(c->in, &a->name);
	a->value = *c->in;
	a->len = xdr_get_u32(c->in);
	xdr_skip(c->in, (size_t)a->len + rn_xdr_pad(a->len));
}

static int nfs4_xattr_put_change(struct nfs4_compound *c, const struct vfs_xattr_change *change,
				 int rc)
{
	if (rc == 0)
		nfs4_put_cinfo(c->out, &change->states);
	return xattr_status(c, rc);
}

static int setxattr_end(struct nfs4_compound *c, int rc)
{
	const struct setxattr_args *a = c->args;

	return nfs4_xattr_put_change(c, &a->change, rc);
}

static int change_xattr(struct nfs4_compound *c, struct vfs_xattr_change *change,
			int (*after)(struct nfs4_compound *c, int rc))
{
	int rc;

	do
		rc = vfs_xattr_change(&c->current.ctx, c->current.node, change);
	while (nfs4_await(c, rc));
	struct vfs_sync sync = { .node = { c->current.node }, .data_from = VFS_SYNC_METADATA };
	return after(c, nfs4_settle(c, &sync, rc));
}

/* Sets a->change.value to the value in one piece: where it lies in the message, or in *copy. False:
 * no memory now. */
static bool get_value(struct nfs4_compound *c, struct setxattr_args *a, struct rn_payload **copy)
{
	struct xdr_in at = a->value;

	at.arena = NULL; /* so that no copy is made there */
	a->change.value = xdr_get_opaque(&at, VFS_XATTR_SIZE_MAX, &a->change.size);
	if (!at.err)
		return true;
	*copy = rn_payload_get_for(c->req->server->pool, a->len, rpc_request_account(c->req));
	if (!*copy)
		return false;
	at = a->value;
	a->change.size = xdr_get_u32(&at);
	xdr_get_fixed(&at, (*copy)->data, a->change.size);
	a->change.value = (*copy)->data;
	return true;
}

static int run_setxattr(struct nfs4_compound *c, void *args)
{
	struct setxattr_args *a = args;
	struct rn_payload *copy = NULL;
	int status = nfs4_xattr_need(c, NFS4_NEED_WRITABLE);

	if (status == NFS4_OK && a->option > SETXATTR4_REPLACE)
		status = NFS4ERR_INVAL;
	if (status == NFS4_OK)
		status = nfs4_xattr_check_name(&a->name, NFS4ERR_BADCHAR, &a->change.name);
	if (status == NFS4_OK && a->len > VFS_XATTR_SIZE_MAX)
		status = NFS4ERR_XATTR2BIG;
	if (status == NFS4_OK && !get_value(c, a, &copy))
		status = NFS4ERR_DELAY;
	if (status != NFS4_OK)
		return status;
	a->change.how = (enum vfs_xattr_how)a->option;
	status = change_xattr(c, &a->change, setxattr_end);
	if (copy)
		rn_payload_put(copy);
	return status;
}

struct removexattr_args {
	struct nfs4_name name;
	struct vfs_xattr_change change;
};

static void decode_removexattr(struct nfs4_compound *c, void *args)
{
	struct removexattr_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

static int removexattr_end(struct nfs4_compound *c, int rc)
{
	const struct removexattr_args *a = c->args;

	return nfs4_xattr_put_change(c, &a->change, rc);
}

static int run_removexattr(struct nfs4_compound *c, void *args)
{
	struct removexattr_args *a = args;
	int status = nfs4_xattr_need(c, NFS4_NEED_WRITABLE);

	if (status == NFS4_OK)
		status = nfs4_xattr_check_name(&a->name, NFS4ERR_BADCHAR, &a->change.name);
	if (status != NFS4_OK)
		return status;
	a->change.how = VFS_XATTR_REMOVE;
	return change_xattr(c, &a->change, removexattr_end);
}

/* A cookie is the number of names before the next one. The file system lists them in an order that
 * stays as long as none comes or goes. */
struct listxattrs_args {
	uint64_t cookie;
	uint32_t maxcount; /* bytes of the result, all of them */
};

static void decode_listxattrs(struct nfs4_compound *c, void *args)
{
	struct listxattrs_args *a = args;

	a->cookie = xdr_get_u64(c->in);
	a->maxcount = xdr_get_u32(c->in);
}

/* The names to return: count of them, from the first on. */
struct part {
	const char *first;
	uint32_t count;
	size_t size; /* bytes of the result */
	bool eof;
};

static size_t listxattrs_name_size(const char *name)
{
	const size_t len = strlen(name);

	return WORD + len + rn_xdr_pad((uint32_t)len);
}

static int listxattrs_choose(const struct nfs4_compound *c, const struct listxattrs_args *a,
			     const char *names, const char *end, struct part *out)
{
	const size_t most = rn_min(a->maxcount, nfs4_reply_space(c));
	const char *name = names;
	uint64_t index = 0;
	size_t least;

	*out = (struct part){ .size = LIST_SIZE };
	for (; name < end; name += strlen(name) + 1, index++) {
		if (index < a->cookie)
			continue;
		if (out->size + listxattrs_name_size(name) > most)
			break;
		if (out->count++ == 0)
			out->first = name;
		out->size += listxattrs_name_size(name);
	}
	if (index < a->cookie)
		return NFS4ERR_BAD_COOKIE;
	out->eof = name == end;
	least = out->count > 0 ? 0 : LIST_SIZE + (out->eof ? 0 : listxattrs_name_size(name));
	if (least <= most)
		return NFS4_OK;
	return least > a->maxcount ? NFS4ERR_TOOSMALL : nfs4_reply_too_big(c, least);
}

static int listxattrs_put_names(struct nfs4_compound *c, const struct listxattrs_args *a,
				const char *names, const char *end)
{
	struct part part;
	int status = listxattrs_choose(c, a, names, end, &part);

	if (status == NFS4_OK)
		status = nfs4_reserve_reply(c, part.size);
	if (status != NFS4_OK)
		return status;
	xdr_put_u64(c->out, a->cookie + part.count);
	xdr_put_u32(c->out, part.count);
	for (const char *name = part.first; part.count > 0; part.count--) {
		const size_t len = strlen(name);

		xdr_put_opaque(c->out, name, (uint32_t)len);
		name += len + 1;
	}
	xdr_put_bool(c->out, part.eof);
	return NFS4_OK;
}

static int run_listxattrs(struct nfs4_compound *c, void *args)
{
	const struct listxattrs_args *a = args;
	struct rn_payload *buf;
	int status = nfs4_xattr_need(c, 0), rc;

	if (status == NFS4_OK && a->maxcount < MAXCOUNT_LEAST)
		status = NFS4ERR_INVAL;
	if (status != NFS4_OK)
		return status;
	buf = rn_payload_get_for(c->req->server->pool, VFS_XATTR_LIST_MAX,
				 rpc_request_account(c->req));
	if (!buf)
		return NFS4ERR_DELAY;
	rc = vfs_xattr_list(&c->current.ctx, c->current.node, (char *)buf->data,
			    VFS_XATTR_LIST_MAX);
	if (rc >= 0)
		status = listxattrs_put_names(c, a, (char *)buf->data, (char *)buf->data + rc);
	else
		status = rc == -E2BIG ? NFS4ERR_TOOSMALL : xattr_status(c, rc); /* as nfsd */
	rn_payload_put(buf);
	return status;
}

const struct nfs4_op nfs4_op_getxattr = {
	.name = "GETXATTR",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = WORD,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL | NFS4_E_NAMETOOLONG |
			      NFS4_E_NOTSUPP | NFS4_E_PERM),
	.shape = NFS4_SHAPE(0, 0, 1),
	.args_size = sizeof(struct getxattr_args),
	.decode = decode_getxattr,
	.run = run_getxattr,
};

const struct nfs4_op nfs4_op_setxattr = {
	.name = "SETXATTR",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = NFS4_CINFO_SIZE,
	.errors =
		NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_EXIST | NFS4_E_INVAL | NFS4_E_NOSPC |
			    NFS4_E_NAMETOOLONG | NFS4_E_NOTSUPP | NFS4_E_PERM | NFS4_E_ROFS),
	.args_size = sizeof(struct setxattr_args),
	.decode = decode_setxattr,
	.run = run_setxattr,
};

const struct nfs4_op nfs4_op_listxattrs = {
	.name = "LISTXATTRS",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = LIST_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL | NFS4_E_NAMETOOLONG |
			      NFS4_E_NOTSUPP | NFS4_E_PERM),
	.shape = NFS4_SHAPE(COOKIE_SIZE + WORD, 0, 0),
	.args_size = sizeof(struct listxattrs_args),
	.decode = decode_listxattrs,
	.run = run_listxattrs,
};

const struct nfs4_op nfs4_op_removexattr = {
	.name = "REMOVEXATTR",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = NFS4_CINFO_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_EXIST | NFS4_E_INVAL |
			      NFS4_E_NOSPC | NFS4_E_NAMETOOLONG | NFS4_E_NOTSUPP | NFS4_E_PERM |
			      NFS4_E_ROFS | NFS4_E_LOCKED),
	.args_size = sizeof(struct removexattr_args),
	.decode = decode_removexattr,
	.run = run_removexattr,
};
