/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the holders of write delegations by CB_GETATTR, and the operations that wait for an answer.
 *
 * A delegation has one question under way, and at most one that follows it: an answer that was perhaps on
 * its way before somebody asked is not for him. An operation waits without a worker, for two seconds at most.
 * A holder that has not answered by then is not asked again: its delegation is to be recalled.
 */
#ifndef RN_NFS4_DELEG_QUERY_H
#define RN_NFS4_DELEG_QUERY_H

#include "nfs4/client/client.h"
#include "nfs4/state/deleg.h"

struct nfs4_queries;
struct nfs4_server;

/* Sets srv->queries. 0 or -ENOMEM. */
int nfs4_queries_new(struct nfs4_server *srv);
/* All clients must have been dropped, and their callbacks have ended. NULL is allowed. */
void nfs4_queries_free(struct nfs4_queries *qs);
/* From nfs4_tick: ends the wait for those who do not answer. */
void nfs4_queries_tick(struct nfs4_server *srv);

/*
 * Asks the holder of d. 0: c->held has the answer when the operation runs again; it is to return
 * NFS4ERR_DELAY now. -ETIMEDOUT: the holder has not answered before. -ENOMEM. The caller holds a
 * reference of d and no lock.
 */
int nfs4_query(struct nfs4_compound *c, struct nfs4_deleg *d);

/* For nfs4_held_answer.of. */
static inline uint64_t nfs4_query_id(const struct nfs4_deleg *d)
{
	return (uint64_t)d->st.client->number << 32 | d->st.id;
}

#endif
