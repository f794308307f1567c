/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients and state of NFSv4. */
#include "daemon/metrics/collect.h"

static void metrics_put_nfs4_clients(struct metrics *m, const struct nfs4_held *h)
{
	static const struct metrics_family clients = {
		"ringnfs_nfs4_clients", METRICS_GAUGE, NULL,
		"Clients of NFSv4; courtesy clients are silent, and keep their state until it is "
		"wanted."
	};
	const uint64_t courtesy =
		h->courtesy_clients < h->clients ? h->courtesy_clients : h->clients;

	metrics_family(m, &clients);
	metrics_value(m, h->clients - courtesy, "state", "active", NULL);
	metrics_value(m, courtesy, "state", "courtesy", NULL);
}

static void metrics_put_nfs4_state(struct metrics *m, const struct nfs4_held *h)
{
	static const struct metrics_family state = { "ringnfs_nfs4_state", METRICS_GAUGE, NULL,
						     "What clients of NFSv4 hold." };

	metrics_family(m, &state);
	metrics_value(m, h->opens, "kind", "open", NULL);
	metrics_value(m, h->locks, "kind", "lock", NULL);
	metrics_value(m, h->delegations, "kind", "delegation", NULL);
	metrics_value(m, h->sessions, "kind", "session", NULL);
	metrics_value(m, h->slots, "kind", "slot", NULL);
	metrics_value(m, h->owners, "kind", "owner", NULL);
	metrics_value(m, h->cached_replies, "kind", "kept_reply", NULL);
	metrics_value(m, h->copies, "kind", "copy", NULL);
	metrics_value(m, h->copy_sources, "kind", "copy_source", NULL);
}

static void put_grace(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family active = { "ringnfs_grace_active", METRICS_GAUGE, NULL,
						      "1 while clients reclaim their state." };
	static const struct metrics_family left = {
		"ringnfs_grace_left_seconds", METRICS_GAUGE, "seconds",
		"Time until the grace period ends at the latest."
	};
	static const struct metrics_family waiting = {
		"ringnfs_grace_clients_waiting", METRICS_GAUGE, NULL,
		"Clients that have not said that they have reclaimed all."
	};
	static const struct metrics_family lease = { "ringnfs_lease_seconds", METRICS_GAUGE,
						     "seconds", "Lease time." };
	struct nfs4_grace_status g = { 0 };

	nfs4_grace_status(from->held.nfs4, &g);
	metrics_family(m, &active);
	metrics_value(m, g.active, NULL);
	metrics_family(m, &left);
	metrics_value(m, g.active ? g.seconds_left : 0, NULL);
	metrics_family(m, &waiting);
	metrics_value(m, g.active ? g.waiting : 0, NULL);
	metrics_family(m, &lease);
	metrics_value(m, from->settings->nfs4.lease_time, NULL);
}

static void put_copies(struct metrics *m, const struct nfs4_held *h)
{
	static const struct metrics_family begun = { "ringnfs_nfs4_copies", METRICS_COUNTER, NULL,
						     "Copies in the background that were begun." };
	static const struct metrics_family bytes = { "ringnfs_nfs4_copied_bytes", METRICS_COUNTER,
						     "bytes", "Bytes copied in the background." };

	metrics_family(m, &begun);
	metrics_value(m, h->copies_begun, NULL);
	metrics_family(m, &bytes);
	metrics_value(m, h->copied_bytes, NULL);
}

void metrics_nfs4(struct metrics *m, const struct metrics_sources *from)
{
	struct nfs4_held h = { 0 };

	if (!from->held.nfs4)
		return;
	nfs4_held(from->held.nfs4, &h);
	metrics_put_nfs4_clients(m, &h);
	metrics_put_nfs4_state(m, &h);
	put_grace(m, from);
	put_copies(m, &h);
}
