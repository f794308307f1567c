/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/second.h"

#include <errno.h>
#include <event2/event.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct ev_second *s = arg;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		s->tick(s->arg);
}

int ev_second_start(struct ev_second *s, struct event_base *base, void (*tick)(void *arg),
		    void *arg)
{
	const struct itimerspec every = { .it_interval = { .tv_sec = 1 },
					  .it_value = { .tv_sec = 1 } };

	s->tick = tick;
	s->arg = arg;
	s->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	s->ev = event_new(base, s->fd, EV_READ | EV_PERSIST, on_second, s);
	if (s->ev && timerfd_settime(s->fd, 0, &every, NULL) == 0 && event_add(s->ev, NULL) == 0)
		return 0;
	if (s->ev)
		event_free(s->ev);
	s->ev = NULL;
	close(s->fd);
	return -ENOMEM;
}

void ev_second_stop(struct ev_second *s)
{
	if (!s->ev)
		return;
	event_free(s->ev);
	s->ev = NULL;
	close(s->fd);
}
