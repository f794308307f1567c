/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, hosts and connections that clients call from. */
#ifndef RN_NFS4_CLIENT_CLIENT_HOST_H
#define RN_NFS4_CLIENT_CLIENT_HOST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "nfs4/client/nfs4_client.h"

/* Network addresses of calling clients. */

/* Universal address of an IPv4 or IPv6 socket address (RFC 5665 section 5.2.3). */
void nfs4_uaddr(const struct sockaddr_in6 *addr, char out[NFS4_UADDR_MAX]);
/*
 * Reads a universal address of the netid tcp or tcp6 (RFC 5665 section 5.2.3): an address of that
 * family, and a port that is not 0. False: it is anything else, also an IPv6 address with a scope,
 * which would be a name of the client's own, and an IPv4 address mapped into IPv6.
 */
bool nfs4_parse_uaddr(const char *netid, const char *uaddr, struct sockaddr_in6 *out);
/* Gives the address of the caller and the netid of its transport. */
void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX]);

/*
 * Accounts of NFSv4 state memory per host, so that a client gets no more by registering under new
 * names (doc/design/nfs4-clients.md). A host may hold as much as is still free, so some is always
 * left for the next. A sixteenth is reserved: each host gets a little of it, since hardly any is
 * left after several hosts that take all they may. When that is used up too, the host that holds
 * most loses clients (nfs4/session/evict.c).
 *
 * A host exists while clients that registered from it do; each holds a reference.
 */

struct nfs4_client;
struct nfs4_host;
struct nfs4_hosts;
TAILQ_HEAD(nfs4_host_clients, nfs4_client);
struct rn_budget;
struct rn_host;

struct nfs4_hosts *nfs4_hosts_new(struct rn_budget *budget); /* NULL: no memory */
/* No host may be left; NULL is allowed */
void nfs4_hosts_free(struct nfs4_hosts *all);

/* The host at an address of any port, with a reference for the caller. NULL: no memory. */
struct nfs4_host *nfs4_host_get(struct nfs4_hosts *all, const struct sockaddr_in6 *addr);
void nfs4_host_put(struct nfs4_host *h); /* NULL is allowed */
const struct rn_host *nfs4_host_key(const struct nfs4_host *h);

enum nfs4_use {
	NFS4_TO_HOLD, /* within the host's quota */
	/* Within the quota, or of all but the last eighth of the budget: a host over its quota can
	 * still register a client and close files. */
	NFS4_TO_BEGIN,
	NFS4_TO_ANSWER,
};

/* True if the host may take that many bytes. A guess: others take at the same time. */
bool nfs4_host_fits(const struct nfs4_host *h, size_t bytes, enum nfs4_use use);
/* Takes bytes from the budget for the host. False: nothing was taken. */
bool nfs4_host_take(struct nfs4_host *h, size_t bytes, enum nfs4_use use);
void nfs4_host_give(struct nfs4_host *h, size_t bytes);
enum nfs4_measure { NFS4_BYTES, NFS4_SESSIONS, NFS4_UNCONFIRMED, NFS4_MEASURES };
/* Changes the number of sessions or unconfirmed clients by -1 or 1. */
void nfs4_host_count(struct nfs4_host *h, enum nfs4_measure what, int by);
size_t nfs4_host_has(const struct nfs4_host *h, enum nfs4_measure what);
/* The host with the largest number, if it is over than, with a reference; else NULL. */
struct nfs4_host *nfs4_hosts_greediest(struct nfs4_hosts *all, enum nfs4_measure what, size_t than);
/* The clients of the host, least recently added or examined first. Under the lock of the client
 * table. */
struct nfs4_host_clients *nfs4_host_clients(struct nfs4_host *h);

/* True if the host has used up a large quota while enough is free for others. */
bool nfs4_host_has_its_quota(const struct nfs4_host *h, size_t bytes);

/* Identity of callers: principals, addresses, verifiers; private to this folder. */

struct nfs4_principal nfs4_principal_of(const struct nfs4_compound *c);
void nfs4_origin_init(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Stores the caller's origin, who registers cl, in cl's record. */
void nfs4_origin_record(struct nfs4_client *cl, const struct nfs4_compound *c);
/* True if the call comes from one of cl's addresses. */
bool nfs4_origin_is(struct nfs4_client *cl, const struct nfs4_compound *c);
/* True if the verifier is that of cl. The number of guesses from other addresses is limited.
 * all->lock is held. */
bool nfs4_verifier_is(struct nfs4_client *cl, const struct nfs4_compound *c,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE]);

#endif
