/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of hosts. Its hash is keyed: peers choose their names, and IPv6 leaves them a choice of
 * addresses. All hosts of one address are in one bucket.
 *
 * Machines share it (lib/host.h), and a record with locks is never lost for others:
 * - room for a record is made from those without locks, of the machine that has most of them;
 * - records with locks are refused to a machine that would have more of them than it leaves free. Some are kept for
 *   machines that have few, so that a few machines cannot take all.
 */
#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"

static struct nsm_host_list *nsm_bucket(struct nsm *n, const struct rpc_address *addr)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)addr, sizeof(*addr), n->key);
	return &n->bucket[h % NSM_BUCKETS];
}

static bool nsm_host_is(const struct nsm_host *h, const struct nsm_peer *p)
{
	return rpc_address_equal(&h->addr, &p->addr) && h->name_len == p->name_len &&
	       memcmp(h->name, p->name, p->name_len) == 0;
}

void nsm_hosts_init(struct nsm *n)
{
	rn_quota_init(&n->held, NSM_HOSTS_MAX, 0);
	rn_quota_init(&n->idle, NSM_HOSTS_MAX, 0);
	for (unsigned i = 0; i < NSM_TELL_QUEUES; i++)
		TAILQ_INIT(&n->tell_queue[i]);
	TAILQ_INIT(&n->rebooted);
}

void nsm_host_enqueue(struct nsm_host *h, struct nsm_host_queue *q, bool first)
{
	h->queue = q;
	if (first)
		TAILQ_INSERT_HEAD(q, h, due);
	else
		TAILQ_INSERT_TAIL(q, h, due);
}

void nsm_host_dequeue(struct nsm_host *h)
{
	if (h->queue)
		TAILQ_REMOVE(h->queue, h, due);
	h->queue = NULL;
}

struct nsm_host_queue *nsm_tell_queue(struct nsm *n, const struct nsm_host *h)
{
	return &n->tell_queue[rn_min(h->tries, NSM_TELL_QUEUES - 1)];
}

/* The records of an address, under the lock. */
struct of_address {
	unsigned names, by_datagram;
	struct nsm_host *oldest, *oldest_by_datagram; /* without locks; NULL: none */
};

static struct nsm_host *older(struct nsm_host *a, struct nsm_host *b)
{
	return !a || b->place.order < a->place.order ? b : a;
}

static void nsm_host_count(const struct nsm *n, struct of_address *of, struct nsm_host *h)
{
	of->names++;
	of->by_datagram += h->by_datagram;
	if (h->in != &n->idle)
		return;
	of->oldest = older(of->oldest, h);
	if (h->by_datagram)
		of->oldest_by_datagram = older(of->oldest_by_datagram, h);
}

static struct nsm_host *nsm_host_find(struct nsm *n, const struct nsm_peer *p,
				      struct of_address *of)
{
	struct nsm_host *h;

	*of = (struct of_address){ .names = 0 };
	LIST_FOREACH (h, nsm_bucket(n, &p->addr), link) {
		if (nsm_host_is(h, p))
			break;
		if (rpc_address_equal(&h->addr, &p->addr))
			nsm_host_count(n, of, h);
	}
	return h;
}

static void nsm_hosts_changed(struct nsm *n)
{
	n->generation++;
	pthread_cond_broadcast(&n->changed);
}

static void leave_shares(struct nsm_host *h)
{
	if (h->in)
		rn_quota_remove(h->in, &h->place);
	h->in = NULL;
}

/* Under the lock. */
static void nsm_host_forget(struct nsm *n, struct nsm_host *h)
{
	nsm_host_dequeue(h);
	leave_shares(h);
	LIST_REMOVE(h, link);
	n->nhosts--;
	if (!h->lapsed)
		nsm_hosts_changed(n);
	free(h);
}

/* Records that those with locks leave. */
static size_t nsm_hosts_left(const struct nsm *n)
{
	return n->held.used < NSM_HOSTS_MAX ? NSM_HOSTS_MAX - n->held.used : 0;
}

static void bound_idle(struct nsm *n)
{
	n->idle.max = rn_max(nsm_hosts_left(n), n->idle.used);
}

/* Under the lock: counts the host with those that may have locks, or with those that make room. False: no memory. */
static bool nsm_host_place(struct nsm *n, struct nsm_host *h)
{
	struct rn_quota *to = h->refs > 0 || h->former ? &n->held : &n->idle;
	struct rn_host machine;

	if (h->in == to)
		return true;
	leave_shares(h);
	bound_idle(n);
	rn_host_of_mapped(h->addr.bytes, h->addr.scope, &machine);
	if (rn_quota_add(to, &machine, true, &h->place, 1))
		h->in = to;
	bound_idle(n);
	return h->in;
}

/* Like nsm_host_place(), for a host that may have no locks any more. Without memory its record ends, and false is returned. */
static bool place_idle(struct nsm *n, struct nsm_host *h)
{
	if (nsm_host_place(n, h))
		return true;
	nsm_host_forget(n, h);
	return false;
}

/* Under the lock. */
static int nsm_host_add(struct nsm *n, const struct nsm_peer *p, bool former, struct nsm_host **out)
{
	struct nsm_host *h = calloc(1, sizeof(*h) + p->name_len);

	if (!h)
		return -ENOMEM;
	h->addr = p->addr;
	h->local = p->local;
	h->name_len = p->name_len;
	memcpy(h->name, p->name, p->name_len);
	h->former = former;
	if (!nsm_host_place(n, h)) {
		free(h);
		return -ENOMEM;
	}
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
	struct of_address of;
	struct nsm_host *h;
	int rc;

	if (nsm_host_find(n, peer, &of))
		return -EINVAL;
	/* All are taken that the file has, so that no lock is lost. */
	n->held.max = n->held.of_host = rn_max(n->held.max, n->held.used + 1);
	rc = nsm_host_add(n, peer, true, &h);
	if (rc)
		return rc;
	h->had_lock = true;
	if (n->cfg.continues) {
		h->former = false;
		(void)place_idle(n, h); /* until its locks have come, too */
		return 0;
	}
	h->telling = NSM_TELL;
	nsm_host_enqueue(h, nsm_tell_queue(n, h), false);
	n->nformer++;
	return 0;
}

/* Under the lock. True if the host may have a record with locks, or has one. */
static bool nsm_host_may_hold(const struct nsm *n, const struct rpc_address *addr)
{
	const size_t free = nsm_hosts_left(n);
	struct rn_host machine;

	rn_host_of_mapped(addr->bytes, addr->scope, &machine);
	const size_t has = rn_quota_of(&n->held, &machine);

	return free > 0 &&
	       (has < NSM_HELD_SURE || (free > NSM_HELD_RESERVE && has < free - NSM_HELD_RESERVE));
}

/* Under the lock. Names by datagrams may be anybody's, and take a part of the address's only. */
static bool make_room_of_address(struct nsm *n, const struct of_address *of, bool by_datagram)
{
	const bool full = of->names >= NSM_NAMES_MAX,
		   of_datagrams = by_datagram && of->by_datagram >= NSM_DATAGRAM_NAMES;
	struct nsm_host *old = of_datagrams ? of->oldest_by_datagram : of->oldest;

	if (!full && !of_datagrams)
		return true;
	if (!old)
		return false;
	n->idle.pushed_out++;
	nsm_host_forget(n, old);
	return true;
}

/* Under the lock. */
static int make_room_and_add(struct nsm *n, const struct nsm_peer *p, const struct of_address *of,
			     bool by_datagram, struct nsm_host **out)
{
	struct rn_quota_item *old;
	struct rn_host machine;
	int rc;

	if (!nsm_host_may_hold(n, &p->addr) || !make_room_of_address(n, of, by_datagram)) {
		n->held.refused++;
		return -ENOLCK;
	}
	rn_host_of_mapped(p->addr.bytes, p->addr.scope, &machine);
	while ((old = rn_quota_in_the_way(&n->idle, &machine, true, 1)) != NULL)
		nsm_host_forget(n, rn_container_of(old, struct nsm_host, place));
	rc = nsm_host_add(n, p, false, out);
	if (!rc)
		(*out)->by_datagram = by_datagram;
	return rc;
}

/* Under the lock. A client may call another address of this server than before; the record has the one
 * that was called when the client got its first lock. One that was taken off the record comes back. */
static void nsm_host_renew(struct nsm *n, struct nsm_host *h, const struct nsm_peer *p,
			   bool by_datagram)
{
	h->by_datagram &= by_datagram;
	if (!h->lapsed && (rpc_address_equal(&h->local, &p->local) || h->refs > 0))
		return;
	h->local = p->local;
	h->lapsed = false;
	nsm_hosts_changed(n);
	h->generation = n->generation;
}

/* Under the lock. A host that is on record has been asked, unless a connection of its was enough. */
static int get_record(struct nsm *n, const struct nsm_peer *p, unsigned flags, bool *ask,
		      struct nsm_host **out)
{
	const bool by_datagram = flags & NSM_BY_DATAGRAM;
	struct of_address of;
	struct nsm_host *h = nsm_host_find(n, p, &of);
	int rc = 0;

	if ((flags & NSM_RECLAIM) && (!h || !h->former))
		return -EPERM;
	if ((flags & NSM_ON_RECORD) && (!h || h->lapsed))
		return -ENOENT;
	if (h) {
		nsm_host_renew(n, h, p, by_datagram);
	} else {
		if (by_datagram && !(flags & NSM_CONNECTED) && of.names == 0)
			rc = nsm_prove(n, &p->addr, rn_now_ns(), ask);
		if (!rc)
			rc = make_room_and_add(n, p, &of, by_datagram, &h);
	}
	*out = h;
	return rc;
}

/* Under the lock: a reference to a host that is on record. */
static int nsm_host_hold_placed(struct nsm *n, struct nsm_host *h)
{
	if (h->in == &n->idle && !nsm_host_may_hold(n, &h->addr)) {
		n->held.refused++;
		return -ENOLCK;
	}
	h->refs++;
	if (nsm_host_place(n, h))
		return 0;
	/* Without memory the record is in no quota, and makes no room for others: only its age ends it. */
	h->refs--;
	return -ENOMEM;
}

static void nsm_log_silent_peer(struct nsm *n, const struct nsm_peer *peer)
{
	struct rn_host host;
	char text[RN_HOST_TEXT];
	unsigned left_out;

	if (!rn_log_limit_pass(&n->silences, rn_now_ns(), &left_out))
		return;
	rn_host_of_mapped(peer->addr.bytes, peer->addr.scope, &host);
	rn_host_text(&host, text);
	rn_notice(n->cfg.log,
		  "locks are refused to %s: it asks by UDP, where anybody can use its address, and "
		  "its rpcbind "
		  "does not answer at UDP port 111; open that port, or mount with proto=tcp",
		  text);
}

int nsm_host_get(struct nsm *n, const struct nsm_peer *peer, unsigned flags, struct nsm_host **out)
{
	struct nsm_host *h;
	bool ask = false;
	int rc;

	*out = NULL;
	if (peer->name_len > NSM_NAME_MAX)
		return -ENOLCK;
	pthread_mutex_lock(&n->lock);
	rc = get_record(n, peer, flags, &ask, &h);
	if (!rc && h->generation > n->saved && !n->failing) {
		pthread_cond_broadcast(&n->changed);
		h->idle_ns = rn_now_ns();
		rc = -RN_ESOON;
	}
	if (!rc)
		rc = nsm_host_hold_placed(n, h);
	if (!rc)
		*out = h;
	pthread_mutex_unlock(&n->lock);
	if (ask)
		nsm_prove_ask(n, peer);
	if (rc == -EHOSTDOWN)
		nsm_log_silent_peer(n, peer);
	return rc == -EHOSTDOWN ? -ENOLCK : rc;
}

int nsm_host_resume(struct nsm *n, const struct nsm_peer *peer, struct nsm_host **out)
{
	struct of_address of;
	struct nsm_host *h;
	int rc = 0;

	pthread_mutex_lock(&n->lock);
	h = nsm_host_find(n, peer, &of);
	if (!h)
		rc = make_room_and_add(n, peer, &of, false, &h);
	if (!rc)
		rc = nsm_host_hold_placed(n, h);
	*out = rc ? NULL : h;
	pthread_mutex_unlock(&n->lock);
	return rc;
}

void nsm_host_hold_locked(struct nsm *n, struct nsm_host *h)
{
	h->refs++;
	(void)nsm_host_place(n, h);
}

void nsm_host_hold(struct nsm *n, struct nsm_host *h)
{
	pthread_mutex_lock(&n->lock);
	nsm_host_hold_locked(n, h);
	pthread_mutex_unlock(&n->lock);
}

void nsm_host_drop_locked(struct nsm *n, struct nsm_host *h)
{
	h->idle_ns = rn_now_ns();
	if (--h->refs > 0)
		return;
	if (!h->had_lock)
		nsm_host_forget(n, h);
	else
		place_idle(n, h);
}

static void nsm_host_put_record(struct nsm *n, struct nsm_host *h, bool had_lock)
{
	if (!h)
		return;
	pthread_mutex_lock(&n->lock);
	h->had_lock |= had_lock;
	nsm_host_drop_locked(n, h);
	pthread_mutex_unlock(&n->lock);
}

void nsm_host_put(struct nsm *n, struct nsm_host *h)
{
	nsm_host_put_record(n, h, true);
}

void nsm_host_drop(struct nsm *n, struct nsm_host *h)
{
	nsm_host_put_record(n, h, false);
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

/* Under the lock: its locks are freed at once. */
static void restarted(struct nsm *n, struct nsm_host *h, uint32_t state)
{
	h->state = state;
	h->rebooted = true;
	h->former = false;
	h->telling = NSM_TOLD;
	h->tell_ns = 0;
	nsm_host_dequeue(h);
	nsm_host_enqueue(h, &n->rebooted, true);
	place_idle(n, h);
}

unsigned nsm_host_rebooted(struct nsm *n, const struct nsm_peer *who, uint32_t state)
{
	struct nsm_host *h, *next;
	unsigned found = 0;
	bool due = false;

	pthread_mutex_lock(&n->lock);
	for (h = LIST_FIRST(nsm_bucket(n, &who->addr)); h; h = next) {
		next = LIST_NEXT(h, link);
		if (!rpc_address_equal(&h->addr, &who->addr) ||
		    !nsm_same_name(h->name, h->name_len, who->name, who->name_len))
			continue;
		found++;
		if (h->state == state) /* the same notice once more */
			continue;
		restarted(n, h, state);
		due = true;
	}
	pthread_mutex_unlock(&n->lock);
	/* The notice may have come over a connection, which another thread than the messenger reads. */
	if (due)
		nsm_wake(n);
	return found;
}

static bool is_idle(const struct nsm_host *h, uint64_t now)
{
	const unsigned seconds = h->had_lock ? NSM_IDLE_SECONDS : NSM_UNUSED_SECONDS;

	return h->refs == 0 && h->telling == NSM_TOLD && !h->rebooted &&
	       now > h->idle_ns + seconds * RN_NS_PER_SECOND;
}

/* Under the lock. Others may get what the host had and did not reclaim, so it must not be reclaimed after
 * another restart. False: the host is gone. */
static bool nsm_host_end_grace(struct nsm *n, struct nsm_host *h)
{
	if (!h->former)
		return true;
	h->former = false;
	if (h->refs > 0)
		return true;
	h->lapsed = true;
	nsm_hosts_changed(n);
	return place_idle(n, h);
}

void nsm_hosts_retire(struct nsm *n, uint64_t now)
{
	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < NSM_BUCKETS; i++) {
		struct nsm_host *h = LIST_FIRST(&n->bucket[i]), *next;

		for (; h; h = next) {
			next = LIST_NEXT(h, link);
			if (nsm_host_end_grace(n, h) && is_idle(h, now))
				nsm_host_forget(n, h);
		}
	}
	pthread_mutex_unlock(&n->lock);
}

void nsm_hosts_free(struct nsm *n)
{
	struct nsm_host *h;

	for (unsigned i = 0; i < NSM_BUCKETS; i++) {
		while ((h = LIST_FIRST(&n->bucket[i])) != NULL)
			nsm_host_forget(n, h);
	}
	n->nformer = 0;
}

void nsm_stats(struct nsm *n, struct nsm_stats *out)
{
	pthread_mutex_lock(&n->lock);
	*out = (struct nsm_stats){
		.with_locks = n->held.used,
		.without = n->idle.used,
		.made_room = n->idle.pushed_out,
		.refused = n->held.refused,
		.silent = n->proofs.silent,
		.failing = n->failing || n->mon_failing,
	};
	pthread_mutex_unlock(&n->lock);
}

void nsm_log_quotas(struct nsm *n, uint64_t now)
{
	struct rn_quota_line with, without, answers;
	bool tell_with, tell_without, tell_answers;

	pthread_mutex_lock(&n->lock);
	tell_with = rn_quota_line_due(&n->held, now, &with);
	tell_without = rn_quota_line_due(&n->idle, now, &without);
	tell_answers = rn_quota_line_due(&n->answers, now, &answers);
	pthread_mutex_unlock(&n->lock);
	if (tell_with)
		rn_quota_tell(n->cfg.log, "records of NFSv3 clients with locks", &with);
	if (tell_without)
		rn_quota_tell(n->cfg.log, "records of NFSv3 clients without locks", &without);
	if (tell_answers)
		rn_quota_tell(n->cfg.log, "answers to NLM's messages", &answers);
}

/* Hosts in the image of the state (lib/image.h): the time until which hosts are told, then those that are to be told, or have not reclaimed what they
 * had. Others are in the records. */

#define NSM_SECTION "nsm"

struct saved_telling {
	uint64_t left; /* nanoseconds */
};
static const struct image_field telling_fields[] = {
	IMAGE_NUMBER(1, struct saved_telling, left),
};
static const struct image_kind telling_kind = { 1, rn_array_size(telling_fields), telling_fields };

struct saved_host {
	struct rpc_address addr, local;
	struct image_bytes name;
	bool lapsed, told;
	uint32_t tries;
	uint64_t wait; /* nanoseconds */
};
static const struct image_field saved_host_fields[] = {
	IMAGE_FIXED(1, struct saved_host, addr.bytes),
	IMAGE_NUMBER(2, struct saved_host, addr.scope),
	IMAGE_FIXED(3, struct saved_host, local.bytes),
	IMAGE_NUMBER(4, struct saved_host, local.scope),
	IMAGE_BYTES(5, struct saved_host, name),
	IMAGE_NUMBER(6, struct saved_host, lapsed),
	IMAGE_NUMBER(7, struct saved_host, told),
	IMAGE_NUMBER(8, struct saved_host, tries),
	IMAGE_NUMBER(9, struct saved_host, wait),
};
static const struct image_kind saved_host_kind = { 2, rn_array_size(saved_host_fields),
						   saved_host_fields };

static uint64_t nsm_time_left(uint64_t until_ns, uint64_t now)
{
	return until_ns > now ? until_ns - now : 0;
}

static bool nsm_host_missed_grace(const struct nsm_host *h)
{
	return h->lapsed || (h->former && h->refs == 0);
}

static void nsm_save_host(struct image_writer *w, const struct nsm_host *h)
{
	const struct saved_host s = {
		.addr = h->addr,
		.local = h->local,
		.name = { h->name, h->name_len },
		.lapsed = nsm_host_missed_grace(h),
		.told = h->telling == NSM_TOLD,
		.tries = h->tries,
		.wait = nsm_time_left(h->tell_ns, rn_now_ns()),
	};

	image_put(w, &saved_host_kind, &s);
}

void nsm_save(struct nsm *n, struct image_writer *w)
{
	const struct nsm_host *h;

	pthread_mutex_lock(&n->lock);
	image_begin(w, NSM_SECTION);
	image_put(w, &telling_kind,
		  &(struct saved_telling){ nsm_time_left(n->tell_until_ns, rn_now_ns()) });
	for (unsigned i = 0; i < NSM_TELL_QUEUES; i++)
		TAILQ_FOREACH (h, &n->tell_queue[i], due)
			nsm_save_host(w, h);
	for (unsigned i = 0; i < NSM_BUCKETS; i++)
		LIST_FOREACH (h, &n->bucket[i], link)
			if (h->telling == NSM_TOLD && nsm_host_missed_grace(h))
				nsm_save_host(w, h);
	pthread_mutex_unlock(&n->lock);
}

/* Under the lock. */
static int nsm_load_host(struct nsm *n, struct image_at *at)
{
	struct saved_host s = { .lapsed = false };
	struct of_address of;
	struct nsm_host *h;
	int rc = image_get(at, &saved_host_kind, &s);

	if (rc != 0 || !s.name.at || s.name.len > NSM_NAME_MAX)
		return -EPROTO;
	const struct nsm_peer peer = { s.addr, s.local, s.name.at, s.name.len };

	h = nsm_host_find(n, &peer, &of);
	if (!h)
		rc = nsm_host_add(n, &peer, false, &h);
	if (rc != 0)
		return rc;
	if (h->queue)
		return -EPROTO;
	h->lapsed |= s.lapsed;
	h->had_lock = true;
	nsm_hosts_changed(n);
	h->tries = s.tries;
	h->tell_ns = rn_now_ns() + rn_min(s.wait, NSM_PAUSE_MOST_SECONDS * RN_NS_PER_SECOND);
	if (!s.told) {
		h->telling = NSM_TELL;
		nsm_host_enqueue(h, nsm_tell_queue(n, h), false);
	}
	return 0;
}

int nsm_load(struct nsm *n, struct image_reader *image)
{
	struct saved_telling t = { .left = 0 };
	struct image_at at;
	int rc;

	if (!image_enter(image, NSM_SECTION, &at))
		return 0;
	rc = image_get(&at, &telling_kind, &t);
	pthread_mutex_lock(&n->lock);
	n->tell_until_ns = rn_now_ns() + rn_min(t.left, NSM_TELL_SECONDS * RN_NS_PER_SECOND);
	while (rc == 0 && image_next(&at))
		rc = nsm_load_host(n, &at);
	pthread_mutex_unlock(&n->lock);
	return rc;
}
