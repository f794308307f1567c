/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/metrics/collect.h"
#include "transport/tls/tls.h"

struct transport {
	const char *name;
	bool served;
	bool connects, counts_bytes;
	uint64_t connections, accepted, refused, closed_room, requests, calls, bytes_in, bytes_out;
};

#define TRANSPORTS 3u

static void metrics_put_transports(struct metrics *m, const struct metrics_family *f,
				   const struct transport t[TRANSPORTS], size_t member)
{
	const bool of_connections = member < offsetof(struct transport, requests);

	metrics_family(m, f);
	for (unsigned i = 0; i < TRANSPORTS; i++)
		if (t[i].served && (t[i].connects || !of_connections))
			metrics_value(
				m, *(const uint64_t *)(const void *)((const char *)&t[i] + member),
				"transport", t[i].name, NULL);
}

static void metrics_put_conn_bytes(struct metrics *m, const struct transport t[TRANSPORTS])
{
	static const struct metrics_family in = { "ringnfs_received_bytes", METRICS_COUNTER,
						  "bytes",
						  "Bytes of RPC received over TCP and UDP." };
	static const struct metrics_family out = { "ringnfs_sent_bytes", METRICS_COUNTER, "bytes",
						   "Bytes of RPC sent over TCP and UDP." };

	metrics_family(m, &in);
	for (unsigned i = 0; i < TRANSPORTS; i++)
		if (t[i].served && t[i].counts_bytes)
			metrics_value(m, t[i].bytes_in, "transport", t[i].name, NULL);
	metrics_family(m, &out);
	for (unsigned i = 0; i < TRANSPORTS; i++)
		if (t[i].served && t[i].counts_bytes)
			metrics_value(m, t[i].bytes_out, "transport", t[i].name, NULL);
}

static void put_dropped(struct metrics *m, const struct udp_stats *u)
{
	static const struct metrics_family f = { "ringnfs_udp_dropped", METRICS_COUNTER, NULL,
						 "Datagrams that got no answer, by reason." };
	static const char *const reasons[UDP_DROPPED] = {
		[UDP_NO_CALL] = "no_call",     [UDP_TOO_LONG] = "too_long",
		[UDP_BUSY] = "busy",	       [UDP_NO_MEMORY] = "memory",
		[UDP_RATIONED] = "rationed",   [UDP_NOT_SENT] = "not_sent",
		[UDP_DUPLICATE] = "duplicate",
	};

	metrics_family(m, &f);
	for (unsigned i = 0; i < UDP_DROPPED; i++)
		metrics_value(m, u->dropped[i], "reason", reasons[i], NULL);
}

static void metrics_put_clients(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family f = {
		"ringnfs_clients", METRICS_GAUGE, NULL,
		"Addresses that are connected; of IPv6, networks of 64 bits."
	};

	metrics_family(m, &f);
	metrics_value(m, rpc_clients_count(from->clients), NULL);
}

/* By result; nothing if TLS is not offered. */
static void metrics_put_tls(struct metrics *m, struct tls *tls)
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
	struct udp_stats udp = { 0 };
	struct rr_stats rdma = { 0 };

	if (from->held.tcp)
		tcp_server_stats(from->held.tcp, &tcp);
	if (from->held.udp)
		udp_server_stats(from->held.udp, &udp);
	if (from->held.rdma)
		rr_server_stats(from->held.rdma, &rdma);
	const struct transport t[TRANSPORTS] = {
		{ "tcp", from->held.tcp != NULL, true, true, tcp.connections, tcp.accepted,
		  tcp.refused, tcp.closed_room, tcp.requests_busy, tcp.calls, tcp.bytes_in,
		  tcp.bytes_out },
		{ "udp", from->held.udp != NULL, false, true, 0, 0, 0, 0, udp.requests_busy,
		  udp.calls, udp.bytes_in, udp.bytes_out },
		{ "rdma", from->held.rdma != NULL, true, false, rdma.connections, rdma.accepted,
		  rdma.refused, rdma.closed_room, rdma.requests_busy, rdma.calls, 0, 0 },
	};

	metrics_put_clients(m, from);
	metrics_put_transports(m, &connections, t, offsetof(struct transport, connections));
	metrics_put_transports(m, &accepted, t, offsetof(struct transport, accepted));
	metrics_put_transports(m, &refused, t, offsetof(struct transport, refused));
	metrics_put_transports(m, &room, t, offsetof(struct transport, closed_room));
	metrics_put_transports(m, &requests, t, offsetof(struct transport, requests));
	metrics_put_transports(m, &calls, t, offsetof(struct transport, calls));
	metrics_put_conn_bytes(m, t);
	if (from->held.udp)
		put_dropped(m, &udp);
	if (from->held.tcp)
		metrics_put_tls(m, tcp_server_tls(from->held.tcp));
}
