/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's table of stateids: slots in chunks, found by number. A slot's generation counts its
 * uses, so that a stateid of an earlier one is told apart; slots are used in turn, so that a
 * generation comes again only after 4096 uses of all that are free. Under the client's lock.
 */
#ifndef RN_NFS4_STATE_SLOTS_H
#define RN_NFS4_STATE_SLOTS_H

#include "nfs4/state/state.h"

#define NFS4_STATES_MAX ((1u << 20) - 1) /* of one client */

void nfs4_slots_init(struct nfs4_holdings *held);
/* All slots are free. */
void nfs4_slots_fini(struct nfs4_client *cl);
/* Sets st->id. 0, -ENOMEM, or -ENOSPC: the client has as many as there can be. */
int nfs4_slot_take(struct nfs4_client *cl, struct nfs4_state *st);
void nfs4_slot_free(struct nfs4_holdings *held, uint32_t id);
/* NULL: the slot is free, or used by another generation. */
struct nfs4_state *nfs4_slot_find(const struct nfs4_holdings *held, uint32_t id);

#endif
