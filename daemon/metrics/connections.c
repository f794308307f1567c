/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/metrics/collect.h"
#include "transport/tls/tls.h"

struct transport {
	const char *name;
	bool served;
	uint64_t connections, accepted, refused, closed_room, requests, calls;
};

static void put(struct metrics *m, const struct metrics_family *f, const struct transport t[2],
		size_t member)
{
	metrics_family(m, f);
	for (unsigned i = 0; i < 2; i++)
		if (t[i].served)
			metrics_value(
				m, *(const uint64_t *)(const void *)((const char *)&t[i] + member),
				"transport", t[i].name, NULL);
}

static void put_bytes(struct metrics *m, const struct tcp_stats *t)
{
	static const struct metrics_family in = { "ringnfs_received_bytes", METRICS_COUNTER,
						  "bytes", "Bytes of RPC received over TCP." };
	static const struct metrics_family out = { "ringnfs_sent_bytes", METRICS_COUNTER, "bytes",
						   "Bytes of RPC sent over TCP." };

	metrics_family(m, &in);
	metrics_value(m, t->bytes_in, "transport", "tcp", NULL);
	metrics_family(m, &out);
	metrics_value(m, t->bytes_out, "transport", "tcp", NULL);
}

static void put_clients(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family f = {
		"ringnfs_clients", METRICS_GAUGE, NULL,
		"Addresses that are connected; of IPv6, networks of 64 bits."
	};

	metrics_family(m, &f);
	metrics_value(m, rpc_clients_count(from->clients), NULL);
}

/* By result; nothing if TLS is not offered. */
static void put_tls(struct metrics *m, struct tls *tls)
{
	static const struct metrics_family f = { "ringnfs_tls_handshakes", METRICS_COUNTER, NULL,
						 "TLS handshakes, by result." };
	static const struct metrics_family k = {
		"ringnfs_tls_kernel_sessions", METRICS_COUNTER, NULL,
		"TLS handshakes after which the kernel encrypts what is sent."
	};
	static const struct metrics_family r = { "ringnfs_tls_handshakes_failed", METRICS_COUNTER,
						 NULL, "TLS handshakes that failed, by reason." };
	static const struct metrics_family e = {
		"ringnfs_tls_certificate_expiry_timestamp_seconds", METRICS_GAUGE, "seconds",
		"Time when the server's TLS certificate expires, since 1970."
	};
	struct tls_stats n;
	struct tls_own own;

	if (!tls)
		return;
	tls_stats(tls, &n);
	metrics_family(m, &f);
	metrics_value(m, n.done - n.with_certificate, "result", "tls", NULL);
	metrics_value(m, n.with_certificate, "result", "mtls", NULL);
	metrics_value(m, n.failed, "result", "failed", NULL);
	metrics_value(m, n.refused, "result", "refused", NULL);
	metrics_family(m, &k);
	metrics_value(m, n.ktls, NULL);
	metrics_family(m, &r);
	for (int i = 0; i < TLS_REASONS; i++)
		metrics_value(m, n.reasons[i], "reason", tls_reason_name((enum tls_reason)i), NULL);
	tls_own(tls, &own);
	metrics_family(m, &e);
	metrics_value(m, (uint64_t)own.expires, NULL);
}

void metrics_connections(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family connections = { "ringnfs_connections", METRICS_GAUGE,
							   NULL, "Connections that exist." };
	static const struct metrics_family accepted = { "ringnfs_connections_accepted",
							METRICS_COUNTER, NULL,
							"Connections accepted." };
	static const struct metrics_family refused = { "ringnfs_connections_refused",
						       METRICS_COUNTER, NULL,
						       "Connections refused." };
	static const struct metrics_family room = { "ringnfs_connections_closed_for_room",
						    METRICS_COUNTER, NULL,
						    "Connections closed to make room for others." };
	static const struct metrics_family requests = { "ringnfs_requests", METRICS_GAUGE, NULL,
							"Calls that are under way." };
	static const struct metrics_family calls = { "ringnfs_received_calls", METRICS_COUNTER,
						     NULL, "RPC calls received." };
	struct tcp_stats tcp = { 0 };
	struct rr_stats rdma = { 0 };

	if (from->held.tcp)
		tcp_server_stats(from->held.tcp, &tcp);
	if (from->held.rdma)
		rr_server_stats(from->held.rdma, &rdma);
	const struct transport t[2] = {
		{ "tcp", from->held.tcp != NULL, tcp.connections, tcp.accepted, tcp.refused,
		  tcp.closed_room, tcp.requests_busy, tcp.calls },
		{ "rdma", from->held.rdma != NULL, rdma.connections, rdma.accepted, rdma.refused,
		  rdma.closed_room, rdma.requests_busy, rdma.calls },
	};

	put_clients(m, from);
	put(m, &connections, t, offsetof(struct transport, connections));
	put(m, &accepted, t, offsetof(struct transport, accepted));
	put(m, &refused, t, offsetof(struct transport, refused));
	put(m, &room, t, offsetof(struct transport, closed_room));
	put(m, &requests, t, offsetof(struct transport, requests));
	put(m, &calls, t, offsetof(struct transport, calls));
	if (!from->held.tcp)
		return;
	put_bytes(m, &tcp);
	put_tls(m, tcp_server_tls(from->held.tcp));
}
