/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshakes run on a thread of their own: private-key operations take long, and must hold up neither event threads nor
 * workers.
 */
#include "transport/tls/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "transport/tls/tls_private.h"

#define NICE 5 /* clients that are served already go first */

static void tls_shake_run(struct rn_job *job)
{
	struct tls_shake *s = rn_container_of(job, struct tls_shake, job);

	s->result = tls_session_shake(s->session);
}

static void tls_shake_done(struct rn_job *job)
{
	struct tls_shake *s = rn_container_of(job, struct tls_shake, job);

	s->done(s, job->ran ? s->result : TLS_FAILED);
}

static int tls_set_memory_aside(struct tls *t)
{
	const size_t bytes = t->cfg.budget->max / TLS_PART;

	if (!rn_budget_take(t->cfg.budget, bytes))
		return -ENOMEM;
	rn_budget_init(&t->aside, bytes);
	return 0;
}

int tls_new(const struct tls_config *cfg, struct tls **out, char why[TLS_WHY])
{
	const struct rn_jobs_config jobs = {
		.name = "tls", .threads = 1, .max = SIZE_MAX, .nice = NICE
	};
	struct tls *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cfg = *cfg;
	t->ctx = tls_context_new(cfg, why);
	if (!t->ctx) {
		free(t);
		return -EINVAL;
	}
	pthread_mutex_init(&t->lock, NULL);
	rn_quota_init(&t->quota, TLS_HANDSHAKES_MAX, 0);
	int rc = tls_set_memory_aside(t);

	if (!rc) {
		t->jobs = rn_jobs_new(&jobs);
		rc = t->jobs ? 0 : -ENOMEM;
	}
	if (rc) {
		rn_budget_give(cfg->budget, t->aside.max);
		SSL_CTX_free(t->ctx);
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	rn_jobs_free(t->jobs, RN_JOBS_FOREVER);
	SSL_CTX_free(t->ctx);
	pthread_mutex_destroy(&t->lock);
	rn_budget_give(t->cfg.budget, t->aside.max);
	rn_quota_fini(&t->quota);
	free(t);
}

int tls_reload(struct tls *t, char why[TLS_WHY])
{
	SSL_CTX *ctx = tls_context_new(&t->cfg, why), *old;

	if (!ctx)
		return -EINVAL;
	pthread_mutex_lock(&t->lock);
	old = t->ctx;
	t->ctx = ctx;
	pthread_mutex_unlock(&t->lock);
	SSL_CTX_free(old);
	return 0;
}

void tls_stats(struct tls *t, struct tls_stats *out)
{
	pthread_mutex_lock(&t->lock);
	*out = t->n;
	out->under_way = t->under_way;
	out->aside = t->aside.used;
	pthread_mutex_unlock(&t->lock);
}

void tls_own(struct tls *t, struct tls_own *out)
{
	const X509 *cert;

	*out = (struct tls_own){ .verifies = t->cfg.ca != NULL, .ktls = t->cfg.ktls };
	pthread_mutex_lock(&t->lock);
	cert = SSL_CTX_get0_certificate(t->ctx);
	tls_subject(cert, out->subject);
	out->expires = tls_expiry(cert);
	pthread_mutex_unlock(&t->lock);
}

const char *tls_reason_name(enum tls_reason reason)
{
	static const char *const names[TLS_REASONS] = {
		[TLS_UNFINISHED] = "unfinished",       [TLS_CLOSED] = "closed",
		[TLS_BAD_VERSION] = "version",	       [TLS_BAD_ALPN] = "protocol",
		[TLS_BAD_CERTIFICATE] = "certificate", [TLS_CLIENT_REFUSED] = "refused_by_client",
		[TLS_BAD_MESSAGE] = "message",	       [TLS_MADE_ROOM] = "made_room",
	};

	return names[reason];
}

/* Under the lock. *aside: as in the session. */
static bool tls_take_memory_locked(struct tls *t, const struct tls_shake *s, unsigned **aside)
{
	const size_t held = *s->aside * TLS_SESSION_BYTES;

	*aside = NULL;
	if (rn_budget_take(t->cfg.budget, TLS_SESSION_BYTES))
		return true;
	if ((held > 0 && held + TLS_SESSION_BYTES > t->aside.max - t->aside.used) ||
	    !rn_budget_take(&t->aside, TLS_SESSION_BYTES))
		return false;
	*aside = s->aside;
	++**aside;
	return true;
}

/* Under the lock. */
static void tls_give_memory_locked(struct tls *t, unsigned *aside)
{
	if (aside)
		--*aside;
	rn_budget_give(aside ? &t->aside : t->cfg.budget, TLS_SESSION_BYTES);
}

void tls_give_memory(struct tls *t, unsigned *aside)
{
	pthread_mutex_lock(&t->lock);
	tls_give_memory_locked(t, aside);
	pthread_mutex_unlock(&t->lock);
}

/* Takes the handshake among those under way. Others that make room end when their event threads see that the socket
 * was shut down; it is theirs until then. Under the lock. */
static bool tls_take_in_handshake(struct tls *t, struct tls_shake *s)
{
	struct rn_quota_item *old;

	while ((old = rn_quota_in_the_way(&t->quota, &s->job.host, s->job.admitted, 1)) != NULL) {
		rn_quota_remove(&t->quota, old);
		shutdown(rn_container_of(old, struct tls_shake, place)->fd, SHUT_RDWR);
	}
	return rn_quota_add(&t->quota, &s->job.host, s->job.admitted, &s->place, 1);
}

/* Counts one more handshake, if there may be one; gives its context. */
static SSL_CTX *tls_admit(struct tls *t, struct tls_shake *s, unsigned **aside)
{
	struct rn_quota_line line;
	SSL_CTX *ctx = NULL;
	bool tell;

	pthread_mutex_lock(&t->lock);
	if (!tls_take_memory_locked(t, s, aside)) {
		t->n.refused++;
	} else if (!tls_take_in_handshake(t, s)) {
		tls_give_memory_locked(t, *aside);
		t->n.refused++;
	} else {
		t->under_way++;
		ctx = t->ctx;
		SSL_CTX_up_ref(ctx);
	}
	tell = rn_quota_line_due(&t->quota, rn_now_ns(), &line);
	pthread_mutex_unlock(&t->lock);
	if (tell)
		rn_quota_tell(t->cfg.log, "TLS handshakes", &line);
	return ctx;
}

int tls_shake_begin(struct tls *t, struct tls_shake *s)
{
	unsigned *aside;
	SSL_CTX *ctx = tls_admit(t, s, &aside);

	if (!ctx)
		return -RN_EFULL;
	s->session = tls_session_new(&t->cfg, ctx, s->fd);
	SSL_CTX_free(ctx);
	if (s->session) {
		s->session->aside = aside;
		return 0;
	}
	tls_give_memory(t, aside);
	tls_shake_end(t, s, TLS_FAILED);
	return -RN_EFULL;
}

void tls_shake_step(struct tls *t, struct tls_shake *s)
{
	s->job.run = tls_shake_run;
	s->job.done = tls_shake_done;
	if (!rn_jobs_submit(t->jobs, &s->job))
		s->done(s, TLS_FAILED);
}

void tls_shake_end(struct tls *t, struct tls_shake *s, enum tls_result result)
{
	const bool done = result == TLS_DONE;

	pthread_mutex_lock(&t->lock);
	t->under_way--;
	const bool in_quota = s->place.of != NULL;

	if (in_quota)
		rn_quota_remove(&t->quota, &s->place);
	t->n.done += done;
	t->n.failed += !done;
	if (!done && !in_quota)
		t->n.reasons[TLS_MADE_ROOM]++;
	else if (!done)
		t->n.reasons[s->session ? s->session->reason : TLS_UNFINISHED]++;
	t->n.ktls += done && tls_session_facts(s->session)->ktls;
	t->n.with_certificate += done && tls_session_facts(s->session)->certificate;
	pthread_mutex_unlock(&t->lock);
}
