/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/deleg/held_attrs.h"

#include <errno.h>

#include "nfs4/deleg/deleg_query.h"
#include "nfs4/nfs4_private.h"

/* Under a lock of vfs/. */
static void held_attrs_found(void *arg, struct vfs_deleg *v)
{
	struct nfs4_deleg *d = rn_container_of(v, struct nfs4_deleg, vfs);

	nfs4_state_ref(&d->st);
	*(struct nfs4_deleg **)arg = d;
}

/* True if the client may know the delegation, and have changed the file by it. */
static bool is_given(struct nfs4_deleg *d)
{
	bool given;

	pthread_mutex_lock(&d->st.client->lock);
	given = d->given;
	pthread_mutex_unlock(&d->st.client->lock);
	return given;
}

static int read_attr(struct nfs4_compound *c, struct nfs4_place *p, struct vfs_attr *attr)
{
	return nfs4_status(c->minor, vfs_getattr(&p->ctx, p->node, attr));
}

/* The holder does not answer: it is to write its changes and to return the delegation. */
static int held_attrs_recall(struct nfs4_compound *c, struct nfs4_place *p, struct vfs_attr *attr)
{
	int rc;

	do
		rc = vfs_deleg_check(&p->ctx, p->node, VFS_USE_READ);
	while (nfs4_await(c, rc));
	return rc == 0 ? read_attr(c, p, attr) : nfs4_status(c->minor, rc);
}

/* Once it is modified, it stays so: the client may answer with the same value after each change. */
static bool is_modified(struct nfs4_deleg *d, const struct nfs4_held_attrs *a, uint64_t size)
{
	bool modified;

	pthread_mutex_lock(&d->st.client->lock);
	if (a->change != d->change || a->size != size)
		d->modified = true;
	modified = d->modified;
	pthread_mutex_unlock(&d->st.client->lock);
	return modified;
}

/* A holder's answer. */
struct answer {
	struct nfs4_held_attrs held;
	uint64_t size_when_asked; /* of the file */
};

/*
 * The answer may be older than what is read here, and than what the holder has written since: a size that has
 * changed here counts. Otherwise the holder's counts, which the file may never get, if the holder dies. The
 * file gets another change attribute then, so that nobody sees the one that is told here with the file's own size.
 */
static int held_attrs_tell(struct nfs4_compound *c, struct nfs4_place *p, const struct answer *a,
			   struct vfs_attr *attr)
{
	const int status = read_attr(c, p, attr);

	if (status != NFS4_OK || attr->size != a->size_when_asked || attr->size == a->held.size)
		return status;
	attr->size = a->held.size;
	return vfs_touch_delegated(&p->ctx, p->node) == 0 ? NFS4_OK : held_attrs_recall(c, p, attr);
}

/* The holder may have written since the attributes were read. */
static int held_attrs_apply(struct nfs4_compound *c, struct nfs4_place *p, struct nfs4_deleg *d,
			    const struct answer *a, struct vfs_attr *attr)
{
	const int status = read_attr(c, p, attr);

	if (status != NFS4_OK || !is_modified(d, &a->held, attr->size))
		return status;
	if (vfs_touch_delegated(&p->ctx, p->node) != 0)
		return held_attrs_recall(c, p, attr);
	return held_attrs_tell(c, p, a, attr);
}

static int held_attrs_ask(struct nfs4_compound *c, struct nfs4_place *p, struct nfs4_deleg *d,
			  struct vfs_attr *attr)
{
	struct answer a;
	int status, rc;

	rpc_move(c->req);
	if (!nfs4_client_is_alive(d->st.client))
		return held_attrs_recall(c, p, attr);
	status = read_attr(c, p, attr);
	if (status != NFS4_OK)
		return status;
	a.size_when_asked = attr->size;
	rc = nfs4_query(c, d, &a.held);
	if (rc == 0)
		return held_attrs_apply(c, p, d, &a, attr);
	return rc == -ETIMEDOUT ? held_attrs_recall(c, p, attr) : NFS4ERR_DELAY;
}

int nfs4_held_attrs(struct nfs4_compound *c, struct nfs4_place *p, struct vfs_attr *attr)
{
	struct nfs4_deleg *d = NULL;
	int status = NFS4_OK;

	vfs_deleg_writer(&p->ctx, p->node, held_attrs_found, &d);
	if (!d)
		return NFS4_OK;
	if (is_given(d))
		status = held_attrs_ask(c, p, d, attr);
	nfs4_state_unref(&d->st);
	return status;
}
