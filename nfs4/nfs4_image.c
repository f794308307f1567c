/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSv4's state on its way to the next program (lib/image.h): the server's keys, then each client, behind it its sessions with their slots
 * (nfs4/session/clients_image.c), its holdings (nfs4/state/holdings_image.c), delegations (nfs4/deleg/deleg_image.c), copies
 * (nfs4/data/copies_image.c) and layouts (nfs4/layout/layouts_image.c). No call is under way.
 */
#include "nfs4/nfs4_image.h"

#include <errno.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/data/nfs4_copies.h"
#include "nfs4/deleg/delegations.h"
#include "nfs4/layout/layouts.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery.h"
#include "nfs4/session/registry.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/holdings.h"

#define NFS4_SECTION "nfs4"

const char *nfs4_save(struct nfs4_server *srv, struct image_writer *w)
{
	struct nfs4_client *cl, *next;
	struct nfs4_held held;

	nfs4_held(srv, &held);
	if (image_is_for_elsewhere(w) && held.copies + held.copy_sources > 0)
		return "clients copy files";
	if (image_is_for_elsewhere(w) && held.delegations + held.layouts > 0)
		return "clients have delegations or layouts";
	if (nfs4_in_grace(srv))
		return "the grace period is not over";
	if (!nfs4_recovery_stop(srv))
		return "the clients' records cannot be written";
	image_begin(w, NFS4_SECTION);
	nfs4_keys_save(srv, w);
	nfs4_copies_save_told(srv->copies, w);
	nfs4_devices_save(srv, w);
	for (cl = nfs4_client_after(srv, 0); cl; cl = next) {
		next = nfs4_client_after(srv, cl->number);
		nfs4_client_save(cl, w);
		nfs4_holdings_save(cl, w);
		nfs4_delegs_save(cl, w);
		nfs4_copy_sources_save(cl, w);
		nfs4_copies_save(cl, w);
		nfs4_layouts_save(cl, w);
		nfs4_client_put(cl);
	}
	return NULL;
}

int nfs4_image_begin(struct nfs4_server *srv, struct image_reader *image)
{
	struct image_at at;

	return image_enter(image, NFS4_SECTION, &at) ? nfs4_keys_load(srv, &at) : -ENOENT;
}

static int load_record(struct nfs4_server *srv, struct image_at *at, struct nfs4_loading *l)
{
	const uint16_t kind = image_next(at);

	if (kind <= NFS4_IMAGE_SLOT)
		return nfs4_client_load(srv->clients, at, l);
	if (kind == NFS4_IMAGE_COPY_TOLD)
		return nfs4_copies_load_told(srv->copies, at);
	if (kind == NFS4_IMAGE_DEVICE)
		return nfs4_device_load(srv, at);
	if (!l->client)
		return -EPROTO;
	switch (kind) {
	case NFS4_IMAGE_DELEG:
		return nfs4_deleg_load(l->client, at);
	case NFS4_IMAGE_COPY:
		return nfs4_copy_load(l->client, at);
	case NFS4_IMAGE_COPY_SOURCE:
		return nfs4_copy_source_load(l->client, at);
	case NFS4_IMAGE_LAYOUT:
		return nfs4_layout_load(l->client, at);
	case NFS4_IMAGE_LAYOUT_TROUBLE:
		return nfs4_layout_trouble_load(l->client, at);
	default:
		return nfs4_holdings_load(l, at);
	}
}

int nfs4_image_load(struct nfs4_server *srv, struct image_reader *image)
{
	struct nfs4_loading l = { .client = NULL };
	struct image_at at;
	int rc;

	if (!image_enter(image, NFS4_SECTION, &at))
		return 0;
	rc = nfs4_keys_load(srv, &at);
	while (rc == 0 && image_next(&at))
		rc = load_record(srv, &at, &l);
	nfs4_holdings_load_end(&l);
	return rc;
}
