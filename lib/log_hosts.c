/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/log_hosts.h"

#include <string.h>

#define SPAN_NS (RN_LOG_LIMIT_SECONDS * 1000000000ull)
#define SETS (RN_LOG_HOSTS / RN_LOG_HOST_WAYS)

void rn_log_hosts_init(struct rn_log_hosts *h)
{
	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->lock, NULL);
}

void rn_log_hosts_fini(struct rn_log_hosts *h)
{
	pthread_mutex_destroy(&h->lock);
}

/* FNV-1a */
static unsigned log_hosts_set_of(const struct rn_host *who)
{
	const uint8_t *key = (const uint8_t *)who;
	uint64_t hash = 0xcbf29ce484222325u;

	for (unsigned i = 0; i < sizeof(*who); i++)
		hash = (hash ^ key[i]) * 0x100000001b3u;
	return (unsigned)((hash ^ hash >> 32) % SETS);
}

/* The client's place, or one whose client has been quiet since the span before. */
static struct rn_log_host *log_hosts_place_of(struct rn_log_hosts *h, const struct rn_host *who,
					      uint64_t span)
{
	struct rn_log_host *set = &h->host[log_hosts_set_of(who) * RN_LOG_HOST_WAYS], *old = NULL;

	for (unsigned i = 0; i < RN_LOG_HOST_WAYS; i++) {
		if (set[i].span && rn_host_equal(&set[i].who, who))
			return &set[i];
		if (set[i].span < span && (!old || set[i].span < old->span))
			old = &set[i];
	}
	if (!old)
		return &h->others;
	memset(old, 0, sizeof(*old));
	old->who = *who;
	return old;
}

static bool log_host_has_room(struct rn_log_host *l, uint64_t span, unsigned most)
{
	if (l->span != span)
		l->n = 0;
	l->span = span;
	return l->n < most;
}

bool rn_log_hosts_pass(struct rn_log_hosts *h, const struct rn_host *who, uint64_t now_ns,
		       unsigned *left_out)
{
	const uint64_t span = now_ns / SPAN_NS + 1;

	pthread_mutex_lock(&h->lock);
	struct rn_log_host *own = log_hosts_place_of(h, who, span);
	const bool mine = log_host_has_room(own, span, RN_LOG_LIMIT);
	const bool pass = log_host_has_room(&h->all, span, RN_LOG_ALL) && mine;

	if (pass) {
		own->n++;
		h->all.n++;
		*left_out = own->left_out + h->all.left_out;
		own->left_out = h->all.left_out = 0;
	} else if (mine) {
		h->all.left_out++;
	} else {
		own->left_out++;
	}
	pthread_mutex_unlock(&h->lock);
	return pass;
}
