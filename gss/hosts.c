/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/request.h"

bool gss_hosts_init(struct gss_hosts *hosts, unsigned contexts)
{
	memset(hosts, 0, sizeof(*hosts));
	crypto_shorthash_keygen(hosts->key);
	/* One more is counted before another one is evicted for it. */
	hosts->heap = calloc((size_t)contexts + 1, sizeof(struct gss_host *));
	return hosts->heap;
}

void gss_hosts_fini(struct gss_hosts *hosts)
{
	free(hosts->heap);
}

void gss_host_of(const struct rpc_conn *conn, struct rn_host *host)
{
	if (conn->ops->datagrams)
		memset(host, 0xff, sizeof(*host));
	else
		rn_host_of((const struct sockaddr *)&conn->peer, host);
}

struct gss_host *gss_hosts_get(struct gss_hosts *hosts, const struct rn_host *host)
{
	struct gss_host *h;
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)host, sizeof(*host), hosts->key);
	LIST_FOREACH (h, &hosts->buckets[hash % GSS_HOST_BUCKETS], link) {
		if (rn_host_equal(&h->host, host))
			return h;
	}
	h = calloc(1, sizeof(*h));
	if (h) {
		h->host = *host;
		TAILQ_INIT(&h->used);
		LIST_INSERT_HEAD(&hosts->buckets[hash % GSS_HOST_BUCKETS], h, link);
	}
	return h;
}

static void gss_hosts_heap_put(struct gss_hosts *hosts, unsigned at, struct gss_host *h)
{
	hosts->heap[at] = h;
	h->at = at;
}

static void sift_up(struct gss_hosts *hosts, struct gss_host *h)
{
	unsigned at = h->at;

	while (at > 0 && hosts->heap[(at - 1) / 2]->established < h->established) {
		gss_hosts_heap_put(hosts, at, hosts->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	gss_hosts_heap_put(hosts, at, h);
}

static void sift_down(struct gss_hosts *hosts, struct gss_host *h)
{
	unsigned at = h->at, child;

	while ((child = 2 * at + 1) < hosts->n) {
		if (child + 1 < hosts->n &&
		    hosts->heap[child + 1]->established > hosts->heap[child]->established)
			child++;
		if (hosts->heap[child]->established <= h->established)
			break;
		gss_hosts_heap_put(hosts, at, hosts->heap[child]);
		at = child;
	}
	gss_hosts_heap_put(hosts, at, h);
}

void gss_hosts_add(struct gss_hosts *hosts, struct gss_host *h, bool established)
{
	if (!established) {
		h->half++;
		return;
	}
	if (h->established++ == 0)
		gss_hosts_heap_put(hosts, hosts->n++, h);
	sift_up(hosts, h);
}

void gss_hosts_drop(struct gss_hosts *hosts, struct gss_host *h, bool established)
{
	if (!established) {
		h->half--;
	} else if (--h->established > 0) {
		sift_down(hosts, h);
	} else {
		struct gss_host *last = hosts->heap[--hosts->n];

		/* The last one takes the place, and moves to where it belongs. */
		if (last != h) {
			gss_hosts_heap_put(hosts, h->at, last);
			sift_up(hosts, last);
			sift_down(hosts, last);
		}
	}
	if (h->established == 0 && h->half == 0) {
		LIST_REMOVE(h, link);
		free(h);
	}
}
