/* SPDX-License-Identifier: BSD-2-Clause */
/* The server as a whole. Its functions are called by one thread, which is not one of its loops. */
#include "transport/udp/udp_server.h"

#include <errno.h>
#include <stdlib.h>

#include "transport/udp/udp_listen.h"
#include "transport/udp/udp_pool.h"
#include "transport/udp/udp_types.h"

size_t udp_server_memory(void)
{
	return udp_pool_memory();
}

int udp_server_new(const struct udp_config *cfg, struct udp_server **out)
{
	struct udp_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	SLIST_INIT(&s->listeners);
	STAILQ_INIT(&s->idle);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->gone, NULL);
	udp_ration_init(&s->ration);
	udp_asked_init(&s->asked);
	crypto_shorthash_keygen(s->id_key);
	const int rc = udp_pool_fill(s);
	if (rc)
		udp_server_free(s);
	else
		*out = s;
	return rc;
}

void udp_server_quiesce(struct udp_server *s)
{
	struct udp_listener *l;

	SLIST_FOREACH (l, &s->listeners, link)
		ev_loop_call(l->loop, udp_listener_quiet, l);
}

void udp_server_free(struct udp_server *s)
{
	struct udp_listener *l;

	if (!s)
		return;
	udp_server_quiesce(s);
	pthread_mutex_lock(&s->lock);
	while (s->busy)
		pthread_cond_wait(&s->gone, &s->lock);
	pthread_mutex_unlock(&s->lock);
	while ((l = SLIST_FIRST(&s->listeners))) {
		SLIST_REMOVE_HEAD(&s->listeners, link);
		udp_listener_free(l);
	}
	udp_pool_free(s);
	udp_ration_fini(&s->ration);
	udp_asked_fini(&s->asked);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->gone);
	free(s);
}

void udp_server_stats(struct udp_server *s, struct udp_stats *out)
{
	pthread_mutex_lock(&s->lock);
	out->requests_busy = s->busy;
	pthread_mutex_unlock(&s->lock);
	out->requests = atomic_load(&s->made);
	out->calls = atomic_load(&s->calls);
	out->replies = atomic_load(&s->replies);
	out->bytes_in = atomic_load(&s->bytes_in);
	out->bytes_out = atomic_load(&s->bytes_out);
	for (unsigned i = 0; i < UDP_DROPPED; i++)
		out->dropped[i] = atomic_load(&s->dropped[i]);
}
