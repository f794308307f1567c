/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners as objects, and as holders that vfs/ names in conflicts. */
#include "nfs4/state/owner.h"

#include <stdlib.h>
#include <string.h>

#include "nfs4/client/nfs4_client.h"

void nfs4_owner_ref(struct nfs4_owner *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

void nfs4_owner_unref(struct nfs4_owner *o)
{
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	nfs4_client_put(o->client);
	free(o->replay);
	free(o);
}

static void owner_holder_ref(struct vfs_holder *h)
{
	nfs4_owner_ref(nfs4_owner_of_holder(h));
}

static void owner_holder_put(struct vfs_holder *h)
{
	nfs4_owner_unref(nfs4_owner_of_holder(h));
}

static enum vfs_yield holder_yield(struct vfs_holder *h)
{
	struct nfs4_client *cl = nfs4_owner_of_holder(h)->client;

	switch (nfs4_client_expire_courtesy(cl->srv, cl)) {
	case NFS4_DROPPED:
		return VFS_YIELDED;
	case NFS4_DROPPING:
		return VFS_YIELDING;
	default:
		return VFS_HOLDS;
	}
}

static const struct vfs_holder_ops holder_ops = {
	.ref = owner_holder_ref,
	.put = owner_holder_put,
	.yield = holder_yield,
};

bool nfs4_holder_is_ours(const struct vfs_holder *h)
{
	return h && h->ops == &holder_ops;
}

size_t nfs4_owner_cost(uint32_t len)
{
	return sizeof(struct nfs4_owner) + len;
}

struct nfs4_owner *nfs4_owner_new(struct nfs4_client *cl, const struct nfs4_owner_name *name)
{
	struct nfs4_owner *o = calloc(1, nfs4_owner_cost(name->len));

	if (!o)
		return NULL;
	o->holder.ops = &holder_ops;
	o->refs = 1;
	o->kind = (uint8_t)name->kind;
	o->client = cl;
	nfs4_client_ref(cl);
	o->len = name->len;
	memcpy(o->name, name->name, name->len);
	return o;
}
