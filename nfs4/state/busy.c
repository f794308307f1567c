/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/busy.h"

#include "nfs4/state/state.h"
#include "vfs/worker.h"

bool nfs4_open_enter(struct nfs4_compound *c, struct nfs4_open *open)
{
	if (!rpc_is_prompt(c->req)) {
		pthread_mutex_lock(&open->busy);
		return true;
	}
	if (pthread_mutex_trylock(&open->busy) == 0)
		return true;
	vfs_worker_decline(c->req->worker->vfs);
	return false;
}

void nfs4_open_leave(struct nfs4_open *open)
{
	pthread_mutex_unlock(&open->busy);
}
