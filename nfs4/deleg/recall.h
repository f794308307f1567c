/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recalls of delegations. The client is told by CB_RECALL, again and again until it says that it
 * knows, and has a lease's time to return the delegation. Then it is revoked (RFC 8881 section
 * 10.4.5). The state of a client whose own lease has run out goes at once.
 *
 * Nobody waits: recall() of vfs/deleg.h queues the delegation and sends what can be sent, the end of
 * each CB_RECALL sends the next, and a clock of seconds does the rest. A client is sent as many at a
 * time as its session may have slots.
 */
#ifndef RN_NFS4_DELEG_RECALL_H
#define RN_NFS4_DELEG_RECALL_H

#include "nfs4/state/nfs4_deleg.h"

struct nfs4_server;

/* For struct vfs_deleg. */
extern const struct vfs_deleg_ops nfs4_recall_ops;

/* Sets srv->recalls, the list of clients with recalls. 0 or -ENOMEM. */
int nfs4_recalls_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_recalls_free(struct nfs4_recall_list *list);
/* From nfs4_tick. */
void nfs4_recalls_tick(struct nfs4_server *srv);

/* Recalls d by the server's own decision, unless it is recalled already or has gone. vfs/ does not know, and
 * calls recall() when somebody waits. The caller holds a reference and no lock. */
void nfs4_recall_own(struct nfs4_deleg *d);

/* Recalls delegations of exports that are drained, a part of them at each call; about once a second. */
void nfs4_drain_tick(struct nfs4_server *srv);

#endif
