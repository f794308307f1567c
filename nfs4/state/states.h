/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's part of opens and locks: how many there are in all. What stateids name belongs to
 * clients (nfs4/state/holdings.h).
 */
#ifndef RN_NFS4_STATE_STATES_H
#define RN_NFS4_STATE_STATES_H

#include <stdint.h>

struct nfs4_server;
struct nfs4_states;
struct nfs4_held;

/* Sets srv->states. 0 or -ENOMEM. */
int nfs4_states_new(struct nfs4_server *srv);
/* All clients have been dropped. NULL is allowed. */
void nfs4_states_free(struct nfs4_states *s);
/* Fills owners, opens, locks. */
void nfs4_states_held(struct nfs4_states *s, struct nfs4_held *out);

#endif
