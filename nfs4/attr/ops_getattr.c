/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR (RFC 7530 section 16.7, RFC 8881 section 18.7). */
#include "nfs4/attr/ops.h"
#include "nfs4/attr/source.h"

void nfs4_decode_getattr(struct nfs4_compound *c, void *args)
{
	struct nfs4_getattr_args *a = args;

	nfs4_get_bitmap(c->in, &a->want); /* what is not known is not returned */
}

int nfs4_getattr(struct nfs4_compound *c, void *args)
{
	struct nfs4_getattr_args *a = args;
	struct nfs4_attr_source src;
	int status = nfs4_need(c, &c->current, 0);

	if (status == NFS4_OK)
		status = nfs4_attr_readable(&a->want, c->minor);
	if (status == NFS4_OK)
		status = nfs4_attr_source_of(c, &c->current, &a->want, &src);
	if (status == NFS4_OK)
		status = nfs4_reserve_reply(c, nfs4_fattr_size(&a->want, &src));
	if (status == NFS4_OK)
		nfs4_put_fattr(c->out, &a->want, &src);
	return status;
}
