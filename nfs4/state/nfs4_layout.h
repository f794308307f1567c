/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layouts of files (RFC 8881 section 12.5) as states of a client. A client has at most one of a file, which is for the
 * whole file. nfs4/layout/ gives and recalls them.
 *
 * A layout takes nothing from others: reads and writes by it are like any that a client sends to the data server without it. So it
 * ends by being forgotten, and its stateid is unknown from then on.
 */
#ifndef RN_NFS4_STATE_NFS4_LAYOUT_H
#define RN_NFS4_STATE_NFS4_LAYOUT_H

#include "nfs4/callback/cb_ops.h"
#include "nfs4/state/state.h"

struct nfs4_layout {
	struct nfs4_state st;
	/* Constant. */
	uint32_t export_id;
	uint64_t fsid;
	uint8_t device[NFS4_DEVICEID_SIZE];
	char data_server[32]; /* name of the member, perhaps cut, for administrators */

	/* Under the client's lock. */
	struct nfs4_cb_referring giver; /* the last request that has given an iomode of it */
	unsigned iomodes;		/* layoutiomode4 as bits: those that the client has */
	bool recalled;
	bool calling; /* CB_LAYOUTRECALL is under way, with a reference of the state */
	bool told;    /* the client has said that it will return it */
	uint64_t recalled_at, call_at; /* seconds of nfs4_clients_now() */
	struct nfs4_layout_recall call;

	/* Used by the thread that recalls (nfs4/layout/layout_recall.c). */
	TAILQ_ENTRY(nfs4_layout) link;

	uint8_t fh_len;
	uint8_t fh[];
};

static inline struct nfs4_layout *nfs4_as_layout(struct nfs4_state *st)
{
	return rn_container_of(st, struct nfs4_layout, st);
}

/* Ends it, unless it has gone. The caller holds a reference and no lock. */
void nfs4_layout_end(struct nfs4_layout *l);
/* Like nfs4_layout_end(), under the client's lock; the caller puts the table's reference. False: it has gone. */
bool nfs4_layout_take_out(struct nfs4_layout *l);

/*
 * Errors that the client has reported of data servers. While they are remembered, it gets no layout that would lead it there
 * again: Linux's client asks anew at once. Few are kept, as it harms only itself if one is forgotten.
 */
struct nfs4_layout_troubles;

/* The device; file 0: for all files. Both take the client's lock. */
void nfs4_layout_trouble(struct nfs4_client *cl, const uint8_t device[NFS4_DEVICEID_SIZE],
			 uint64_t file);
bool nfs4_layout_is_troubled(struct nfs4_client *cl, const uint8_t device[NFS4_DEVICEID_SIZE],
			     uint64_t file);
/* In the image of the state. load: takes a record of kind NFS4_IMAGE_LAYOUT_TROUBLE; 0 or -EPROTO. */
void nfs4_layout_troubles_save(const struct nfs4_client *cl, struct image_writer *w);
int nfs4_layout_trouble_load(struct nfs4_client *cl, struct image_at *at);
/* Under the client's lock. */
void nfs4_layout_troubles_free(struct nfs4_client *cl);

#endif
