/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's table of stateids: entries in chunks, found by number. The generation of an entry
 * counts its uses, so that a stateid of an earlier use is recognised. Free entries are used in
 * turn, so that a generation recurs only after 4096 uses of all free entries. Under the client's
 * lock.
 */
#ifndef RN_NFS4_STATE_STATEID_TABLE_H
#define RN_NFS4_STATE_STATEID_TABLE_H

#include "nfs4/state/state.h"

#define NFS4_STATES_MAX ((1u << 20) - 1) /* per client */

void nfs4_stateids_init(struct nfs4_holdings *held);
/* All entries must be free. */
void nfs4_stateids_fini(struct nfs4_client *cl);
/* Sets st->id. 0, -ENOMEM, or -ENOSPC if the client has the maximum. */
int nfs4_stateid_take(struct nfs4_client *cl, struct nfs4_state *st);
void nfs4_stateid_free(struct nfs4_holdings *held, uint32_t id);
/* Entries of the table, and the state of one of them; NULL if it is free. */
uint32_t nfs4_stateid_entries(const struct nfs4_holdings *held);
struct nfs4_state *nfs4_stateid_at(const struct nfs4_holdings *held, uint32_t entry);
/* NULL if the entry is free, or used by another generation. */
struct nfs4_state *nfs4_stateid_find(const struct nfs4_holdings *held, uint32_t id);

#endif
