/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/session.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "lib/secret.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/client_host.h"
#include "rpc/request.h"

/* Sets the id: a serial number for the lookup amid random bytes. With SP4_NONE a caller that knows
 * the id can use the session, or destroy it. */
void nfs4_session_name(struct nfs4_session *s)
{
	struct nfs4_clients *all = s->client->srv->clients;

	randombytes_buf(s->id, sizeof(s->id));
	rn_put32(s->id + 8, atomic_fetch_add(&all->last_session, 1));
}

static struct id_part *nfs4_session_part_of(struct nfs4_clients *all, const uint8_t *id)
{
	return &all->part[rn_get32(id + 8) % ID_PARTS];
}

static struct nfs4_session_list *nfs4_session_bucket(struct nfs4_clients *all, const uint8_t *id)
{
	return &nfs4_session_part_of(all, id)->sessions[rn_get32(id + 8) / ID_PARTS % ID_BUCKETS];
}

struct nfs4_session *nfs4_session_get(struct nfs4_clients *all,
				      const uint8_t id[NFS4_SESSIONID_SIZE])
{
	struct id_part *part = nfs4_session_part_of(all, id);
	struct nfs4_session *s;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (s, nfs4_session_bucket(all, id), by_id) {
		if (rn_same_secret(s->id, id, NFS4_SESSIONID_SIZE / sizeof(uint64_t)))
			break;
	}
	if (s)
		nfs4_session_ref(s);
	pthread_mutex_unlock(&part->lock);
	return s;
}

void nfs4_session_ref(struct nfs4_session *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void nfs4_session_put(struct nfs4_session *s)
{
	struct nfs4_clients *all;
	struct nfs4_client *cl;
	size_t cost;

	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
		return;
	cl = s->client;
	all = cl->srv->clients;
	nfs4_slots_free(s);
	nfs4_cb_path_free(s);
	cost = s->cost;
	pthread_mutex_destroy(&s->lock);
	free(s);
	nfs4_host_give(cl->host, cost);
	nfs4_host_count(cl->host, NFS4_SESSIONS, -1);
	atomic_fetch_sub(&all->nsessions, 1);
	nfs4_client_put(cl);
}

static bool nfs4_session_has_conn(const struct nfs4_session *s, uint64_t conn)
{
	const uint32_t n = rn_min(s->nconns, NFS4_CONNS_PER_SESSION);

	for (uint32_t i = 0; i < n; i++) {
		if (s->conn[i] == conn)
			return true;
	}
	return false;
}

void nfs4_session_bind_locked(struct nfs4_session *s, struct rpc_conn *conn)
{
	if (nfs4_session_has_conn(s, conn->id))
		return;
	atomic_store_explicit(&conn->session_client, s->client->clientid, memory_order_relaxed);
	s->conn[s->nconns % NFS4_CONNS_PER_SESSION] = conn->id;
	/* Wraps to half of the limit and not to 0, so that all entries stay valid. */
	if (++s->nconns == 2 * NFS4_CONNS_PER_SESSION)
		s->nconns = NFS4_CONNS_PER_SESSION;
}

void nfs4_session_bind(struct nfs4_session *s, struct rpc_conn *conn)
{
	pthread_mutex_lock(&s->lock);
	nfs4_session_bind_locked(s, conn);
	pthread_mutex_unlock(&s->lock);
}

bool nfs4_session_binds_locked(const struct nfs4_session *s, const struct rpc_conn *conn)
{
	return nfs4_session_has_conn(s, conn->id);
}

bool nfs4_session_is_bound(struct nfs4_session *s, uint64_t conn)
{
	bool bound;

	pthread_mutex_lock(&s->lock);
	bound = nfs4_session_has_conn(s, conn);
	pthread_mutex_unlock(&s->lock);
	return bound;
}

void nfs4_session_enter(struct nfs4_session *s)
{
	struct nfs4_clients *all = s->client->srv->clients;
	struct id_part *part = nfs4_session_part_of(all, s->id);

	LIST_INSERT_HEAD(&s->client->session_list, s, of_client);
	s->client->nsessions++;
	pthread_mutex_lock(&part->lock);
	LIST_INSERT_HEAD(nfs4_session_bucket(all, s->id), s, by_id);
	pthread_mutex_unlock(&part->lock);
}

bool nfs4_session_leave(struct nfs4_session *s)
{
	struct id_part *part = nfs4_session_part_of(s->client->srv->clients, s->id);
	bool dead;

	pthread_mutex_lock(&s->lock);
	dead = s->dead;
	s->dead = true;
	pthread_mutex_unlock(&s->lock);
	if (dead)
		return false;
	LIST_REMOVE(s, of_client);
	s->client->nsessions--;
	pthread_mutex_lock(&part->lock);
	LIST_REMOVE(s, by_id);
	pthread_mutex_unlock(&part->lock);
	return true;
}

bool nfs4_session_busy(struct nfs4_session *s, const struct nfs4_slot *mine)
{
	uint32_t busy;

	pthread_mutex_lock(&s->lock);
	busy = s->busy;
	pthread_mutex_unlock(&s->lock);
	return busy > (mine ? 1u : 0u);
}
