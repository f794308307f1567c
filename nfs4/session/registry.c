/* SPDX-License-Identifier: BSD-2-Clause */
/* All clients and sessions of the server: its identity, its timer, start and end. */
#include "nfs4/session/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/saved_file.h"
#include "lib/util.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"

/*
 * Identity of this server, for clients that reach it by several addresses or after a restart: a
 * random name in the state directory, beside the client records. A server that gets the state
 * directory of another one takes over its identity.
 */

#define FILE_NAME "nfs4-server-id"
#define PREFIX "ringnfs-"
#define RANDOM_BYTES 12u
#define FILE_ID_LEN (sizeof(PREFIX) - 1 + 2 * RANDOM_BYTES + 1) /* with a newline */

static bool server_id_is_valid(const char *id, size_t len)
{
	return len == sizeof(PREFIX) - 1 + 2 * RANDOM_BYTES &&
	       strncmp(id, PREFIX, sizeof(PREFIX) - 1) == 0 &&
	       strspn(id + sizeof(PREFIX) - 1, "0123456789abcdef") == 2 * RANDOM_BYTES;
}

static bool read_id(int dir, char id[SERVER_ID_LEN])
{
	const int fd = openat(dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, id, FILE_ID_LEN);
	close(fd);
	if (n < 0)
		n = 0;
	id[n] = '\0';
	if (n > 0 && id[n - 1] == '\n')
		id[--n] = '\0';
	return server_id_is_valid(id, (size_t)n);
}

static int write_id(int dir, const char *id)
{
	char line[SERVER_ID_LEN + 1];
	const int len = snprintf(line, sizeof(line), "%s\n", id);

	return rn_file_replace(dir, FILE_NAME, line, (size_t)len);
}

static void make_id(char id[SERVER_ID_LEN])
{
	uint8_t bytes[RANDOM_BYTES];
	char hex[2 * RANDOM_BYTES + 1];

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(hex, sizeof(hex), bytes, sizeof(bytes));
	snprintf(id, SERVER_ID_LEN, PREFIX "%s", hex);
}

/* Reads the id from the state directory, or makes and stores one. */
static void server_id_of_its_own(struct nfs4_clients *all)
{
	const struct nfs4_config *cfg = &all->srv->cfg;
	int dir = -1, rc;

	if (cfg->state_dir)
		dir = open(cfg->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && read_id(dir, all->server_id)) {
		close(dir);
		return;
	}
	make_id(all->server_id);
	if (!cfg->state_dir)
		return;
	rc = dir < 0 ? -errno : write_id(dir, all->server_id);
	if (rc < 0)
		rn_warn(cfg->log,
			"%s/" FILE_NAME ": %s: NFSv4 clients will take this server for another "
			"one after a restart",
			cfg->state_dir, strerror(-rc));
	if (dir >= 0)
		close(dir);
}

static void nfs4_server_id(struct nfs4_clients *all)
{
	const struct nfs4_cluster *cluster = all->srv->cfg.cluster;

	if (!cluster)
		server_id_of_its_own(all);
	else
		snprintf(all->server_id, SERVER_ID_LEN, "%s", cluster->major);
	snprintf(all->server_scope, SERVER_ID_LEN, "%s", cluster ? cluster->scope : all->server_id);
}

/* Work of the client table once a second: expired leases, and clients that have been unconfirmed,
 * expired or courtesy clients for long enough. */

/* Time for which an expired client is remembered, in leases. */
#define EXPIRED_LEASES 4u
#define AT_ONCE 16u	 /* clients that one walk finds at most */
#define SLOT_RECALLS 16u /* CB_RECALL_SLOTs in a second at most */

/* Drops the state of expired clients whose records have been deleted since. The caller that wanted
 * the memory may not ask again. */
static void tick_dropping(struct nfs4_clients *all)
{
	struct nfs4_client *found[AT_ONCE], *cl;
	unsigned n = 0;

	if (!atomic_exchange(&all->dropping, false))
		return;
	pthread_mutex_lock(&all->lock);
	TAILQ_FOREACH (cl, &all->expired, aging) {
		if (!nfs4_client_has_state(cl))
			continue;
		if (n == AT_ONCE) {
			atomic_store(&all->dropping, true);
			break;
		}
		nfs4_client_ref(cl);
		found[n++] = cl;
	}
	pthread_mutex_unlock(&all->lock);
	for (unsigned i = 0; i < n; i++) {
		nfs4_client_expire_courtesy(all->srv, found[i]);
		nfs4_client_put(found[i]);
	}
}

/* Removes the oldest expired clients. */
static void tick_expired(struct nfs4_clients *all)
{
	const uint64_t age = (uint64_t)EXPIRED_LEASES * all->srv->cfg.lease_seconds;
	struct nfs4_client *cl;

	while ((cl = nfs4_clients_oldest(all, &all->expired, age)) != NULL) {
		if (nfs4_client_expire_courtesy(all->srv, cl) != NFS4_DROPPED) {
			nfs4_client_put(cl);
			break;
		}
		nfs4_client_forget(all, cl, NFS4_CLIENT_EXPIRED);
	}
}

static void tick_unconfirmed(struct nfs4_clients *all)
{
	struct nfs4_client *cl;

	while ((cl = nfs4_clients_oldest(all, &all->unconfirmed, all->srv->cfg.lease_seconds)) !=
	       NULL)
		nfs4_client_forget(all, cl, NFS4_CLIENT_UNCONFIRMED);
}

/* Deletes the record of a client that has closed everything, so that grace does not wait for it
 * after a restart. */
static void retire_record(struct nfs4_client *cl)
{
	unsigned mark;

	if (nfs4_record_is_quiet(&cl->record, &mark) && !nfs4_client_has_state(cl))
		nfs4_record_retire(cl->srv, &cl->record, mark);
}

/* A lease timer has fired. ctx is struct nfs4_clients. */
static void lease_fire(void *ctx, struct nfs4_timer *t)
{
	struct nfs4_clients *all = ctx;
	struct nfs4_client *cl = rn_container_of(t, struct nfs4_client, lease);
	bool over = false;

	pthread_mutex_lock(&all->lock);
	if (nfs4_client_status(cl) == NFS4_CLIENT_ACTIVE) {
		over = nfs4_client_lapse(all, cl);
		if (!over)
			nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE); /* files it again */
	}
	pthread_mutex_unlock(&all->lock);
	/* An OPEN may renew it at this moment; the function checks for that. */
	if (over) {
		atomic_fetch_add(&all->lapsed, 1);
		retire_record(cl);
	}
	nfs4_client_put(cl);
}

/* Calls nfs4_holdings_tick for the clients of one id bucket. *recalls: CB_RECALL_SLOTs that may still be
 * sent. */
static void sweep_bucket(struct nfs4_clients *all, uint32_t bucket, unsigned *recalls)
{
	struct id_part *part = &all->part[bucket % ID_PARTS];
	struct nfs4_client *found[AT_ONCE], *cl;
	unsigned n = 0;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (cl, &part->clients[bucket / ID_PARTS], by_id) {
		if (n == AT_ONCE)
			break;
		nfs4_client_ref(cl);
		found[n++] = cl;
	}
	pthread_mutex_unlock(&part->lock);
	for (unsigned i = 0; i < n; i++) {
		nfs4_holdings_tick(found[i]);
		retire_record(found[i]);
		if (*recalls > 0 && nfs4_client_recall_slots(found[i]))
			--*recalls;
		nfs4_client_put(found[i]);
	}
}

/* Sweeps all buckets within some seconds, several times in a lease. */
static void nfs4_clients_sweep(struct nfs4_clients *all)
{
	const uint32_t buckets = ID_PARTS * ID_BUCKETS;
	const uint32_t lease = all->srv->cfg.lease_seconds;
	const uint32_t n = buckets / (lease / 4 > 8 ? 8 : lease / 4 > 0 ? lease / 4 : 1) + 1;
	unsigned recalls = SLOT_RECALLS;

	for (uint32_t i = 0; i < n; i++)
		sweep_bucket(all, (all->swept + i) % buckets, &recalls);
	all->swept = (all->swept + n) % buckets;
}

void nfs4_clients_tick(struct nfs4_server *srv)
{
	struct nfs4_clients *all = srv->clients;

	nfs4_wheel_tick(&all->wheel, nfs4_clients_now(srv), lease_fire, all);
	tick_unconfirmed(all);
	while (nfs4_client_evict(all, nfs4_clients_oldest(all, &all->courtesy, COURTESY_SECONDS)) ==
	       NFS4_DROPPED)
		;
	tick_dropping(all);
	tick_expired(all);
	nfs4_clients_sweep(all);
}

static void init_part(struct id_part *p)
{
	pthread_mutex_init(&p->lock, NULL);
	for (unsigned i = 0; i < ID_BUCKETS; i++) {
		LIST_INIT(&p->clients[i]);
		LIST_INIT(&p->sessions[i]);
	}
}

int nfs4_clients_new(struct nfs4_server *srv)
{
	struct nfs4_clients *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->hosts = nfs4_hosts_new(srv->cfg.budget);
	if (!all->hosts) {
		free(all);
		return -ENOMEM;
	}
	all->srv = srv;
	pthread_mutex_init(&all->lock, NULL);
	nfs4_wheel_init(&all->wheel, nfs4_now());
	crypto_shorthash_keygen(all->id_key);
	TAILQ_INIT(&all->unconfirmed);
	TAILQ_INIT(&all->courtesy);
	TAILQ_INIT(&all->expired);
	for (unsigned i = 0; i < OWNER_BUCKETS; i++)
		LIST_INIT(&all->by_owner[i]);
	for (unsigned i = 0; i < ID_PARTS; i++)
		init_part(&all->part[i]);
	nfs4_server_id(all);
	srv->clients = all;
	return 0;
}

static void free_all_of(struct nfs4_clients *all, struct nfs4_client_list *list)
{
	struct nfs4_client *cl;

	while ((cl = LIST_FIRST(list)) != NULL) {
		if (nfs4_client_has_lapsed(cl))
			nfs4_record_lapsed(all->srv, &cl->record);
		nfs4_client_detach(all, cl);
		nfs4_client_destroy(cl);
	}
}

void nfs4_clients_free(struct nfs4_clients *all)
{
	if (!all)
		return;
	for (unsigned i = 0; i < OWNER_BUCKETS; i++)
		free_all_of(all, &all->by_owner[i]);
	nfs4_wheel_fini(&all->wheel);
	for (unsigned i = 0; i < ID_PARTS; i++)
		pthread_mutex_destroy(&all->part[i].lock);
	pthread_mutex_destroy(&all->lock);
	nfs4_hosts_free(all->hosts);
	free(all);
}

void nfs4_clients_held(struct nfs4_clients *all, struct nfs4_held *out)
{
	pthread_mutex_lock(&all->lock);
	out->clients = (uint64_t)all->nactive + all->ncourtesy + all->nexpired;
	out->courtesy_clients = all->ncourtesy;
	pthread_mutex_unlock(&all->lock);
	out->sessions = atomic_load_explicit(&all->nsessions, memory_order_relaxed);
	out->slots = atomic_load_explicit(&all->nslots, memory_order_relaxed);
	out->cached_replies = atomic_load_explicit(&all->ncached, memory_order_relaxed);
}
