/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layouts in the image of the state (nfs4/nfs4_image.c). One whose recall is not over goes as such, and its client is told once more unless it has said that it
 * will return it. Devices go as they were seen last: clients hear of those that go meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/layout/layouts.h"
#include "nfs4/state/holdings.h"
#include "vfs/vfs_image.h"

struct saved_layout {
	uint32_t id, seqid, file, export_id, iomodes;
	uint64_t age, recalled_age; /* seconds */
	uint64_t fsid;
	uint8_t device[NFS4_DEVICEID_SIZE];
	struct image_bytes data_server, fh;
	struct nfs4_cb_referring giver;
	bool recalled, told;
};
static const struct image_field saved_layout_fields[] = {
	IMAGE_NUMBER(1, struct saved_layout, id),
	IMAGE_NUMBER(2, struct saved_layout, seqid),
	IMAGE_NUMBER(3, struct saved_layout, file),
	IMAGE_NUMBER(4, struct saved_layout, export_id),
	IMAGE_NUMBER(5, struct saved_layout, iomodes),
	IMAGE_NUMBER(6, struct saved_layout, age),
	IMAGE_NUMBER(7, struct saved_layout, recalled_age),
	IMAGE_NUMBER(8, struct saved_layout, fsid),
	IMAGE_FIXED(9, struct saved_layout, device),
	IMAGE_BYTES(10, struct saved_layout, data_server),
	IMAGE_BYTES(11, struct saved_layout, fh),
	IMAGE_FIXED(12, struct saved_layout, giver),
	IMAGE_NUMBER(13, struct saved_layout, recalled),
	IMAGE_NUMBER(14, struct saved_layout, told),
};
static const struct image_kind saved_layout_kind = { NFS4_IMAGE_LAYOUT,
						     rn_array_size(saved_layout_fields),
						     saved_layout_fields };

struct saved_device {
	uint8_t id[NFS4_DEVICEID_SIZE];
	bool gone;
	uint64_t left; /* seconds until clients are told that the device is gone; 0 if it is not */
};
static const struct image_field saved_device_fields[] = {
	IMAGE_FIXED(1, struct saved_device, id),
	IMAGE_NUMBER(2, struct saved_device, gone),
	IMAGE_NUMBER(3, struct saved_device, left),
};
static const struct image_kind saved_device_kind = { NFS4_IMAGE_DEVICE,
						     rn_array_size(saved_device_fields),
						     saved_device_fields };

static void save_layout(struct image_writer *w, const struct nfs4_layout *l)
{
	const uint64_t now = nfs4_clients_now(l->st.client->srv);
	struct saved_layout s = {
		.id = l->st.id,
		.seqid = l->st.seqid,
		.file = vfs_file_number(l->st.file),
		.export_id = l->export_id,
		.iomodes = l->iomodes,
		.age = (uint32_t)now - l->st.since,
		.recalled_age = l->recalled ? now - l->recalled_at : 0,
		.fsid = l->fsid,
		.data_server = { (const uint8_t *)l->data_server,
				 (uint32_t)strlen(l->data_server) },
		.fh = { l->fh, l->fh_len },
		.giver = l->giver,
		.recalled = l->recalled,
		.told = l->told,
	};

	memcpy(s.device, l->device, sizeof(s.device));
	image_put(w, &saved_layout_kind, &s);
}

void nfs4_layouts_save(struct nfs4_client *cl, struct image_writer *w)
{
	struct nfs4_state *st;

	if (cl->holdings->dropped)
		return;
	TAILQ_FOREACH (st, &cl->holdings->states, link)
		if (st->kind == NFS4_STATE_LAYOUT)
			save_layout(w, nfs4_as_layout(st));
	nfs4_layout_troubles_save(cl, w);
}

void nfs4_devices_save(const struct nfs4_server *srv, struct image_writer *w)
{
	const struct nfs4_layouts *all = srv->layouts;
	const uint64_t now = nfs4_clients_now(srv);
	struct saved_device s = { .gone = false };

	for (unsigned i = 0; i < all->nids; i++) {
		memcpy(s.id, all->ids[i], sizeof(s.id));
		image_put(w, &saved_device_kind, &s);
	}
	s.gone = true;
	for (unsigned i = 0; i < all->ngone; i++) {
		memcpy(s.id, all->gone[i].id, sizeof(s.id));
		s.left = all->gone[i].tell_at - rn_min(all->gone[i].tell_at, now);
		image_put(w, &saved_device_kind, &s);
	}
}

/* The next program. */

static struct nfs4_layout *make_layout(struct nfs4_client *cl, struct vfs_file *f,
				       const struct saved_layout *s)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_layout *l = calloc(1, sizeof(*l) + s->fh.len);

	if (!l)
		return NULL;
	nfs4_state_init(&l->st, NFS4_STATE_LAYOUT, cl, NULL, f);
	l->st.seqid = s->seqid;
	l->st.since = (uint32_t)(now - s->age);
	l->export_id = s->export_id;
	l->fsid = s->fsid;
	memcpy(l->device, s->device, sizeof(l->device));
	if (s->data_server.at)
		memcpy(l->data_server, s->data_server.at,
		       rn_min(s->data_server.len, sizeof(l->data_server) - 1));
	l->giver = s->giver;
	l->iomodes = s->iomodes;
	l->recalled = s->recalled;
	l->told = s->told;
	l->recalled_at = now - rn_min(now, s->recalled_age);
	l->call_at = now;
	l->fh_len = (uint8_t)s->fh.len;
	memcpy(l->fh, s->fh.at, s->fh.len);
	return l;
}

static int enter_layout(struct nfs4_client *cl, struct nfs4_layout *l, uint32_t id)
{
	int rc;

	pthread_mutex_lock(&cl->lock);
	rc = nfs4_state_return(cl, &l->st, id);
	pthread_mutex_unlock(&cl->lock);
	if (rc == 0 && l->recalled) {
		nfs4_state_ref(&l->st);
		TAILQ_INSERT_TAIL(&cl->srv->layouts->recalled, l, link);
	}
	nfs4_state_unref(&l->st);
	return rc;
}

int nfs4_layout_load(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_layout s = { .id = 0 };
	struct nfs4_layout *l;
	struct vfs_file *f;
	const int rc = image_get(at, &saved_layout_kind, &s);

	if (rc != 0 || !s.fh.at || s.fh.len > sizeof(((struct vfs_fh *)0)->data))
		return -EPROTO;
	if (!nfs4_gives_layouts(cl->srv))
		return 0; /* the settings have none any more, so nobody can return it */
	f = vfs_file_by_number(cl->srv->cfg.vfs, s.file);
	if (!f)
		return -EPROTO;
	l = make_layout(cl, f, &s);
	vfs_file_put(f);
	return l ? enter_layout(cl, l, s.id) : -ENOMEM;
}

int nfs4_device_load(struct nfs4_server *srv, struct image_at *at)
{
	struct nfs4_layouts *all = srv->layouts;
	struct saved_device s = { .gone = false };

	if (image_get(at, &saved_device_kind, &s) != 0 ||
	    (s.gone ? all->ngone : all->nids) == NFS4_DEVICES_MAX)
		return -EPROTO;
	if (s.gone) {
		memcpy(all->gone[all->ngone].id, s.id, sizeof(s.id));
		all->gone[all->ngone++].tell_at = nfs4_clients_now(srv) + s.left;
	} else {
		memcpy(all->ids[all->nids++], s.id, sizeof(s.id));
	}
	return 0;
}
