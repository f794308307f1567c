/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/nfs4_deleg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/deleg_pressure.h"
#include "nfs4/state/recall.h"

static uint8_t type_bit(const struct nfs4_place *p, enum vfs_deleg_type type)
{
	if (p->type == S_IFDIR)
		return NFS4_ANY_DIR;
	return type == VFS_DELEG_WRITE ? NFS4_ANY_WRITE : NFS4_ANY_READ;
}

struct nfs4_deleg *nfs4_deleg_new(struct nfs4_client *cl, struct vfs_file *f,
				  const struct nfs4_place *p, enum vfs_deleg_type type)
{
	const struct vfs_fh *fh = &p->fh;
	struct nfs4_deleg *d = calloc(1, sizeof(*d) + fh->len);

	if (!d)
		return NULL;
	nfs4_state_init(&d->st, NFS4_STATE_DELEG, cl, NULL, f);
	d->vfs.ops = &nfs4_recall_ops;
	d->vfs.client = cl;
	d->vfs.type = type;
	d->type = type_bit(p, type);
	d->opener = p->ctx.cred.uid;
	d->export_id = p->export_id;
	d->fh_len = (uint8_t)fh->len;
	memcpy(d->fh, fh->data, fh->len);
	return d;
}

unsigned nfs4_deleg_type(struct nfs4_client *cl, const struct vfs_file *f)
{
	struct nfs4_state *st;
	unsigned type;

	pthread_mutex_lock(&cl->lock);
	st = nfs4_state_by_file(cl, NULL, f);
	type = st ? nfs4_as_deleg(st)->vfs.type : 0;
	if (st) /* the client uses the file */
		nfs4_deleg_used(nfs4_as_deleg(st));
	pthread_mutex_unlock(&cl->lock);
	return type;
}

int nfs4_deleg_add(struct nfs4_deleg *d, struct nfs4_stateid *sid)
{
	struct nfs4_client *cl = d->st.client;
	int rc = -RN_ENOTNOW;

	pthread_mutex_lock(&cl->lock);
	if (!d->recalled && !nfs4_state_by_file(cl, NULL, d->st.file))
		rc = nfs4_state_add(cl, &d->st);
	if (rc == 0) {
		d->given = true;
		nfs4_deleg_count(d);
		d->st.seqid = 1;
		nfs4_state_stateid(&d->st, sid);
	} else if (rc == -ENOMEM) {
		nfs4_deleg_refused(cl);
	}
	pthread_mutex_unlock(&cl->lock);
	if (rc != 0)
		vfs_deleg_end(&d->vfs);
	return rc;
}

void nfs4_deleg_end(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = d->st.client;
	bool mine, given;

	pthread_mutex_lock(&cl->lock);
	mine = !d->st.gone;
	given = d->given;
	d->given = false;
	if (given)
		nfs4_deleg_uncount(d);
	if (mine) {
		nfs4_recall_dequeue(d);
		nfs4_state_remove(cl, &d->st, false);
	}
	pthread_mutex_unlock(&cl->lock);
	if (given)
		vfs_deleg_end(&d->vfs);
	if (mine)
		nfs4_state_unref(&d->st); /* the tables' */
}

bool nfs4_deleg_revoke(struct nfs4_deleg *d, int status)
{
	struct nfs4_client *cl = d->st.client;
	bool mine, given;

	pthread_mutex_lock(&cl->lock);
	mine = !d->st.gone && !d->st.revoked;
	given = mine && d->given;
	if (mine) {
		d->given = false;
		if (given)
			nfs4_deleg_uncount(d);
		nfs4_recall_dequeue(d);
		nfs4_state_revoke(cl, &d->st, status);
	}
	pthread_mutex_unlock(&cl->lock);
	if (given)
		vfs_deleg_end(&d->vfs);
	return mine;
}
