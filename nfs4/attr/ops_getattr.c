/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR (RFC 7530 section 16.7, RFC 8881 section 18.7). */
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/source.h"
#include "nfs4/compound.h"

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
	.flags = NFS4_OP_PROMPT | NFS4_OP_MACHINE_PASSES | NFS4_OP_AT_ABSENT,
	.reply_max = 8,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(0, 1, 0),
	.args_size = sizeof(struct getattr_args),
	.decode = decode_getattr,
	.run = run_getattr,
};
