/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/acceptor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

STAILQ_HEAD(job_list, gss_job);

struct gss_acceptor {
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t wake;
	struct job_list queue;
	unsigned nqueued;
	bool stopping;
	unsigned nthreads;
	pthread_t threads[GSS_THREADS];
	/* Hosts whose jobs run now; all zeros: none. */
	uint8_t running[GSS_THREADS][16];
	unsigned nrunning;
};

static bool is_host(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

static unsigned running_of(const struct gss_acceptor *a, const uint8_t host[16])
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->nrunning; i++)
		n += is_host(a->running[i], host);
	return n;
}

/* Under the lock: the oldest job of a host that may have one more thread. */
static struct gss_job *take(struct gss_acceptor *a)
{
	struct gss_job *j;

	STAILQ_FOREACH(j, &a->queue, link)
	{
		if (running_of(a, j->host) < GSS_HOST_THREADS)
			break;
	}
	if (!j)
		return NULL;
	STAILQ_REMOVE(&a->queue, j, gss_job, link);
	a->nqueued--;
	memcpy(a->running[a->nrunning++], j->host, sizeof(j->host));
	return j;
}

/* Under the lock. */
static void ran(struct gss_acceptor *a, const uint8_t host[16])
{
	unsigned i = 0;

	while (i < a->nrunning && !is_host(a->running[i], host))
		i++;
	memcpy(a->running[i], a->running[--a->nrunning], sizeof(a->running[i]));
	/* Jobs of the host may have been passed over. */
	pthread_cond_broadcast(&a->wake);
}

static void *acceptor_main(void *arg)
{
	struct gss_acceptor *a = arg;

	pthread_mutex_lock(&a->lock);
	for (;;) {
		struct gss_job *j = take(a);
		uint8_t host[16];

		if (!j && a->stopping && a->nqueued == 0)
			break;
		if (!j) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		memcpy(host, j->host, sizeof(host));
		pthread_mutex_unlock(&a->lock);
		j->run(j);
		pthread_mutex_lock(&a->lock);
		ran(a, host);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct gss_acceptor *gss_acceptor_new(void)
{
	struct gss_acceptor *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	STAILQ_INIT(&a->queue);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	while (a->nthreads < GSS_THREADS &&
	       pthread_create(&a->threads[a->nthreads], NULL, acceptor_main, a) == 0)
		pthread_setname_np(a->threads[a->nthreads++], "gss");
	if (a->nthreads == 0) {
		gss_acceptor_free(a);
		return NULL;
	}
	return a;
}

void gss_acceptor_free(struct gss_acceptor *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stopping = true;
	pthread_cond_broadcast(&a->wake);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->nthreads; i++)
		pthread_join(a->threads[i], NULL);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

bool gss_acceptor_submit(struct gss_acceptor *a, struct gss_job *job)
{
	const struct gss_job *j;
	unsigned n = 0;
	bool ok;

	pthread_mutex_lock(&a->lock);
	STAILQ_FOREACH(j, &a->queue, link)
	n += is_host(j->host, job->host);
	ok = !a->stopping && n < GSS_HOST_JOBS && a->nqueued < GSS_JOBS;
	if (ok) {
		STAILQ_INSERT_TAIL(&a->queue, job, link);
		a->nqueued++;
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
	return ok;
}
