/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/lock_wire.h"

#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/owner.h"

uint32_t nfs4_get_lock_type(struct nfs4_compound *c)
{
	uint32_t type = xdr_get_u32(c->in);

	if (type < NFS4_READ_LT || type > NFS4_WRITEW_LT)
		c->in->err = true;
	return type;
}

int nfs4_check_range(uint64_t offset, uint64_t length)
{
	if (length == 0 || (length != UINT64_MAX && length > UINT64_MAX - offset))
		return NFS4ERR_INVAL;
	return NFS4_OK;
}

enum vfs_lock_type nfs4_vfs_lock_type(uint32_t type)
{
	return type == NFS4_WRITE_LT || type == NFS4_WRITEW_LT ? VFS_LOCK_WRITE : VFS_LOCK_READ;
}

/* A local process, or a client of NLM, has no NFSv4 name: it is shown as client id 0, which no
 * client has. */
int nfs4_put_denied(struct nfs4_compound *c, const struct vfs_conflict *cf)
{
	const struct nfs4_owner *o = NULL;

	if (nfs4_holder_is_ours(cf->holder))
		o = nfs4_owner_of_holder(cf->holder);
	xdr_put_u64(c->out, cf->offset);
	xdr_put_u64(c->out, cf->length);
	xdr_put_u32(c->out, cf->type == VFS_LOCK_WRITE ? NFS4_WRITE_LT : NFS4_READ_LT);
	xdr_put_u64(c->out, o ? o->client->clientid : 0);
	xdr_put_opaque(c->out, o ? o->name : NULL, o ? o->len : 0);
	c->keep_body = true;
	return NFS4ERR_DENIED;
}
