/* SPDX-License-Identifier: BSD-2-Clause */
/* A layout as a state of its client: its end, and the data servers that the client had trouble with. */
#include "nfs4/state/nfs4_layout.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"

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

static void note_trouble(struct nfs4_client *cl, const uint8_t device[NFS4_DEVICEID_SIZE],
			 uint64_t file, uint64_t until)
{
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

void nfs4_layout_trouble(struct nfs4_client *cl, const uint8_t device[NFS4_DEVICEID_SIZE],
			 uint64_t file)
{
	note_trouble(cl, device, file, nfs4_clients_now(cl->srv) + cl->srv->cfg.lease_seconds);
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

struct saved_trouble {
	uint8_t device[NFS4_DEVICEID_SIZE];
	uint64_t file, left; /* seconds */
};
static const struct image_field trouble_fields[] = {
	IMAGE_FIXED(1, struct saved_trouble, device),
	IMAGE_NUMBER(2, struct saved_trouble, file),
	IMAGE_NUMBER(3, struct saved_trouble, left),
};
static const struct image_kind trouble_kind = { NFS4_IMAGE_LAYOUT_TROUBLE,
						rn_array_size(trouble_fields), trouble_fields };

void nfs4_layout_troubles_save(const struct nfs4_client *cl, struct image_writer *w)
{
	const struct nfs4_layout_troubles *t = cl->holdings->troubles;
	const uint64_t now = nfs4_clients_now(cl->srv);

	for (unsigned i = 0; t && i < TROUBLES; i++) {
		const unsigned at = (t->next + i) % TROUBLES; /* the oldest first */
		struct saved_trouble s = { .file = t->of[at].file };

		if (t->of[at].until <= now)
			continue;
		memcpy(s.device, t->of[at].device, sizeof(s.device));
		s.left = t->of[at].until - now;
		image_put(w, &trouble_kind, &s);
	}
}

int nfs4_layout_trouble_load(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_trouble s = { .left = 0 };
	const int rc = image_get(at, &trouble_kind, &s);

	if (rc == 0)
		note_trouble(cl, s.device, s.file, nfs4_clients_now(cl->srv) + s.left);
	return rc;
}

void nfs4_layout_troubles_free(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	if (held->troubles)
		nfs4_state_discharge(cl, sizeof(*held->troubles));
	free(held->troubles);
	held->troubles = NULL;
}
