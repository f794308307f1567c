/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/gss_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/util.h"

#define GROWN_MOST 64u
#define TOKENS_MOST ((size_t)16 << 20)

void gss_memory_divide(size_t whole, unsigned max_contexts, unsigned cpus, struct gss_memory *out)
{
	const size_t part = whole / GSS_PART, quarter = part / 4;
	const size_t half_made = (size_t)GSS_HALF_MAX * GSS_CONTEXT_BYTES;
	size_t left, one;

	out->copies = rn_max(1u, rn_min(cpus, GSS_COPIES_MOST));
	one = (size_t)(out->copies - 1) * GSS_COPY_BYTES;
	out->grown = one ? (unsigned)rn_min(quarter / one, (size_t)GROWN_MOST) : 0;
	out->tokens = rn_min(quarter, TOKENS_MOST);
	out->bytes = one * out->grown + out->tokens + half_made;
	left = part > out->bytes ? (part - out->bytes) / GSS_CONTEXT_BYTES : 0;
	out->contexts = (unsigned)rn_min((size_t)max_contexts, rn_max(left, (size_t)1));
	out->bytes += (size_t)out->contexts * GSS_CONTEXT_BYTES;
}

_Static_assert(GSS_WHY == GSS_MECH_WHY, "the library's words are passed on");

static const struct rpc_security security = {
	.accept = gss_accept_call,
	.protect = gss_protect_reply,
	.release = gss_release_call,
	.offered = gss_cb_auth_offered,
	.initiate = gss_initiate,
	.called_as = gss_called_as,
};

#define LEAVING_SECONDS 5u /* longest wait for the library when the server stops */

static void gss_divide_memory(size_t whole, unsigned max_contexts, struct gss_memory *out)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	gss_memory_divide(whole, max_contexts, cpus > 0 ? (unsigned)cpus : 1, out);
}

size_t gss_memory(size_t whole, unsigned max_contexts)
{
	struct gss_memory m;

	gss_divide_memory(whole, max_contexts, &m);
	return m.bytes;
}

/* Takes the memory of contexts from the budget. False: the budget has too little. */
static bool gss_set_aside_memory(struct gss *g)
{
	struct gss_memory *m = &g->memory;

	gss_divide_memory(g->cfg.budget->max, g->cfg.max_contexts, m);
	if (!rn_budget_take(g->cfg.budget, m->bytes)) {
		m->bytes = 0;
		return false;
	}
	if (m->contexts < g->cfg.max_contexts)
		rn_info(g->cfg.log,
			"server.memory_max has room for %u Kerberos contexts, not for the %u of "
			"gss.max_contexts",
			m->contexts, g->cfg.max_contexts);
	rn_budget_init(&g->tokens, m->tokens);
	return true;
}

/*
 * The library's default replay cache is in /var/tmp, where any user may make a file of its name: then no context
 * could be accepted. In the state directory nobody else can. KRB5RCACHENAME, which an administrator sets, counts.
 */
static int read_keys(const struct gss_config *cfg, struct gss_mech_cred **out, char why[GSS_WHY])
{
	char path[PATH_MAX];
	struct gss_mech_files files = { .keytab = cfg->keytab };

	if (cfg->state_dir && !getenv("KRB5RCACHENAME")) {
		snprintf(path, sizeof(path), "file2:%s/krb5-replays", cfg->state_dir);
		files.replays = path;
	}
	return gss_mech_cred_new(&files, cfg->principal, out, why);
}

static struct rn_jobs *gss_jobs_new(void)
{
	const struct rn_jobs_config cfg = {
		.name = "gss",
		.threads = 4,
		.host_threads = 2,
		.max = 256,
		.host_max = 16,
	};

	return rn_jobs_new(&cfg);
}

int gss_new(const struct gss_config *cfg, struct gss **out, char why[GSS_WHY])
{
	struct gss *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return -ENOMEM;
	g->cfg = *cfg;
	rc = read_keys(cfg, &g->cred, why);
	if (rc) {
		free(g);
		return rc;
	}
	pthread_mutex_init(&g->lock, NULL);
	rn_log_hosts_init(&g->said);
	if (gss_set_aside_memory(g))
		g->contexts = gss_contexts_new(g->memory.contexts, g->memory.grown);
	g->acceptor = g->contexts ? gss_jobs_new() : NULL;
	g->initiator = g->acceptor ? gss_jobs_new() : NULL;
	if (!g->initiator) {
		gss_free(g);
		return -ENOMEM;
	}
	*out = g;
	return 0;
}

void gss_close(struct gss *g)
{
	if (!g)
		return;
	rn_jobs_close(g->acceptor);
	rn_jobs_close(g->initiator);
}

bool gss_free(struct gss *g)
{
	if (!g)
		return true;
	rn_budget_give(g->cfg.budget, g->memory.bytes);
	if (!rn_jobs_free(g->acceptor, LEAVING_SECONDS) ||
	    !rn_jobs_free(g->initiator, LEAVING_SECONDS))
		return false;
	gss_contexts_free(g->contexts);
	gss_mech_cred_put(g->cred);
	rn_log_hosts_fini(&g->said);
	pthread_mutex_destroy(&g->lock);
	free(g);
	return true;
}

int gss_reload(struct gss *g, char why[GSS_WHY])
{
	struct gss_mech_cred *now, *old;
	int rc = read_keys(&g->cfg, &now, why);

	if (rc)
		return rc;
	pthread_mutex_lock(&g->lock);
	old = g->cred;
	g->cred = now;
	pthread_mutex_unlock(&g->lock);
	gss_mech_cred_put(old);
	return 0;
}

void gss_secure(struct gss *g, struct rpc_server *server)
{
	server->security = &security;
	server->security_ctx = g;
}

void gss_skip_time(struct gss *g, unsigned seconds)
{
	gss_contexts_skip(g->contexts, seconds);
}

void gss_stats(struct gss *g, struct gss_stats *out)
{
	struct gss_contexts_stats of;

	gss_contexts_stats(g->contexts, &of);
	*out = (struct gss_stats){
		.contexts = of.established,
		.half_made = of.half,
		.grown = of.grown,
		.places = g->memory.contexts,
		.evicted = of.evicted,
		.accepted = g->accepted,
		.refused = g->refused,
		.replays = g->replays,
		.unknown = g->unknown,
		.bad = g->bad,
	};
}
