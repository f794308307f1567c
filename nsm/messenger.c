/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that sends and receives. */
#include <poll.h>
#include <sys/eventfd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"
#include "rpc/message.h"

#define AT_ONCE 64u /* datagrams that are taken before the clock is looked at again */

static void nsm_receive_all(struct nsm *n)
{
	uint8_t in[NSM_DATAGRAM_MAX], out[256];
	struct nsm_datagram d;

	for (unsigned i = 0; i < AT_ONCE && nsm_receive(&n->calls, in, sizeof(in), &d); i++) {
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
