/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP and LOOKUPP (RFC 7530 sections 16.13, 16.14; RFC 8881 sections 18.13, 18.14), SECINFO, and OPENATTR. */
#include <sys/stat.h>

#include "nfs/caller.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/pseudo/pseudo.h"

/* Sets out to n, an object of the current filehandle's export; takes over its reference. */
static void nfs4_lookup_set_object(struct nfs4_compound *c, struct vfs_node *n,
				   struct nfs4_object *out)
{
	nfs4_object_copy(out, &c->current);
	nfs4_object_move(out, n);
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
			  struct nfs4_object *out)
{
	struct nfs4_object *dir = &c->current, crossed = { .kind = NFS4_NOWHERE };
	struct vfs_attr *attr = getattr_follows(c) ? &c->last_attr : NULL;
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
			nfs4_object_take(out, &crossed);
		return status;
	}
	nfs4_lookup_set_object(c, n, out);
	if (attr)
		c->last_attr_index = c->index + 1;
	return NFS4_OK;
}

/* Sets out to the object that name leads to, across boundaries of exports. out may be the current
 * filehandle, and may get wrongsec. */
static int nfs4_find_name(struct nfs4_compound *c, const struct nfs4_name *name,
			  struct nfs4_object *out)
{
	const struct nfs4_object *dir = &c->current;
	int status = NFS4_OK;

	if (dir->type != S_IFDIR)
		status = nfs4_no_dir(dir);
	else if (dir->bad_port)
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

/* Sets out to the parent. NFS4ERR_NOENT: there is none. */
static int nfs4_find_parent(struct nfs4_compound *c, struct nfs4_object *out)
{
	struct nfs4_object *dir = &c->current;
	struct vfs_node *n;
	int status, rc;

	if (dir->type != S_IFDIR)
		return nfs4_no_dir(dir);
	if (dir->bad_port)
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
	nfs4_lookup_set_object(c, n, out);
	return NFS4_OK;
}

/* Status to answer for one that nfs4_find_name gave for a name in dir. A caller whose flavour or connection is not
 * enough for dir is told NFS4ERR_WRONGSEC whether there is such a name or not. */
static int nfs4_find_status(const struct nfs4_object *dir, int status)
{
	if (status == NFS4_OK || status == NFS4ERR_DELAY || dir->kind != NFS4_FILE || dir->bad_port)
		return status;
	return dir->wrongsec ? NFS4ERR_WRONGSEC : status;
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

	return status == NFS4_OK ? nfs4_object_usable(&c->current)
				 : nfs4_find_status(&c->current, status);
}

static int run_lookupp(struct nfs4_compound *c, void *args)
{
	int status = nfs4_find_parent(c, &c->current);

	(void)args;
	return status == NFS4_OK ? nfs4_object_usable(&c->current) : status;
}

const struct nfs4_op nfs4_op_lookup = {
	.name = "LOOKUP",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_SETS_FH | NFS4_OP_EVENT_THREAD,
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

/* SECINFO, SECINFO_NO_NAME (RFC 8881 sections 18.29, 18.45), and OPENATTR; named attributes are not
 * supported. */

enum { STYLE_CURRENT_FH = 0, STYLE_PARENT = 1 };

/* Kerberos V5, 1.2.840.113554.1.2.2, as DER has it (RFC 4121, RFC 2743 section 3.1). */
static const uint8_t krb5_oid[] = { 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02 };

/* RFC 2203 section 5.2.3 (rpc_gss_service_t); 0: not a flavour of RPCSEC_GSS. */
static uint32_t gss_service(enum vfs_sec sec)
{
	switch (sec) {
	case VFS_SEC_KRB5:
		return 1;
	case VFS_SEC_KRB5I:
		return 2;
	case VFS_SEC_KRB5P:
		return 3;
	case VFS_SEC_NONE:
	case VFS_SEC_SYS:
		break;
	}
	return 0;
}

static void put_flavor(struct xdr_out *x, enum vfs_sec sec)
{
	const uint32_t service = gss_service(sec);

	if (service == 0) {
		xdr_put_u32(x, (uint32_t)nfs_sec_number(sec));
		return;
	}
	xdr_put_u32(x, RPC_RPCSEC_GSS);
	xdr_put_opaque(x, krb5_oid, sizeof(krb5_oid));
	xdr_put_u32(x, 0); /* quality of protection: the mechanism's default */
	xdr_put_u32(x, service);
}

/* A directory of the pseudo file system is listed with the flavours of the exports below it. */
static void secinfo_put_flavors(struct nfs4_compound *c, const struct nfs4_object *p)
{
	struct vfs_access all = { .nsecs = 0 };
	const struct vfs_access *a = &p->ctx.access;

	if (p->kind != NFS4_FILE) {
		nfs4_pseudo_flavors(c, p, &all);
		a = &all;
	}
	xdr_put_u32(c->out, a->nsecs);
	for (unsigned i = 0; i < a->nsecs; i++)
		put_flavor(c->out, a->secs[i].sec);
}

/* Later minor versions consume the current filehandle (section 2.6.3.1.1.8). */
static int secinfo_answer(struct nfs4_compound *c, int status, struct nfs4_object *found)
{
	if (status == NFS4_OK)
		secinfo_put_flavors(c, found);
	if (status == NFS4_OK && c->minor > 0) {
		nfs4_object_clear(&c->current);
		c->has_current_sid = false;
	}
	nfs4_object_clear(found);
	return status;
}

struct secinfo_args {
	struct nfs4_name name;
};

static void decode_secinfo(struct nfs4_compound *c, void *args)
{
	struct secinfo_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

static int run_secinfo(struct nfs4_compound *c, void *args)
{
	const struct secinfo_args *a = args;
	struct nfs4_object found = { .kind = NFS4_NOWHERE };
	const int rc = nfs4_find_name(c, &a->name, &found);
	int status = nfs4_find_status(&c->current, rc);

	/* An entry would have the flavours of the directory. */
	if (status == NFS4ERR_WRONGSEC) {
		nfs4_object_copy(&found, &c->current);
		status = NFS4_OK;
	}
	return secinfo_answer(c, status, &found);
}

struct secinfo_no_name_args {
	bool parent; /* SECINFO_STYLE4_PARENT */
};

static void decode_secinfo_no_name(struct nfs4_compound *c, void *args)
{
	struct secinfo_no_name_args *a = args;
	uint32_t style = xdr_get_u32(c->in);

	a->parent = style == STYLE_PARENT;
	if (style > STYLE_PARENT)
		c->in->err = true;
}

static int run_secinfo_no_name(struct nfs4_compound *c, void *args)
{
	const struct secinfo_no_name_args *a = args;
	struct nfs4_object found = { .kind = NFS4_NOWHERE };
	int status = NFS4_OK;

	if (a->parent)
		status = nfs4_find_parent(c, &found);
	else
		nfs4_object_copy(&found, &c->current);
	return secinfo_answer(c, status, &found);
}

struct openattr_args {
	bool create;
};

static void decode_openattr(struct nfs4_compound *c, void *args)
{
	struct openattr_args *a = args;

	a->create = xdr_get_bool(c->in);
}

static int run_openattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

const struct nfs4_op nfs4_op_openattr = {
	.name = "OPENATTR",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct openattr_args),
	.decode = decode_openattr,
	.run = run_openattr,
};

const struct nfs4_op nfs4_op_secinfo = {
	.name = "SECINFO",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_MACHINE_TOO,
	.flavor = NFS4_FLAVOR_HERE,
	.reply_max = 128,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_NAME),
	.shape = NFS4_SHAPE(0, 0, 1),
	.args_size = sizeof(struct secinfo_args),
	.decode = decode_secinfo,
	.run = run_secinfo,
};

const struct nfs4_op nfs4_op_secinfo_no_name = {
	.name = "SECINFO_NO_NAME",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_MACHINE_TOO,
	.flavor = NFS4_FLAVOR_HERE,
	.reply_max = 128,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_NOENT | NFS4_E_NOTDIR | NFS4_E_INVAL |
			      NFS4_E_NOTSUPP),
	.shape = NFS4_SHAPE(4, 0, 0),
	.args_size = sizeof(struct secinfo_no_name_args),
	.decode = decode_secinfo_no_name,
	.run = run_secinfo_no_name,
};
