/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for NFSv4 that the clients of one address hold together, so that a client gets no more by
 * registering under ever new names (doc/design/nfs4-clients.md). An address may hold as much as is
 * still left in all, so some is always left for the next. A sixteenth is kept back, of which each
 * address gets a little, since hardly any is left after several addresses that take all they may.
 * When even that is used up, the address that holds most pays (nfs4/client/make_room.c). With IPv6,
 * where a machine has as many addresses as it likes, a host is a network of 64 bits.
 *
 * A host exists while clients that registered from there do; each holds a reference.
 */
#ifndef RN_NFS4_CLIENT_HOST_H
#define RN_NFS4_CLIENT_HOST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct nfs4_client;
struct nfs4_host;
struct nfs4_hosts;
TAILQ_HEAD(nfs4_host_clients, nfs4_client);
struct rn_budget;

struct nfs4_hosts *nfs4_hosts_new(struct rn_budget *budget); /* NULL: no memory */
void nfs4_hosts_free(struct nfs4_hosts *all);		     /* no host is left; NULL is allowed */

/* The host at an address, whatever the port, with a reference more. NULL: no memory. */
struct nfs4_host *nfs4_host_get(struct nfs4_hosts *all, const struct sockaddr_in6 *addr);
void nfs4_host_put(struct nfs4_host *h); /* NULL is allowed */

enum nfs4_use {
	NFS4_TO_HOLD, /* within the host's share */
	/* Or of all but the last eighth: who has much can still begin anew, and give it back. */
	NFS4_TO_BEGIN,
	NFS4_TO_ANSWER,
};

/* May the host have so many bytes more? A guess: others take at the same time. */
bool nfs4_host_fits(const struct nfs4_host *h, size_t bytes, enum nfs4_use use);
/* Out of the budget, for the host. False: nothing was taken. */
bool nfs4_host_take(struct nfs4_host *h, size_t bytes, enum nfs4_use use);
void nfs4_host_give(struct nfs4_host *h, size_t bytes);
enum nfs4_measure { NFS4_BYTES, NFS4_SESSIONS, NFS4_UNCONFIRMED, NFS4_MEASURES };
/* The last two are counted here, by -1 or 1. */
void nfs4_host_count(struct nfs4_host *h, enum nfs4_measure what, int by);
size_t nfs4_host_has(const struct nfs4_host *h, enum nfs4_measure what);
/* The host that has most, if that is more than so much, with a reference; else NULL. */
struct nfs4_host *nfs4_hosts_greediest(struct nfs4_hosts *all, enum nfs4_measure what, size_t than);
/* Its clients, longest known or looked at first: under the lock of the table of clients. */
struct nfs4_host_clients *nfs4_host_clients(struct nfs4_host *h);

/* Is it the host that has no more, and has much, while there is enough for others? */
bool nfs4_host_has_its_share(const struct nfs4_host *h, size_t bytes);

#endif
