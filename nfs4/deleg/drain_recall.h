/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_NFS4_DRAIN_RECALL_H
#define RN_NFS4_DRAIN_RECALL_H

struct nfs4_server;

/* Recalls delegations of exports that are drained, a part of them at each call; about once a second. */
void nfs4_drain_tick(struct nfs4_server *srv);

#endif
