/* SPDX-License-Identifier: BSD-2-Clause */
/* A layout as a state of its client: its end, and the data servers that the client had trouble with. */
#include "nfs4/state/nfs4_layout.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"

bool nfs4_layout_take_out(struct nfs4_layout *l)
{
	if (l->st.gone)
		return false;
	nfs4_state_remove(l->st.client, &l->st, false);
	return true;
}

void nfs4_layout_end(struct nfs4_layout *l)
{
	struct nfs4_client *cl = l->st.client;
	bool mine;

	pthread_mutex_lock(&cl->lock);
	mine = nfs4_layout_take_out(l);
	pthread_mutex_unlock(&cl->lock);
	if (mine)
		nfs4_state_unref(&l->st); /* the tables' */
}

#define TROUBLES 16u

struct nfs4_layout_troubles {
	uint32_t next; /* the oldest */
	struct {
		uint8_t device[NFS4_DEVICEID_SIZE];
		uint64_t file;
		uint64_t until; /* seconds of nfs4_clients_now(); 0: none */
	} of[TROUBLES];
};

static struct nfs4_layout_troubles *troubles_of(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	if (held->troubles || held->dropped || !nfs4_state_charge(cl, sizeof(*held->troubles)))
		return held->troubles;
	held->troubles = calloc(1, sizeof(*held->troubles));
	if (!held->troubles)
		nfs4_state_discharge(cl, sizeof(*held->troubles));
	return held->troubles;
}

void nfs4_layout_trouble(struct nfs4_client *cl, const uint8_t device[NFS4_DEVICEID_SIZE],
			 uint64_t file)
{
	const uint64_t until = nfs4_clients_now(cl->srv) + cl->srv->cfg.lease_seconds;
	struct nfs4_layout_troubles *t;

	pthread_mutex_lock(&cl->lock);
	t = troubles_of(cl);
	if (t) {
		memcpy(t->of[t->next].device, device, NFS4_DEVICEID_SIZE);
		t->of[t->next].file = file;
		t->of[t->next].until = until;
		t->next = (t->next + 1) % TROUBLES;
	}
	pthread_mutex_unlock(&cl->lock);
}

bool nfs4_layout_is_troubled(struct nfs4_client *cl, const uint8_t device[NFS4_DEVICEID_SIZE],
			     uint64_t file)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	const struct nfs4_layout_troubles *t;
	bool found = false;

	pthread_mutex_lock(&cl->lock);
	t = cl->holdings->troubles;
	for (unsigned i = 0; t && i < TROUBLES && !found; i++)
		found = now < t->of[i].until && (t->of[i].file == 0 || t->of[i].file == file) &&
			memcmp(t->of[i].device, device, NFS4_DEVICEID_SIZE) == 0;
	pthread_mutex_unlock(&cl->lock);
	return found;
}

void nfs4_layout_troubles_free(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	if (held->troubles)
		nfs4_state_discharge(cl, sizeof(*held->troubles));
	free(held->troubles);
	held->troubles = NULL;
}
