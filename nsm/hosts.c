/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of hosts. Its hash is keyed: peers choose their names, and IPv6 leaves them a choice of
 * addresses. All hosts of one address are in one bucket. */
#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "nsm/nsm_private.h"

struct nsm_host_list *nsm_bucket(struct nsm *n, const struct rpc_address *addr)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)addr, sizeof(*addr), n->key);
	return &n->bucket[h % NSM_BUCKETS];
}

static bool is_host(const struct nsm_host *h, const struct nsm_peer *p)
{
	return rpc_address_equal(&h->addr, &p->addr) && h->name_len == p->name_len &&
	       memcmp(h->name, p->name, p->name_len) == 0;
}

/* Under the lock. *names: hosts of that address. */
static struct nsm_host *find(struct nsm *n, const struct nsm_peer *p, unsigned *names)
{
	struct nsm_host *h;

	*names = 0;
	LIST_FOREACH (h, nsm_bucket(n, &p->addr), link) {
		if (is_host(h, p))
			break;
		*names += rpc_address_equal(&h->addr, &p->addr);
	}
	return h;
}

/* Under the lock. */
static int add(struct nsm *n, const struct nsm_peer *p, struct nsm_host **out)
{
	struct nsm_host *h = calloc(1, sizeof(*h) + p->name_len);

	if (!h)
		return -ENOMEM;
	h->addr = p->addr;
	h->local = p->local;
	h->name_len = p->name_len;
	memcpy(h->name, p->name, p->name_len);
	h->generation = ++n->generation;
	h->idle_ns = rn_now_ns();
	LIST_INSERT_HEAD(nsm_bucket(n, &p->addr), h, link);
	n->nhosts++;
	*out = h;
	return 0;
}

int nsm_host_restore(void *nsm, const struct nsm_peer *peer)
{
	struct nsm *n = nsm;
	struct nsm_host *h;
	unsigned names;
	int rc;

	if (find(n, peer, &names))
		return -EINVAL;
	rc = add(n, peer, &h);
	if (rc)
		return rc;
	h->former = true;
	h->telling = NSM_TELL;
	n->nformer++;
	return 0;
}

/* Under the lock. */
static void changed(struct nsm *n)
{
	n->generation++;
	pthread_cond_broadcast(&n->changed);
}

/* Under the lock. A client may call another address of this server than before; the record has the one
 * that was called when the client got its first lock. One that was taken off the record comes back. */
static void renew(struct nsm *n, struct nsm_host *h, const struct nsm_peer *p)
{
	if (!h->lapsed && (rpc_address_equal(&h->local, &p->local) || h->refs > 0))
		return;
	h->local = p->local;
	h->lapsed = false;
	changed(n);
	h->generation = n->generation;
}

int nsm_host_get(struct nsm *n, const struct nsm_peer *peer, struct nsm_host **out)
{
	struct nsm_host *h;
	unsigned names;
	int rc = 0;

	*out = NULL;
	if (peer->name_len > NSM_NAME_MAX)
		return -ENOLCK;
	pthread_mutex_lock(&n->lock);
	h = find(n, peer, &names);
	if (h)
		renew(n, h, peer);
	else if (names >= NSM_NAMES_MAX || n->nhosts >= NSM_HOSTS_MAX)
		rc = -ENOLCK;
	else
		rc = add(n, peer, &h);
	if (!rc && h->generation > n->saved && !n->failing) {
		pthread_cond_broadcast(&n->changed);
		h->idle_ns = rn_now_ns();
		rc = -EAGAIN;
	}
	if (!rc) {
		h->refs++;
		*out = h;
	}
	pthread_mutex_unlock(&n->lock);
	return rc;
}

void nsm_host_put(struct nsm *n, struct nsm_host *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&n->lock);
	h->refs--;
	h->idle_ns = rn_now_ns();
	pthread_mutex_unlock(&n->lock);
}

bool nsm_host_is_former(struct nsm *n, const struct nsm_host *h)
{
	bool former;

	pthread_mutex_lock(&n->lock);
	former = h->former;
	pthread_mutex_unlock(&n->lock);
	return former;
}

uint32_t nsm_host_state(struct nsm *n, const struct nsm_host *h)
{
	uint32_t state;

	pthread_mutex_lock(&n->lock);
	state = h->state;
	pthread_mutex_unlock(&n->lock);
	return state;
}

unsigned nsm_former_hosts(struct nsm *n)
{
	unsigned count;

	pthread_mutex_lock(&n->lock);
	count = n->nformer;
	pthread_mutex_unlock(&n->lock);
	return count;
}

static bool same_text(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (tolower(a[i]) != tolower(b[i]))
			return false;
	return true;
}

bool nsm_same_name(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	if (a_len > b_len)
		return nsm_same_name(b, b_len, a, a_len);
	if (!same_text(a, b, a_len))
		return false;
	/* The longer one may add a domain to a name that has none. */
	return a_len == b_len || (a_len > 0 && b[a_len] == '.' && !memchr(a, '.', a_len));
}

unsigned nsm_host_rebooted(struct nsm *n, const struct nsm_peer *who, uint32_t state)
{
	struct nsm_host *h;
	unsigned found = 0;

	pthread_mutex_lock(&n->lock);
	LIST_FOREACH (h, nsm_bucket(n, &who->addr), link) {
		if (!rpc_address_equal(&h->addr, &who->addr) ||
		    !nsm_same_name(h->name, h->name_len, who->name, who->name_len))
			continue;
		found++;
		if (h->state == state) /* the same notice once more */
			continue;
		h->state = state;
		h->rebooted = true;
		h->former = false;
		h->telling = NSM_TOLD;
		h->tell_ns = 0; /* its locks are freed at once */
	}
	pthread_mutex_unlock(&n->lock);
	return found;
}

static bool is_idle(const struct nsm_host *h, uint64_t now)
{
	return h->refs == 0 && h->telling == NSM_TOLD && !h->rebooted &&
	       now > h->idle_ns + NSM_IDLE_SECONDS * RN_NS_PER_SECOND;
}

/* Under the lock. Others may get what the host had and did not reclaim, so it must not be reclaimed after
 * another restart. */
static void end_grace(struct nsm *n, struct nsm_host *h)
{
	if (!h->former)
		return;
	h->former = false;
	if (h->refs > 0)
		return;
	h->lapsed = true;
	changed(n);
}

void nsm_hosts_retire(struct nsm *n, uint64_t now)
{
	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < NSM_BUCKETS; i++) {
		struct nsm_host *h = LIST_FIRST(&n->bucket[i]), *next;

		for (; h; h = next) {
			next = LIST_NEXT(h, link);
			end_grace(n, h);
			if (!is_idle(h, now))
				continue;
			LIST_REMOVE(h, link);
			free(h);
			n->nhosts--;
			changed(n);
		}
	}
	pthread_mutex_unlock(&n->lock);
}

void nsm_hosts_free(struct nsm *n)
{
	struct nsm_host *h;

	for (unsigned i = 0; i < NSM_BUCKETS; i++) {
		while ((h = LIST_FIRST(&n->bucket[i])) != NULL) {
			LIST_REMOVE(h, link);
			free(h);
		}
	}
}
