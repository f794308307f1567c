/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that wait for name services: any number of networks whose services are silent, beside one that asks once. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>

#include "daemon/names/names.h"

#define NETWORKS 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool released, answered;
static unsigned ended;

/* A name service that is silent until it is released. */
static void silent(void *job, bool cancelled)
{
	(void)job;
	pthread_mutex_lock(&lock);
	while (!released && !cancelled)
		pthread_cond_wait(&changed, &lock);
	ended++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void event(void *job, bool cancelled)
{
	(void)job;
	pthread_mutex_lock(&lock);
	answered = !cancelled;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static bool ask_for(struct askers *a, uint32_t address, void (*run)(void *, bool))
{
	const struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };

	return askers_ask(a, ASK_HOSTS, (const struct sockaddr *)&in, run, NULL);
}

Test(askers, networks_with_silent_services_do_not_keep_others_out)
{
	const struct askers_config cfg = { 0 };
	struct askers *a = askers_new(&cfg);
	unsigned taken = 0, refused = 0;

	cr_assert_not_null(a);
	for (uint32_t network = 0; network < NETWORKS; network++) {
		for (unsigned i = 0; i < 300; i++) {
			const bool in = ask_for(a, 0x0a000001u + (network << 8), silent);

			taken += in;
			refused += !in;
		}
	}
	cr_expect_gt(refused, 0, "each network has a bound");
	/* The server itself shares no place with them, whatever the hash. */
	cr_assert(askers_ask(a, ASK_HOSTS, NULL, event, NULL));
	pthread_mutex_lock(&lock);
	released = true;
	pthread_cond_broadcast(&changed);
	while (!answered || ended < taken)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	cr_expect(askers_free(a));
}
