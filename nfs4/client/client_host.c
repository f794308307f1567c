/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, hosts and connections that clients call from. */
#include "nfs4/client/client_host.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/budget.h"
#include "lib/host.h"
#include "lib/util.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "rpc/address.h"
#include "rpc/principal.h"

void nfs4_uaddr(const struct sockaddr_in6 *addr, char out[NFS4_UADDR_MAX])
{
	const unsigned port = ntohs(addr->sin6_port);
	char host[RN_ADDRESS_TEXT];

	rn_address_text(addr->sin6_addr.s6_addr, host);
	snprintf(out, NFS4_UADDR_MAX, "%s.%u.%u", host, port >> 8, port & 255u);
}

/* Reads a number of 0 to 255 that fills len characters. */
static bool get_octet(const char *text, size_t len, unsigned *out)
{
	*out = 0;
	if (len == 0 || len > 3 || (text[0] == '0' && len > 1))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*out = 10 * *out + (unsigned)(text[i] - '0');
	}
	return *out <= 255;
}

static bool get_host(const char *netid, const char *host, struct sockaddr_in6 *out)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (strcmp(netid, "tcp6") == 0)
		return inet_pton(AF_INET6, host, &out->sin6_addr) == 1 &&
		       !IN6_IS_ADDR_V4MAPPED(&out->sin6_addr);
	if (strcmp(netid, "tcp") != 0 || inet_pton(AF_INET, host, &in.sin_addr) != 1)
		return false;
	rn_address_map((const struct sockaddr *)&in, out->sin6_addr.s6_addr);
	return true;
}

bool nfs4_parse_uaddr(const char *netid, const char *uaddr, struct sockaddr_in6 *out)
{
	char host[INET6_ADDRSTRLEN];
	const char *low = strrchr(uaddr, '.');
	const char *high = low ? memrchr(uaddr, '.', (size_t)(low - uaddr)) : NULL;
	unsigned hi, lo;

	memset(out, 0, sizeof(*out));
	if (!high || (size_t)(high - uaddr) >= sizeof(host) ||
	    !get_octet(high + 1, (size_t)(low - high) - 1, &hi) ||
	    !get_octet(low + 1, strlen(low + 1), &lo) || hi + lo == 0)
		return false;
	memcpy(host, uaddr, (size_t)(high - uaddr));
	host[high - uaddr] = '\0';
	out->sin6_family = AF_INET6;
	out->sin6_port = htons((uint16_t)(hi << 8 | lo));
	return get_host(netid, host, out);
}

void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX])
{
	const struct rpc_conn *conn = c->req->conn;

	rn_address_as_ipv6(&conn->peer, addr);
	snprintf(netid, NFS4_NETID_MAX, "%s%s", conn->ops->netid,
		 IN6_IS_ADDR_V4MAPPED(&addr->sin6_addr) ? "" : "6");
}

/* Parts of the budget: what each host gets even if little is left, and the reserve for that. */
#define LITTLE_PART 512u
#define KEPT_BACK_PART 16u

struct nfs4_hosts {
	pthread_mutex_t lock; /* a leaf */
	struct rn_budget *budget;
	struct rn_host_table table;
};

struct nfs4_host {
	struct nfs4_hosts *all;
	struct rn_host_entry of; /* under the table's lock */
	unsigned refs;		 /* under the table's lock, too */
	_Atomic size_t has[NFS4_MEASURES];
	struct nfs4_host_clients clients; /* under the lock of the table of clients */
};

struct nfs4_hosts *nfs4_hosts_new(struct rn_budget *budget)
{
	struct nfs4_hosts *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	all->budget = budget;
	rn_host_table_init(&all->table);
	return all;
}

void nfs4_hosts_free(struct nfs4_hosts *all)
{
	if (!all)
		return;
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static struct nfs4_host *host_new(struct nfs4_hosts *all, const struct rn_host *key)
{
	struct nfs4_host *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->all = all;
	h->of.host = *key;
	for (unsigned i = 0; i < NFS4_MEASURES; i++)
		atomic_init(&h->has[i], 0);
	TAILQ_INIT(&h->clients);
	rn_host_add(&all->table, &h->of);
	return h;
}

struct nfs4_host *nfs4_host_get(struct nfs4_hosts *all, const struct sockaddr_in6 *addr)
{
	struct rn_host_entry *e;
	struct rn_host key;
	struct nfs4_host *h;

	rn_host_of((const struct sockaddr *)addr, &key);
	pthread_mutex_lock(&all->lock);
	e = rn_host_find(&all->table, &key);
	h = e ? rn_container_of(e, struct nfs4_host, of) : host_new(all, &key);
	if (h)
		h->refs++;
	pthread_mutex_unlock(&all->lock);
	return h;
}

void nfs4_host_put(struct nfs4_host *h)
{
	struct nfs4_hosts *all;
	bool last;

	if (!h)
		return;
	all = h->all;
	pthread_mutex_lock(&all->lock);
	last = --h->refs == 0;
	if (last)
		rn_host_remove(&h->of);
	pthread_mutex_unlock(&all->lock);
	if (last)
		free(h);
}

const struct rn_host *nfs4_host_key(const struct nfs4_host *h)
{
	return &h->of.host;
}

static size_t nfs4_host_budget_left(const struct nfs4_host *h)
{
	const struct rn_budget *b = h->all->budget;
	const size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

	return used < b->max ? b->max - used : 0;
}

size_t nfs4_host_has(const struct nfs4_host *h, enum nfs4_measure what)
{
	return atomic_load_explicit(&h->has[what], memory_order_relaxed);
}

void nfs4_host_count(struct nfs4_host *h, enum nfs4_measure what, int by)
{
	atomic_fetch_add_explicit(&h->has[what], (size_t)by, memory_order_relaxed);
}

struct nfs4_host *nfs4_hosts_greediest(struct nfs4_hosts *all, enum nfs4_measure what, size_t than)
{
	struct nfs4_host *most = NULL;
	struct rn_host_entry *e;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < RN_HOST_BUCKETS; i++) {
		LIST_FOREACH (e, &all->table.bucket[i], link) {
			struct nfs4_host *h = rn_container_of(e, struct nfs4_host, of);

			if (nfs4_host_has(h, what) <= than)
				continue;
			than = nfs4_host_has(h, what);
			most = h;
		}
	}
	if (most)
		most->refs++;
	pthread_mutex_unlock(&all->lock);
	return most;
}

struct nfs4_host_clients *nfs4_host_clients(struct nfs4_host *h)
{
	return &h->clients;
}

bool nfs4_host_fits(const struct nfs4_host *h, size_t bytes, enum nfs4_use use)
{
	const size_t mine = nfs4_host_has(h, NFS4_BYTES) + bytes;
	size_t max;

	if (!h->all->budget)
		return true;
	max = h->all->budget->max;
	if (mine <= max / LITTLE_PART && bytes <= nfs4_host_budget_left(h))
		return true;
	if (mine <= nfs4_host_budget_left(h) &&
	    bytes + max / KEPT_BACK_PART <= nfs4_host_budget_left(h))
		return true;
	return use != NFS4_TO_HOLD && bytes + h->all->budget->max / 8 <= nfs4_host_budget_left(h);
}

bool nfs4_host_has_its_quota(const struct nfs4_host *h, size_t bytes)
{
	return !nfs4_host_fits(h, bytes, NFS4_TO_HOLD) && bytes <= nfs4_host_budget_left(h) &&
	       nfs4_host_has(h, NFS4_BYTES) > h->all->budget->max / 8;
}

bool nfs4_host_take(struct nfs4_host *h, size_t bytes, enum nfs4_use use)
{
	struct rn_budget *b = h->all->budget;

	if (!nfs4_host_fits(h, bytes, use) || (b && !rn_budget_take(b, bytes)))
		return false;
	atomic_fetch_add_explicit(&h->has[NFS4_BYTES], bytes, memory_order_relaxed);
	return true;
}

void nfs4_host_give(struct nfs4_host *h, size_t bytes)
{
	atomic_fetch_sub_explicit(&h->has[NFS4_BYTES], bytes, memory_order_relaxed);
	if (h->all->budget)
		rn_budget_give(h->all->budget, bytes);
}

/*
 * Principals, and the addresses that a client calls from (doc/design/nfs4-clients.md). With AUTH_SYS any caller can send
 * any owner string and uid 0. Addresses cannot be forged so easily, and ids are known to the client only. An address is one of
 * the client's if the client has registered from it, or if a call from it has used a session id,
 * client id or stateid of the client.
 */

/* Verifiers that other addresses may try in one lease. A verifier is the client's boot time, which
 * can be guessed roughly. */
#define GUESSES_MOST 64u

struct nfs4_principal nfs4_principal_of(const struct nfs4_compound *c)
{
	const struct rpc_cred *cred = &c->req->call.cred;

	return (struct nfs4_principal){
		.flavor = (uint32_t)cred->flavor,
		.uid = cred->uid,
		.name = cred->principal,
	};
}

static bool nfs4_principal_is(const struct nfs4_principal *a, const struct nfs4_principal *b)
{
	if (a->flavor != b->flavor)
		return false;
	return a->name || b->name ? rpc_principal_is(a->name, b->name) : a->uid == b->uid;
}

bool nfs4_principal_made(const struct nfs4_compound *c, const struct nfs4_client *cl)
{
	const struct nfs4_principal who = nfs4_principal_of(c);

	return nfs4_principal_is(&cl->principal, &who);
}

/* 0 means no address. */
static uint64_t nfs4_origin_address(const struct nfs4_compound *c)
{
	struct rpc_address addr;
	uint64_t h;

	rpc_address_of(&c->req->conn->peer, &addr);
	crypto_shorthash((uint8_t *)&h, (const uint8_t *)&addr, sizeof(addr), c->server->hash_key);
	return h | 1u;
}

/* Ports mean nothing over RDMA, where only privileged processes create queue pairs. */
static bool port_is_reserved(const struct nfs4_compound *c)
{
	struct sockaddr_in6 addr = { 0 };
	char netid[NFS4_NETID_MAX];

	nfs4_peer_address(c, &addr, netid);
	return strncmp(netid, "rdma", 4) == 0 || ntohs(addr.sin6_port) < IPPORT_RESERVED;
}

void nfs4_origin_init(struct nfs4_client *cl, const struct nfs4_compound *c)
{
	atomic_init(&cl->origin.address[0], nfs4_origin_address(c));
	atomic_init(&cl->origin.last_conn, c->req->conn->id);
	cl->origin.reserved = port_is_reserved(c);
	cl->origin.protection = (uint8_t)rpc_conn_protection(c->req->conn);
}

/* The uid, or a hash of the name in its place. Who wants the same hash needs a principal of the realm with
 * a name that he has searched for 2^32 times. */
static uint32_t recorded_id(const struct nfs4_principal *p)
{
	uint8_t hash[crypto_generichash_BYTES_MIN];
	uint32_t id;

	if (!p->name)
		return p->uid;
	crypto_generichash(hash, sizeof(hash), (const uint8_t *)p->name->name, p->name->len, NULL,
			   0);
	memcpy(&id, hash, sizeof(id));
	return id;
}

void nfs4_origin_record(struct nfs4_client *cl, const struct nfs4_compound *c)
{
	struct nfs4_record_origin *o = &cl->record.origin;
	struct sockaddr_in6 addr = { 0 };
	char netid[NFS4_NETID_MAX];

	nfs4_peer_address(c, &addr, netid);
	memcpy(o->address, addr.sin6_addr.s6_addr, sizeof(o->address));
	o->reserved = cl->origin.reserved;
	o->protection = cl->origin.protection;
	o->flavor = cl->principal.flavor;
	o->uid = recorded_id(&cl->principal);
	o->known = true;
}

static bool nfs4_origin_is_known(struct nfs4_client *cl, uint64_t address)
{
	for (unsigned i = 0; i < NFS4_ORIGINS; i++) {
		if (atomic_load_explicit(&cl->origin.address[i], memory_order_relaxed) == address)
			return true;
	}
	return false;
}

/* True if the client of that id is there. */
static bool nfs4_origin_client_exists(const struct nfs4_compound *c, uint64_t clientid)
{
	struct nfs4_client *cl = nfs4_client_get(c->server->clients, clientid);

	nfs4_client_put(cl);
	return cl;
}

/* Minor version 0. One that has registered anew has another id than before. */
static void note_only(const struct nfs4_client *cl, const struct nfs4_compound *c)
{
	_Atomic uint64_t *only = &c->req->conn->only_client;
	uint64_t was = atomic_load_explicit(only, memory_order_relaxed), now;

	do {
		if (was == cl->clientid || was == UINT64_MAX)
			return;
		now = was != 0 && nfs4_origin_client_exists(c, was) ? UINT64_MAX : cl->clientid;
	} while (!atomic_compare_exchange_weak(only, &was, now));
}

struct nfs4_client *nfs4_client_of_conn(struct nfs4_compound *c)
{
	const uint64_t only =
		atomic_load_explicit(&c->req->conn->only_client, memory_order_relaxed);

	if (!c->of_conn && only != 0 && only != UINT64_MAX)
		c->of_conn = nfs4_client_get(c->server->clients, only);
	return c->of_conn;
}

void nfs4_origin_note(struct nfs4_client *cl, const struct nfs4_compound *c)
{
	struct nfs4_origin *o = &cl->origin;
	const uint64_t conn = c->req->conn->id;
	uint64_t address;

	if (c->minor == 0)
		note_only(cl, c);
	if (atomic_load_explicit(&o->last_conn, memory_order_relaxed) == conn)
		return;
	atomic_store_explicit(&o->last_conn, conn, memory_order_relaxed);
	address = nfs4_origin_address(c);
	if (nfs4_origin_is_known(cl, address))
		return;
	/* The first entry stays: the address of the registration. */
	atomic_store_explicit(&o->address[1 + atomic_fetch_add(&o->next, 1) % (NFS4_ORIGINS - 1)],
			      address, memory_order_relaxed);
}

bool nfs4_origin_is(struct nfs4_client *cl, const struct nfs4_compound *c)
{
	/* An unprivileged process on the client's machine does not act for its kernel. */
	if (cl->origin.reserved && !port_is_reserved(c))
		return false;
	/* TLS is for networks on which anybody can send from the client's address. */
	if (rpc_conn_protection(c->req->conn) < cl->origin.protection)
		return false;
	return nfs4_origin_is_known(cl, nfs4_origin_address(c));
}

bool nfs4_verifier_is(struct nfs4_client *cl, const struct nfs4_compound *c,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE])
{
	const bool same = sodium_memcmp(cl->verifier, verifier, sizeof(cl->verifier)) == 0;
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_origin *o = &cl->origin;

	if (nfs4_origin_is(cl, c))
		return same;
	if (now > o->guesses_since + cl->srv->cfg.lease_seconds) {
		o->guesses_since = now;
		o->guesses = 0;
	}
	if (o->guesses >= GUESSES_MOST)
		return false;
	if (!same)
		o->guesses++;
	return same;
}
