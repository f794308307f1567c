/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VERIFY and NVERIFY (RFC 7530 sections 16.35 and 16.15, RFC 8881 sections 18.31 and 18.15). The
 * values in the call are compared with the object's one by one, as XDR. Owners and ACEs are
 * compared by the ids that they name.
 */
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/source.h"
#include "nfs4/compound.h"

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
			     len == src->label_len && memcmp(bytes, src->label_room, len) == 0;
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
	.flags = NFS4_OP_PROMPT,
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
	.flags = NFS4_OP_PROMPT,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(0, 1, 1),
	.args_size = sizeof(struct verify_args),
	.decode = decode_verify,
	.run = run_verify,
};
