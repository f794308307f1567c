/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages, the text of peers' bytes in them, and limits for those that peers bring about. */
#include "lib/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool rn_log_wants(const struct rn_logger *log, enum rn_level level)
{
	return log && level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

void rn_log(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
{
	if (!rn_log_wants(log, level))
		return;
	va_list ap;
	va_start(ap, fmt);
	log->write(log->ctx, level, fmt, ap);
	va_end(ap);
}

void rn_log_always(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
{
	va_list ap;

	if (!log)
		return;
	va_start(ap, fmt);
	log->write(log->ctx, level, fmt, ap);
	va_end(ap);
}

void rn_log_event(const struct rn_logger *log, enum rn_level level,
		  const struct rn_log_event *event, const char *fmt, ...)
{
	va_list ap;

	if (!rn_log_wants(log, level))
		return;
	va_start(ap, fmt);
	if (log->write_event)
		log->write_event(log->ctx, level, event, fmt, ap);
	else
		log->write(log->ctx, level, fmt, ap);
	va_end(ap);
}

static bool log_text_stays(uint8_t byte)
{
	return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
}

void rn_log_text(char *out, size_t size, const void *bytes, size_t len)
{
	static const char more[] = "...";
	const uint8_t *b = bytes;
	size_t n = 0, cut = 0; /* cut: the longest text that "..." fits behind */

	for (size_t i = 0; i < len; i++) {
		const size_t need = log_text_stays(b[i]) ? 1 : 4;

		if (n + sizeof(more) <= size)
			cut = n;
		if (n + need >= size) {
			memcpy(out + cut, more, sizeof(more));
			return;
		}
		if (need == 1)
			out[n] = (char)b[i];
		else
			snprintf(out + n, size - n, "\\x%02x", b[i]);
		n += need;
	}
	out[n] = '\0';
}

#define SPAN_NS (RN_LOG_LIMIT_SECONDS * 1000000000ull)
#define COUNT_MASK 0xffffffffu

bool rn_log_limit_pass(struct rn_log_limit *l, uint64_t now_ns, unsigned *left_out)
{
	const uint64_t number = now_ns / SPAN_NS + 1; /* never 0, the value in zeroed memory */
	uint64_t was = atomic_load_explicit(&l->span, memory_order_relaxed), is;

	do {
		is = was >> 32 == (number & COUNT_MASK) ? was + 1 : number << 32 | 1;
		if ((was >> 32 == (number & COUNT_MASK)) && (was & COUNT_MASK) >= RN_LOG_LIMIT) {
			atomic_fetch_add_explicit(&l->left_out, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&l->span, &was, is));
	*left_out = atomic_exchange_explicit(&l->left_out, 0, memory_order_relaxed);
	return true;
}

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
