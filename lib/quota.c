/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/quota.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"

/* The account of a host. It exists while it has items. */
struct rn_quota_account {
	struct rn_host_entry of; /* in the table */
	bool admitted;
	size_t used;
	unsigned at;		     /* in the heap */
	struct rn_quota_items items; /* oldest first */
};

void rn_quota_init(struct rn_quota *s, size_t max, size_t of_host)
{
	memset(s, 0, sizeof(*s));
	s->max = max;
	s->of_host = of_host > 0 && of_host < max ? of_host : max;
	rn_host_table_init(&s->hosts);
}

void rn_quota_fini(struct rn_quota *s)
{
	free(s->heap);
}

static struct rn_quota_account *quota_account_find(const struct rn_quota *s,
						   const struct rn_host *host)
{
	struct rn_host_entry *e = rn_host_find(&s->hosts, host);

	return e ? rn_container_of(e, struct rn_quota_account, of) : NULL;
}

size_t rn_quota_of(const struct rn_quota *s, const struct rn_host *host)
{
	const struct rn_quota_account *a = quota_account_find(s, host);

	return a ? a->used : 0;
}

/* True if a makes room before b. */
static bool goes_first(const struct rn_quota_account *a, const struct rn_quota_account *b)
{
	if (a->admitted != b->admitted)
		return b->admitted;
	if (a->used != b->used)
		return a->used > b->used;
	return TAILQ_FIRST(&a->items)->order < TAILQ_FIRST(&b->items)->order;
}

static void heap_put(struct rn_quota *s, unsigned at, struct rn_quota_account *a)
{
	s->heap[at] = a;
	a->at = at;
}

/* Moves an account that has changed to its place in the heap. */
static void heap_sift(struct rn_quota *s, struct rn_quota_account *a)
{
	unsigned at = a->at, child;

	while (at > 0 && goes_first(a, s->heap[(at - 1) / 2])) {
		heap_put(s, at, s->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	while ((child = 2 * at + 1) < s->nheap) {
		if (child + 1 < s->nheap && goes_first(s->heap[child + 1], s->heap[child]))
			child++;
		if (!goes_first(s->heap[child], a))
			break;
		heap_put(s, at, s->heap[child]);
		at = child;
	}
	heap_put(s, at, a);
}

static bool heap_grow(struct rn_quota *s)
{
	const unsigned size = s->heap_size > 0 ? 2 * s->heap_size : 16;
	struct rn_quota_account **heap;

	if (s->nheap < s->heap_size)
		return true;
	heap = realloc(s->heap, size * sizeof(*heap));
	if (!heap)
		return false;
	s->heap = heap;
	s->heap_size = size;
	return true;
}

/* An account with its first item, which the caller adds to it. */
static struct rn_quota_account *quota_account_new(struct rn_quota *s, const struct rn_host *host)
{
	struct rn_quota_account *a;

	if (!heap_grow(s))
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->of.host = *host;
	TAILQ_INIT(&a->items);
	a->at = s->nheap++;
	rn_host_add(&s->hosts, &a->of);
	return a;
}

static void quota_account_free(struct rn_quota *s, struct rn_quota_account *a)
{
	struct rn_quota_account *last = s->heap[--s->nheap];

	if (last != a) {
		last->at = a->at;
		heap_sift(s, last);
	}
	rn_host_remove(&a->of);
	free(a);
}

/* The account that makes room for a newcomer, or NULL: none may. */
static struct rn_quota_account *
who_makes_room(const struct rn_quota *s, struct rn_quota_account *own, bool admitted, size_t cost)
{
	const size_t has = own ? own->used : 0;
	struct rn_quota_account *first = s->nheap > 0 ? s->heap[0] : NULL;

	if (has + cost > s->of_host)
		return own;
	if (!first || (first->admitted && !admitted))
		return own;
	if (first->admitted == admitted && own && has + cost > first->used)
		return own;
	return first;
}

struct rn_quota_item *rn_quota_in_the_way(struct rn_quota *s, const struct rn_host *host,
					  bool admitted, size_t cost)
{
	struct rn_quota_account *own, *a;

	if (cost > s->of_host)
		return NULL;
	own = quota_account_find(s, host);
	if (cost <= s->max - s->used && (own ? own->used : 0) + cost <= s->of_host)
		return NULL;
	a = who_makes_room(s, own, admitted, cost);
	if (!a)
		return NULL;
	s->pushed_out++;
	return TAILQ_FIRST(&a->items);
}

bool rn_quota_add(struct rn_quota *s, const struct rn_host *host, bool admitted,
		  struct rn_quota_item *item, size_t cost)
{
	struct rn_quota_account *a = quota_account_find(s, host);

	if (cost > s->max - s->used || (a ? a->used : 0) + cost > s->of_host ||
	    (!a && !(a = quota_account_new(s, host)))) {
		s->refused++;
		return false;
	}
	a->admitted = admitted;
	a->used += cost;
	s->used += cost;
	item->of = a;
	item->cost = cost;
	item->order = s->order++;
	TAILQ_INSERT_TAIL(&a->items, item, link);
	heap_sift(s, a);
	return true;
}

void rn_quota_remove(struct rn_quota *s, struct rn_quota_item *item)
{
	struct rn_quota_account *a = item->of;

	TAILQ_REMOVE(&a->items, item, link);
	a->used -= item->cost;
	s->used -= item->cost;
	item->of = NULL;
	if (TAILQ_EMPTY(&a->items))
		quota_account_free(s, a);
	else
		heap_sift(s, a);
}

void rn_quota_renew(struct rn_quota *s, struct rn_quota_item *item)
{
	struct rn_quota_account *a = item->of;

	TAILQ_REMOVE(&a->items, item, link);
	TAILQ_INSERT_TAIL(&a->items, item, link);
	item->order = s->order++;
	heap_sift(s, a);
}

bool rn_quota_line_due(struct rn_quota *s, uint64_t now_ns, struct rn_quota_line *out)
{
	const uint64_t span = RN_QUOTA_TELL_SECONDS * 1000000000ull;
	const struct rn_quota_account *most = s->nheap > 0 ? s->heap[0] : NULL;

	if ((s->pushed_out == s->told_out && s->refused == s->told_refused) ||
	    (s->told_ns > 0 && now_ns < s->told_ns + span))
		return false;
	*out = (struct rn_quota_line){ .max = s->max,
				       .pushed_out = s->pushed_out - s->told_out,
				       .refused = s->refused - s->told_refused };
	if (most) {
		out->most = most->of.host;
		out->has = most->used;
	}
	s->told_ns = now_ns;
	s->told_out = s->pushed_out;
	s->told_refused = s->refused;
	return true;
}

void rn_quota_tell(const struct rn_logger *log, const char *items, const struct rn_quota_line *l)
{
	char text[RN_HOST_TEXT];

	rn_host_text(&l->most, text);
	rn_warn(log,
		"%s: no room for all: %s has %zu of %zu, more than others; %" PRIu64
		" made room, %" PRIu64 " were refused",
		items, text, l->has, l->max, l->pushed_out, l->refused);
}
