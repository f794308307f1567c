/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call once a second on an event thread, by a timerfd. libevent's own timers would be passed to
 * every epoll_wait, which then arms and cancels a timer in the kernel for each call served: about a
 * tenth of the time of a small one.
 */
#ifndef RN_TRANSPORT_SECOND_H
#define RN_TRANSPORT_SECOND_H

struct event;
struct event_base;

struct ev_second {
	struct event *ev; /* NULL: not started */
	int fd;
	void (*tick)(void *arg);
	void *arg;
};

/* s is zero and stays where it is. Seconds missed are made up for by one tick. 0 or -errno */
int ev_second_start(struct ev_second *s, struct event_base *base, void (*tick)(void *arg),
		    void *arg);
void ev_second_stop(struct ev_second *s); /* Does nothing if it was not started. */

#endif
