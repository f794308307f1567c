/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that have contexts, and which of them has most. A host lives as long as it
 * has contexts. The table is not thread-safe.
 */
#ifndef RN_GSS_HOSTS_H
#define RN_GSS_HOSTS_H

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/host.h"

#define GSS_HOST_BUCKETS 1024u

struct rpc_conn;

TAILQ_HEAD(gss_use_list, gss_context);

struct gss_host {
	LIST_ENTRY(gss_host) link;
	struct rn_host host;
	unsigned established, half;
	struct gss_use_list
		used; /* its established contexts that are in the table, least used first */
	unsigned at;  /* in the heap, if it has established ones */
};

struct gss_hosts {
	LIST_HEAD(, gss_host) buckets[GSS_HOST_BUCKETS];
	uint8_t key[crypto_shorthash_KEYBYTES];
	/* Hosts with established contexts: a binary heap, the one with most first. */
	struct gss_host **heap;
	unsigned n;
};

/* For that many established contexts. False: no memory. */
bool gss_hosts_init(struct gss_hosts *hosts, unsigned contexts);
void gss_hosts_fini(struct gss_hosts *hosts);

/* The host that a connection counts for. Anybody can write another's address on a datagram, so all senders of those count
 * as one host, which no peer has the address of. */
void gss_host_of(const struct rpc_conn *conn, struct rn_host *host);

/* Accounts of that host. NULL: no memory. */
struct gss_host *gss_hosts_get(struct gss_hosts *hosts, const struct rn_host *host);
/* Counts a context of the host more or less; without any, the host is freed. */
void gss_hosts_add(struct gss_hosts *hosts, struct gss_host *h, bool established);
void gss_hosts_drop(struct gss_hosts *hosts, struct gss_host *h, bool established);
/* The host with most established contexts; NULL: there are none. */
static inline struct gss_host *gss_hosts_largest(const struct gss_hosts *hosts)
{
	return hosts->n > 0 ? hosts->heap[0] : NULL;
}

#endif
