/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR, SETATTR, VERIFY and NVERIFY. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/attr/source.h"
#include "nfs4/compound.h"
#include "nfs4/state/stateid_check.h"

/* GETATTR (RFC 7530 section 16.7, RFC 8881 section 18.7). */

struct getattr_args {
	struct nfs4_bitmap want;
};

static void decode_getattr(struct nfs4_compound *c, void *args)
{
	struct getattr_args *a = args;

	nfs4_get_bitmap(c->in, &a->want); /* unknown attributes are not returned */
}

static int run_getattr(struct nfs4_compound *c, void *args)
{
	struct getattr_args *a = args;
	struct nfs4_attr_source src;
	int status = nfs4_need(c, &c->current, 0);

	if (status == NFS4_OK)
		status = nfs4_attr_readable(&a->want, nfs4_attr_level(c->server, c->minor));
	if (status == NFS4_OK)
		status = nfs4_attr_source_of(c, &c->current, &a->want, &src);
	if (status == NFS4_OK)
		status = nfs4_reserve_reply(c, nfs4_fattr_size(&a->want, &src));
	if (status == NFS4_OK)
		nfs4_put_fattr(c->out, &a->want, &src);
	return status;
}

const struct nfs4_op nfs4_op_getattr = {
	.name = "GETATTR",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD | NFS4_OP_MACHINE_PASSES | NFS4_OP_AT_ABSENT,
	.reply_max = 8,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(0, 1, 0),
	.args_size = sizeof(struct getattr_args),
	.decode = decode_getattr,
	.run = run_getattr,
};

/* SETATTR (RFC 7530 section 16.32, RFC 8881 section 18.30). Permissions are checked before anything
 * is changed, so the result lists all of the attributes, or none. */

struct setattr_args {
	struct nfs4_stateid sid;
	struct nfs4_sattr attrs;
};

static void nfs4_decode_setattr(struct nfs4_compound *c, void *args)
{
	struct setattr_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
	nfs4_get_sattr(c, &a->attrs);
}

/* On failure the loop puts an empty bitmap. */
static int after_sync(struct nfs4_compound *c, int rc)
{
	const struct setattr_args *a = c->args;

	if (rc == 0)
		nfs4_put_bitmap(c->out, &a->attrs.given);
	return nfs4_status(c->minor, rc);
}

/* mode_set_masked: keeps the bits outside of the mask. */
static int mask_mode(struct nfs4_object *p, struct nfs4_sattr *sa)
{
	struct vfs_attr now;
	int rc;

	if (!nfs4_bitmap_has(&sa->given, FATTR4_MODE_SET_MASKED))
		return 0;
	rc = vfs_getattr(&p->ctx, p->node, &now);
	if (rc == 0) {
		sa->set.mode = (now.mode & ~sa->mode_mask & NFS4_MODE_BITS) |
			       (sa->set.mode & sa->mode_mask);
		sa->set.set_mode = true;
	}
	return rc;
}

/* Only regular files have a size that can be set. RFC 8881 has one status for all other types. */
static int nfs4_setattr_check_type(const struct nfs4_compound *c)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG);

	if (c->minor > 0 && (status == NFS4ERR_ISDIR || status == NFS4ERR_SYMLINK))
		return NFS4ERR_WRONG_TYPE;
	return status;
}

static int nfs4_setattr_check(struct nfs4_compound *c, struct setattr_args *a)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK && a->attrs.set.set_size)
		status = nfs4_setattr_check_type(c);
	return status == NFS4_OK ? nfs4_sattr_check(c, &a->attrs, NFS4_SATTR_SETATTR) : status;
}

static int nfs4_setattr_apply(struct nfs4_compound *c, struct setattr_args *a)
{
	struct nfs4_object *p = &c->current;
	int rc = mask_mode(p, &a->attrs);

	return rc == 0 ? vfs_setattr(&p->ctx, p->node, &a->attrs.set, NULL) : rc;
}

static int nfs4_run_setattr(struct nfs4_compound *c, void *args)
{
	struct setattr_args *a = args;
	struct nfs4_io_right right = { 0 };
	int status = nfs4_setattr_check(c, a);
	int rc;

	if (status == NFS4_OK && a->attrs.set.set_size)
		status = nfs4_io_begin(c, &a->sid, NFS4_IO_WRITE, &right);
	if (status != NFS4_OK)
		return status;
	a->attrs.set.opened = right.opened;
	do
		rc = nfs4_setattr_apply(c, a);
	while (nfs4_await(c, rc));
	nfs4_io_end(&right);
	if (rc == 0 && nfs4_bitmap_empty(&a->attrs.given))
		return after_sync(c, 0); /* no change to make durable */
	struct vfs_sync sync = { .node = { c->current.node },
				 .data_from = a->attrs.set.set_size ? a->attrs.set.size
								    : VFS_SYNC_METADATA };
	return after_sync(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_setattr = {
	.name = "SETATTR",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FAILS_WITH_BITMAP,
	.reply_max = NFS4_BITMAP_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_PERM |
					       NFS4_E_INVAL | NFS4_E_FBIG | NFS4_E_NOSPC |
					       NFS4_E_ROFS,
				       NFS4_E_ISDIR, 0),
	.args_size = sizeof(struct setattr_args),
	.decode = nfs4_decode_setattr,
	.run = nfs4_run_setattr,
};

/*
 * VERIFY and NVERIFY (RFC 7530 sections 16.35 and 16.15, RFC 8881 sections 18.31 and 18.15). The
 * values in the call are compared with the object's one by one, as XDR. Owners and ACEs are
 * compared by the ids that they name.
 */

/* Longest value of an attribute in bytes, without owners, ACLs and labels: that of a filehandle. */
#define VALUE_MAX 192u

struct verify_args {
	struct nfs4_bitmap given;
	bool unknown; /* attributes beyond the bitmap are given, too */
	const uint8_t *values;
	uint32_t len;
};

static void decode_verify(struct nfs4_compound *c, void *args)
{
	struct verify_args *a = args;

	a->unknown = !nfs4_get_bitmap(c->in, &a->given);
	a->values = xdr_get_opaque(c->in, UINT32_MAX, &a->len);
}

/* The draft lets nobody compare POSIX ACLs. Locations are to be read, and change with a reload. */
static bool is_not_compared(unsigned number)
{
	return number == FATTR4_RDATTR_ERROR || number == FATTR4_FS_LOCATIONS ||
	       number == FATTR4_POSIX_DEFAULT_ACL || number == FATTR4_POSIX_ACCESS_ACL;
}

static int nfs4_verify_check_given(const struct verify_args *a, uint32_t level)
{
	int status = NFS4_OK;

	if (a->unknown)
		return NFS4ERR_ATTRNOTSUPP;
	for (unsigned i = 0; i < NFS4_ATTR_WORDS * 32; i++) {
		const struct nfs4_attr_row *row = nfs4_attr_find(i, level);

		if (!nfs4_bitmap_has(&a->given, i))
			continue;
		if (!row)
			return NFS4ERR_ATTRNOTSUPP;
		if (!row->get || is_not_compared(i))
			status = NFS4ERR_INVAL;
	}
	return status;
}

struct comparing {
	struct nfs4_compound *c;
	const struct nfs4_attr_source *src;
	struct xdr_in in;
	bool same;
	int status;
};

static void compare_owner(struct comparing *cmp, unsigned number)
{
	const bool user = number == FATTR4_OWNER;
	uint32_t len, id;
	const char *name = (const char *)xdr_get_opaque(&cmp->in, UINT32_MAX, &len);
	int status;

	if (!name)
		return;
	status =
		user ? nfs4_user_id(cmp->c, name, len, &id) : nfs4_group_id(cmp->c, name, len, &id);
	/* A name that is not known yet may still be the same, and an empty name is invalid. */
	if (status == NFS4ERR_DELAY || status == NFS4ERR_INVAL)
		cmp->status = status;
	cmp->same &= status == NFS4_OK && id == (user ? cmp->src->attr.uid : cmp->src->attr.gid);
}

static void compare_acl(struct comparing *cmp)
{
	bool same;
	int status = nfs4_same_acl(cmp->c, &cmp->in, &cmp->src->acls, S_ISDIR(cmp->src->attr.mode),
				   &same);

	if (status != NFS4_OK)
		cmp->status = status;
	cmp->same &= same;
}

static void compare_label(struct comparing *cmp)
{
	const struct nfs4_attr_source *src = cmp->src;
	uint32_t format = xdr_get_u32(&cmp->in), policy = xdr_get_u32(&cmp->in), len;
	const uint8_t *bytes = xdr_get_opaque(&cmp->in, UINT32_MAX, &len);

	if (bytes)
		cmp->same &= format == NFS4_LABEL_FORMAT && policy == NFS4_LABEL_POLICY &&
			     len == src->label_len && memcmp(bytes, src->label_buffer, len) == 0;
}

/* Skips a value. A length that the attribute cannot have is NFS4ERR_INVAL. */
static void pass_value(struct comparing *cmp, unsigned number, uint32_t size)
{
	struct nfs4_bitmap b;
	uint32_t len;

	switch (number) {
	case FATTR4_SUPPORTED_ATTRS:
	case FATTR4_SUPPATTR_EXCLCREAT:
		nfs4_get_bitmap(&cmp->in, &b);
		break;
	case FATTR4_OPEN_ARGUMENTS:
		for (unsigned i = 0; i < NFS4_OPEN_ARGUMENTS; i++)
			nfs4_get_bitmap(&cmp->in, &b);
		break;
	case FATTR4_FILEHANDLE:
		xdr_get_opaque(&cmp->in, NFS4_FHSIZE, &len);
		break;
	case FATTR4_MODE:
		if (xdr_get_u32(&cmp->in) & ~NFS4_MODE_BITS)
			cmp->status = NFS4ERR_INVAL;
		break;
	default:
		xdr_skip(&cmp->in, size);
	}
}

static void compare_value(struct comparing *cmp, unsigned number, const uint8_t *values)
{
	const struct nfs4_attr_row *row = nfs4_attr_find(number, NFS4_LEVEL_MAX);
	size_t from = xdr_in_pos(&cmp->in), to;
	uint8_t buf[VALUE_MAX];
	struct xdr_out ours;

	if (row->needs & (NFS4_ATTR_OWNER | NFS4_ATTR_GROUP)) {
		compare_owner(cmp, number);
		return;
	}
	if (number == FATTR4_ACL) {
		compare_acl(cmp);
		return;
	}
	if (number == FATTR4_SEC_LABEL) {
		compare_label(cmp);
		return;
	}
	pass_value(cmp, number, row->size);
	if (cmp->in.err)
		return;
	to = xdr_in_pos(&cmp->in);
	xdr_out_init(&ours, buf, sizeof(buf));
	row->get(&ours, cmp->src);
	if (xdr_out_pos(&ours) != to - from || memcmp(buf, values + from, to - from) != 0)
		cmp->same = false;
}

static int nfs4_verify_compare(struct nfs4_compound *c, const struct verify_args *a,
			       const struct nfs4_attr_source *src)
{
	/* The cast is safe: the cursor only reads. */
	struct rpc_seg seg = { .base = (uint8_t *)(uintptr_t)a->values, .len = a->len };
	struct comparing cmp = { .c = c, .src = src, .same = true };

	xdr_in_init(&cmp.in, &seg, 1, NULL);
	for (unsigned i = 0; i < NFS4_ATTR_WORDS * 32 && !cmp.in.err; i++) {
		if (nfs4_bitmap_has(&a->given, i))
			compare_value(&cmp, i, a->values);
	}
	if (cmp.in.err || cmp.in.left > 0)
		return NFS4ERR_BADXDR;
	if (cmp.status != NFS4_OK)
		return cmp.status;
	return cmp.same ? NFS4ERR_SAME : NFS4ERR_NOT_SAME;
}

/* NFS4ERR_SAME, NFS4ERR_NOT_SAME, or an error. */
static int nfs4_verify_attrs(struct nfs4_compound *c, const struct verify_args *a)
{
	struct nfs4_bitmap want = a->given;
	struct nfs4_attr_source src;
	int status = nfs4_need(c, &c->current, 0);

	if (status == NFS4_OK)
		status = nfs4_verify_check_given(a, nfs4_attr_level(c->server, c->minor));
	if (status == NFS4_OK)
		status = nfs4_attr_source_of(c, &c->current, &want, &src);
	if (status == NFS4_OK && memcmp(&want, &a->given, sizeof(want)) != 0)
		status = NFS4ERR_ATTRNOTSUPP; /* not supported by this file system */
	return status == NFS4_OK ? nfs4_verify_compare(c, a, &src) : status;
}

static int run_verify(struct nfs4_compound *c, void *args)
{
	int status = nfs4_verify_attrs(c, args);

	return status == NFS4ERR_SAME ? NFS4_OK : status;
}

static int run_nverify(struct nfs4_compound *c, void *args)
{
	int status = nfs4_verify_attrs(c, args);

	return status == NFS4ERR_NOT_SAME ? NFS4_OK : status;
}

const struct nfs4_op nfs4_op_nverify = {
	.name = "NVERIFY",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(0, 1, 1),
	.args_size = sizeof(struct verify_args),
	.decode = decode_verify,
	.run = run_nverify,
};

const struct nfs4_op nfs4_op_verify = {
	.name = "VERIFY",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(0, 1, 1),
	.args_size = sizeof(struct verify_args),
	.decode = decode_verify,
	.run = run_verify,
};
