/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the holders of write delegations by CB_GETATTR, and the operations that wait for an answer.
 *
 * A delegation has one question under way, and at most one that follows it: an answer that was perhaps on
 * its way before somebody asked is not for him. An operation waits without a worker, for two seconds at most.
 * A holder that has not answered by then is not asked again: its delegation is to be recalled.
 */
#ifndef RN_NFS4_DELEG_DELEG_QUERY_H
#define RN_NFS4_DELEG_DELEG_QUERY_H

#include "nfs4/callback/cb_getattr.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/nfs4_deleg.h"

struct nfs4_queries;
struct nfs4_server;

/* Sets srv->queries. 0 or -ENOMEM. */
int nfs4_queries_new(struct nfs4_server *srv);
/* All clients must have been dropped, and their callbacks have ended. NULL is allowed. */
void nfs4_queries_free(struct nfs4_queries *qs);
/*
 * Asks the holder of d, and waits for the answer. 0; -ETIMEDOUT: the holder does not answer; -ENOMEM. The caller holds a
 * reference of d and no lock.
 */
int nfs4_query(struct nfs4_compound *c, struct nfs4_deleg *d, struct nfs4_held_attrs *out);

#endif
