/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that sends and receives, and tells hosts of a restart. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"
#include "rpc/message.h"
#include "rpc/xdr_out.h"

/*
 * Hosts on record are told that this server has restarted (SM_NOTIFY), with the name of this machine:
 * the full name and the one without the domain by turns, as it is not known which one the host has
 * noted. A server that moves between machines is known by its own name, or by the address that the host calls: these take turns
 * then. Hosts of Linux go by the address. One that cannot be reached is tried again, for as long as sm-notify of Linux does.
 *
 * The first attempts are brief and go to all hosts at once, so that none waits for those that are silent: it has the grace period to
 * reclaim its locks. Later attempts are few at a time.
 */

#define PAUSE_SECONDS 2u /* before the second attempt; doubled each time */
#define AT_ONCE (NSM_CALLS_MAX / 2)
#define BURST                                                                                      \
	128u /* hosts that are told before answers are read, or these would overflow the socket */
#define BURST_NS (20 * RN_NS_PER_MS)
#define LOOK_SECONDS 1u
#define AGAIN_NS (100 * RN_NS_PER_MS)

/* A host that is being told; it keeps a reference. */
struct telling {
	struct nsm *nsm;
	struct nsm_host *host;
};

static void nsm_notify_told(void *ctx, int rc, struct xdr_in *results)
{
	struct telling *t = ctx;
	struct nsm *n = t->nsm;
	struct nsm_host *h = t->host;
	const uint64_t now = rn_now_ns();
	const unsigned pause = h->tries < 6 ? PAUSE_SECONDS << h->tries : NSM_PAUSE_MOST_SECONDS;
	bool given_up = false;

	(void)results;
	free(t);
	pthread_mutex_lock(&n->lock);
	h->tries++;
	h->tell_ns = now + rn_min(pause, NSM_PAUSE_MOST_SECONDS) * RN_NS_PER_SECOND;
	if (h->telling == NSM_BEING_TOLD) {
		given_up = rc && h->tell_ns > n->tell_until_ns;
		h->telling = rc && !given_up ? NSM_TELL : NSM_TOLD;
	}
	if (h->telling == NSM_TELL)
		nsm_host_enqueue(h, nsm_tell_queue(n, h), false);
	nsm_host_drop_locked(n, h);
	pthread_mutex_unlock(&n->lock);
	if (given_up)
		rn_notice(n->cfg.log,
			  "an NFSv3 client that had locks could not be told of the restart: %s",
			  rn_error_text(rc));
}

static void nsm_notify_name(const struct nsm *n, const struct nsm_host *h, char name[256])
{
	const bool other = h->tries % 2;

	if (n->cfg.name && other)
		rn_address_text(h->local.bytes, name);
	else if (n->cfg.name)
		snprintf(name, 256, "%s", n->cfg.name);
	else
		gethostname(name, 255);
	if (!n->cfg.name && other && strchr(name, '.'))
		*strchr(name, '.') = '\0';
}

static uint32_t nsm_notify_put_args(const struct nsm *n, const struct nsm_host *h, uint8_t *out,
				    size_t size)
{
	char name[256] = "";
	struct xdr_out x;

	nsm_notify_name(n, h, name);
	xdr_out_init(&x, out, size);
	xdr_put_opaque(&x, name, (uint32_t)strlen(name));
	xdr_put_u32(&x, n->state);
	return (uint32_t)x.used;
}

static void nsm_notify_tell(struct nsm *n, struct nsm_host *h)
{
	const struct nsm_callee to = { .peer = h->addr,
				       .local = h->local,
				       .prog = NSM_PROGRAM,
				       .vers = NSM_VERSION,
				       .proc = SM_NOTIFY,
				       .brief = h->tries == 0 };
	struct telling *t = malloc(sizeof(*t));
	uint8_t args[512];
	const uint32_t len = nsm_notify_put_args(n, h, args, sizeof(args));
	int rc = -ENOMEM;

	if (t) {
		*t = (struct telling){ n, h };
		rc = nsm_call(&n->calls, &to, args, len,
			      &(struct nsm_call_end){ .done = nsm_notify_told, .ctx = t });
	}
	if (!rc)
		return;
	free(t);
	pthread_mutex_lock(&n->lock);
	if (h->telling == NSM_BEING_TOLD) {
		h->telling = NSM_TELL;
		h->tell_ns = rn_now_ns() + RN_NS_PER_SECOND;
		nsm_host_enqueue(h, nsm_tell_queue(n, h), true);
	}
	nsm_host_drop_locked(n, h);
	pthread_mutex_unlock(&n->lock);
}

/* Under the lock: takes the first host of the queue, with a reference, if its time has come; or NULL. */
static struct nsm_host *nsm_notify_take(struct nsm *n, struct nsm_host_queue *q, uint64_t now)
{
	struct nsm_host *h = TAILQ_FIRST(q);

	if (!h || h->tell_ns > now)
		return NULL;
	nsm_host_dequeue(h);
	nsm_host_hold_locked(n, h);
	return h;
}

/* A host that is to be told, with a reference, or NULL. first: one that was never told. Of the others the one that was
 * told least often is next. */
static struct nsm_host *next_to_tell(struct nsm *n, uint64_t now, bool first)
{
	struct nsm_host *h = NULL;

	pthread_mutex_lock(&n->lock);
	if (first)
		h = nsm_notify_take(n, &n->tell_queue[0], now);
	for (unsigned i = 1; i < NSM_TELL_QUEUES && !h && !first; i++)
		h = nsm_notify_take(n, &n->tell_queue[i], now);
	if (h)
		h->telling = NSM_BEING_TOLD;
	pthread_mutex_unlock(&n->lock);
	return h;
}

static struct nsm_host *next_rebooted(struct nsm *n, uint64_t now)
{
	struct nsm_host *h;

	pthread_mutex_lock(&n->lock);
	h = nsm_notify_take(n, &n->rebooted, now);
	if (h)
		h->rebooted = false;
	pthread_mutex_unlock(&n->lock);
	return h;
}

/* False: some are in use, and their turn comes again. */
static bool free_locks(struct nsm *n, struct nsm_host *h, uint64_t now)
{
	struct nsm_reboot r = { .addr = &h->addr, .name = h->name, .name_len = h->name_len };

	pthread_mutex_lock(&n->lock);
	r.state = h->state;
	pthread_mutex_unlock(&n->lock);
	const bool again = !n->hooks.rebooted(n->hooks.ctx, &r);

	pthread_mutex_lock(&n->lock);
	if (again && !h->rebooted) {
		h->rebooted = true;
		h->tell_ns = now + AGAIN_NS;
		nsm_host_enqueue(h, &n->rebooted, false);
	}
	nsm_host_drop_locked(n, h);
	pthread_mutex_unlock(&n->lock);
	return !again;
}

bool nsm_free_rebooted(struct nsm *n)
{
	struct nsm_host *h;
	bool all = true;

	while (n && all && (h = next_rebooted(n, UINT64_MAX)) != NULL)
		all = free_locks(n, h, rn_now_ns());
	return all;
}

static bool may_tell(struct nsm *n)
{
	bool tell;

	pthread_mutex_lock(&n->lock);
	tell = n->tell && !n->stop;
	pthread_mutex_unlock(&n->lock);
	return tell;
}

/* Tells those hosts that are due. True: there are more, for which answers are read first. */
static bool tell_due(struct nsm *n, uint64_t now)
{
	struct nsm_host *h = NULL;
	unsigned burst = 0;

	while (may_tell(n) && n->calls.brief < NSM_BRIEF_MAX && burst < BURST &&
	       (h = next_to_tell(n, now, true)) != NULL) {
		nsm_notify_tell(n, h);
		burst++;
	}
	while (may_tell(n) && n->calls.n < AT_ONCE && (h = next_to_tell(n, now, false)) != NULL)
		nsm_notify_tell(n, h);
	return burst == BURST;
}

static uint64_t due_of(const struct nsm_host_queue *q)
{
	const struct nsm_host *h = TAILQ_FIRST(q);

	return h ? h->tell_ns : UINT64_MAX;
}

/* When something is due next: locks that could not be freed, hosts to be told, idle hosts. */
static uint64_t next_look(struct nsm *n, uint64_t now)
{
	uint64_t due;

	pthread_mutex_lock(&n->lock);
	due = due_of(&n->rebooted);
	for (unsigned i = 0; i < NSM_TELL_QUEUES && n->tell; i++)
		due = rn_min(due, due_of(&n->tell_queue[i]));
	pthread_mutex_unlock(&n->lock);
	return rn_min(rn_max(due, now + AGAIN_NS), now + LOOK_SECONDS * RN_NS_PER_SECOND);
}

/* Begins to tell hosts that are due, and frees the locks of those that have restarted. Returns the
 * time of the next look, ns. */
static uint64_t nsm_notify_tick(struct nsm *n, uint64_t now)
{
	struct nsm_host *h;
	bool more;

	while ((h = next_rebooted(n, now)) != NULL)
		free_locks(n, h, now);
	more = tell_due(n, now);
	if (now >= n->looked_ns + LOOK_SECONDS * RN_NS_PER_SECOND) {
		n->looked_ns = now;
		if (!n->hooks.in_grace(n->hooks.ctx))
			nsm_hosts_retire(n, now);
		if (n->hooks.tick)
			n->hooks.tick(n->hooks.ctx);
		nsm_log_quotas(n, now);
	}
	return more ? now + BURST_NS : next_look(n, now);
}

#define DATAGRAMS_AT_ONCE 64u /* datagrams that are taken before the clock is looked at again */

static void nsm_receive_all(struct nsm *n)
{
	uint8_t in[NSM_DATAGRAM_MAX], out[256];
	struct nsm_datagram d;

	for (unsigned i = 0; i < DATAGRAMS_AT_ONCE && nsm_receive(&n->calls, in, sizeof(in), &d);
	     i++) {
		if (d.len < 8)
			continue;
		if (rn_get32(d.data + 4) == RPC_REPLY) {
			if (!nsm_prove_reply(n, &d))
				nsm_calls_reply(&n->calls, &d);
			continue;
		}
		d.len = nsm_answer(n, &d, out, sizeof(out));
		d.data = out;
		if (d.len > 0)
			nsm_send(&n->calls, &d);
	}
}

static bool is_stopped(struct nsm *n)
{
	bool stop;

	pthread_mutex_lock(&n->lock);
	stop = n->stop;
	pthread_mutex_unlock(&n->lock);
	return stop;
}

/* Begins and repeats what is due. Returns the time of the next look, ns. */
static uint64_t nsm_messenger_tick(struct nsm *n, uint64_t now)
{
	const uint64_t jobs = nsm_jobs_begin(n, now), notices = nsm_notify_tick(n, now),
		       monitors = nsm_monitors_tick(n, now), calls = nsm_calls_tick(&n->calls, now);

	return rn_min(rn_min(jobs, monitors), rn_min(notices, calls));
}

void nsm_wake(struct nsm *n)
{
	eventfd_write(n->wake, 1);
}

void *nsm_messenger_main(void *nsm)
{
	struct pollfd p[2 + NSM_CALLS_MAX];
	struct nsm *n = nsm;
	eventfd_t count;

	while (!is_stopped(n)) {
		const uint64_t now = rn_now_ns(), until = nsm_messenger_tick(n, now);
		const unsigned streams = nsm_calls_poll(&n->calls, p + 2);

		p[0] = (struct pollfd){ .fd = n->calls.fd, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = n->wake, .events = POLLIN };
		if (poll(p, 2 + streams,
			 until > now ? (int)((until - now) / RN_NS_PER_MS) + 1 : 0) <= 0)
			continue;
		nsm_calls_polled(&n->calls, p + 2);
		if (p[0].revents)
			nsm_receive_all(n);
		if (p[1].revents) {
			eventfd_read(n->wake, &count);
			nsm_answer_waiting(n);
		}
	}
	return NULL;
}
