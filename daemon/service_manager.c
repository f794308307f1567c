/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/service_manager.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "daemon/ticker.h"
#include "lib/clock.h"
#include "lib/log_ids.h"

#define MIB 1048576.0

static double rate(uint64_t now, uint64_t before, uint64_t ms)
{
	return ms ? (double)(now - before) * (double)RN_MS_PER_SECOND / (double)ms : 0;
}

/* Rates are those since before. */
static void service_status_text(const struct service_now *now, const struct service_totals *before,
				char text[SERVICE_STATUS_MAX])
{
	const struct service_totals *t = &now->totals;
	const uint64_t ms = t->ms - before->ms;
	const int len = snprintf(text, SERVICE_STATUS_MAX,
				 "%" PRIu64 " clients, %" PRIu64 " connections; %.0f calls/s, "
				 "%.1f MiB/s in, %.1f MiB/s out",
				 now->clients, now->connections, rate(t->calls, before->calls, ms),
				 rate(t->bytes_in, before->bytes_in, ms) / MIB,
				 rate(t->bytes_out, before->bytes_out, ms) / MIB);

	if (now->stuck && len > 0 && len < SERVICE_STATUS_MAX)
		snprintf(text + len, (size_t)(SERVICE_STATUS_MAX - len),
			 "; %u workers wait for a file system", now->stuck);
}

#define STATUS_SECONDS 5u
/* A tick that comes later than this finds a process that was stopped as a whole: nobody turned meanwhile. */
#define PAUSE_MS 3000u

/* A loop as it was seen to turn. */
struct pulse {
	uint64_t beats;
	uint64_t since_ms;
	bool stopped; /* logged */
};

struct service_manager {
	struct service_manager_config cfg;
	uint64_t patience_ms; /* how long a loop may stand still; 0: signs of life are not wanted */
	struct pulse *pulse;  /* one for each loop */
	struct service_totals before;
	unsigned ticks;
	uint64_t ticked_ms; /* the last one */
	struct ticker *ticker;
};

/* True if the loop has turned lately. */
static bool turns(struct service_manager *m, unsigned i, uint64_t now)
{
	struct pulse *p = &m->pulse[i];
	struct ev_loop_stats st;

	ev_loop_stats(m->cfg.loops[i], &st);
	if (st.beats != p->beats) {
		if (p->stopped)
			rn_notice(m->cfg.log, "event thread %u turns again", i);
		*p = (struct pulse){ .beats = st.beats, .since_ms = now };
	} else if (now - p->since_ms >= m->patience_ms && !p->stopped) {
		p->stopped = true;
		rn_log_event(
			m->cfg.log, RN_ERROR, &(struct rn_log_event){ .id = RN_ID_THREAD_STUCK },
			"event thread %u has not turned for %llu seconds: the service manager gets "
			"no "
			"sign of life until it does",
			i, (unsigned long long)((now - p->since_ms) / RN_MS_PER_SECOND));
	}
	return !p->stopped;
}

static void give_sign_of_life(struct service_manager *m)
{
	const uint64_t now = rn_now_ms();
	const bool paused = now - m->ticked_ms > PAUSE_MS;
	bool all = true;

	m->ticked_ms = now;
	for (unsigned i = 0; paused && i < m->cfg.nloops; i++)
		m->pulse[i].since_ms = now;
	for (unsigned i = 0; i < m->cfg.nloops; i++)
		all &= turns(m, i, now);
	if (all)
		sd_notify(0, "WATCHDOG=1");
}

static void service_manager_read_now(struct service_manager *m, struct service_now *now)
{
	struct tcp_stats t = { 0 };
	struct udp_stats u = { 0 };
	struct rr_stats r = { 0 };
	struct workers_stats w;

	if (m->cfg.parts.tcp)
		tcp_server_stats(m->cfg.parts.tcp, &t);
	if (m->cfg.parts.udp)
		udp_server_stats(m->cfg.parts.udp, &u);
	if (m->cfg.parts.rdma)
		rr_server_stats(m->cfg.parts.rdma, &r);
	workers_stats(m->cfg.parts.workers, &w);
	*now = (struct service_now){
		.clients = rpc_clients_count(m->cfg.clients),
		.connections = t.connections + r.connections,
		.stuck = w.stuck,
		.totals = {
			.ms = rn_now_ms(),
			.calls = t.calls + u.calls + r.calls,
			.bytes_in = t.bytes_in + u.bytes_in + r.read_bytes,
			.bytes_out = t.bytes_out + u.bytes_out + r.write_bytes,
		},
	};
}

static void tell_status(struct service_manager *m)
{
	char text[SERVICE_STATUS_MAX];
	struct service_now now;

	service_manager_read_now(m, &now);
	service_status_text(&now, &m->before, text);
	m->before = now.totals;
	sd_notifyf(0, "STATUS=%s", text);
}

static void service_manager_tick(void *ctx)
{
	struct service_manager *m = ctx;

	if (m->patience_ms)
		give_sign_of_life(m);
	if (m->ticks++ % STATUS_SECONDS == 0)
		tell_status(m);
}

/* Half of the time that the service manager waits for a sign of life. */
static uint64_t patience(void)
{
	uint64_t usec;

	return sd_watchdog_enabled(0, &usec) > 0 ? usec / 2000 : 0;
}

static void service_manager_begin(struct service_manager *m)
{
	struct service_now now;

	service_manager_read_now(m, &now);
	m->before = now.totals;
	m->ticked_ms = now.totals.ms;
	for (unsigned i = 0; i < m->cfg.nloops; i++) {
		struct ev_loop_stats st;

		ev_loop_stats(m->cfg.loops[i], &st);
		m->pulse[i] = (struct pulse){ .beats = st.beats, .since_ms = now.totals.ms };
	}
}

int service_manager_start(const struct service_manager_config *cfg, struct service_manager **out)
{
	const char *socket = getenv("NOTIFY_SOCKET");
	struct service_manager *m;

	*out = NULL;
	if (!socket || !*socket)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	m->patience_ms = patience();
	m->pulse = calloc(cfg->nloops, sizeof(m->pulse[0]));
	int rc = m->pulse ? 0 : -ENOMEM;

	if (!rc) {
		service_manager_begin(m);
		rc = ticker_start("manager", service_manager_tick, m, &m->ticker);
	}
	if (rc) {
		free(m->pulse);
		free(m);
	} else {
		*out = m;
	}
	return rc;
}

void service_manager_stop(struct service_manager *m)
{
	if (!m)
		return;
	ticker_stop(m->ticker);
	free(m->pulse);
	free(m);
}
