/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's transports. They start without listeners, which follow when all transports have taken their memory. */
#include "daemon/listeners.h"
#include "daemon/server_private.h"
#include "daemon/tls_setup.h"
#include "nfs3/nfs3_server.h"

#define RECORD_SLACK (64u << 10) /* bytes of RPC header, credential and arguments beside the data */

/* Where the file data of a WRITE begin in the call; 0: it is no WRITE. */
static size_t bulk_offset(const uint8_t *head, size_t len)
{
	size_t at = nfs3_bulk_offset(head, len);

	return at ? at : nfs4_bulk_offset(head, len);
}

int server_start_tcp(struct server *s)
{
	const struct cfg_tcp *t = &s->settings->tcp;
	struct tcp_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.executor = workers_executor(s->workers),
		.clients = s->clients,
		.pool = s->pool,
		.budget = &s->budget,
		.log = &s->logs->of[LOG_TCP],
		.max_record = (uint32_t)t->max_record,
		.max_connections = (unsigned)t->max_connections,
		.max_requests = (unsigned)t->max_requests,
		.idle_seconds = (unsigned)t->idle_timeout,
		.stall_seconds = (unsigned)t->stall_timeout,
		.bulk_offset = bulk_offset,
		.admission = admission_of,
		.admission_ctx = s->admission,
	};

	if (!t->enabled)
		return 0;
	if (cfg.max_connections > s->limits.connections) {
		cfg.max_connections = s->limits.connections;
		rn_notice(s->log,
			  "descriptors suffice for %u TCP connections only: raise LimitNOFILE",
			  cfg.max_connections);
	}
	int rc = tls_setup(&s->settings->tls, &s->budget, s->log, &s->tls);
	if (rc)
		return rc;
	cfg.tls = s->tls;
	rc = tcp_server_new(&cfg, &s->tcp);
	if (rc)
		return rc;
	dialer_open(&s->dialer, s->tcp);
	return 0;
}

int server_start_udp(struct server *s)
{
	struct udp_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.executor = workers_executor(s->workers),
		.clients = s->clients,
		.pool = s->pool,
		.budget = &s->budget,
		.log = &s->logs->of[LOG_TCP],
		.bulk_offset = bulk_offset,
		.admission = admission_of,
		.admission_ctx = s->admission,
	};

	if (!s->settings->udp.enabled || !s->programs.nfs3)
		return 0;
	return udp_server_new(&cfg, &s->udp);
}

/* Longest READ or WRITE of the versions that are served, bytes. */
static uint32_t longest_io(const struct cfg_settings *set)
{
	const uint64_t v3 = set->nfs3.enabled ? set->nfs3.max_io : 0;
	const uint64_t v4 = set->nfs4.enabled ? set->nfs4.max_io : 0;

	return (uint32_t)(v3 > v4 ? v3 : v4);
}

int server_start_rdma(struct server *s)
{
	const struct cfg_rdma *r = &s->settings->rdma;
	struct rr_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.executor = workers_executor(s->workers),
		.clients = s->clients,
		.pool = s->pool,
		.budget = &s->budget,
		.log = &s->logs->of[LOG_RDMA],
		.inline_size = (uint32_t)r->inline_size,
		.credits = (unsigned)r->credits,
		.max_connections = (unsigned)r->max_connections,
		.idle_seconds = (unsigned)r->idle_timeout,
		.stall_seconds = (unsigned)r->stall_timeout,
		.poll_usec = (unsigned)r->poll_usec,
		.max_message = longest_io(s->settings) + RECORD_SLACK,
		.admission = admission_of,
		.admission_ctx = s->admission,
	};

	if (r->enabled == CFG_NO)
		return 0;
	return rr_server_new(&cfg, &s->rdma);
}

static int listen_udp(struct server *s)
{
	const int rc = listeners_udp(s->udp, s->settings, s->log, &s->ports);

	if (!rc || s->settings->udp.nfs)
		return rc;
	/* Clients can use TCP instead. UDP over one address family only would work for some of them. */
	udp_server_free(s->udp);
	s->udp = NULL;
	return 0;
}

static int listen_rdma(struct server *s)
{
	const int rc = listeners_rdma(s->rdma, &s->settings->rdma, s->log, &s->ports);

	if (s->ports.rdma4 || s->ports.rdma6)
		limits_warn_memlock(s->log);
	return rc;
}

int server_start_listening(struct server *s)
{
	int rc = 0;

	if (s->tcp)
		rc = listeners_tcp(s->tcp, &s->settings->tcp, s->image, s->log, &s->ports);
	if (!rc && s->udp)
		rc = listen_udp(s);
	if (!rc && s->rdma)
		rc = listen_rdma(s);
	if (!rc)
		cluster_part_listens(s->cluster);
	return rc;
}
