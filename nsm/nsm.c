/* SPDX-License-Identifier: BSD-2-Clause */
/* Start and stop of the monitor, and the thread that writes its records. */
#include "nsm/nsm.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "nsm/nsm_private.h"

/* The thread that writes the record file. Changes that come while it waits for the disk share the next
 * write. */

/* Under the lock. */
static void nsm_writer_put_hosts(struct nsm *n, struct nsm_text *t)
{
	unsigned count = 0;

	nsm_text_begin(t, n->state);
	for (unsigned i = 0; i < NSM_BUCKETS; i++) {
		const struct nsm_host *h;

		LIST_FOREACH (h, &n->bucket[i], link) {
			const struct nsm_peer p = { h->addr, h->local, h->name, h->name_len };

			if (h->lapsed)
				continue;
			nsm_text_add(t, &p);
			count++;
		}
	}
	nsm_text_end(t, count);
}

/* Under the lock. The result of an attempt to write a file. */
static void nsm_writer_note(struct nsm *n, const char *name, bool *failing, int rc)
{
	if (rc && !*failing)
		rn_err(n->cfg.log,
		       "the hosts that have locks cannot be recorded in %s/%s: %s; until they are, "
		       "a "
		       "restart loses the locks of NFSv3 clients",
		       n->cfg.state_dir, name, strerror(-rc));
	*failing = rc != 0;
}

/* Under the lock, which is given up meanwhile. */
static void save_hosts(struct nsm *n)
{
	const uint64_t generation = n->generation;
	struct nsm_text t = { .data = NULL };
	int rc;

	nsm_writer_put_hosts(n, &t);
	pthread_mutex_unlock(&n->lock);
	rc = nsm_records_save(n->cfg.state_dir, NSM_RECORDS_NAME, &t);
	nsm_text_free(&t);
	pthread_mutex_lock(&n->lock);
	nsm_writer_note(n, NSM_RECORDS_NAME, &n->failing, rc);
	if (!rc)
		n->saved = generation;
}

/* Like save_hosts(), for the monitors. */
static void save_monitors(struct nsm *n)
{
	const uint64_t generation = n->mon_generation;
	struct nsm_text t = { .data = NULL };
	int rc;

	nsm_monitors_put(&n->monitors, &t);
	pthread_mutex_unlock(&n->lock);
	rc = nsm_records_save(n->cfg.state_dir, NSM_MONITORS_NAME, &t);
	nsm_text_free(&t);
	pthread_mutex_lock(&n->lock);
	nsm_writer_note(n, NSM_MONITORS_NAME, &n->mon_failing, rc);
	if (!rc)
		n->mon_saved = generation;
}

static bool is_saved(const struct nsm *n)
{
	return n->generation == n->saved && n->mon_generation == n->mon_saved;
}

/* Under the lock, which is given up meanwhile. */
static void save(struct nsm *n)
{
	if (n->generation != n->saved)
		save_hosts(n);
	if (n->mon_generation != n->mon_saved)
		save_monitors(n);
}

/* Monitors that cannot be read are lost: their hosts keep locks of this machine until they are told again. */
static void restore_monitors(struct nsm *n)
{
	struct nsm_text t = { .data = NULL };
	struct nsm_monitor *m;
	int rc = nsm_records_load(n->cfg.state_dir, NSM_MONITORS_NAME, &t);

	if (!rc)
		rc = nsm_monitors_read(t.data, t.len, &n->monitors);
	nsm_text_free(&t);
	if (rc && rc != -ENOENT) {
		rn_err(n->cfg.log, "%s/" NSM_MONITORS_NAME " cannot be used: %s%s",
		       n->cfg.state_dir, strerror(-rc),
		       nsm_records_set_aside(n->cfg.state_dir, NSM_MONITORS_NAME)
			       ? ""
			       : "; it was renamed to " NSM_MONITORS_NAME ".damaged");
		nsm_monitors_free(&n->monitors);
	}
	LIST_FOREACH (m, &n->monitors, link) {
		m->serial = ++n->last_serial;
		n->nmonitors++;
	}
	n->mon_generation += rc == 0;
}

static int restore(struct nsm *n, uint32_t *state)
{
	struct nsm_text t = { .data = NULL };
	int rc = nsm_records_load(n->cfg.state_dir, NSM_RECORDS_NAME, &t);

	if (!rc)
		rc = nsm_text_read(t.data, t.len, state, nsm_host_restore, n);
	nsm_text_free(&t);
	return rc == -ENOENT ? 0 : rc;
}

/* Reads the records and writes the new state number. */
static int nsm_records_begin(struct nsm *n)
{
	uint32_t last = 0;
	int rc = restore(n, &last);

	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		const int moved =
			rc == -EINVAL ? nsm_records_set_aside(n->cfg.state_dir, NSM_RECORDS_NAME)
				      : 0;

		rn_err(n->cfg.log,
		       "%s/" NSM_RECORDS_NAME
		       " cannot be used: %s%s; NFSv3 clients do not get their locks "
		       "back, and should be started again",
		       n->cfg.state_dir, strerror(-rc),
		       rc == -EINVAL && !moved ? ", and was renamed to " NSM_RECORDS_NAME ".damaged"
					       : "");
		nsm_hosts_free(n);
		/* Not one that clients know from before, as far as can be. */
		last = (uint32_t)(rn_wall_ns() / RN_NS_PER_SECOND) & INT32_MAX;
	}
	restore_monitors(n);
	n->state = n->cfg.continues && last ? last : nsm_next_state(last);
	n->generation++;
	pthread_mutex_lock(&n->lock);
	save(n);
	pthread_mutex_unlock(&n->lock);
	return 0;
}

static void *nsm_writer_main(void *nsm)
{
	struct nsm *n = nsm;

	pthread_mutex_lock(&n->lock);
	while (!n->stop) {
		const struct timespec until = rn_after_seconds(NSM_RETRY_SECONDS);

		if (n->failing || n->mon_failing)
			pthread_cond_timedwait(&n->changed, &n->lock, &until);
		else if (is_saved(n))
			pthread_cond_wait(&n->changed, &n->lock);
		if (is_saved(n) || n->stop)
			continue;
		save(n);
		pthread_mutex_unlock(&n->lock);
		n->cfg.recorded(n->cfg.recorded_ctx);
		nsm_wake(n);
		pthread_mutex_lock(&n->lock);
	}
	if (!is_saved(n))
		save(n);
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

int nsm_new(const struct nsm_config *cfg, struct nsm **out)
{
	struct nsm *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;
	int rc;

	if (!n)
		return -ENOMEM;
	n->cfg = *cfg;
	randombytes_buf(n->key, sizeof(n->key));
	pthread_mutex_init(&n->lock, NULL);
	nsm_hosts_init(n);
	nsm_jobs_init(n);
	TAILQ_INIT(&n->waiting);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = nsm_calls_open(&n->calls, cfg->listen, cfg->port);
	if (rc)
		rn_err(cfg->log,
		       "no UDP port %u for the status monitor: %s; NFSv3 clients are not told of a "
		       "restart, and "
		       "cannot tell of theirs",
		       cfg->port, strerror(-rc));
	n->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = n->wake < 0 ? -errno : nsm_records_begin(n);
	if (rc)
		nsm_free(n);
	else
		*out = n;
	return rc;
}

int nsm_start(struct nsm *n, const struct nsm_hooks *hooks)
{
	int rc;

	n->hooks = *hooks;
	pthread_mutex_lock(&n->lock); /* the messenger's first look makes calls */
	rc = -pthread_create(&n->writer, NULL, nsm_writer_main, n);
	n->writing = rc == 0;
	if (rc == 0 && n->calls.fd >= 0) {
		rc = -pthread_create(&n->messenger, NULL, nsm_messenger_main, n);
		n->messaging = rc == 0;
	}
	pthread_mutex_unlock(&n->lock);
	if (n->writing)
		pthread_setname_np(n->writer, "nsm-records");
	if (n->messaging)
		pthread_setname_np(n->messenger, "nsm");
	return rc;
}

void nsm_tell_hosts(struct nsm *n)
{
	pthread_mutex_lock(&n->lock);
	if (!n->tell_until_ns)
		n->tell_until_ns = rn_now_ns() + NSM_TELL_SECONDS * RN_NS_PER_SECOND;
	n->tell = true;
	pthread_mutex_unlock(&n->lock);
	nsm_wake(n);
}

void nsm_stop(struct nsm *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
	nsm_wake(n);
	if (n->messaging)
		pthread_join(n->messenger, NULL);
	if (n->writing)
		pthread_join(n->writer, NULL);
	n->messaging = n->writing = false;
	nsm_calls_cancel(&n->calls);
	nsm_jobs_cancel(n);
}

void nsm_free(struct nsm *n)
{
	if (!n)
		return;
	nsm_stop(n);
	nsm_calls_close(&n->calls);
	nsm_answer_free(n);
	nsm_hosts_free(n);
	rn_quota_fini(&n->held);
	rn_quota_fini(&n->idle);
	rn_quota_fini(&n->answers);
	nsm_monitors_free(&n->monitors);
	if (n->wake >= 0)
		close(n->wake);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

uint16_t nsm_port(const struct nsm *n)
{
	return nsm_calls_port(&n->calls);
}
