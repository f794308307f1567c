/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Principals, and the addresses that a client calls from (doc/design/nfs4-clients.md). With AUTH_SYS any caller can send
 * any owner string and uid 0. Addresses cannot be forged so easily, and ids are known to the client only. An address is one of
 * the client's if the client has registered from it, or if a call from it has used a session id,
 * client id or stateid of the client.
 */
#include "nfs4/client/origin.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <string.h>

#include "nfs4/client/client_address.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "rpc/address.h"
#include "rpc/principal.h"

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

bool nfs4_principal_is(const struct nfs4_principal *a, const struct nfs4_principal *b)
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
