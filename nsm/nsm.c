/* SPDX-License-Identifier: BSD-2-Clause */
/* Start and stop of the monitor. */
#include "nsm/nsm.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "nsm/nsm_private.h"

#define TELL_SECONDS (15u * 60) /* as sm-notify(8) by default */

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
	rc = nsm_calls_open(&n->calls, cfg->port);
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
	rc = -pthread_create(&n->writer, NULL, nsm_writer_main, n);
	n->writing = rc == 0;
	if (rc == 0 && n->calls.fd >= 0) {
		rc = -pthread_create(&n->messenger, NULL, nsm_messenger_main, n);
		n->messaging = rc == 0;
	}
	if (n->writing)
		pthread_setname_np(n->writer, "nsm-records");
	if (n->messaging)
		pthread_setname_np(n->messenger, "nsm");
	return rc;
}

void nsm_tell_hosts(struct nsm *n)
{
	pthread_mutex_lock(&n->lock);
	if (!n->tell)
		n->tell_until_ns = rn_now_ns() + TELL_SECONDS * RN_NS_PER_SECOND;
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
	rn_shares_fini(&n->held);
	rn_shares_fini(&n->idle);
	rn_shares_fini(&n->answers);
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
